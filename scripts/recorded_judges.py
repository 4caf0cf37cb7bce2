"""Writes docs/findings/recorded-judges.md: what LLMBar's recorded verdicts say about judges.

Run `.venv/bin/python scripts/recorded_judges.py PATH`, where PATH is the folder of LLMBar's
subsets. `--only NAME` prints one section and writes nothing. The data are not part of this project.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.figures import accuracy_figure, svg
from judge_gym.analysis.frames import JUDGE, tidy
from judge_gym.analysis.judges.setups import Setup, groups_as_setups
from judge_gym.analysis.measures.pairs import inconsistent
from judge_gym.analysis.stats.comparisons import PairedResult, compare_pair
from judge_gym.analysis.stats.intervals import SHARE, Estimate, Statistic, between, estimate, seeded
from judge_gym.analysis.stats.paired_tests import among_known, benjamini_hochberg, holm
from judge_gym.analysis.verdicts import Verdicts, of_setups
from judge_gym.recorded import Recording, as_samples
from judge_gym.recorded.importers import llmbar
from judge_gym.recorded.readings import as_read, disagreements

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "findings" / "recorded-judges.md"
FIGURE = DOCS / "images" / "recorded-judges.svg"
COMMAND = "python scripts/recorded_judges.py PATH"
Floats = npt.NDArray[np.float64]
MODELS = ("GPT-4", "ChatGPT", "ChatGPT-0301", "LLaMA2", "PaLM2", "Falcon")
OLD, NEW = "ChatGPT-0301", "ChatGPT"
PANEL = ("GPT-4", "ChatGPT", "LLaMA2", "PaLM2", "Falcon")
"""Five different models: of the two versions of ChatGPT, the newer one."""
WITHOUT_RULES = "Vanilla_NoRules"
FOLDS = 10
TRIED: Mapping[str, str] = {
    "Vanilla": "adding rules to the prompt",
    "CoT": "thinking before the verdict",
    "Vanilla_1shot": "an example",
    "Metrics": "the judge's own questions",
    "Reference": "the judge's own answer",
    "Metrics_Reference": "own questions and own answer (two choices)",
    "Rating": "a score for each output",
    "Swap": "asking again where the two orders differ",
}
"""What each strategy adds to the one that it is compared with."""


@dataclass(frozen=True)
class Reading:
    """The recorded verdicts under one way to read the answers."""

    recording: Recording

    @cached_property
    def _setups(self) -> tuple[Verdicts, Mapping[tuple[str, str], int]]:
        samples, _ = as_samples(self.recording)
        frame = tidy(samples, source=self.recording.source)
        groups = groups_as_setups(frame, [JUDGE, llmbar.STRATEGY])
        setups: list[Setup] = [setup for _, setup in groups]
        keys = {(str(model), str(name)): n for n, ((model, name), _) in enumerate(groups)}
        return of_setups(frame, setups), keys

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """The pairs of model and strategy that were recorded."""
        return [*self._setups[1]]

    @property
    def clusters(self) -> npt.NDArray[np.int64]:
        """The number of each item's cluster."""
        return self._setups[0].clusters

    @property
    def items(self) -> list[str]:
        """The items, in the order of all values."""
        return [str(item) for _, item in self._setups[0].units]

    @cached_property
    def right(self) -> Mapping[tuple[str, str], Floats]:
        """How right each judge is on each item, averaged over the two orders."""
        verdicts, keys = self._setups
        table = verdicts.per_cell(verdicts.references["accuracy"].right)
        return {key: table[:, number] for key, number in keys.items()}

    @cached_property
    def dependent(self) -> Mapping[tuple[str, str], Floats]:
        """Whether the verdicts on each item differ between the two orders."""
        verdicts, keys = self._setups
        terms, values = inconsistent(verdicts), {}
        for key, number in keys.items():
            if number in terms:
                values[key] = np.full(len(verdicts.units), np.nan)
                values[key][terms[number].units] = np.round(
                    terms[number].contributions(verdicts.clusters), 9
                )
        return values

    def compare(
        self,
        values: Mapping[tuple[str, str], Floats],
        left: tuple[str, str],
        right: tuple[str, str],
    ) -> PairedResult:
        """Compares two judges, left minus right, on the same items."""
        key = ["recorded judges", *left, *right]
        return compare_pair(values[left], values[right], self.clusters, key=key)


@dataclass(frozen=True)
class Data:
    """The verdicts as the publication recorded them, and as we read the same answers."""

    recording: Recording

    @cached_property
    def recorded(self) -> Reading:
        """The published verdicts."""
        return Reading(self.recording)

    @cached_property
    def read(self) -> Reading:
        """The verdicts that the answers state in their own words."""
        return Reading(as_read(self.recording))


# --- words ---------------------------------------------------------------------------------------


def points(difference: Estimate) -> str:
    """Writes a difference of shares in points, with its interval."""
    value, low, high = (f"{100 * part:+.1f}" for part in difference[:3])
    if not difference.known:
        return f"{value} (no interval: {difference.withheld})"
    return f"{value} [{low}, {high}]"


def percent(share: Estimate) -> str:
    """Writes a share in percent, with its interval."""
    value, low, high = (f"{100 * part:.1f}" for part in share[:3])
    return f"{value} % [{low}, {high}]"


def p_text(p: float) -> str:
    """Writes a p-value with as many decimals as it needs."""
    return "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Writes a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def list_words(words: Sequence[str]) -> str:
    """Joins words by commas and `and`."""
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def wrap(page: str) -> str:
    """Wraps paragraphs; tables, headings, pictures and commands keep their lines."""
    blocks = page.split("\n\n")
    kept = ("|", "#", "!", "    ")
    return "\n\n".join(
        block
        if block.startswith(kept)
        else fill(" ".join(block.split()), 118, break_on_hyphens=False)
        for block in blocks
    )


# --- the questions -------------------------------------------------------------------------------


class Contrast(NamedTuple):
    """A strategy compared with the one from which it differs in a single choice."""

    model: str
    strategy: str
    base: str
    difference: Estimate
    p: float
    holm: float
    """The p-value after Holm's correction over all contrasts."""
    q: float
    """The p-value after Benjamini and Hochberg's correction."""


def contrasts(reading: Reading) -> list[Contrast]:
    """Compares each strategy with its base, for each model that was asked with both."""
    keys = {*reading.keys}
    sides = [
        (model, strategy, llmbar.BASES[strategy])
        for model in MODELS
        for strategy in TRIED
        if {(model, strategy), (model, llmbar.BASES[strategy])} <= keys
    ]
    results = [
        reading.compare(reading.right, (model, strategy), (model, base))
        for model, strategy, base in sides
    ]
    p = [result.p for result in results]
    corrected = zip(among_known(holm, p), among_known(benjamini_hochberg, p), strict=True)
    return [
        Contrast(*side, result.difference, result.p, float(adjusted), float(q))
        for side, result, (adjusted, q) in zip(sides, results, corrected, strict=True)
    ]


def strategies(data: Data) -> str:
    """How many differences between strategies survive correction."""
    table = contrasts(data.read)
    supported = [contrast.difference.value for contrast in table if contrast.holm < 0.05]
    better = sum(value > 0 for value in supported)
    alone = sum(contrast.p < 0.05 for contrast in table)
    controlled = sum(contrast.q < 0.05 for contrast in table)
    published = sum(contrast.holm < 0.05 for contrast in contrasts(data.recorded))
    widest = max(
        100 * (contrast.difference.high - contrast.difference.low) / 2 for contrast in table
    )
    rows = [
        [
            contrast.model,
            f"{contrast.strategy} against {contrast.base}",
            TRIED[contrast.strategy],
            points(contrast.difference),
            p_text(contrast.p),
            f"**{p_text(contrast.holm)}**" if contrast.holm < 0.05 else p_text(contrast.holm),
        ]
        for contrast in table
    ]
    return f"""## How many differences between strategies survive correction?

**{len(supported)} of {len(table)}: {better} strategies are better than what they are compared
with, {len(supported) - better} worse. The other {len(table) - len(supported)} are undecided, which
does not mean that there is no difference.**

Each strategy is compared with the one from which it differs in a single choice, on the same
{len(data.recording.items)} items. Holm's correction holds for all {len(table)} comparisons
together; without it {alone} would seem clear, and {controlled} keep a false discovery rate of 5 %.
With the published winners {published} survive. An interval reaches up to {widest:.1f} points either
way, so that effects of that size cannot be excluded.

{markdown_table(["model", "strategy", "adds", "accuracy, points", "p", "p, Holm"], rows)}

*Caveat.* Strategies differ in the token limit too. `Metrics_Reference` changes two choices at once.
`Rating` scores each output by itself: equal scores count one half.

Command: `{COMMAND} --only strategies`.
"""


def thinking(data: Data) -> str:
    """What thinking first does to accuracy and to dependence on the order."""
    sides = [((model, "CoT"), (model, "Vanilla")) for model in MODELS]
    readings = (data.recorded, data.read)
    accuracy = [[of.compare(of.right, *side) for of in readings] for side in sides]
    order = [[of.compare(of.dependent, *side) for of in readings] for side in sides]
    among_all = {one.model: one.holm for one in contrasts(data.read) if one.strategy == "CoT"}
    better, worse = clear_sides(accuracy, np.array([among_all[model] for model in MODELS]))
    more, less = clear_sides(order, holm([read.p for _, read in order]))
    rows = [
        [model, *(points(one.difference) for one in (*of_accuracy, *of_order))]
        for model, of_accuracy, of_order in zip(MODELS, accuracy, order, strict=True)
    ]
    header = ["model", "accuracy, recorded", "as read", "depends on order, recorded", "as read"]
    return f"""## Does thinking before the verdict help?

**Accuracy rises in {list_words(better) or "none"} of the {len(MODELS)} models, falls in
{list_words(worse) or "none"} and is undecided in the others. Verdicts depend more on the order of
the outputs in {list_words(more) or "none"}, and less in {list_words(less) or "none"}.**

`CoT` minus `Vanilla`: both prompts contain the same rules, and only the reasoning before the
verdict differs. A verdict depends on the order if the winner changes when the outputs change
places. The sentence is about the verdicts as read, by Holm's correction: of accuracy among all
comparisons above, of the order among its {len(MODELS)}. n = {len(data.recording.items)} items;
each interval stands by itself, in points.

{markdown_table(header, rows)}

*Caveat.* These are models of 2023 with a low limit on tokens, which may cut the thought off. For
PaLM2 about half of the loss of accuracy, and most of the dependence on the order, is a mistake of
the published parser (see below).

Command: `{COMMAND} --only thinking`.
"""


def clear_sides(
    results: Sequence[Sequence[PairedResult]], p: Floats
) -> tuple[list[str], list[str]]:
    """Lists the models whose difference, as read, is above 0 and below 0 after correction."""
    values = [read.difference.value for _, read in results]
    clear = [*zip(MODELS, values, p, strict=True)]
    above = [model for model, value, adjusted in clear if adjusted < 0.05 and value > 0]
    return above, [model for model, value, adjusted in clear if adjusted < 0.05 and value < 0]


def misread(data: Data) -> str:
    """How many verdicts the published parser misread."""
    verdicts, differing = data.recording.verdicts, disagreements(data.recording)
    both = differing[(differing["label"] != "") & (differing["read_label"] != "")]
    setups = ["judge", llmbar.STRATEGY]
    counts = both.groupby(setups).size().sort_values(ascending=False)
    rows = []
    for model, strategy in counts.index:
        own = verdicts[(verdicts["judge"] == model) & (verdicts[llmbar.STRATEGY] == strategy)]
        wrong = own.index.isin(both.index).astype(float)
        share = estimate(pd.Series(wrong).groupby(own["item"].to_numpy()).mean(), scale=SHARE)
        key = (str(model), str(strategy))
        cells = []
        for measure in ("right", "dependent"):
            for reading in (data.recorded, data.read):
                cells.append(f"{100 * np.nanmean(getattr(reading, measure)[key]):.1f} %")
        rows.append(
            [
                f"{model}, {strategy}",
                f"{counts[model, strategy]} of {len(own)}",
                percent(share),
                *cells,
            ]
        )
    header = [
        "judge",
        "misread",
        "share",
        "accuracy, recorded",
        "read",
        "depends on order, recorded",
    ]
    read = int((verdicts["read_status"] != "").sum())
    most = counts.index[0]
    return f"""## How many verdicts did the published parser misread?

**{len(both)} of {read:,} recorded winners say the opposite of the answer's own words,
{counts.iloc[0]} of them in one
condition: {most[0]} with `{most[1]}`.**

There the parser looked for the first line that begins with the name of an output, and for `Output
(a)`
before `Output (b)`. An answer such as "Output (b) is better. (new line) Output (a) is too long."
was
read as (a). We take the last "Output (...) is better" of the answer, and nothing if two in a row
contradict each other.

{markdown_table([*header, "as read"], rows)}

Besides, {len(differing) - len(both)} answers have a verdict in only one of the two readings. The
interval is over items.

*Caveat.* Our reading is a rule too; every disagreement can be listed and looked at.

Command: `{COMMAND} --only misread`.
"""


def update(data: Data) -> str:
    """What an update of a model changed."""
    read = data.read
    shared = [
        strategy for model, strategy in read.keys if model == NEW and (OLD, strategy) in read.keys
    ]
    sides = [((NEW, strategy), (OLD, strategy)) for strategy in shared]
    accuracy = [read.compare(read.right, *side) for side in sides]
    order = [read.compare(read.dependent, *side) for side in sides]
    p = holm([result.p for result in (*accuracy, *order)]).reshape(2, -1)
    lower, less = (
        sum(
            result.difference.value < 0 and adjusted < 0.05
            for result, adjusted in zip(of, ps, strict=True)
        )
        for of, ps in zip((accuracy, order), p, strict=True)
    )
    rows = [
        [
            strategy,
            points(accuracy[number].difference),
            p_text(p[0, number]),
            points(order[number].difference),
            p_text(p[1, number]),
            percent(changed_share(data, strategy)),
        ]
        for number, strategy in enumerate(shared)
    ]
    header = ["strategy", "accuracy, points", "p, Holm", "depends on order, points", "p, Holm"]
    return f"""## What did an update of a model change?

**`{NEW}`, which followed `{OLD}`, is less accurate with {lower} of {len(shared)} strategies, and
depends less
on the order of the outputs with {less}.**

The newer version minus the older, with the same prompts on the same {len(data.recording.items)}
items; Holm's
correction over the {2 * len(shared)} comparisons.

{markdown_table([*header, "verdicts that differ"], rows)}

*Caveat.* Each version was asked once in each order. How many verdicts differ between two runs of
one
version is not recorded, so that the last column cannot be told from the noise of repeats. A judge
in use should name the version of its model, not an alias that the provider moves.

Command: `{COMMAND} --only update`.
"""


def changed_share(data: Data, strategy: str) -> Estimate:
    """Estimates the share of verdicts that differ between the versions of the model."""
    verdicts = as_read(data.recording).verdicts
    own = verdicts[verdicts[llmbar.STRATEGY] == strategy]
    new, old = (
        own[own["judge"] == model].set_index(["item", "flipped"])["label"] for model in (NEW, OLD)
    )
    changed = (new != old.reindex(new.index)).astype(float)
    return estimate(changed.groupby(level="item").mean(), scale=SHARE)


def jury(data: Data) -> str:
    """What the votes of five judges are worth."""
    right = np.column_stack([data.read.right[model, WITHOUT_RULES] for model in PANEL])
    clusters = data.read.clusters
    votes = estimate(effective_votes(1 - right), clusters, scale=between(1, len(PANEL)))
    majority = majority_right(as_read(data.recording), data)
    best = best_on_other_folds(right, clusters)
    result = compare_pair(majority, best, clusters, key="majority against the best judge")
    shares = {
        model: estimate(right[:, number], clusters, scale=SHARE)
        for number, model in enumerate(PANEL)
    }
    rows = [[model, percent(share)] for model, share in shares.items()]
    rows += [
        ["majority of the five", percent(estimate(majority, clusters, scale=SHARE))],
        [
            "best single judge, chosen on other items",
            percent(estimate(best, clusters, scale=SHARE)),
        ],
    ]
    return f"""## What are the votes of five judges worth?

**As much as {votes.value:.2f} [{votes.low:.2f}, {votes.high:.2f}] independent votes. The majority
minus the best single judge:
{points(result.difference)} points of accuracy.**

The five models vote without rules (`{WITHOUT_RULES}`), in each order; a tie counts one half.
Effective
votes are n / (1 + (n - 1) r), where r is the mean correlation of two judges' errors on an item.
The best
single judge is chosen on nine tenths of the items and scored on the rest, ten times; n =
{len(right)} items.

{markdown_table(["who decides", "accuracy"], rows)}

*Caveat.* One judge is far better than the other four, and a majority of equals may do better. Most
items were selected because they mislead judges, which makes errors more alike.

Command: `{COMMAND} --only jury`.
"""


def effective_votes(errors: Floats) -> Statistic:
    """Makes the statistic n / (1 + (n - 1) r) of the errors of n judges by item."""
    n, pairs = errors.shape[1], [*combinations(range(errors.shape[1]), 2)]
    products = np.column_stack([errors[:, a] * errors[:, b] for a, b in pairs])
    rows = np.column_stack([np.ones(len(errors)), errors, errors**2, products])

    def votes(sums: Floats) -> Floats:
        mean, square, together = np.split(sums[..., 1:] / sums[..., :1], [n, 2 * n], axis=-1)
        spread = np.sqrt(square - mean**2)
        correlations = [
            (product - mean[..., a] * mean[..., b]) / (spread[..., a] * spread[..., b])
            for product, (a, b) in zip(np.moveaxis(together, -1, 0), pairs, strict=True)
        ]
        effective: Floats = n / (1 + (n - 1) * np.mean(correlations, axis=0))
        return effective

    return Statistic(rows, votes)


def majority_right(recording: Recording, data: Data) -> Floats:
    """Computes how right the majority of the panel is on each item, averaged over the orders."""
    verdicts = recording.verdicts
    own = verdicts["judge"].isin(PANEL) & (verdicts[llmbar.STRATEGY] == WITHOUT_RULES)
    votes = verdicts[own].assign(vote=verdicts["label"].map({"first": 1, "second": -1}).fillna(0))
    balance = votes.groupby(["item", "flipped"])["vote"].sum()
    truth = recording.items.set_index("item")["truth"].map({"first": 1, "second": -1})
    right = (
        np.sign(balance) * truth.reindex(balance.index.get_level_values("item")).to_numpy() + 1
    ) / 2
    verdicts_of, _ = data.read._setups
    items = [item for _, item in verdicts_of.units]
    values: Floats = right.groupby(level="item").mean().reindex(items).to_numpy()
    return values


def best_on_other_folds(right: Floats, clusters: npt.NDArray[np.int64]) -> Floats:
    """Returns how right the judge is that was best on the other folds, item by item."""
    order = seeded("folds of recorded judges").permutation(int(clusters.max()) + 1)
    fold = order[clusters] % FOLDS
    values = np.empty(len(right))
    for number in range(FOLDS):
        scored = fold == number
        values[scored] = right[scored][:, right[~scored].mean(axis=0).argmax()]
    return values


SECTIONS: Mapping[str, Callable[[Data], str]] = {
    "strategies": strategies,
    "thinking": thinking,
    "misread": misread,
    "update": update,
    "jury": jury,
}


# --- the page ------------------------------------------------------------------------------------


def draw(data: Data) -> str:
    """Draws accuracy with intervals, a panel for each model and a row for each strategy."""
    rows = [
        {
            "panel": model,
            JUDGE: strategy,
            **estimate(values, data.read.clusters, scale=SHARE).named("accuracy", "low", "high"),
        }
        for model in MODELS
        for (of, strategy), values in data.read.right.items()
        if of == model
    ]
    chart = accuracy_figure(
        pd.DataFrame(rows), "Accuracy of recorded judges on LLMBar, by strategy"
    )
    return svg(chart)


def write_page(data: Data) -> str:
    """Writes the page with all sections."""
    items = data.recording.items
    subsets = ", ".join(f"{name} {n}" for name, n in items["category"].value_counts().items())
    sections = "\n".join(section(data) for section in SECTIONS.values())
    return f"""# What recorded verdicts say about judges

*Which of the effects that a paper shows survive correction, and which are the parser's?*

Everything on this page is computed from verdicts that others recorded:
[LLMBar](https://arxiv.org/abs/2310.07641)
(Zeng et al. 2024), {len(items)} pairs of outputs for an instruction of which one follows it
better ({subsets}), judged by
{len(MODELS)} models with up to {len(TRIED) + 1} strategies, each pair in both orders:
{len(data.recording.verdicts):,} verdicts. Guessing
is right in half of the pairs. Verdicts are read from the answers in our way unless "as recorded"
is written; intervals
are 95 %, over items. `{COMMAND}` writes this page; the data are not part of this project.

![Accuracy with intervals by model and strategy](../images/{FIGURE.name})

{sections}
## See for yourself

`import llmbar PATH --study llmbar` makes a study of the collection. Then `judge-gym judges llmbar`
compares the judges, `judge-gym report llmbar --out llmbar.html` writes everything else, and a lab
shows every answer. [Published collections](../published.md) describes the formats, and what is
wrong in them."""


def main() -> None:
    """Writes the page and its figure, or prints a section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="the folder of LLMBar's subsets")
    parser.add_argument("--only", choices=SECTIONS)
    options = parser.parse_args()
    [recording] = llmbar.read(options.path)
    data = Data(recording)
    if options.only:
        print(wrap(SECTIONS[options.only](data)))
        return
    PAGE.write_text(wrap(write_page(data).rstrip()) + "\n", encoding="utf-8")
    FIGURE.write_text(draw(data), encoding="utf-8")
    print(f"wrote {PAGE} and {FIGURE}")


if __name__ == "__main__":
    main()
