"""The first page of a report: which judge, what each choice does, and where judges disagree."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.frames import first_rows, level_name, own_rows
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.analysis.report.judges import judges_as_text
from judge_gym.analysis.report.page import (
    Chart,
    Disagreement,
    Quote,
    Report,
    ReportInput,
    Summary,
)
from judge_gym.analysis.stats.contrasts import ALL
from judge_gym.analysis.stats.intervals import Floats
from judge_gym.analysis.verdicts import ratio
from judge_gym.records.judge_table import JudgeTable, KnobEffect, Quantity
from judge_gym.records.numbers import points, signed_points

CASES = 3
"""The number of disagreements that a summary shows."""
LEAST_GAP = 0.25
"""The distance of two setups, from 0 to 1, from which a disagreement is worth a quote."""
LONGEST_QUOTE = 280
LEVEL = 0.05


def summarize(given: ReportInput, frame: pd.DataFrame) -> Summary:
    """Returns the summary of a report, with quotes that have no text yet.

    Args:
        given: what the report is made of.
        frame: the tidy samples with all their knobs.
    """
    table = given.judges
    assert table is not None
    return Summary(
        sentence=table["sentence"],
        judges=judges_as_text(table),
        chart=_ranked(table),
        choices=tuple(_choices(given, table)),
        disagreements=tuple(_disagreements(frame)),
        caveats=(*table["notes"], *given.confounded),
    )


def _ranked(table: JudgeTable) -> Chart | None:
    """Returns the figure of setups by quality, or without known answers by consistency."""
    name = "truth" if table["kind"] else "consistency"
    titles = {
        "accuracy": "share of known answers",
        "agreement": "agreement with people",
        None: "share of repeats with the same verdict",
    }
    rows = []
    for row in table["rows"]:
        quantity: Quantity | None = row[name]  # type: ignore[literal-required]  # a key of JudgeRow
        if quantity is not None:
            numbers = {key: quantity[key] for key in ("value", "low", "high")}
            rows.append({"setup": row["setup"], "judge.model": row["judge"], **numbers})
    frame = pd.DataFrame(rows)
    if not rows:
        return None
    frame = frame.assign(quantity=titles[table["kind"]]).sort_values(
        "value", ascending=False, kind="stable"
    )
    return Chart("Judges compared", figures.ranked_figure, frame)


# --- what each choice does -----------------------------------------------------------------------


def _choices(given: ReportInput, table: JudgeTable) -> Iterator[str]:
    """Yields a line per level of each varied knob: what it does to quality, else to stages."""
    what = "accuracy" if table["kind"] == "accuracy" else "agreement with people"
    known = set()
    for effect in table["effects"]:
        name = level_name(effect["level"])
        known.add((effect["knob"], name))
        instead = f"{effect['knob']} {name} instead of {level_name(effect['base'])}"
        yield f"{instead} {_quality_effect(effect, what)}"
    data = given.data.without_pairs
    if not data.scored:
        return
    rows = given.contrasts
    headlines = rows[rows["judge"] == ALL] if (rows["judge"] == ALL).any() else rows
    stages = headlines[(headlines["endpoint"] == "stage") & headlines["value"].notna()]
    for (knob, level, base), part in stages.groupby(["knob", "level", "base"], sort=False):
        if (knob, level) not in known:
            told = _stage_effect(part, tasks=rows["task"].nunique())
            yield f"{knob} {level} instead of {base} {told}"


def _quality_effect(effect: KnobEffect, what: str) -> str:
    """States how many points of quality a choice adds or costs; clear if its interval excludes 0.

    >>> _quality_effect({"value": -0.16, "low": -0.21, "high": -0.11, "n": 80}, "accuracy")
    'costs 16 points of accuracy (-21 to -11, 80 items)'
    """
    value, low, high = effect["value"], effect["low"], effect["high"]
    if low is None or high is None:
        return f"shows no clear effect on {what}: {signed_points(value)} points"
    ends = f"({signed_points(low)} to {signed_points(high)}, {effect['n']:,} items)"
    if low <= 0 <= high:
        return f"shows no clear effect on {what}: {signed_points(value)} points {ends}"
    verb = "adds" if value > 0 else "costs"
    return f"{verb} {points(abs(value))} points of {what} {ends}"


def _stage_effect(rows: pd.DataFrame, *, tasks: int) -> str:
    """States the clearest effect of a choice on stages, and how many tasks show none."""
    clear = rows[rows["q"] < LEVEL]
    top = (clear if len(clear) else rows).sort_values("value", key=abs, kind="stable").iloc[-1]
    ends = f" ({top['low']:+.3f} to {top['high']:+.3f})" if pd.notna(top["low"]) else ""
    where = f" on {top['task']}" if tasks > 1 else ""
    if not len(clear):
        return f"shows no clear effect on stages: {top['value']:+.3f} of the scale{ends}{where}"
    way = "up" if top["value"] > 0 else "down"
    others = rows["task"].nunique() - clear["task"].nunique()
    rest = f"; no clear effect on {others} other task{'s' * (others > 1)}" if others else ""
    return f"moves verdicts {way} by {abs(top['value']):.3f} of the scale{ends}{where}{rest}"


# --- disagreements -------------------------------------------------------------------------------


def quoted_calls(report: Report) -> tuple[int, ...]:
    """Lists the calls whose answers the summary quotes."""
    cases = report.summary.disagreements
    calls = (quote.call_id for case in cases for quote in case.quotes)
    return tuple(call for call in calls if call is not None)


def with_quotes(report: Report, texts: Mapping[int, str]) -> Report:
    """Adds the ends of the quoted answers to a report.

    Args:
        report: a report whose quotes have no text yet.
        texts: the texts of answers, by the number of their call.
    """

    def quote(of: Quote) -> Quote:
        text = "" if of.call_id is None else texts.get(of.call_id, "")
        return replace(of, text=_end_of(text))

    cases = tuple(
        replace(case, quotes=(quote(case.quotes[0]), quote(case.quotes[1])))
        for case in report.summary.disagreements
    )
    return replace(report, summary=replace(report.summary, disagreements=cases))


def _disagreements(frame: pd.DataFrame) -> list[Disagreement]:
    """Returns the items on which two setups differ most, each with a verdict of both."""
    cases = most_disputed(own_rows(frame), CASES)
    several = frame["concept"].nunique() > 1
    return [
        Disagreement(
            _item_name(rows[0][1]) + (f" ({rows[0][1]['concept']})" if several else ""),
            evidence,
            (_quote(*rows[0]), _quote(*rows[1])),
        )
        for evidence, rows in cases
    ]


def _item_name(row: pd.Series) -> str:
    title = row["evidence_title"]
    return str(title) if isinstance(title, str) and title else f"item {row['evidence']}"


JUDGED = ("task", "evidence", "rubric_kind", "n_stages")
"""What a setup's verdicts are about, and on which scale."""
Case = tuple[str, tuple[tuple[str, pd.Series], tuple[str, pd.Series]]]


def most_disputed(own: pd.DataFrame, count: int) -> list[Case]:
    """Returns the items on which two setups are farthest apart, with a typical sample of each.

    The distance of ordered stages is that of their means, from 0 to 1; of other rubrics it is the
    share of verdicts that would have to change. Items come once each, the farthest apart first.
    """
    scored = own[own["status"] == "scored"]
    if scored.empty:
        return []
    about = np.asarray(scored.groupby([*JUDGED], observed=True).ngroup(), dtype=np.intp)
    judged = scored[[*JUDGED]].iloc[first_rows(about)]
    tasks, items = judged["task"].tolist(), judged["evidence"].tolist()
    last = judged["n_stages"].to_numpy() - 1
    ordered = (judged["rubric_kind"] == "ordinal").to_numpy()
    setups, samples = setups_of(scored), scored.assign(judged=about)
    rows_of = {setup.name: samples.iloc[setup.index] for setup in setups}
    shares = {
        name: _stage_shares(rows, len(judged), int(last.max()) + 1)
        for name, rows in rows_of.items()
    }
    found: list[tuple[float, str, str, str, str]] = []
    for one, other in combinations(shares, 2):
        moved = shares[one] - shares[other]
        means = np.abs(moved @ np.arange(moved.shape[1])) / np.maximum(last, 1)
        gap = np.where(ordered, means, np.abs(moved).sum(axis=1) / 2)
        both = np.flatnonzero(~np.isnan(gap))
        for place in both[np.argsort(-gap[both], kind="stable")[:count]]:
            found.append((float(gap[place]), str(tasks[place]), str(items[place]), one, other))
    cases: dict[str, Case] = {}
    for gap, task, item, one, other in sorted(found, key=lambda row: (-row[0], *row[1:])):
        if gap >= LEAST_GAP and item not in cases and len(cases) < count:
            left_row, right_row = (_typical(rows_of[name], task, item) for name in (one, other))
            cases[item] = (item, ((one, left_row), (other, right_row)))
    return list(cases.values())


def _stage_shares(rows: pd.DataFrame, judged: int, most: int) -> Floats:
    """Returns the share of each stage among a setup's verdicts on what it judged, NaN elsewhere."""
    code, masks = rows["judged"].to_numpy(), rows["mask"].to_numpy()
    bits = (masks[:, None] >> np.arange(most)) & 1
    each = bits / np.maximum(bits.sum(axis=1, keepdims=True), 1)
    sums = np.column_stack([np.bincount(code, column, judged) for column in each.T])
    return ratio(sums, np.bincount(code, minlength=judged)[:, None])


def _typical(every: pd.DataFrame, task: str, item: str) -> pd.Series:
    """Returns the first sample with the verdict that a setup gives most often on an item.

    Its `times` is how often the setup gives it, `of` how many verdicts there are.
    """
    of_task = every[every["task"] == task]
    rows = of_task[of_task["evidence"].astype(str) == item]
    usual = rows[rows["mask"] == rows["mask"].mode().iloc[0]]
    found: pd.Series = usual.assign(times=len(usual), of=len(rows)).iloc[0]
    return found


def _quote(setup: str, row: pd.Series) -> Quote:
    """Returns a verdict, without the text of its answer."""
    stages = [n + 1 for n in range(int(row["n_stages"])) if int(row["mask"]) >> n & 1]
    if row["pair"]:
        names = {1: "the first is better", 2: "the second is better", 3: "a tie"}
        verdict = " or ".join(names.get(stage, f"stage {stage}") for stage in stages)
    else:
        listed = ", ".join(map(str, stages))
        verdict = f"stage{'s' * (len(stages) > 1)} {listed} of {int(row['n_stages'])}"
    if row["times"] < row["of"]:
        verdict += f", in {row['times']} of {row['of']} verdicts"
    call = int(row["call_id"]) if pd.notna(row["call_id"]) else None
    return Quote(setup, verdict, call_id=call)


def _end_of(text: str) -> str:
    r"""Returns the end of a reasoning, without the line that holds the verdict.

    >>> _end_of("It is rude. The reply blames the user.\n\nVERDICT: B")
    'It is rude. The reply blames the user.'
    """
    lines = [line.strip() for line in text.splitlines()]
    plain = " ".join(line for line in lines if line and "VERDICT:" not in line.upper())
    if len(plain) <= LONGEST_QUOTE:
        return plain
    cut = plain[-LONGEST_QUOTE:]
    return "… " + cut[cut.find(" ") + 1 :]
