"""The power of the hypotheses: what they test, and their variance components from a pilot."""

from collections.abc import Mapping

import pandas as pd

from judge_gym.analysis.frames import JUDGE, once_per_call
from judge_gym.analysis.planning.components import Components
from judge_gym.analysis.planning.power import MIN_CONCEPTS, MIN_UNITS, Endpoint
from judge_gym.analysis.verdicts import Dataset, common_rubrics, item_distances
from judge_gym.protocols import hypotheses as h
from judge_gym.protocols.swap_sensitivity import swap_pairs

ARMS = "contested minus control concepts"
CONCEPT_VARIANCE = 0.0025
"""What is assumed between concepts before enough of them were judged."""
ENDPOINTS: Mapping[str, Endpoint] = {
    "H1 entrenchment": Endpoint(ARMS, Components(0.01, concept=CONCEPT_VARIANCE)),
    "H1 on these concepts": Endpoint(ARMS, Components(0.01)),
    "H2 consensus hallucination": Endpoint("mean over items", Components(0.03)),
    "H3 framework sensitivity": Endpoint("own minus rival's rubric", Components(0.02)),
    "H4 forced-choice inflation": Endpoint("single minus subset", Components(0.01)),
}
"""The hypotheses, with the components that are assumed before any data."""


def hypothesis_components(frame: pd.DataFrame) -> dict[str, Components]:
    """Estimates the components of the hypotheses that a pilot can test."""
    data = Dataset(frame)
    results = {
        "H2 consensus hallucination": h.overstated_agreement(data),
        "H3 framework sensitivity": h.confidence_in_own_rubric(data.compute(swap_pairs)),
        "H4 forced-choice inflation": h.forced_choice_distance(frame),
    }
    assumed = {
        name: Components(result.parts[0].error ** 2 * result.estimate.n, source="pilot")
        for name, result in results.items()
        if result.parts and result.estimate.n >= MIN_UNITS
    }
    if (concepts := _concept_components(frame)) is not None:
        assumed["H1 entrenchment"] = concepts
        assumed["H1 on these concepts"] = concepts._replace(concept=0.0)
    return assumed


def _concept_components(frame: pd.DataFrame) -> Components | None:
    """Returns the components of distances between judges on items within concepts."""
    kinds = frame[frame["task_type"].isin(["ecc", "control"])]
    shared = common_rubrics(kinds) if len(kinds) else kinds
    if shared.empty:
        return None
    by = ["task_type", "concept", "variant", "task", "rubric", "rubric_draw"]
    distances = item_distances(once_per_call(shared, [JUDGE]), by).dropna(subset="distance")
    concept = ["task_type", "concept"]
    items = distances.groupby([*concept, "evidence"], observed=True)["distance"].mean()
    groups = items.groupby(level=concept, observed=True)
    spare = int((groups.size() - 1).sum())
    if spare < MIN_UNITS:
        return None
    item = float(((groups.size() - 1) * groups.var().fillna(0.0)).sum() / spare)
    means = groups.mean()
    arms = means.groupby(level="task_type", observed=True)
    free = int((arms.size() - 1).sum())
    if free < MIN_CONCEPTS - 1:
        source = "pilot; between concepts, default"
        return Components(item, concept=CONCEPT_VARIANCE, source=source)
    between = float(((arms.size() - 1) * arms.var().fillna(0.0)).sum() / free)
    return Components(
        item, concept=max(0.0, between - item * float((1 / groups.size()).mean())), source="pilot"
    )
