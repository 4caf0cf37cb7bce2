"""Declared contrasts, the hypotheses of the contested-concepts protocol, and their outcomes.

Holm's two-sided p over all of them below .05 makes a hypothesis supported or, if the effect has
the opposite sign, contradicted. Otherwise it is equivalent if the study declared a margin and two
one-sided tests place the effect within it, and else undecided: a missing effect is never concluded
from a large p. A hypothesis without data counts as p = 1 in the family.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.frames import (
    JUDGE,
    PANEL,
    clusters_of,
    level_name,
    once_per_call,
    select_rows,
    varied_knobs,
)
from judge_gym.analysis.metrics.polarization import excess_by_item, panel_null
from judge_gym.analysis.metrics.stated_agreement import (
    OWN_RUBRICS,
    PEOPLE,
    SAME_RUBRIC,
    VerdictsByItem,
    most_telling,
    stated_agreement,
)
from judge_gym.analysis.metrics.swap_sensitivity import swap_pairs
from judge_gym.analysis.panels import (
    COLUMNS,
    Dataset,
    Samples,
    common_rubrics,
    distances_without_draws,
    item_distances,
    row_means,
)
from judge_gym.analysis.stats.clusters import Codes, ErrorPart, grouped_codes, scope
from judge_gym.analysis.stats.contrasts import UNAFFECTED, Sides
from judge_gym.analysis.stats.intervals import (
    DIFFERENCE,
    MANY_DRAWS,
    Estimate,
    Floats,
    difference,
    draw_part,
    estimate,
    half_width,
    item_error,
    p_value,
    pseudo_values,
    t_quantile,
    undefined,
)
from judge_gym.analysis.stats.paired_tests import holm
from judge_gym.studies.declarations import (
    ENDPOINTS,
    NOTHING_DECLARED,
    ContrastSpec,
    Declarations,
)

ALPHA = 0.05
MIN_ITEMS = 5
SIDE = ["rubric_draw", "evidence", JUDGE, "rubric_author"]
MIN_CONCEPTS = 4
"""The number of concepts per arm from which a claim is about concepts in general."""
RULE = (
    f"supported or contradicted if Holm's two-sided p over the table is below {ALPHA:g}, and "
    "negligible if the 90 % interval also lies within the declared margin; else equivalent if the "
    "effect lies within the margin by two one-sided tests; else undecided; at least "
    f"{MIN_ITEMS} items"
)


class HypothesisResult(NamedTuple):
    """An estimate, the p-value that corresponds to its interval, and a note for the reader."""

    estimate: Estimate
    p: float
    note: str
    parts: tuple[ErrorPart, ...] = ()
    """The components of the estimate's error."""
    scope: str = ""
    """What the claim is limited to; empty if it is about more than what was observed."""


class Tested(NamedTuple):
    """A hypothesis or a declared contrast, with its result."""

    key: str
    """What a study declares it by."""
    name: str
    claim: str
    estimand: str
    result: HypothesisResult
    directed: bool = True
    """Whether the claim is an effect above 0, or else any effect."""


def hypotheses(
    samples: Samples, declared: Declarations = NOTHING_DECLARED, people: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Tests the hypotheses of the protocol, and the contrasts that a study declares.

    Each is supported, contradicted, equivalent or undecided, or has no data.
    """
    data = Dataset.of(samples)
    tests = [*protocol_tests(data, declared, people), *contrast_tests(data, declared.contrasts)]
    return decided(tests, declared)


def decided(tests: Sequence[Tested], declared: Declarations = NOTHING_DECLARED) -> pd.DataFrame:
    """Decides on the outcomes of tests that a reader sees together: they are one family.

    Effects smaller than the declared margin are negligible; without one, none is shown to be.
    """
    margin, results = declared.margin, [test.result for test in tests]
    known = [
        one.p if one.estimate.known and one.estimate.n >= MIN_ITEMS else np.nan for one in results
    ]
    corrected = holm(np.nan_to_num(known, nan=1.0))
    within = [
        equivalence_p(one, margin) if margin and np.isfinite(p) else 1.0
        for one, p in zip(results, known, strict=True)
    ]
    rows = []
    for test, p, adjusted, equivalent in zip(
        tests, known, corrected, holm(np.array(within)), strict=True
    ):
        tested, found = np.isfinite(p), np.isfinite(test.result.estimate.value)
        outcome = "undecided" if found else "no data"
        if tested:
            outcome = _outcome(test, adjusted, equivalent, margin)
        rows.append(
            {
                "hypothesis": test.name,
                "claim": _limited(test.claim, test.result.scope),
                "estimand": test.estimand,
                "rule": RULE,
                **test.result.estimate.named("value", "low", "high", "items"),
                "p": p,
                "holm": adjusted if tested else np.nan,
                "outcome": outcome,
                "scope": test.result.scope,
                "declared": declared.when(test.key),
                "note": test.result.note,
            }
        )
    return pd.DataFrame(rows)


def equivalence_p(result: HypothesisResult, margin: float) -> float:
    """Returns the p-value of two one-sided tests that an effect lies within the margin."""
    sides = []
    for inside in (margin + result.estimate.value, margin - result.estimate.value):
        p = p_value(inside, result.parts) / 2
        sides.append(p if inside > 0 else 1 - p)
    return max(sides)


def _outcome(test: Tested, adjusted: float, equivalent: float, margin: float | None) -> str:
    """Returns the outcome of a hypothesis that could be tested."""
    value = test.result.estimate.value
    if adjusted < ALPHA:
        reach = half_width(test.result.parts, 1 - 2 * ALPHA)
        decided = "supported" if value > 0 or not test.directed else "contradicted"
        return f"{decided}, negligible" if margin and abs(value) + reach < margin else decided
    return "equivalent" if margin and equivalent < ALPHA else "undecided"


def _limited(claim: str, scope: str) -> str:
    """Returns a claim that begins with what it is limited to."""
    return f"{scope.capitalize()}, {claim[0].lower()}{claim[1:]}" if scope else claim


def protocol_tests(
    data: Dataset, declared: Declarations = NOTHING_DECLARED, people: pd.DataFrame | None = None
) -> list[Tested]:
    """Tests the hypotheses of the protocol that a study declares, by default all of them."""
    tests: dict[str, Callable[[], HypothesisResult]] = {
        "H1": lambda: contested_distance(data.frame),
        "H2": lambda: overstated_agreement(data, people),
        "H3": lambda: confidence_in_own_rubric(data.compute(swap_pairs)),
        "H4": lambda: _forced_choice(data),
    }
    found = [
        Tested(name[:2], name, claim, estimand, tests[name[:2]]())
        for name, claim, estimand in HYPOTHESES
        if declared.hypotheses is None or name[:2] in declared.hypotheses
    ]
    labelled = AGAINST[PEOPLE]
    return [
        test._replace(claim=test.claim.replace("the other judges", "people"))
        if test.result.note.startswith(labelled)
        else test
        for test in found
    ]


def contrast_tests(data: Dataset, declared: Sequence[ContrastSpec]) -> list[Tested]:
    """Tests each declared contrast over all tasks, judges and designs that differ in it alone."""
    if not declared:
        return []
    sides = data.derive(Sides, ENDPOINTS)
    return [_contrast_test(sides, contrast) for contrast in declared]


def _contrast_test(sides: Sides, contrast: ContrastSpec) -> Tested:
    """Tests level minus base, with an item's difference averaged over what is matched.

    A contrast that expects a lower level is tested as base minus level.
    """
    sign = -1 if contrast.expect == "lower" else 1
    place = ENDPOINTS.index(contrast.endpoint)
    level, base = level_name(contrast.level), level_name(contrast.base)
    pairs = sides.matched(contrast.knob, level, base)

    def differences(without: int | None = None) -> pd.Series:
        found = [
            pd.Series(sides.differences([pair], without)[0, :, place], sides.items[pair[0][0]])
            for pair in pairs
        ]
        return sign * pd.concat(found).dropna().groupby(level=0).mean()

    result = _lacking("no two experiments differ in this alone, with the same displays")
    if pairs:
        whole = differences()
        drawn = _drawn(whole, [differences(draw) for draw in sides.draws(pairs)])
        result = one_sample(whole, drawn, clusters_of(sides.frame, whole.index))
        calls = "probe_call_id" if contrast.endpoint == "probability" else "call_id"
        shared = sides.shared_calls(pairs, calls) == 1
        tasks, judges = (len({pair[0][part] for pair in pairs}) for part in (0, 2))
        scope = [f"{tasks} tasks" if tasks > 1 else "", f"{judges} judges" if judges > 1 else ""]
        mean = " and ".join(filter(None, scope))
        notes = [mean and f"mean over {mean}", UNAFFECTED if shared else result.note]
        result = result._replace(note="; ".join(filter(None, notes)))
    verb = {"higher": "is higher than", "lower": "is lower than", None: "differs from"}
    return Tested(
        key=contrast.name,
        name=contrast.name,
        claim=f"{contrast.knob} {level} {verb[contrast.expect]} {base} in {contrast.endpoint}.",
        estimand=f"{contrast.endpoint}, {'base minus level' if sign < 0 else 'level minus base'}",
        result=result,
        directed=contrast.expect is not None,
    )


def contested_distance(frame: pd.DataFrame) -> HypothesisResult:
    """Tests the distance under a third party's rubric, contested concepts minus controls.

    From four concepts per arm on, concepts are the sample, and the claim is about concepts in
    general; with fewer, items are, and it holds for these concepts, pools and rubrics only.
    """
    kinds = select_rows(frame, frame["task_type"].isin(["ecc", "control"]))
    if kinds["task_type"].nunique() < 2:
        return _lacking("needs tasks of type ecc and of type control")
    shared = common_rubrics(kinds)
    if shared.empty:
        return _lacking("no rubric by a third party; name one in the study's swap: ['*', author]")
    by = ["task_type", "concept", "variant", "task", "rubric", "rubric_draw"]
    distances = item_distances(once_per_call(shared, [JUDGE]), by)
    concepts = distances.groupby(["task_type", "concept", "evidence"], observed=True)["distance"]
    means = concepts.mean().groupby(level=["task_type", "concept"], observed=True).mean().dropna()
    if without := [kind for kind in ("ecc", "control") if kind not in means.index]:
        kinds_text = " or ".join(without)
        return _lacking(f"no two judges scored an item of type {kinds_text} at least twice each")
    arms = [means[kind].to_numpy() for kind in ("ecc", "control")]
    counts = [len(arm) for arm in arms]
    if min(counts) >= MIN_CONCEPTS:
        note = f"over {counts[0]} contested and {counts[1]} control concepts"
        return two_samples(*arms)._replace(note=note)
    contested, plain = (
        _by_draw(part.groupby(["rubric_draw", "evidence"], observed=True)["distance"].mean())
        for part in (distances[distances["task_type"] == kind] for kind in ("ecc", "control"))
    )
    clusters = [clusters_of(shared, arm.columns) for arm in (contested, plain)]
    found = two_samples(contested, plain, clusters)
    draws = min(len(contested), len(plain))
    scope = "on these concepts" + (", pools and rubrics" if draws < MANY_DRAWS else " and pools")
    few = f"{counts[0]} contested and {counts[1]} control concepts"
    scope = f"{found.scope} and {scope}" if found.scope else scope
    return found._replace(note=found.note or few, scope=scope)


def overstated_agreement(samples: Samples, people: pd.DataFrame | None = None) -> HypothesisResult:
    """Tests the stated probability of agreement minus its reference.

    The reference is people's labels where enough items have them, else the other judges' verdicts
    under the same rubric, else those under the rubrics of their own designs.
    """
    whole, lacking = stated_agreement(samples, people)
    kind = most_telling(whole)
    items, *without = (
        VerdictsByItem.of(part[part["reference"] == kind]) for part in (whole, *lacking)
    )
    gaps = items.bias
    if gaps.empty:
        return _lacking("needs probes, and three verdicts of other judges on other displays")
    drawn = _drawn(gaps, [one.bias for one in without])
    found = one_sample(gaps, drawn, items.clusters, alike=items.mostly_equal)
    return found._replace(note="; ".join(filter(None, [AGAINST[kind], found.note])))


AGAINST = {
    PEOPLE: "against people's labels",
    SAME_RUBRIC: "against the other judges under the same rubric",
    OWN_RUBRICS: "against the other judges under their own rubrics: judge and rubric differ",
}
"""Kinds of references, in words."""


def confidence_in_own_rubric(pairs: pd.DataFrame) -> HypothesisResult:
    """Tests the stated probability under the own rubric minus under a rival's."""
    rivals = pairs[pairs["role"] == "rival"]
    if rivals.empty:
        return _lacking("needs probed samples under own and under rivals' rubrics (swap)")
    calls = rivals[["own_call", "other_call"]]
    rivals = rivals[calls.isna().any(axis=1) | ~calls.duplicated()]
    gaps = rivals["gap"].groupby([rivals[name] for name in SIDE]).mean()
    table = _by_draw(gaps.groupby(level=["rubric_draw", "evidence"]).mean())
    clusters = clusters_of(rivals, table.columns)
    return one_sample(row_means(table.to_numpy().T), table, clusters, mean_over_draws=True)


def _forced_choice(data: Dataset) -> HypothesisResult:
    """Returns `forced_choice_distance` with the same difference in P above chance as a note."""
    found = forced_choice_distance(data.frame)
    return found._replace(note=_forced_divergence(data)) if found.estimate.known else found


def forced_choice_distance(frame: pd.DataFrame) -> HypothesisResult:
    """Tests the distance of judges with single verdicts minus with subsets, on the same items."""
    if "verdict.method" not in frame or frame["verdict.method"].nunique() < 2:
        return _lacking("needs verdict.method single and subset")
    kept = (~frame["is_swap"] & frame["verdict.method"].isin(["single", "subset"])).to_numpy()
    by = ["task", "verdict.method", *_matched_knobs(frame[kept])]
    own = frame.loc[kept, [name for name in dict.fromkeys([*by, *COLUMNS]) if name in frame]]
    own = once_per_call(own.assign(**{k: own[k].astype(str) for k in by[1:]}), [JUDGE])
    key = [column for column in by if column != "verdict.method"] + ["judge", "other"]
    gaps = _single_minus_subset(item_distances(own, by), key, "distance")
    if gaps.empty:
        return _lacking("no item has two scored replicates of two judges under both methods")
    lacking = [
        _single_minus_subset(part, key, "distance") for part in distances_without_draws(own, by)
    ]
    return one_sample(gaps, _drawn(gaps, lacking), clusters_of(frame, gaps.index))


def _single_minus_subset(found: pd.DataFrame, key: Sequence[str], value: str) -> pd.Series:
    """Returns the difference on each item, averaged over all matched designs."""
    wide = found.pivot_table(index=[*key, "evidence"], columns="verdict.method", values=value)
    wide = wide.reindex(columns=["single", "subset"])
    return (wide["single"] - wide["subset"]).dropna().groupby(level="evidence").mean()


def _forced_divergence(data: Dataset) -> str:
    """Describes the difference of single and subset verdicts in P above chance."""
    knobs = _matched_knobs(data.frame)
    columns = [*PANEL, "verdict.method", *knobs]
    levels = data.frame.drop_duplicates(PANEL)[columns].astype(str).set_index(PANEL)
    parts = []
    for panel in data.panels:
        above = excess_by_item(panel, panel_null(panel), "p")
        task, variant = str(panel.key["task"]), str(panel.key["variant"])
        named = levels.loc[[(task, variant)]].iloc[0].to_dict()
        values = {"task": task, "evidence": panel.evidence, "above": above, **named}
        parts.append(pd.DataFrame(values))
    gaps = _single_minus_subset(pd.concat(parts), ["task", *knobs], "above")
    found = estimate(gaps, clusters_of(data.frame, gaps.index), scale=DIFFERENCE)
    return f"P above chance: {found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _matched_knobs(frame: pd.DataFrame) -> list[str]:
    knobs = [knob for knob in varied_knobs(frame) if knob != "verdict.method"]
    return [*knobs, *(["series"] if frame["series"].nunique() > 1 else [])]


HYPOTHESES = (
    (
        "H1 entrenchment",
        "Judges disagree more on contested concepts than on controls (third party's rubric).",
        "squared distance of judges under a third party's rubric, ecc minus control",
    ),
    (
        "H2 consensus hallucination",
        "Judges overstate how far the other judges agree.",
        "stated probability minus the chance that most of three others agree",
    ),
    (
        "H3 framework sensitivity",
        "Stated agreement drops under a rival's rubric.",
        "stated probability, own minus rival's rubric",
    ),
    (
        "H4 forced-choice inflation",
        "Some of the distance between single-stage verdicts comes from forced choice.",
        "squared distance of judges, single minus subset, same items",
    ),
)


def _by_draw(values: pd.Series) -> pd.DataFrame:
    """Returns values by draw of the rubric and item as a table; missing ones are NaN."""
    return values.unstack("evidence").dropna(axis=1, how="all").astype(float)


def _drawn(whole: pd.Series, without: Sequence[pd.Series]) -> Floats | None:
    """Returns pseudo-values by draw and item; None if draws are few."""
    if not without:
        return None
    return pseudo_values(whole, np.stack([one.reindex(whole.index) for one in without]))


def one_sample(
    values: npt.ArrayLike,
    draws: npt.ArrayLike | None = None,
    clusters: Codes | None = None,
    *,
    mean_over_draws: bool = False,
    alike: bool = False,
) -> HypothesisResult:
    """Tests a mean over items by Student's t, from five draws of rubrics on of draws too.

    `draws` are the contributions of draws of rubrics, by draw and item; `alike` is whether what is
    compared is the same on most items. VerdictsByItem in clusters have CR2
    errors; with too few clusters there is no test, and the scope says so.
    """
    sides = [np.asarray(values, dtype=float)]
    return _tested(sides, [draws], [clusters], mean_over_draws, partial(_error, alike=alike))


def two_samples(
    ours: npt.ArrayLike, theirs: npt.ArrayLike, clusters: Sequence[Codes | None] = (None, None)
) -> HypothesisResult:
    """Tests the difference of two means over different items by Welch's t, and of draws too.

    A side is one value per item, or a table of draws by items; `clusters` has those of each side.
    """
    tables = [np.atleast_2d(np.asarray(side, dtype=float)) for side in (ours, theirs)]
    # The values of a side may be means of concepts, to which the scale of items does not apply.
    return _tested([row_means(table.T) for table in tables], tables, clusters, True, item_error)


def _tested(
    sides: Sequence[Floats],
    draws: Sequence[npt.ArrayLike | None],
    clusters: Sequence[Codes | None],
    mean_over_draws: bool,
    error: Callable[[Floats, Codes | None], ErrorPart],
) -> HypothesisResult:
    """Tests the mean of the first side, minus that of a second if there is one."""
    both = list(zip(sides, clusters, strict=True))
    codes = [grouped_codes(one, ~np.isnan(values)) for values, one in both]
    scopes = [scope(values, one) for values, one in both]
    limit, _, within = next(filter(None, scopes), "").partition(", ")
    means = [values[~np.isnan(values)] for values in sides]
    counts = [len(values) for values in means]
    known = min(counts) > 0
    value = float(means[0].mean() - sum(other.mean() for other in means[1:])) if known else np.nan
    if min(counts) < 2 or all(np.ptp(values) == 0 for values in means):
        return HypothesisResult(
            undefined(sum(counts), value), np.nan, "too few items, or no variance"
        )
    errors = [error(values, one) for values, one in zip(means, codes, strict=True)]
    squares = [part.error**2 for part in errors]
    if limit:
        return HypothesisResult(undefined(sum(counts), value), np.nan, within, scope=limit)
    # Welch's degrees of freedom; for one side, its own.
    lost = sum(part.error**4 / part.freedom for part in errors)
    parts = [ErrorPart(float(np.sqrt(sum(squares))), sum(squares) ** 2 / lost)]
    tables = [np.asarray(table, dtype=float) for table in draws if table is not None]
    parts += [
        draw_part(table, mean_over_draws=mean_over_draws)
        for table in tables
        if len(table) >= MANY_DRAWS
    ]
    half = half_width(parts)
    interval = Estimate(value, value - half, value + half, sum(counts))
    return HypothesisResult(interval, p_value(value, parts), "", tuple(parts))


def _error(values: Floats, clusters: Codes | None, *, alike: bool) -> ErrorPart:
    """Returns the error that corresponds to the longer side of the interval of a mean over items.

    Where most items are alike, that is more than the standard error.
    """
    error, freedom = item_error(values, clusters)
    found = estimate(values, clusters, scale=difference(1, cautious=alike))
    if found.known:
        side = max(found.high - found.value, found.value - found.low)
        error = max(error, side / float(t_quantile(freedom)))
    return ErrorPart(error, freedom)


def _lacking(what: str) -> HypothesisResult:
    return HypothesisResult(undefined(), np.nan, what)
