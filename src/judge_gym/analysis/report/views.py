"""The fidelity of the evidence views that judges read to their sources."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from judge_gym.stages.fidelity import flagged


def views_table(views: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Counts the views of each editor, and those that should be checked, by reason."""
    rows: dict[str, dict[str, Any]] = {}
    ratios: dict[str, list[float]] = {}
    for view in views:
        counts = dict.fromkeys(["views", "failed", "flagged", "too long", "numbers", "names"], 0)
        row = rows.setdefault(view["editor"], {"editor": view["editor"], **counts})
        checks = view["checks"]
        row["views"] += 1
        row["failed"] += view["status"] != "scored"
        if checks is not None:
            row["flagged"] += flagged(checks)
            row["too long"] += bool(checks["too_long"])
            row["numbers"] += bool(checks["numbers"])
            row["names"] += bool(checks["names"])
            ratios.setdefault(view["editor"], []).append(checks["length_ratio"])
    means = {editor: sum(values) / len(values) for editor, values in ratios.items()}
    return pd.DataFrame([{**row, "length ratio": means.get(e)} for e, row in rows.items()])
