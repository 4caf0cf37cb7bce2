"""The power of the hypotheses: what they test, and their variance components from a pilot."""

from collections.abc import Mapping

import pandas as pd

from judge_gym.analysis.frames import JUDGE, once_per_call
from judge_gym.analysis.stats.power import MIN_CONCEPTS, MIN_UNITS, Endpoint, Spread
from judge_gym.analysis.verdicts import Dataset, common_rubrics, item_distances
from judge_gym.protocols import hypotheses as h
from judge_gym.protocols.swap_sensitivity import swap_pairs

ARMS = "contested minus control concepts"
ENDPOINTS: Mapping[str, Endpoint] = {
    "H1 entrenchment": Endpoint(ARMS, Spread(0.01, 0, 0, 0.0025)),
    "H1 on these concepts": Endpoint(ARMS, Spread(0.01)),
    "H2 consensus hallucination": Endpoint("mean over items", Spread(0.03)),
    "H3 framework sensitivity": Endpoint("own minus rival's rubric", Spread(0.02)),
    "H4 forced-choice inflation": Endpoint("single minus subset", Spread(0.01)),
}
"""The hypotheses, with the components that are assumed before any data."""


def hypothesis_spreads(frame: pd.DataFrame) -> dict[str, Spread]:
    """Estimates the components of the hypotheses that a pilot can test."""
    data = Dataset(frame)
    results = {
        "H2 consensus hallucination": h.overstated_agreement(data),
        "H3 framework sensitivity": h.confidence_in_own_rubric(data.compute(swap_pairs)),
        "H4 forced-choice inflation": h.forced_choice_distance(frame),
    }
    spreads = {
        name: Spread(found.parts[0].error ** 2 * found.estimate.n, source="pilot")
        for name, found in results.items()
        if found.parts and found.estimate.n >= MIN_UNITS
    }
    if (concepts := _concept_spread(frame)) is not None:
        spreads["H1 entrenchment"] = concepts
        spreads["H1 on these concepts"] = concepts._replace(concept=0.0)
    return spreads


def _concept_spread(frame: pd.DataFrame) -> Spread | None:
    """Returns the components of distances between judges on items within concepts."""
    kinds = frame[frame["task_type"].isin(["ecc", "control"])]
    shared = common_rubrics(kinds) if len(kinds) else kinds
    if shared.empty:
        return None
    by = ["task_type", "concept", "variant", "task", "rubric", "rubric_draw"]
    found = item_distances(once_per_call(shared, [JUDGE]), by).dropna(subset="distance")
    concept = ["task_type", "concept"]
    items = found.groupby([*concept, "evidence"], observed=True)["distance"].mean()
    groups = items.groupby(level=concept, observed=True)
    spare = int((groups.size() - 1).sum())
    if spare < MIN_UNITS:
        return None
    item = float(((groups.size() - 1) * groups.var().fillna(0.0)).sum() / spare)
    means = groups.mean()
    arms = means.groupby(level="task_type", observed=True)
    free = int((arms.size() - 1).sum())
    default = ENDPOINTS["H1 entrenchment"].spread.concept
    if free < MIN_CONCEPTS - 1:
        return Spread(item, concept=default, source="pilot; between concepts, default")
    between = float(((arms.size() - 1) * arms.var().fillna(0.0)).sum() / free)
    return Spread(
        item, concept=max(0.0, between - item * float((1 / groups.size()).mean())), source="pilot"
    )
