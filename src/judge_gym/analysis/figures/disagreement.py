"""Disagreement of judges by task and by pair."""

import numpy as np
import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import BLUE, INK, MAX_ROWS, alt
from judge_gym.records.numbers import signed_hundredths

_MEASURES = {"above": "above chance", "p": "raw P", "null": "chance at this n"}
_PAIR = ["p", "null", "above", "low", "high"]
LEVEL = 0.05
"""Holm's p over panels below which judges disagree more than by chance."""
_MAX_WORDED = 10


def _polarization_finding(data: pd.DataFrame) -> str:
    """States in how many panels judges disagree more than by chance, and where most."""
    above = data["above"]
    if not above.notna().any():
        top = data.sort_values("p", kind="stable").iloc[-1]
        return f"Judges disagree most on {top['panel']}: raw P {top['p']:.2f}"
    top = data.sort_values("above", kind="stable", na_position="first").iloc[-1]
    most = f"most on {top['panel']} ({signed_hundredths(top['above'])})"
    if not data["holm"].notna().any():
        return f"Judges disagree {most}"
    more = int((data["holm"] < LEVEL).sum())
    tested = int(data["holm"].notna().sum())
    panels = f"{tested} panel{'s' * (tested > 1)}"
    if not more:
        return f"Judges do not clearly disagree more than by chance in any of {panels}"
    return f"Judges disagree more than by chance in {more} of {panels}; {most}"


@drawing.figure(
    ["task", "variant", "p"],
    known=["p"],
    optional=[*_PAIR[1:], "holm"],
    finding=_polarization_finding,
)
def polarization_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows raw polarization P, its expectation by chance, and the excess with its interval."""
    shown, more = drawing.first_values(data, "panel", MAX_ROWS, "panels")
    long = shown.melt(["panel", "low", "high"], list(_MEASURES), var_name="measure").dropna(
        subset=["value"]
    )
    kinds = [
        ("above chance", "circle", BLUE, True),
        ("raw P", "circle", INK, False),
        ("chance at this n", drawing.BAR_SHAPE, INK, False),
    ]
    long["measure"] = long["measure"].map(_MEASURES)
    rows = list(shown["panel"])
    step = 32 if any(" · " in row for row in rows) else 24
    base = alt.Chart(long).encode(
        y=drawing.row_names("panel", rows, most=40, lines=True, sort=rows)
    )
    low = min(0.0, float(np.nanmin(long[["value", "low"]].to_numpy(dtype=float))))
    x = alt.X(
        "value:Q",
        title="polarization P (0 = identical, 1 = maximal)",
        scale=alt.Scale(domain=[low, 1]),
    )
    rules = drawing.interval_rules(base.transform_filter("datum.measure == 'above chance'"), x)
    used = [kind for kind in kinds if (long["measure"] == kind[0]).any()]
    points = base.mark_point(size=80).encode(x=x, **drawing.symbols("measure", used))
    return alt.layer(rules, points).properties(width=400, height=alt.Step(step)), [more]


def _pair_finding(pairs: pd.DataFrame) -> str:
    """States in how many comparisons judges disagree more than by chance, and which most."""
    if pairs.empty:
        return "No pair of judges can be compared with chance"
    top = pairs.sort_values("above", kind="stable").iloc[-1]
    most = f"{top['judge']} and {top['other']} ({signed_hundredths(top['above'])})"
    tested = int(pairs["q"].notna().sum())
    if not tested:
        return f"The largest disagreement above chance: {most}"
    more = int(((pairs["q"] < LEVEL) & (pairs["above"] > 0)).sum())
    return (
        f"In {more} of {tested} comparisons judges disagree more than by chance (q < {LEVEL:g}); "
        f"most, {most}"
    )


@drawing.figure(
    ["task", "variant", "judge", "other", *_PAIR],
    known=["above"],
    optional=["q"],
    finding=_pair_finding,
)
def pair_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows P above chance of each pair of judges as half a matrix, per task and variant.

    With up to ten judges each cell contains raw P minus its expectation by chance; with more, only
    a colour.
    """
    judges = list(dict.fromkeys([*data["judge"], *data["other"]]))
    kept, more = judges[:MAX_ROWS], drawing.omitted(len(judges), MAX_ROWS, "judges")
    steps, worded = len(kept) - 1, len(kept) <= _MAX_WORDED
    wide = max(84, min(130, 300 // steps)) if worded else max(12, 500 // steps)
    tall = 40 if worded else max(12, min(22, wide))
    across = max(1, min(3, 760 // max(200, wide * steps)))
    limit = drawing.panel_limit(tall * steps + 30, across)
    shown, fewer = drawing.first_values(_half(data, kept), "panel", limit, "panels")
    high = max(0.1, float(np.ceil(shown["above"].max() * 10) / 10))
    base = alt.Chart(shown).encode(
        x=drawing.column_names("column", kept, sort=kept[:-1]),
        y=drawing.row_names("row", kept, sort=kept[1:]),
    )
    cells = base.mark_rect(stroke=INK).encode(
        color=drawing.gradient("above", "P above chance", 0, high),
        strokeWidth=alt.condition("datum.clear", alt.value(1.5), alt.value(0)),
        tooltip=[alt.Tooltip(f"{name}:Q", format=".2f") for name in _PAIR],
    )
    words = base.encode(
        color=alt.condition(f"datum.above > {0.55 * high}", alt.value("#000"), alt.value("#fff"))
    )
    texts = [
        words.mark_text(dy=-7, fontWeight="bold").encode(text=alt.Text("excess:N")),
        words.mark_text(dy=8).encode(text=alt.Text("difference:N")),
    ]
    chart = alt.layer(cells, *(texts if worded else [])).properties(
        width=alt.Step(wide), height=alt.Step(tall)
    )
    note = "Outlined: the 95 % interval lies above 0." + (
        " Small: raw P minus its expectation by chance." if worded else ""
    )
    grid = drawing.faceted(chart, "panel", list(shown["panel"]), columns=across, width=wide * steps)
    return grid, [note, more, fewer]


def _half(pairs: pd.DataFrame, judges: list[str]) -> pd.DataFrame:
    """Returns each pair once, below the diagonal, with the text of its cell."""
    place = {judge: n for n, judge in enumerate(judges)}
    known = pairs[pairs["judge"].isin(judges) & pairs["other"].isin(judges)]
    swapped = known["judge"].map(place) > known["other"].map(place)
    both = zip(known["p"], known["null"], strict=True)
    return known.assign(
        column=known["judge"].where(~swapped, known["other"]),
        row=known["other"].where(~swapped, known["judge"]),
        clear=known["low"] > 0,
        excess=[f"{value:+.2f}" for value in known["above"]],
        difference=[f"{p:.2f} − {null:.2f}" for p, null in both],
    )
