"""The section on biases: the order of two responses, length, places and labels of the display."""

from typing import Any

import pandas as pd

from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.judges.setups import short_names
from judge_gym.analysis.measures.verdict_shapes import display_bias
from judge_gym.analysis.report.page import (
    ReportInput,
    Section,
    Table,
    interval_texts,
    plot_differences,
    section,
)
from judge_gym.analysis.stats.intervals import LEVEL
from judge_gym.records.numbers import signed_points

COLUMNS = ["setup", "bias", "where", "value", "low", "high", "items", "unit"]


def biases(given: ReportInput) -> Section | None:
    """Shows which setups prefer a place, a label, or longer texts."""
    rows = [*_orders(given), *_lengths(given), *_displays(given)]
    if not rows:
        return None
    frame = pd.DataFrame(rows, columns=COLUMNS).astype({"low": float, "high": float})
    clear = frame[(frame["low"] > 0) | (frame["high"] < 0)]
    lead = "No setup has a clear bias."
    if len(clear):
        texts = interval_texts(clear, signed_points)
        named = [
            f"{setup}, {bias} ({text} points{f', {where}' if where else ''})"
            for setup, bias, where, text in zip(
                clear["setup"], clear["bias"], clear["where"], texts, strict=True
            )
        ]
        more = len(named) - 3
        listed = "; ".join([*named[:3], *([f"{more} more"] if more > 0 else [])])
        of = f", {len(clear)} of {len(frame)}" if len(frame) > 1 else ""
        lead = f"Clear{of}: {listed}."
    several = ["where"] if (frame["where"] != "").any() else []
    return section(
        "Bias",
        lead,
        tables=[
            Table(
                "Biases",
                "In percentage points, with 95 % intervals. Response shown first: its share of "
                "decided verdicts minus that of the second, over pairs shown in both orders. "
                "Place and label: the share of scored verdicts on it minus an equal share, where "
                "displays were shuffled; of each judge's places and labels the largest, with an "
                "interval that holds for all of them together. Length: how verdicts change at "
                "equal label.",
                frame,
                pd.DataFrame(
                    {
                        **{name: frame[name] for name in ("setup", "bias", *several)},
                        "points": interval_texts(frame, signed_points),
                        "items": frame["items"],
                    }
                ),
                plot=plot_differences(frame, "points", "share"),
            )
        ],
    )


def _orders(given: ReportInput) -> list[dict[str, Any]]:
    """Lists how far each setup prefers the response of a pair that is shown first."""
    rows = given.judges["rows"] if given.judges else ()
    return [
        {
            "setup": row["setup"],
            "bias": "for the response shown first",
            "where": "",
            "unit": "share",
        }
        | {"value": bias["value"], "low": bias["low"], "high": bias["high"], "items": bias["n"]}
        for row in rows
        if (bias := row["position_bias"])
    ]


def _lengths(given: ReportInput) -> list[dict[str, Any]]:
    """Lists how verdicts of the chosen setup depend on length at equal label, where known."""
    length = given.judges["length"] if given.judges else None
    effect = None if length is None else length["effect"]
    if length is None or effect is None:
        return []
    return [
        {
            "setup": length["setup"],
            "bias": f"for a {length['unit']} of length",
            "where": "at equal label",
            "value": effect["value"],
            "low": effect["low"],
            "high": effect["high"],
            "items": effect["n"],
            "unit": "share",
        }
    ]


def _displays(given: ReportInput) -> list[dict[str, Any]]:
    """Lists each judge's largest preference for a place, and for a label, of the display."""
    data = given.data.without_pairs
    if not data.scored:
        return []
    every = display_bias(data.frame)
    is_estimated = every["shuffled"].astype(bool) & every["mean"].notna()
    if not is_estimated.any():
        return []
    # The largest of many is clear only if its interval is wide enough for all of them.
    every = display_bias(data.frame, 1 - (1 - LEVEL) / int(is_estimated.sum()))
    measured = every[is_estimated]
    size = measured["mean"].abs()
    top = measured.loc[size.groupby([measured[JUDGE], measured["kind"]], observed=True).idxmax()]
    words = {"position": "place", "label": "label"}
    names = short_names(map(str, every[JUDGE].unique()))
    return [
        {
            "setup": names[str(row[JUDGE])],
            "bias": f"for {words[str(row['kind'])]} {row['place']}",
            "where": _named_cell(row, every),
            "value": row["mean"],
            "low": row["low"],
            "high": row["high"],
            "items": row["items"],
            "unit": "share",
        }
        for row in top.to_dict("records")
    ]


def _named_cell(row: dict[Any, Any], every: pd.DataFrame) -> str:
    """Names the task and variant of a row, as far as there are several."""
    parts = [str(row[name]) for name in ("task", "variant") if every[name].nunique() > 1]
    return ", ".join(parts)
