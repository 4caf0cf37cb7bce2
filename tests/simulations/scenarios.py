"""Estimates from data of another form: several concepts, many rubrics, judged pairs, labels.

Each is a callable of `Panels` that returns one row per panel, with the truth where it differs from
panel to panel or has a closed form of its own.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import CELL, JUDGE, ordinal, tidy
from judge_gym.analysis.judges.beside_people import judged_units
from judge_gym.analysis.judges.pairs import compare_judges, pair_verdicts, recorded_samples
from judge_gym.analysis.judges.rate import people_rate, rogan_gladen
from judge_gym.analysis.judges.setups import groups_as_setups
from judge_gym.analysis.measures import LabelScale
from judge_gym.analysis.stats.intervals import SHARE, estimate
from judge_gym.analysis.verdicts import Verdicts, of_setups
from judge_gym.protocols.hypotheses import contested_distance
from judge_gym.protocols.regressions import QUALITY, regressions
from judge_gym.protocols.validity import validity
from judge_gym.records.pairs import PairDecision
from simulations.synthetic import CONCEPT, STAGES, Judge, chances, positions
from simulations.truth import FloatArray, generator
from simulations.worlds import BIASED, PLAIN, Panels

Row = dict[str, Any]
COLUMNS = ("value", "low", "high")
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
"""Positions and weights by which means over a normal distribution are computed."""


class ByPanel(ABC):
    """An estimator that analyses each panel by itself."""

    __slots__ = ()

    def __call__(self, panels: Panels) -> pd.DataFrame:
        """Returns the row of each panel."""
        return pd.DataFrame([self._row(panels, panel) for panel in panels.numbers])

    @abstractmethod
    def _row(self, panels: Panels, panel: int) -> Row:
        """Returns value, low, high and truth of a panel, and p where there is a test."""


# --- concepts ------------------------------------------------------------------------------------

GENERAL_FROM, DOSED_FROM = 4, 6
"""The numbers of concepts per arm, and over all doses, from which a claim is about any concepts."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Concepts of one type and dose; judges differ on each by a gap of its own."""

    task_type: Literal["ecc", "control"]
    concepts: int
    gap: float
    """The mean difference between the two judges, on the scale of positions."""
    spread: float = 0.0
    """The standard deviation of that difference between concepts."""
    dose: float | None = None

    def expected_distance(self) -> float:
        """Returns the mean squared distance over all concepts of this kind."""
        each = [distance(self.gap + self.spread * node) for node in NODES]
        return float(np.average(each, weights=WEIGHTS))


@cache
def distance(gap: float) -> float:
    """Returns the mean squared distance of two judges that differ by a gap."""
    where = positions("spread")
    apart = chances(Judge(), where) - chances(Judge(), where + gap)
    return float((apart**2).sum(axis=1).mean() / 2)


def _concepts(
    arms: tuple[Arm, ...], panels: Panels, panel: int
) -> tuple[pd.DataFrame, list[list[float]]]:
    """Returns the samples of a panel, and the true distance on each concept by arm."""
    rng = panels.generator(panel, "concepts")
    items, replicates = panels.shape.items, panels.shape.replicates
    parts, true = [], []
    for place, arm in enumerate(arms):
        gaps = arm.gap + arm.spread * rng.normal(size=arm.concepts)
        true.append([distance(float(gap)) for gap in gaps])
        for number, gap in enumerate(gaps):
            where = rng.choice(positions("spread"), items).repeat(replicates)
            first = panel * 10**4 + (place * 20 + number) * 100
            for judge, shift in ((PLAIN, 0.0), (BIASED, float(gap))):
                given = chances(Judge(), where + shift).cumsum(axis=1)[:, :-1]
                stage = 1 + (rng.random((len(where), 1)) > given).sum(axis=1)
                parts.append(
                    pd.DataFrame(
                        {
                            "evidence": first + np.arange(items).repeat(replicates),
                            "replicate": np.tile(np.arange(replicates), items),
                            "stages": stage.astype(str),
                            "status": "scored",
                            "n_stages": STAGES,
                            "concept": f"{arm.task_type} {place}.{number}",
                            "task_type": arm.task_type,
                            "dose": arm.dose,
                            "pool": f"pool {place}.{number}",
                            "rubric": place * 20 + number,
                            "rubric_author": "sim:author",
                            JUDGE: judge,
                        }
                    )
                )
    return tidy(pd.concat(parts, ignore_index=True)), true


@dataclass(frozen=True, slots=True)
class ContestedDistance(ByPanel):
    """The first hypothesis; the truth is that of these concepts, or of all if it claims so."""

    contested: Arm
    control: Arm

    def _row(self, panels: Panels, panel: int) -> Row:
        frame, (contested, control) = _concepts((self.contested, self.control), panels, panel)
        found = contested_distance(frame)
        truth = float(np.mean(contested) - np.mean(control))
        general = min(len(contested), len(control)) >= GENERAL_FROM
        if general:
            truth = self.contested.expected_distance() - self.control.expected_distance()
        p = found.p if general else np.nan  # of these concepts, no claim about others is tested
        return {**found.estimate.named(*COLUMNS), "truth": truth, "p": p}


@dataclass(frozen=True, slots=True)
class DoseResponse(ByPanel):
    """The slope of the distance over the dose, of these concepts, or of all if it claims so."""

    arms: tuple[Arm, ...]

    def _row(self, panels: Panels, panel: int) -> Row:
        frame, true = _concepts(self.arms, panels, panel)
        table = validity(frame)
        [row] = table[table["check"] == "dose-response"].to_dict("records")
        if sum(map(len, true)) >= DOSED_FROM:
            true = [[arm.expected_distance()] * arm.concepts for arm in self.arms]
        dose = np.repeat([arm.dose for arm in self.arms], [len(one) for one in true])
        slope = np.polyfit(dose.astype(float), np.concatenate(true), 1)[0]
        return {**{name: row[name] for name in COLUMNS}, "truth": float(slope)}


# --- rubrics -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RubricQuality(ByPanel):
    """The effect of rubric quality on the score, where rubrics differ but quality is irrelevant."""

    rubrics: int
    spread: float = 0.5

    def _row(self, panels: Panels, panel: int) -> Row:
        rng = panels.generator(panel, "rubric quality")
        items, replicates = panels.shape.items, panels.shape.replicates
        shape = self.rubrics, items, replicates
        quality = rng.uniform(2.0, 5.0, self.rubrics)
        where = rng.choice(positions("spread"), items)[None, :, None] + np.zeros(shape)
        where += self.spread * rng.normal(size=(self.rubrics, 1, 1))
        given = chances(Judge(), where).cumsum(axis=-1)[..., :-1]
        stage = 1 + (rng.random((*shape, 1)) > given).sum(axis=-1)
        rubric, item, replicate = (axis.ravel() for axis in np.indices(shape))
        frame = tidy(
            pd.DataFrame(
                {
                    "evidence": item,
                    "replicate": replicate,
                    "stages": stage.ravel().astype(str),
                    "status": "scored",
                    "n_stages": STAGES,
                    "concept": CONCEPT,
                    "task_type": "ecc",
                    "rubric": rubric + 1,
                    "rubric_draw": rubric,
                    "rubric_author": "sim:author",
                    "observability": quality[rubric],
                    "discriminability": quality[rubric],
                    JUDGE: PLAIN,
                }
            )
        )
        table = regressions(frame, sensitivity=False)
        [row] = table[(table["model"] == "score") & (table["term"] == QUALITY)].to_dict("records")
        return {
            "value": row["estimate"],
            **{name: row[name] for name in ("low", "high", "p")},
            "truth": 0.0,
        }


# --- judged pairs --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairJudge:
    """A judge of pairs of responses."""

    ability: float
    position: float = 0.0
    """How far it prefers the response shown first."""
    tied: float = 0.05
    missing: float = 0.03

    def chances(self, difficulty: FloatArray) -> FloatArray:
        """Returns the chance of right, of wrong, and of neither, by order and difficulty."""
        from scipy import stats

        decided = 1 - self.tied - self.missing
        sides = np.array([1.0, -1.0])[:, None]  # the better response is first, then second
        right = decided * stats.norm.cdf(self.ability - difficulty + self.position * sides)
        return np.stack([right, decided - right, np.full(right.shape, 1 - decided)])

    def accuracy(self, difficulty: FloatArray) -> float:
        """Returns the chance that more of the two decisions are right than wrong."""
        right, wrong, neither = self.chances(difficulty)
        return float((right[0] * (1 - wrong[1]) + neither[0] * right[1]).mean())

    def mean_accuracy(self, difficulty: FloatArray) -> float:
        """Returns the chance that a decision is right, where a tie counts one half."""
        return float(self.chances(difficulty)[0].mean()) + self.tied / 2

    def position_bias(self, difficulty: FloatArray) -> float:
        """Returns the share for the response shown first minus that for the second, of decided."""
        right, wrong, _ = self.chances(difficulty)
        first = float((right[0] + wrong[1]).mean() - (wrong[0] + right[1]).mean())
        return first / (2 * (1 - self.missing))


DIFFICULTIES = np.linspace(-2.0, 2.0, 21)
"""How hard the pairs of the population are, equally frequent."""


def judged_pairs(panels: Panels, panel: int, **judges: PairJudge) -> Verdicts:
    """Returns the verdicts of judges on the pairs of a panel."""
    return pair_verdicts(recorded_pairs(panels, panel, **judges))


def recorded_pairs(panels: Panels, panel: int, **judges: PairJudge) -> dict[str, pd.DataFrame]:
    """Returns the samples of judges on the pairs of a panel."""
    rng = panels.generator(panel, "pairs")
    difficulty = rng.choice(DIFFICULTIES, panels.shape.items)
    truth = rng.integers(1, 3, panels.shape.items)
    decided = {name: _decided(judge, difficulty, truth, rng) for name, judge in judges.items()}
    return {name: recorded_samples(name, rows) for name, rows in decided.items()}


OfPairs = Literal["accuracy", "position bias", "difference"]


@dataclass(frozen=True, slots=True)
class PairComparison(ByPanel):
    """Two judges of pairs: accuracy of the first, position bias, difference, or its test."""

    first: PairJudge
    second: PairJudge
    of: OfPairs

    def _row(self, panels: Panels, panel: int) -> Row:
        found = compare_judges(judged_pairs(panels, panel, first=self.first, second=self.second))
        [contrast] = found.contrasts
        score = found.scores["first"]
        accuracies = [judge.accuracy(DIFFICULTIES) for judge in (self.first, self.second)]
        values: dict[str, tuple[float, tuple[float, float] | None, float]] = {
            "accuracy": (score.accuracy, score.interval, accuracies[0]),
            "difference": (contrast.difference, contrast.interval, accuracies[0] - accuracies[1]),
            "position bias": (
                np.nan if score.position_bias is None else score.position_bias,
                None,
                self.first.position_bias(DIFFICULTIES),
            ),
        }
        value, interval, true = values[self.of]
        low, high = interval or (np.nan, np.nan)
        return {"value": value, "low": low, "high": high, "truth": true, "p": contrast.p}


def _decided(
    judge: PairJudge, difficulty: FloatArray, truth: np.ndarray, rng: np.random.Generator
) -> list[PairDecision]:
    right, wrong, _ = judge.chances(difficulty)
    shown = np.stack([np.where(truth == 1, 0, 1), np.where(truth == 1, 1, 0)])
    decisions = []
    for item, better in enumerate(truth.tolist()):
        for order in (0, 1):
            place = shown[order, item]
            drawn = rng.random()
            if drawn < right[place, item]:
                decision: int | None = better
            elif drawn < right[place, item] + wrong[place, item]:
                decision = 3 - better
            else:
                share = judge.tied / (judge.tied + judge.missing)
                decision = 3 if rng.random() < share else None
            decisions.append(PairDecision(str(item), better, order == 1, decision))
    return decisions


# --- people --------------------------------------------------------------------------------------

RATERS = 3


def _labels(panels: Panels, share: float) -> pd.DataFrame:
    """Returns the stages of three raters on a random part of each panel's items."""
    people = panels.of("people")
    people = people[people["replicate"] < RATERS]
    kept = pd.Series(True, index=people.index)
    if share < 1:
        items = np.sort(people["evidence"].unique())
        panel = items // 1000
        chosen = [
            generator("labelled", panels.shape.seed, int(one)).permutation(items[panel == one])[
                : round(share * (panel == one).sum())
            ]
            for one in np.unique(panel)
        ]
        kept = people["evidence"].isin(np.concatenate(chosen))
    return raters_of(people[kept])


def raters_of(people: pd.DataFrame) -> pd.DataFrame:
    """Returns the stages of raters, of whom each replicate is one."""
    rater = "rater " + people["replicate"].astype(str)
    return people[["tag", "evidence"]].assign(rater=rater, stage=people["stages"].astype(int))


def agreement_with_people(panels: Panels) -> pd.DataFrame:
    """Returns a judge's agreement with most of three raters, by panel."""
    frame = panels.of("plain")
    groups = groups_as_setups(frame, CELL)
    verdicts = of_setups(frame, [setup for _, setup in groups], _labels(panels, 1.0))
    agreed = verdicts.per_cell(verdicts.references["agreement"].majority)
    rows = [
        (*key, *estimate(agreed[:, index], verdicts.clusters, scale=SHARE)[:4])
        for index, (key, _) in enumerate(groups)
    ]
    return pd.DataFrame(rows, columns=[*CELL, *COLUMNS, "items"])


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """People's mean stage from the labels of some items, and a judge's verdicts on all."""

    labelled: float
    """The share of items with labels."""
    estimate: str
    """The name of an estimate of `PeopleRate`: corrected, or labels_alone."""

    def __call__(self, panels: Panels) -> pd.DataFrame:
        """Returns value, low and high of each panel."""
        frame = ordinal(panels.of("plain"))
        # Each panel is a concept of its own, so that its rate is that of its own items.
        frame = frame.assign(concept=frame["task"].astype(str))
        setups = [setup for _, setup in groups_as_setups(frame, CELL)]
        verdicts = of_setups(frame, setups, _labels(panels, self.labelled))
        labels = verdicts.references["agreement"].labels
        stages = LabelScale("ordinal", tuple(map(str, range(verdicts.n_stages))), None)
        rows = []
        for index in range(len(setups)):
            # Labels of the other panels are set to none, as they are about other concepts.
            own_labels = np.where((verdicts.setup == index)[:, None], labels, 0.0)
            judged = judged_units(verdicts, index, stages, own_labels)
            assert judged is not None
            rate = people_rate(
                judged.label,
                judged.verdict,
                judged.scores,
                verdicts.clusters[judged.units],
                is_rate=judged.is_rate,
            )
            rows.append(getattr(rate, self.estimate)[:3])
        return pd.DataFrame(rows, columns=list(COLUMNS))


@dataclass(frozen=True, slots=True)
class Prevalence(ByPanel):
    """A prevalence corrected for error rates that other items show."""

    rate: float = 0.3
    right: tuple[float, float] = (0.85, 0.9)
    """The chance of a right call on positive and on negative items."""

    def _row(self, panels: Panels, panel: int) -> Row:
        rng, n = panels.generator(panel, "prevalence"), panels.shape.items
        called = self.rate * self.right[0] + (1 - self.rate) * (1 - self.right[1])
        shares = called, *self.right
        found = rogan_gladen(*((rng.random(n) < share).astype(float) for share in shares))
        return {**found.named(*COLUMNS), "truth": self.rate}
