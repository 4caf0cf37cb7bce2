"""The hypotheses of the contested-concepts protocol, H1 to H4, which share a family of tests.

How a test is made, and what becomes of it, is that of contrasts that a study declares.
"""

from collections.abc import Callable, Sequence

import pandas as pd

from judge_gym.analysis.declared import (
    HypothesisResult,
    Tested,
    contrast_tests,
    no_result,
    one_sample,
    outcomes,
    two_samples,
    values_by_draw,
)
from judge_gym.analysis.frames import (
    JUDGE,
    PANEL,
    clusters_of,
    once_per_call,
    select_rows,
    varied_knobs,
)
from judge_gym.analysis.judges.quantities import as_quantity
from judge_gym.analysis.measures.polarization import excess_by_item, panel_null
from judge_gym.analysis.stats.intervals import DIFFERENCE, MANY_DRAWS, estimate
from judge_gym.analysis.verdicts import (
    PANEL_COLUMNS,
    Dataset,
    Samples,
    common_rubrics,
    distances_without_draws,
    item_distances,
    row_means,
)
from judge_gym.protocols.stated_agreement import (
    OWN_RUBRICS,
    PEOPLE,
    SAME_RUBRIC,
    VerdictsByItem,
    most_telling,
    stated_agreement,
)
from judge_gym.protocols.swap_sensitivity import swap_pairs
from judge_gym.records.numbers import signed_hundredths, with_interval
from judge_gym.studies.declarations import (
    NOTHING_DECLARED,
    Declarations,
)

SIDE = ["rubric_draw", "evidence", JUDGE, "rubric_author"]
MIN_CONCEPTS = 4
"""The number of concepts per arm from which a claim is about concepts in general."""


def hypotheses(
    samples: Samples, declared: Declarations = NOTHING_DECLARED, people: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Tests the hypotheses of the protocol, and the contrasts that a study declares.

    Each is supported, contradicted, equivalent or undecided, or has no data.
    """
    data = Dataset.of(samples)
    tests = [*protocol_tests(data, declared, people), *contrast_tests(data, declared.contrasts)]
    return outcomes(tests, declared)


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
    hypothesis_tests = [
        Tested(name[:2], name, claim, estimand, tests[name[:2]]())
        for name, claim, estimand in HYPOTHESES
        if declared.hypotheses is None or name[:2] in declared.hypotheses
    ]
    labelled = AGAINST[PEOPLE]
    return [
        test._replace(claim=test.claim.replace("the other judges", "people"))
        if test.result.note.startswith(labelled)
        else test
        for test in hypothesis_tests
    ]


def contested_distance(frame: pd.DataFrame) -> HypothesisResult:
    """Tests the distance under a third party's rubric, contested concepts minus controls.

    From four concepts per arm on, concepts are the sample, and the claim is about concepts in
    general; with fewer, items are, and it holds for these concepts, pools and rubrics only.
    """
    kinds = select_rows(frame, frame["task_type"].isin(["ecc", "control"]))
    if kinds["task_type"].nunique() < 2:
        return no_result("needs tasks of type ecc and of type control")
    shared = common_rubrics(kinds)
    if shared.empty:
        return no_result("no rubric by a third party; name one in the study's swap: ['*', author]")
    by = ["task_type", "concept", "variant", "task", "rubric", "rubric_draw"]
    distances = item_distances(once_per_call(shared, [JUDGE]), by)
    concepts = distances.groupby(["task_type", "concept", "evidence"], observed=True)["distance"]
    means = concepts.mean().groupby(level=["task_type", "concept"], observed=True).mean().dropna()
    if without := [kind for kind in ("ecc", "control") if kind not in means.index]:
        kinds_text = " or ".join(without)
        return no_result(f"no two judges scored an item of type {kinds_text} at least twice each")
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
    result = two_samples(contested, plain, clusters)
    draws = min(len(contested), len(plain))
    scope = "on these concepts" + (", pools and rubrics" if draws < MANY_DRAWS else " and pools")
    few = f"{counts[0]} contested and {counts[1]} control concepts"
    scope = f"{result.scope} and {scope}" if result.scope else scope
    return result._replace(note=result.note or few, scope=scope)


def overstated_agreement(samples: Samples, people: pd.DataFrame | None = None) -> HypothesisResult:
    """Tests the stated probability of agreement minus its reference.

    The reference is people's labels where enough items have them, else the other judges' verdicts
    under the same rubric, else those under the rubrics of their own designs.
    """
    stated, lacking = stated_agreement(samples, people)
    kind = most_telling(stated)
    items, *without = (
        VerdictsByItem.of(part[part["reference"] == kind]) for part in (stated, *lacking)
    )
    gaps = items.bias
    if gaps.empty:
        return no_result("needs probes, and three verdicts of other judges on other displays")
    draw_values = values_by_draw(gaps, [part_without_draw.bias for part_without_draw in without])
    result = one_sample(gaps, draw_values, items.clusters, alike=items.mostly_equal)
    return result._replace(note="; ".join(filter(None, [AGAINST[kind], result.note])))


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
        return no_result("needs probed samples under own and under rivals' rubrics (swap)")
    calls = rivals[["own_call", "other_call"]]
    rivals = rivals[calls.isna().any(axis=1) | ~calls.duplicated()]
    gaps = rivals["gap"].groupby([rivals[name] for name in SIDE]).mean()
    table = _by_draw(gaps.groupby(level=["rubric_draw", "evidence"]).mean())
    clusters = clusters_of(rivals, table.columns)
    return one_sample(row_means(table.to_numpy().T), table, clusters, mean_over_draws=True)


def _forced_choice(data: Dataset) -> HypothesisResult:
    """Tests the forced choice, and notes the same difference in P above chance."""
    result = forced_choice_distance(data.frame)
    return result._replace(note=_forced_divergence(data)) if result.estimate.known else result


def forced_choice_distance(frame: pd.DataFrame) -> HypothesisResult:
    """Tests the distance of judges with single verdicts minus with subsets, on the same items."""
    if "verdict.method" not in frame or frame["verdict.method"].nunique() < 2:
        return no_result("needs verdict.method single and subset")
    is_compared = (
        ~frame["is_swap"] & frame["verdict.method"].isin(["single", "subset"])
    ).to_numpy()
    by = ["task", "verdict.method", *_matched_knobs(frame[is_compared])]
    samples = frame.loc[
        is_compared, [name for name in dict.fromkeys([*by, *PANEL_COLUMNS]) if name in frame]
    ]
    samples = once_per_call(samples.assign(**{k: samples[k].astype(str) for k in by[1:]}), [JUDGE])
    key = [column for column in by if column != "verdict.method"] + ["judge", "other"]
    gaps = _single_minus_subset(item_distances(samples, by), key, "distance")
    if gaps.empty:
        return no_result("no item has two scored replicates of two judges under both methods")
    lacking = [
        _single_minus_subset(part, key, "distance") for part in distances_without_draws(samples, by)
    ]
    return one_sample(gaps, values_by_draw(gaps, lacking), clusters_of(frame, gaps.index))


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
        values = {"task": task, "evidence": panel.units, "above": above, **named}
        parts.append(pd.DataFrame(values))
    gaps = _single_minus_subset(pd.concat(parts), ["task", *knobs], "above")
    divergence = estimate(gaps, clusters_of(data.frame, gaps.index), scale=DIFFERENCE)
    return f"P above chance: {with_interval(as_quantity(divergence), signed_hundredths)}"


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
    """Tabulates values by draw of the rubric and item, NaN where missing."""
    return values.unstack("evidence").dropna(axis=1, how="all").astype(float)
