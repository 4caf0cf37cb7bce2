"""The quantities and tests that are calibrated, and the worlds in which they are.

A quantity names the analysis that estimates it from the samples of some conditions, and its truth.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Literal

import pandas as pd

from judge_gym.analysis.declared import HypothesisResult
from judge_gym.analysis.endpoints import cell_endpoints, judge_endpoints, stage_bounds
from judge_gym.analysis.frames import CELL, JUDGE, ordinal
from judge_gym.analysis.measures.abstention import abstention
from judge_gym.analysis.measures.consistency import consistency
from judge_gym.analysis.measures.known_answers import known_answers
from judge_gym.analysis.measures.polarization import pairwise, polarization
from judge_gym.analysis.measures.uncertainty import uncertainty
from judge_gym.analysis.measures.verdict_shapes import display_bias, verdict_shapes
from judge_gym.analysis.stats.agreement import nominal_agreement, ordinal_agreement
from judge_gym.analysis.stats.contrasts import contrasts, judge_contrasts
from judge_gym.protocols.conflict import conflict
from judge_gym.protocols.entrenchment import entrenchment
from judge_gym.protocols.hypotheses import contested_distance, forced_choice_distance
from judge_gym.protocols.regressions import regressions
from judge_gym.protocols.stated_agreement import calibration, probed_verdicts
from judge_gym.protocols.swap_sensitivity import swap_sensitivity
from simulations import judge_tables, scenarios
from simulations.gates import PRINTED_FROM
from simulations.prompted import Prompted
from simulations.synthetic import LOGISTIC_BIAS, SECONDS, USD, Synthetic
from simulations.truth import Endpoint, TrueValues
from simulations.worlds import BIASED, LEANING, PLAIN, Analysis, Panels, Shape, Source

Estimator = Callable[[Panels], pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity that is estimated with an interval."""

    name: str
    estimate: Estimator
    """Returns one row per panel: value, low, high; and truth, if it differs between panels."""
    truth: Callable[[TrueValues], float] | None = None
    """Returns the true value; None if the estimator returns it."""
    biased: bool = False
    """Whether the estimate is biased by construction; then only its interval must hold."""
    withheld: str = ""
    """The rule by which the interval may be withheld at any number of items; empty if none is."""


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """A hypothesis test."""

    name: str
    p: Estimator
    """Returns one row per panel: p."""
    null: bool = True
    """Whether the null hypothesis is true; else the effect is one that is hard to miss."""


@dataclass(frozen=True, slots=True)
class World:
    """Panels of one source and size, with what is calibrated on them."""

    source: Source
    items: int
    replicates: int
    quantities: tuple[Quantity, ...]
    tests: tuple[HypothesisTest, ...] = ()
    share: float = 1.0
    """The share of a profile's panels that this world has; less if a panel takes long."""

    @property
    def estimators(self) -> dict[str, Estimator]:
        """What is applied to the panels, by name."""
        quantities = {one.name: one.estimate for one in self.quantities}
        return quantities | {one.name: one.p for one in self.tests}

    def must_print(self, quantity: Quantity) -> bool:
        """Whether nearly all panels must print an interval of a quantity."""
        independent = getattr(self.source, "clusters", 0) or self.items
        return independent >= PRINTED_FROM and not quantity.withheld

    @property
    def gates(self) -> int:
        """The number of gates: coverage and bias of quantities, intervals printed, and tests."""
        each = [2 - one.biased + self.must_print(one) for one in self.quantities]
        return sum(each) + len(self.tests)


PAIR, SUBSETS = ("plain", "biased"), ("plain, subset", "biased, subset")
CONTROL = ("plain, control", "biased, control")
TRIO = ("plain", "biased", "leaning")
TWINS = ("plain", "twin")
DRAWN = ("plain, drawn rubrics", "biased, drawn rubrics")
OWN, RIVALS = "plain, own rubric", "plain, rival's rubric"
EVIDENCE_FIRST = ("plain, evidence first", "plain")
FIXED_ORDER = ("leaning, fixed order", "leaning")
SILENT = ("silent at the bottom", "silent at the top")


class _Read:
    """Reads columns of the result of an analysis of some conditions, one row per panel."""

    # A class and not a closure, because it is pickled for other processes.
    def __init__(
        self,
        analysis: Analysis,
        *names: str,
        columns: str = "mean low high",
        at: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.analysis, self.names = analysis, names
        self.columns, self.at = columns.split(), dict(at)

    def __call__(self, panels: Panels) -> pd.DataFrame:
        table = panels.analysed(self.analysis, *self.names)
        for column, value in self.at.items():
            table = table[table[column] == value]
        names = ["value", "low", "high"] if len(self.columns) == 3 else ["p"]
        return table[self.columns].set_axis(names, axis=1)


_stages_of_designs = partial(contrasts, endpoints=["stage"])
_stages_of_judges = partial(judge_contrasts, endpoints=["stage"])


def _overconfidence(frame: pd.DataFrame) -> pd.DataFrame:
    verdicts = probed_verdicts(frame)
    return calibration(verdicts[verdicts[JUDGE] == PLAIN], CELL)


def _bounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the bounds of the stage if verdicts are missing, with their middle as the value."""
    found = stage_bounds(cell_endpoints(frame), CELL)
    return found.assign(middle=found[["lowest", "highest"]].mean(axis=1))


def _difference_bounds(frame: pd.DataFrame) -> pd.DataFrame:
    found = _stages_of_judges(frame)
    return found.assign(middle=found[["lowest", "highest"]].astype(float).mean(axis=1))


def _ordinal_agreement(frame: pd.DataFrame) -> pd.DataFrame:
    return ordinal_agreement(ordinal(frame))


def _regressed(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the regressions of each panel, with only the term of the second judge."""
    parts = [regressions(part.reset_index(drop=True)) for _, part in frame.groupby("pool")]
    table = pd.concat(parts, ignore_index=True)
    return table[table["term"].isin([f"{JUDGE}={BIASED}", "all"])]


def _tested(
    hypothesis: Callable[[pd.DataFrame], HypothesisResult], frame: pd.DataFrame
) -> pd.DataFrame:
    """Returns the estimate of a hypothesis for each panel."""
    found = [hypothesis(part).estimate for _, part in frame.groupby("pool")]
    return pd.DataFrame([one._asdict() for one in found])


DIFFERENCE, DISTANCE = "value low high", "distance distance_low distance_high"
COEFFICIENT = "estimate low high"


def _endpoint(name: str, condition: str, endpoint: str, truth: Endpoint) -> Quantity:
    """Returns the quantity of an endpoint of one judge."""
    estimate = _Read(judge_endpoints, condition, at={"endpoint": endpoint})
    return Quantity(name, estimate, lambda true: true.endpoint(truth, condition))


def _display_bias(name: str, kind: Literal["position", "label"], place: str) -> Quantity:
    estimate = _Read(display_bias, "leaning", at={"kind": kind, "place": place})
    return Quantity(name, estimate, lambda true: true.endpoint(kind, "leaning"))


def _difference(name: str, analysis: Analysis, condition: str, minus: str) -> Quantity:
    """Returns the quantity of a difference in the expected stage."""
    # The first name comes first in a contrast of designs, and last in one of judges.
    names = (condition, minus) if analysis is _stages_of_designs else (minus, condition)
    estimate = _Read(analysis, *names, columns=DIFFERENCE)
    return Quantity(name, estimate, lambda true: true.endpoint("stage", condition, minus))


def _distance(name: str, names: tuple[str, str], *, withheld: str = "") -> Quantity:
    estimate = _Read(conflict, *names, columns=DISTANCE)
    return Quantity(name, estimate, lambda true: true.distance(*names), withheld=withheld)


def _conflict(name: str, names: tuple[str, str]) -> Quantity:
    estimate = _Read(conflict, *names, columns="k low high")
    return Quantity(name, estimate, lambda true: true.conflict(*names))


def _agreement(measure: str, analysis: Analysis) -> Quantity:
    """Returns the quantity of an agreement between two judges, whose estimate has a small bias."""
    estimate = _Read(analysis, *PAIR, columns=DIFFERENCE, at={"measure": measure})
    name = f"agreement: {measure}"
    return Quantity(name, estimate, lambda true: true.agreement(measure, *PAIR), True)


def _of_all(analysis: Analysis, *names: str, column: str) -> _Read:
    """Reads a column of the row of all judges, with its interval."""
    return _Read(analysis, *names, at={JUDGE: "all"}, columns=_with_interval(column))


def _with_interval(column: str) -> str:
    return f"{column} {column}_low {column}_high"


# --- what is estimated ---------------------------------------------------------------------------

STAGE = _endpoint("expected stage", "plain", "stage", "stage")
RIGHT = Quantity(
    "agreement with known answers",
    _Read(known_answers, "plain"),
    lambda true: true.endpoint("right", "plain"),
)
ABSTENTION = Quantity(
    "abstention rate",
    _of_all(abstention, "cautious", column="abstained"),
    lambda true: true.abstention("cautious"),
)
JITTER = _endpoint("jitter", "leaning", "jitter", "jitter")
BIAS = _difference("bias of a judge", _stages_of_judges, "biased", "plain")
DISTANCE_OF_TWO = _distance("distance", PAIR)
OVERSTATED = Quantity(
    "H2: stated minus warranted agreement",
    _Read(_overconfidence, *TRIO, columns=_with_interval("bias")),
    lambda true: true.overconfidence("plain", TRIO[1:]),
)
ONE_JUDGE = (
    STAGE,
    _endpoint("expected stage, with abstentions", "cautious", "stage", "stage"),
    RIGHT,
    ABSTENTION,
    _endpoint("subset size", "plain, subset", "subset_size", "size"),
    _endpoint("singleton rate", "plain, subset", "singleton_rate", "singleton"),
    Quantity(
        "uncertainty gap",
        _of_all(uncertainty, "plain, subset", column="gap"),
        lambda true: true.endpoint("gap", "plain, subset"),
    ),
    JITTER,
    Quantity(
        "intraclass correlation",
        _Read(consistency, "leaning", columns=_with_interval("icc"), at={JUDGE: LEANING}),
        lambda true: true.consistency("leaning"),
        biased=True,
    ),
    _display_bias("position bias", "position", "1"),
    _display_bias("label bias", "label", "A"),
)
TWO_JUDGES = (
    BIAS,
    _difference("difference of twins", _stages_of_judges, "twin", "plain"),
    _conflict("conflict of subsets", SUBSETS),
    DISTANCE_OF_TWO,
    _distance("distance of subsets", SUBSETS),
    _distance("distance under position bias", ("plain", "leaning")),
    Quantity(
        "polarization above chance",
        _Read(polarization, *TRIO, columns="above low high"),
        lambda true: true.polarization(*TRIO),
    ),
    Quantity(
        "entrenchment",
        _Read(entrenchment, *PAIR, at={JUDGE: "all"}),
        lambda true: true.entrenchment(*PAIR),
    ),
)
MANY_RUBRICS = (
    _endpoint("expected stage, drawn rubrics", DRAWN[0], "stage", "stage"),
    _difference("bias of a judge, drawn rubrics", _stages_of_judges, DRAWN[1], DRAWN[0]),
    _conflict("conflict, drawn rubrics", DRAWN),
    _distance("distance, drawn rubrics", DRAWN),
)
STATED = (
    Quantity(
        "Brier score of stated agreement",
        _Read(_overconfidence, *TRIO, columns=_with_interval("brier")),
        lambda true: true.brier("plain", TRIO[1:]),
    ),
    Quantity(
        "calibration error",
        _Read(_overconfidence, *TRIO, columns=_with_interval("error")),
        lambda true: true.calibration_error("plain", TRIO[1:]),
        biased=True,
    ),
    OVERSTATED,
)
DESIGNS = (_difference("presentation.first: no effect", _stages_of_designs, *EVIDENCE_FIRST),)
HYPOTHESES = (
    Quantity(
        "H1: distance, contested minus control",
        _Read(partial(_tested, contested_distance), *PAIR, *CONTROL, columns=DIFFERENCE),
        lambda true: true.distance(*PAIR) - true.distance(*CONTROL),
    ),
    Quantity(
        "H3: own minus rival's rubric",
        _Read(swap_sensitivity, OWN, RIVALS),
        lambda true: true.endpoint("stated", OWN, RIVALS),
    ),
    Quantity(
        "H4: distance, single minus subset",
        _Read(partial(_tested, forced_choice_distance), *PAIR, *SUBSETS, columns=DIFFERENCE),
        lambda true: true.distance_gap(PAIR, SUBSETS),
    ),
)
COUNTED = (
    Quantity(
        "unreadable rate",
        _of_all(abstention, "plain", column="unreadable"),
        lambda true: true.unreadable("plain"),
    ),
    Quantity(
        "share of single stages",
        _Read(verdict_shapes, "plain, subset", at={"shape": "singleton"}),
        lambda true: true.singletons("plain, subset"),
    ),
    Quantity(
        "entropy",
        _Read(judge_endpoints, "plain", at={"endpoint": "entropy"}),
        lambda true: true.entropy("plain"),
    ),
    Quantity(
        "entropy, missing scores included",
        _Read(judge_endpoints, "plain", at={"endpoint": "entropy_all"}),
        lambda true: true.entropy("plain", missing=True),
    ),
    _endpoint("middle stages", "plain", "mid_mass", "middle"),
)
AGREEMENT = tuple(
    _agreement(measure, analysis)
    for analysis, measures in (
        (nominal_agreement, ("alpha_nominal", "fleiss_kappa", "cohen_kappa")),
        (_ordinal_agreement, ("alpha_ordinal", "kappa_linear", "kappa_quadratic", "icc")),
    )
    for measure in measures
)
REPLICATES = Quantity(
    "alpha over replicates",
    _Read(consistency, "leaning", columns=_with_interval("alpha"), at={JUDGE: LEANING}),
    lambda true: true.self_agreement("leaning"),
    biased=True,
)


REGRESSIONS = tuple(
    Quantity(
        f"regression: judge{kind}",
        _Read(_regressed, *PAIR, columns=COEFFICIENT, at={"model": f"score{kind}"}),
        lambda true: true.endpoint("stage", "biased", "plain"),
    )
    for kind in ("", ", random intercept")
)


def _table_row(
    name: str,
    column: str,
    truth: Callable[[TrueValues], float],
    of: Analysis = judge_tables.of_setups,
    names: tuple[str, ...] = ("plain",),
) -> Quantity:
    return Quantity(f"judge table: {name}", judge_tables.FirstRow(column, of, names), truth)


def _on_labels(name: str, column: str, truth: Callable[[TrueValues], float]) -> Quantity:
    return _table_row(name, column, truth, judge_tables.with_labels, ("plain", "people"))


JUDGE_TABLE = (
    _table_row("accuracy", "truth", lambda true: true.accuracy("plain")),
    _table_row("consistency", "consistency", lambda true: true.repeated("plain")),
    _table_row("abstained", "abstained", lambda true: true.abstention("plain")),
    _table_row("unreadable", "unreadable", lambda true: true.unreadable("plain")),
    _table_row("answered", "answered", lambda true: true.answered("plain")),
    _table_row("dollars per 1,000 verdicts", "usd_per_1000", lambda true: 1000 * USD),
    _table_row("seconds per verdict", "seconds", lambda true: SECONDS),
    Quantity(
        "judge table: accuracy of all setups together", judge_tables.furthest_off, biased=True
    ),
    Quantity("judge table: quality of the chosen setup", judge_tables.Chosen()),
    Quantity(
        "judge table: quality of the chosen setup, test split", judge_tables.Chosen(split=True)
    ),
    Quantity(
        "judge table: difference from the best setup",
        judge_tables.behind_the_best,
        biased=True,  # the best of several estimates is too good
    ),
)
LABELLED_TABLE = (
    _on_labels(
        "agreement with people", "truth", lambda true: true.agreement_with("plain", "people")
    ),
    _on_labels(
        "agreement with most people",
        "majority",
        lambda true: true.majority("plain", "people", scenarios.RATERS, missing=True),
    ),
    Quantity(
        "judge table: people with each other",
        judge_tables.people_with_each_other,
        lambda true: true.agreement_with("people", "people"),
    ),
)
PAIR_TABLE = tuple(
    Quantity(f"judge table: {name}, pairs", judge_tables.PairRow(column, truth))
    for name, column, truth in (
        ("accuracy", "truth", scenarios.PairJudge.mean_accuracy),
        ("position bias", "position_bias", scenarios.PairJudge.position_bias),
    )
)
STANDING = HypothesisTest(
    "judge table: a best setup is called worse", judge_tables.best_called_worse
)
PERMUTED = HypothesisTest("permuted judges, twins", _Read(polarization, *TWINS, columns="p_value"))
FLIPPED = (
    HypothesisTest("flipped signs, twins", _Read(_stages_of_judges, *TWINS, columns="p")),
    HypothesisTest(
        "flipped signs, evidence first", _Read(_stages_of_designs, *EVIDENCE_FIRST, columns="p")
    ),
)
EFFECTS = tuple(
    HypothesisTest(
        f"flipped signs, one {name}",
        _Read(_stages_of_judges, "plain", name, columns="p"),
        null=False,
    )
    for name in ("much biased", "much biased down")
)
"""Tests of effects in both directions that are hard to miss."""
PERMUTED_EFFECT = HypothesisTest(
    "permuted judges, one much biased",
    _Read(pairwise, "plain", "much biased", columns="p_value"),
    null=False,
)


# --- worlds --------------------------------------------------------------------------------------

INDEPENDENT = Synthetic("independent items")
RARE, CONSTANT = Synthetic("rare values", "rare"), Synthetic("near-constant", "constant")
STICKY = Synthetic("sticky replicates", sticky=0.9)
SIZES = (8, 12, 30, 60)
OVER_ITEMS = (STAGE, RIGHT, ABSTENTION, JITTER, BIAS, DISTANCE_OF_TWO)
CHEAP = (*ONE_JUDGE, BIAS, DISTANCE_OF_TWO, *DESIGNS, *COUNTED)
FAR_SUBSETS = _distance("large distance of subsets", ("plain, subset", "much biased, subset"))
COSTLY = (
    *(one for one in TWO_JUDGES if one not in CHEAP),
    *(FAR_SUBSETS, *STATED, *HYPOTHESES),
)
FEW_RATINGS = "fewer than 20 items or clusters, or than 5 ratings of a used stage"
FEW_CLUSTERS = "fewer than 4 degrees of freedom over clusters"
SOME, FEW = 0.25, 0.1
"""The shares of panels of worlds in which a panel takes long."""


def _independent() -> list[World]:
    """Returns worlds of independent items, and of values that are rare or hardly vary."""
    agreement = (*AGREEMENT, REPLICATES)
    unsure = tuple(replace(one, withheld=FEW_RATINGS) for one in agreement)
    return [
        *(World(INDEPENDENT, n, 5, CHEAP, (*FLIPPED, *EFFECTS)) for n in (12, 30)),
        *(World(INDEPENDENT, n, 5, OVER_ITEMS) for n in (8, 60)),
        *(World(INDEPENDENT, n, 5, COSTLY, (PERMUTED, PERMUTED_EFFECT), SOME) for n in (12, 30)),
        *(World(INDEPENDENT, n, 5, unsure, share=SOME) for n in SIZES[:-1]),
        World(INDEPENDENT, 60, 5, agreement, share=SOME),
        World(INDEPENDENT, 20, 5, unsure[-2:-1]),  # as few items as have an interval
        *(World(RARE, n, 5, OVER_ITEMS) for n in SIZES),
        *(World(CONSTANT, n, 5, OVER_ITEMS) for n in SIZES[1:]),
        *(World(CONSTANT, n, 5, unsure, share=SOME) for n in SIZES[1:]),
        World(CONSTANT, 30, 3, (OVERSTATED,), share=SOME),
        *(World(INDEPENDENT, n, 3, REGRESSIONS, share=SOME) for n in (14, 30)),
        *(World(INDEPENDENT, n, 4, JUDGE_TABLE, (STANDING,), SOME) for n in (12, 30)),
        *(World(INDEPENDENT, n, 4, LABELLED_TABLE, share=SOME) for n in (12, 30)),
        *(World(INDEPENDENT, n, 1, PAIR_TABLE, share=FEW) for n in (12, 30)),
    ]


def _dependent() -> list[World]:
    """Returns worlds of dependent items or replicates, and of scores that are missing."""
    found = []
    for count, items in ((4, 30), (8, 60), (30, 60)):
        source = Synthetic(f"{count} clusters", clusters=count, correlation=0.3)
        of_items: tuple[Quantity, ...] = (*OVER_ITEMS, OVERSTATED)
        of_all = AGREEMENT[::3]
        if count < 20:
            of_all = tuple(replace(one, withheld=FEW_RATINGS) for one in of_all)
        if count == 4:
            of_items = tuple(replace(one, withheld=FEW_CLUSTERS) for one in of_items)
        found.append(World(source, items, 3, of_items[:-1], FLIPPED, share=0.5))
        found.append(World(source, items, 3, (of_items[-1], *of_all), share=FEW))
        if count == 30:
            found.append(World(source, items, 3, JUDGE_TABLE, (STANDING,), FEW))
    twins = _distance("distance of twins", TWINS, withheld="replicates that repeat each other")
    bounds = (
        Quantity(
            "bounds of the expected stage",
            _Read(_bounds, SILENT[1], columns="middle lowest highest"),
            lambda true: true.complete(SILENT[1]),
            biased=True,
        ),
        Quantity(
            "bounds of a difference",
            _Read(_difference_bounds, *reversed(SILENT), columns="middle lowest highest"),
            lambda true: true.complete(*SILENT),
            biased=True,
        ),
    )
    return [
        *found,
        World(STICKY, 30, 5, (STAGE, BIAS, twins), (PERMUTED, *FLIPPED), SOME),
        *(World(Synthetic("silent at a stage"), n, 5, bounds, share=0.5) for n in (12, 30)),
    ]


def _drawn() -> list[World]:
    """Returns worlds of several rubrics or concepts."""

    def distance(name: str, concepts: int) -> Quantity:
        arms = [scenarios.Arm(kind, concepts, 1.0, 0.5) for kind in ("ecc", "control")]
        return Quantity(f"H1, {name}", scenarios.ContestedDistance(*arms))

    few, many = distance("these 3 concepts per arm", 3), distance("5 concepts per arm", 5)
    null = HypothesisTest("H1, 5 concepts per arm, no effect", many.estimate)
    doses = tuple(scenarios.Arm("ecc", 2, 0.3 + 0.4 * dose, 0.3, dose) for dose in range(3))
    slope = Quantity("dose-response, 6 concepts", scenarios.DoseResponse(doses))
    quality = Quantity("rubric quality, 12 rubrics", scenarios.RubricQuality(12))
    irrelevant = HypothesisTest("rubric quality, irrelevant", quality.estimate)
    concepts = Synthetic("several concepts")
    return [
        *(World(Synthetic("drawn rubrics"), n, 5, MANY_RUBRICS, share=SOME) for n in (12, 30)),
        World(Synthetic("many rubrics"), 12, 1, (quality,), (irrelevant,), SOME),
        World(concepts, 8, 5, (few, many), (null,), SOME),
        World(concepts, 8, 3, (slope,), share=FEW),
    ]


def _other_forms() -> list[World]:
    """Returns worlds of judged pairs, of labels, and of the ordered logit."""
    good, weak = scenarios.PairJudge(0.8, 0.3), scenarios.PairJudge(0.1)
    of: Sequence[scenarios.OfPairs] = ("accuracy", "difference", "position bias")
    pairs = tuple(
        Quantity(
            f"pairs: {one}",
            scenarios.PairComparison(good, weak, one),
            withheld="no interval is shown" if one == "position bias" else "",
        )
        for one in of
    )
    equal = scenarios.PairComparison(weak, weak, "difference")
    agreed = Quantity(
        "agreement with people",
        scenarios.agreement_with_people,
        lambda true: true.majority("plain", "people", scenarios.RATERS),
    )
    means = tuple(
        Quantity(
            f"people's mean, {name}",
            scenarios.PredictionPowered(1 / 3, estimate),
            lambda true: true.endpoint("stage", "people"),
        )
        for name, estimate in (
            ("a third labelled", "corrected"),
            ("labels alone", "labels_alone"),
        )
    )
    labels = Synthetic("labels of people")
    logit = Quantity(
        "regression: judge, ordered logit",
        _Read(
            _regressed,
            *("logistic", "logistic, biased"),
            columns=COEFFICIENT,
            at={"model": "score, ordered logit"},
        ),
        lambda true: LOGISTIC_BIAS,
        biased=True,  # maximum likelihood overstates odds in small samples
    )
    return [
        *(
            World(
                Synthetic("judged pairs"),
                n,
                1,
                pairs,
                (HypothesisTest("pairs: equal judges", equal),),
            )
            for n in (12, 30, 60)
        ),
        World(labels, 12, 5, (agreed,), share=0.5),
        World(labels, 30, 5, (agreed, *means), share=0.5),
        World(labels, 60, 5, (agreed, *means), share=0.5),
        World(labels, 40, 1, (Quantity("prevalence", scenarios.Prevalence()),)),
        World(Synthetic("equal items", "equal"), 14, 1, (logit,), share=FEW),
    ]


def _prompted(shape: Shape) -> World:
    fixed = _difference("presentation.order under position bias", _stages_of_designs, *FIXED_ORDER)
    quantities = (*ONE_JUDGE, *TWO_JUDGES, *MANY_RUBRICS, *STATED, *DESIGNS, fixed, *HYPOTHESES)
    return World(
        Prompted(), shape.items, shape.replicates, quantities, (PERMUTED, *FLIPPED), share=FEW
    )


def worlds(shape: Shape) -> list[World]:
    """Returns every world; the shape is that of panels through real prompts."""
    return [*_independent(), *_dependent(), *_drawn(), *_other_forms(), _prompted(shape)]
