"""Pairs, the whole path: a study of two responses to a question, run, stored, measured."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from scipy import stats

from conftest import Scripted, study_file
from engines import replace_engine
from judge_gym import verdict_distribution
from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.pairs import pair_verdicts, score_pairs
from judge_gym.axes import Design
from judge_gym.engine import FINISHED, Engine, RunProgress
from judge_gym.errors import ProviderError
from judge_gym.lab import Lab
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import (
    Completion,
    Display,
    Draw,
    Evidence,
    Message,
    NominalRubric,
    Pool,
    Request,
    RubricStage,
    Sample,
)
from judge_gym.stages import Scorer, ScoreTarget
from judge_gym.store import Payer, Store, Targets
from judge_gym.studies import Experiment, Task
from stores import blank, recorded

Write = Callable[..., Path]
ALPHA = 1e-6
"""Draws are deterministic, so a test either always passes or never; a true one fails 1 in 10^6."""
FAR = float(stats.norm.isf(ALPHA / 2))
TITLES = ("The first response is better", "The second response is better", "Neither is better")
RUBRIC = {
    "kind": "nominal",
    "stages": [{"label": title, "criteria": [f"{title}, by its answer"]} for title in TITLES],
}
# A simulated judge prefers the response of more strain; the five differ by much, little or nothing.
RESPONSES = (
    ("It was upheld.", "It was abolished."),
    ("It was fined.", "It was postponed."),
    ("It was disputed.", "It was delayed."),
    ("It was dismissed and fined.", "It was fined and dismissed."),
    ("It was banned.", "It was dismissed."),
)
ITEMS, SAMPLES = len(RESPONSES), 2
ORDERS = {"both": (False, True), "given": (False,), "swapped": (True,)}


def pairs_file(folder: Path, name: str = "study.yaml", **changes: Any) -> Path:
    """Writes a study of five pairs, one judge and two samples, with any key replaced."""
    lines = [
        {
            "title": f"pair {number}",
            "text": f"What became of case {number}?",
            "responses": list(responses),
            "truth": 1 + number % 2,
        }
        for number, responses in enumerate(RESPONSES)
    ]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (folder / "options.json").write_text(json.dumps(RUBRIC))
    task = {"type": "benchmark", "concept": "the better response"}
    given = {
        "study": "pairs",
        "samples": SAMPLES,
        "evidence": {"cases": {"files": "pairs.jsonl"}},
        "tasks": [{**task, "evidence": "cases", "rubric": "options.json"}],
        "judges": ["sim:judge?noise=0.4"],
        "design": None,
    }
    return study_file(folder, name, **{**given, **changes})


@pytest.fixture
def study(tmp_path: Path) -> Write:
    """Writes a study of pairs into the folder of the test."""
    return partial(pairs_file, tmp_path)


def paid(lab: Lab) -> Counter[str]:
    """Attempts so far, by stage."""
    total: Counter[str] = Counter()
    for row in lab.reports.usage():
        total[row["stage"]] += row["attempts"]
    return total


# --- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_a_pair_is_judged_once_a_replicate_in_each_order_that_the_design_names(
    lab: Lab, study: Write, order: str
) -> None:
    lab.runs.run(study(design={"presentation.pair_order": order}))
    frame = lab.experiments.samples("pairs")
    seen = Counter(zip(frame["evidence_title"], frame["replicate"], frame["flipped"], strict=True))
    titles = [f"pair {number}" for number in range(ITEMS)]
    assert seen == Counter(product(titles, range(SAMPLES), ORDERS[order]))
    assert frame["pair"].all() and (frame["rubric_kind"] == "nominal").all()
    assert set(frame["evidence.view"]) == {"raw"}
    assert frame["length"].isna().all()  # there are two responses


@pytest.mark.parametrize("order", ORDERS)
def test_progress_and_status_count_every_order(lab: Lab, study: Write, order: str) -> None:
    watched: list[RunProgress] = []
    lab.runs.run(
        study(design={"presentation.pair_order": order}, probe=False), watch=watched.extend
    )
    cells = ITEMS * SAMPLES * len(ORDERS[order])
    [tally], [summary] = watched, lab.list_experiments(study="pairs")
    assert (tally.targets["score"], tally.done["score"], tally.paid) == (cells, cells, cells)
    [run] = summary["runs"]
    assert (run["targets"]["score"], run["done"]["score"]) == (cells, cells)
    assert (summary["status"], run["targets"]["evidence"]) == ("complete", 0)


@pytest.mark.parametrize("order", ORDERS)
def test_a_partly_judged_pool_of_pairs_is_not_complete(lab: Lab, study: Write, order: str) -> None:
    cells = ITEMS * SAMPLES * len(ORDERS[order])
    path = study(design={"presentation.pair_order": order}, budget={"calls": cells - 1})
    lab.runs.run(path, workflows=["rubric", "score"])
    [summary] = lab.list_experiments(study="pairs")
    assert summary["status"] not in FINISHED
    assert summary["runs"][0]["targets"]["score"] == cells
    finished = lab.runs.run(study(design={"presentation.pair_order": order}), workflows=["score"])
    assert [run.calls for run in finished.runs] == [1]
    assert lab.list_experiments(study="pairs")[0]["status"] == "probing"


def test_each_order_is_an_experiment_and_they_share_what_they_ask(lab: Lab, study: Write) -> None:
    path = study(vary={"presentation.pair_order": list(ORDERS)})
    plan, prepared = lab.runs.estimate(path)
    assert len({made.digest for made in prepared.sweep.experiments}) == 3
    scorer = plan.stages["scorer"]
    both = 2 * ITEMS * SAMPLES
    assert (scorer.to_pay, scorer.shared) == (both, both)
    lab.runs.run(path)
    assert paid(lab)["scorer"] == both
    frame = lab.experiments.samples("pairs")
    calls = frame.groupby("presentation.pair_order")["call_id"].apply(set)
    assert calls["given"] | calls["swapped"] == calls["both"]
    assert not calls["given"] & calls["swapped"]
    assert lab.runs.estimate(path)[0].total().to_pay == 0


def test_more_samples_of_pairs_go_on_with_what_is_missing(lab: Lab, study: Write) -> None:
    lab.runs.run(study())
    before = paid(lab)
    more = study(samples=SAMPLES + 1)
    plan, _ = lab.runs.estimate(more)
    assert plan.stages["scorer"].to_pay == 2 * ITEMS
    lab.runs.run(more)
    assert (paid(lab) - before)["scorer"] == 2 * ITEMS


def test_a_study_of_pairs_is_found_in_the_store_as_it_was(lab: Lab, study: Write) -> None:
    path = study()
    lab.runs.run(path)
    [made] = lab.studies.prepare(path).sweep.experiments
    [found] = lab.studies.prepare("pairs").sweep.experiments
    assert found.digest == made.digest and found.orders == (False, True)
    assert [item.responses for item in found.task.pool.items] == list(RESPONSES)
    assert [item.truth for item in found.task.pool.items] == [1, 2, 1, 2, 1]
    assert sum(run.calls for run in lab.runs.run("pairs").runs) == 0


def test_a_pair_of_equal_responses_is_asked_once_for_both_orders(
    lab: Lab, study: Write, tmp_path: Path
) -> None:
    path = study(samples=1, probe=False)
    item = {"text": "Which?", "responses": ["It was fined.", "It was fined."], "truth": 1}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(item))
    assert lab.runs.estimate(path)[0].stages["scorer"].to_pay == 1
    lab.runs.run(path)
    frame = lab.experiments.samples("pairs")
    assert paid(lab)["scorer"] == 1
    assert sorted(frame["flipped"]) == [False, True] and frame["call_id"].nunique() == 1


def test_pairs_and_single_texts_may_be_tasks_of_one_study(
    lab: Lab, study: Write, tmp_path: Path
) -> None:
    (tmp_path / "news.jsonl").write_text('{"title": "n", "text": "A judge was dismissed."}')
    news = {"type": "ecc", "concept": "fascism", "evidence": "news"}
    path = study(
        evidence={
            "cases": {"files": "pairs.jsonl"},
            "news": {"files": "news.jsonl", "window": {"country": "Valdoria"}},
        },
        tasks=[
            {"type": "benchmark", "concept": "better", "evidence": "cases"}
            | {"rubric": "options.json"},
            news,
        ],
        design={"rubric.critic": "sim:critic", "evidence.editor": "sim:editor", "rubric.scale": 5},
        vary={"presentation.pair_order": ["both", "given"]},
        swap="all",
        judges=["sim:balanced", "sim:hasty"],
    )
    result = lab.runs.run(path)
    assert result.status == "complete"
    frame = lab.experiments.samples("pairs")
    single, pairs = frame[~frame["pair"]], frame[frame["pair"]]
    assert set(single["presentation.pair_order"]) == {"both"} and not single["flipped"].any()
    assert set(single["rubric.scale"]) == {5} and set(single["evidence.view"]) == {"neutralized"}
    assert set(pairs["n_stages"]) == {3} and set(pairs["evidence.view"]) == {"raw"}
    assert single["is_swap"].any() and not pairs["is_swap"].any()
    assert len(pairs) == 2 * (2 + 1) * ITEMS * SAMPLES
    assert paid(lab)["neutralizer"] == 1


# --- answers that do not come, probes ------------------------------------------------------------


class Judge(Scripted):
    """Takes the response that is shown first, unless a function has something else to say."""

    def __init__(self, fails: Callable[[Request], bool] = lambda request: False) -> None:
        super().__init__(self._said)
        self._fails = fails

    def _said(self, request: Request) -> str | Exception:
        if self._fails(request):
            return ProviderError("down")
        text = request.messages[-1].content
        if "PROBABILITY:" in text:
            return "PROBABILITY: 0.7"
        return f"VERDICT: {_label(text, 'first')}"


def _label(text: str, which: str) -> str:
    found = re.search(rf'Option (\S+): "The {which} response', text)
    assert found is not None
    return found[1]


def shown_first(request: Request) -> tuple[int, int]:
    """Which pair a request shows, and which of its responses comes first (0 or 1)."""
    text = "\n".join(message.content for message in request.messages)
    [number] = re.findall(r"What became of case (\d+)\?", text)
    one, other = (text.index(response) for response in RESPONSES[int(number)])
    return int(number), int(one > other)


def test_an_order_that_brought_no_answer_is_asked_again_alone(lab: Lab, study: Write) -> None:
    path = study(probe=False, tolerance=1.0)
    replace_engine(lab, Engine(lab.store, Judge(lambda request: shown_first(request) == (2, 1))))
    lab.runs.run(path)
    frame = lab.experiments.samples("pairs")
    lost = frame[frame["status"] == "provider_error"]
    assert set(zip(lost["evidence_title"], lost["flipped"], strict=True)) == {("pair 2", True)}
    again = Judge()
    replace_engine(lab, Engine(lab.store, again))
    assert lab.runs.estimate(path)[0].stages["scorer"].to_pay == SAMPLES
    lab.runs.run(path)
    assert [shown_first(request) for request in again.asked] == [(2, 1)] * SAMPLES
    frame = lab.experiments.samples("pairs")
    assert len(frame) == 2 * ITEMS * SAMPLES and set(frame["status"]) == {"scored"}


def test_a_judge_that_takes_what_is_shown_first_is_decoded_to_both_responses(
    lab: Lab, study: Write
) -> None:
    replace_engine(lab, Engine(lab.store, Judge()))
    lab.runs.run(study(probe=False))
    frame = lab.experiments.samples("pairs")
    assert set(frame.loc[~frame["flipped"], "stages"]) == {"1"}
    assert set(frame.loc[frame["flipped"], "stages"]) == {"2"}
    score = score_pairs(pair_verdicts({"judge": tidy(frame)}))
    assert (score.position_bias, score.inconsistent, score.accuracy) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("context", ["fresh", "same"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_probe_shows_the_pair_and_the_option_as_they_were_judged(
    lab: Lab, study: Write, order: str, context: str
) -> None:
    judge = Judge()
    replace_engine(lab, Engine(lab.store, judge))
    lab.runs.run(study(design={"presentation.pair_order": order, "probe.context": context}))
    probes = [one for one in judge.asked if "PROBABILITY:" in one.messages[-1].content]
    seen = Counter((*shown_first(one), one.draw.index) for one in probes)
    assert seen == Counter(product(range(ITEMS), ORDERS[order], range(SAMPLES)))
    for one in probes:
        text = "\n".join(message.content for message in one.messages)
        label = _label(text, "first")
        assert f'Option {label} ("{TITLES[0]}")' in text.rpartition("VERDICT UNDER REVIEW")[2]
    frame = lab.experiments.samples("pairs")
    assert set(frame["probe"]) == {0.7} and paid(lab)["prober"] == len(frame)
    [summary] = lab.list_experiments(study="pairs")
    assert summary["runs"][0]["targets"]["probe"] == len(frame)


# --- the store -----------------------------------------------------------------------------------


def test_a_sample_of_each_order_has_its_own_row_and_a_second_write_is_nothing(store: Store) -> None:
    pool = store.evidence.save_pool(Pool((Evidence("p", "q?", responses=("a", "b")),)))
    options = NominalRubric(
        tuple(RubricStage(title, ("it is",)) for title in TITLES), "provided", "better", ""
    )
    rubric = store.rubrics.save_given(options)
    design = Design.of({"judge.model": "sim:x", "rubric.author": "provided"})
    task = Task("benchmark", "better", "here", pool, rubric)
    made = Experiment("study/a", task, design, 3)
    store.experiments.save(made, "study")
    targets = Targets(samples=1, rivals=(), probe=True, tolerance=0.05)
    run = store.runs.save(made, "study", "3", targets, makers=(None, None))
    request = Request("sim:x", (Message("user", ("?",)),), Draw("3"))
    said = Completion("VERDICT: A", "stop", "sim:x", 1, 1, 0.0)
    payer = Payer(run.id, "study", "study/a", "scorer")
    call = recorded(store, request, payer, said)
    given = Sample(
        rubric, pool.items[0], 0, Display(tuple("ABC"), (1, 2, 3)), "scored", (1,),
        call_id=call.call_id,
    )  # fmt: skip
    flipped = replace(given, flipped=True, display=given.display.flipped(), stages=(2,))
    for _ in range(2):
        store.verdicts.save_samples(run, [given, flipped])
        rows = list(store.samples.rows(["study/a"]))
        assert [(row["flipped"], row["stages"]) for row in rows] == [(False, "1"), (True, "2")]
    keys = store.verdicts.sample_keys(run, rubric.id, False, 0, 1)
    assert {flipped for _, _, flipped in keys} == {False, True}
    back = [
        sample
        for sample, _ in store.verdicts.unprobed(run, {rubric.id: rubric}, 0, 9, answers=False)
    ]
    assert [(one.flipped, one.stages, one.display) for one in back] == [
        (False, (1,), given.display),
        (True, (2,), flipped.display),
    ]
    assert back[1].evidence.responses == ("a", "b")


# --- known truth ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One pair, shown in one order for one replicate, and the exact truth about it."""

    item: int
    flipped: bool
    shares: dict[str, float]
    """Of each response (1, 2), a tie (3), or a status."""


def cells(lab: Lab, path: Path) -> Iterator[Cell]:
    """What a simulated judge will say, from its published distribution and the prompt's words."""
    [made] = lab.studies.prepare(path).sweep.experiments
    scorer = Scorer(made.design, made.seed, str(made.seed))
    assert made.task.rubric is not None
    samples = lab.studies.prepare(path).targets[made.tag].samples
    for (number, item), flipped, replicate in product(
        enumerate(made.task.pool.items), (False, True), range(samples)
    ):
        target = ScoreTarget(made.task.rubric, item, item.text, replicate, flipped=flipped)
        [request] = scorer.requests([target])
        text = request.messages[-1].content
        meant = {
            _label(text, "first"): "21"[not flipped],
            _label(text, "second"): "12"[not flipped],
        }
        shares: Counter[str] = Counter()
        for verdict, share in verdict_distribution(request).items():
            said = meant.get(verdict.labels[0], "3") if verdict.labels else verdict.status
            shares[said] += share  # type: ignore[assignment]
        yield Cell(number, flipped, dict(shares))


def said(frame: pd.DataFrame) -> pd.Series:
    return frame["stages"].where(frame["status"] == "scored", frame["status"])


JUDGES = {
    "even": "sim:judge?noise=0.4",
    "sharp": "sim:judge?noise=0.15",
    "first": "sim:judge?noise=0.4&position=1.5",
    "labels": "sim:judge?noise=0.4&label=1.5",
    "failing": "sim:judge?noise=0.4&position=0.5&garble=0.1&truncate=0.1&refuse=0.3&sloppy=0.5",
}


DRAWN = 60
"""Samples of a judge whose truth is known."""


class Measured(NamedTuple):
    """The samples of one simulated judge, and what is known of each."""

    frame: pd.DataFrame
    truth: list[Cell]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Measured]:
    """Runs a judge once for all tests that measure it."""

    @cache
    def run(judge: str) -> Measured:
        folder = tmp_path_factory.mktemp("measured")
        path = pairs_file(folder, judges=[judge], samples=DRAWN, probe=False)
        with Lab.open(blank(folder / "lab.db")) as lab:
            lab.runs.run(path)
            return Measured(lab.experiments.samples("pairs"), list(cells(lab, path)))

    return run


Measure = Callable[[str], Measured]


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_pairs_are_decided_as_often_as_published(measured: Measure, name: str) -> None:
    frame, truth = measured(JUDGES[name])
    titles = frame["evidence_title"].str.removeprefix("pair ").astype(int)
    tested = 0
    for item, flipped in product(range(ITEMS), (False, True)):
        here = said(frame[(titles == item) & (frame["flipped"] == flipped)])
        exact = [one.shares for one in truth if (one.item, one.flipped) == (item, flipped)]
        assert len(here) == len(exact) == DRAWN
        assert set(here) <= {what for shares in exact for what in shares}
        for what in {what for shares in exact for what in shares}:
            shares = [one.get(what, 0.0) for one in exact]
            mean, variance = math.fsum(shares), math.fsum(p * (1 - p) for p in shares)
            if variance > 1:
                tested += 1
                assert abs((here == what).sum() - mean) / math.sqrt(variance) < FAR
    assert tested > 5


def expected_bias(truth: list[Cell]) -> tuple[float, float]:
    """The exact mean of the position bias and its standard error."""
    means, variances = [], []
    for one in truth:
        first, second = (one.shares[said] for said in ("21" if one.flipped else "12"))
        means.append(first - second)
        variances.append(first + second - (first - second) ** 2)
    return math.fsum(means) / len(truth), math.sqrt(math.fsum(variances)) / len(truth)


@pytest.mark.parametrize(("name", "biased"), [("even", False), ("sharp", False), ("first", True)])
def test_position_bias_is_found_where_it_is_and_nowhere_else(
    measured: Measure, name: str, biased: bool
) -> None:
    frame, truth = measured(JUDGES[name])
    exact, error = expected_bias(truth)
    bias = score_pairs(pair_verdicts({"judge": tidy(frame)})).position_bias
    assert bias is not None
    assert abs(bias - exact) < FAR * error
    if biased:
        assert exact > 0.2 and bias > FAR * error
    else:
        assert exact == pytest.approx(0, abs=1e-9)


def test_the_published_temper_for_haste_takes_what_is_first(measured: Measure) -> None:
    frame, truth = measured("sim:hasty")
    exact, error = expected_bias(truth)
    bias = score_pairs(pair_verdicts({"judge": tidy(frame)})).position_bias
    assert bias is not None
    assert exact > 0.1 and abs(bias - exact) < FAR * error


def test_accuracy_is_what_the_distributions_of_both_orders_say(measured: Measure) -> None:
    frame, truth = measured(JUDGES["first"])
    score = score_pairs(pair_verdicts({"judge": tidy(frame)}))
    given, reversed_ = (
        [one for one in truth if one.flipped is flipped] for flipped in (False, True)
    )
    chances = []
    for one, other in zip(given, reversed_, strict=True):
        right = str(1 + one.item % 2)
        wrong = {"1": "2", "2": "1"}[right]
        both = product(one.shares.items(), other.shares.items())
        chances.append(
            math.fsum(p * q for (a, p), (b, q) in both if [a, b].count(right) > [a, b].count(wrong))
        )
    mean = math.fsum(chances) / len(chances)
    error = math.sqrt(math.fsum(p * (1 - p) for p in chances)) / len(chances)
    assert 0.1 < mean < 0.9 and abs(score.accuracy - mean) < FAR * error


def test_the_better_response_is_found_in_either_place(lab: Lab, study: Write) -> None:
    """The response with more strain is the second of the first pair, the first of the last."""
    path = study(judges=["sim:judge?noise=0.05"], samples=10, probe=False)
    lab.runs.run(path)
    frame = lab.experiments.samples("pairs")
    for title, better in (("pair 0", "2"), ("pair 1", "1"), ("pair 4", "1"), ("pair 3", "3")):
        here = frame[frame["evidence_title"] == title]
        assert (here["stages"] == better).mean() > 0.9, title


def test_a_simulated_judge_does_not_abstain_on_a_pair_nor_mind_its_concept(study: Write) -> None:
    with Lab.open(f"sqlite:///{study().parent / 'other.db'}") as lab:
        shares = []
        for concept in ("fascism", "the better response"):
            task = {"type": "benchmark", "concept": concept, "evidence": "cases"}
            path = study(
                tasks=[{**task, "rubric": "options.json"}], judges=["sim:alarmist?abstain=1"]
            )
            shares.append([one.shares for one in cells(lab, path)])
    assert shares[0] == shares[1]
    assert all("abstained" not in one for one in shares[0])


def test_simulated_pairs_are_answered_from_the_messages_alone(lab: Lab, study: Write) -> None:
    """Truth, titles and file order are nowhere in what is asked."""
    heard: list[Request] = []

    class RecordingModels(Judge):
        async def complete(self, request: Request) -> Completion:
            heard.append(request)
            return await SimulatedModel(request.model).complete(request)

    replace_engine(lab, Engine(lab.store, RecordingModels()))
    lab.runs.run(study())
    words = "\n".join(message.content for request in heard for message in request.messages)
    assert not re.search(r"pair \d|truth|benchmark|flipped|reversed|swapped", words)
