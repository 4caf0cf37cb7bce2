"""How far judges lie apart: by task, by pair, and with one stage against several."""

import altair as alt
import numpy as np
import pandas as pd

from judge_gym.analysis.figures.page import (
    BAR_SHAPE,
    BLUE,
    INK,
    MAX_ROWS,
    Figure,
    faceted,
    first,
    fitting,
    graded,
    left_out,
    names,
    needed,
    panels,
    slanted,
    spans,
    symbols,
    titled,
)
from judge_gym.analysis.stats.intervals import seeded

_MEASURES = {"above": "above chance", "p": "raw P", "null": "chance at this n"}
_PAIR = ["p", "null", "above", "low", "high"]
_CELL_WORDS, _MAX_POINTS = 10, 2000


def polarization_finding(polarization: pd.DataFrame) -> str:
    """Where judges lie farther apart than chance, and where the most."""
    data = panels(polarization.dropna(subset=["p"]))
    above = data.get("above", pd.Series(np.nan, index=data.index))
    if not above.notna().any():
        top = data.sort_values("p", kind="stable").iloc[-1]
        return f"Judges lie farthest apart on {top['panel']}: raw P {top['p']:.2f}"
    top = data.sort_values("above", kind="stable", na_position="first").iloc[-1]
    more = int((data["low"] > 0).sum())
    return (
        f"Judges lie farther apart than chance in {more} of {above.notna().sum()} panels; "
        "farthest on "
        f"{top['panel']} ({top['above']:+.2f})"
    )


def polarization_figure(polarization: pd.DataFrame, title: str | None = None) -> Figure | None:
    """Polarization P as it is, by chance, and above chance with its interval.

    Args:
        polarization: columns task, variant, p; with null, above, low, high where they are known.
        title: its heading; the finding, where it is None.
    """
    held = polarization.reindex(columns=[*dict.fromkeys([*polarization, *_PAIR])])
    data = panels(needed(held, ["task", "variant", *_PAIR], known=["p"]))
    if data.empty:
        return None
    shown, more = first(data, "panel", MAX_ROWS, "panels")
    long = shown.melt(["panel", "low", "high"], list(_MEASURES), var_name="measure").dropna(
        subset=["value"]
    )
    kinds = [
        ("above chance", "circle", BLUE, True),
        ("raw P", "circle", INK, False),
        ("chance at this n", BAR_SHAPE, INK, False),
    ]
    used = set(long["measure"].map(_MEASURES))
    rows = list(shown["panel"])
    step = 32 if any(" · " in row for row in rows) else 24
    base = alt.Chart(long.assign(measure=long["measure"].map(_MEASURES))).encode(
        y=names("panel", rows, most=50, lines=True, sort=rows)
    )
    low = min(0.0, float(np.nanmin(long[["value", "low"]].to_numpy(dtype=float))))
    x = alt.X(
        "value:Q",
        title="polarization P (0 = alike, 1 = farthest apart)",
        scale=alt.Scale(domain=[low, 1]),
    )
    rules = spans(base.transform_filter("datum.measure == 'above chance'"), x)
    points = base.mark_point(size=80).encode(
        x=x,
        **symbols("measure", [kind for kind in kinds if kind[0] in used]),
    )
    chart = alt.layer(rules, points).properties(width=380, height=alt.Step(step))
    return titled(chart, title or polarization_finding(data), more)


def pair_finding(pairs: pd.DataFrame) -> str:
    """How many pairs lie farther apart than chance, and which the most."""
    known = pairs.dropna(subset=["above"])
    if known.empty:
        return "No pair of judges can be compared with chance"
    top = known.sort_values("above", kind="stable").iloc[-1]
    more = int((known["low"] > 0).sum())
    return (
        f"{more} of {len(known)} comparisons lie farther apart than chance; "
        f"{top['judge']} and {top['other']} the farthest ({top['above']:+.2f})"
    )


def pair_figure(pairs: pd.DataFrame, title: str | None = None) -> Figure | None:
    """Which judges lie apart, as half a matrix of P above chance, a panel per task and variant.

    Up to ten judges, each cell says raw P minus what chance gives; above, colour speaks alone.

    Args:
        pairs: columns task, variant, judge, other, p, null, above, low, high; a row per pair.
        title: its heading; the finding, where it is None.
    """
    columns = ["task", "variant", "judge", "other", *_PAIR]
    data = panels(needed(pairs, columns, known=["above"]))
    if data.empty:
        return None
    judges = list(dict.fromkeys([*data["judge"], *data["other"]]))
    kept, more = judges[:MAX_ROWS], left_out(len(judges), MAX_ROWS, "judges")
    steps, wordy = len(kept) - 1, len(kept) <= _CELL_WORDS
    wide = max(62, min(110, 220 // steps)) if wordy else max(12, 500 // steps)
    tall = 36 if wordy else max(12, min(22, wide))
    across = max(1, min(3, 560 // max(200, wide * steps)))
    shown, fewer = first(_half(data, kept), "panel", fitting(tall * steps + 30, across), "panels")
    high = max(0.1, float(np.ceil(shown["above"].max() * 10) / 10))
    base = alt.Chart(shown).encode(
        x=slanted("column", kept, sort=kept[:-1]), y=names("row", kept, sort=kept[1:])
    )
    cells = base.mark_rect(stroke=INK).encode(
        color=graded("above", "P above chance", 0, high),
        strokeWidth=alt.condition("datum.apart", alt.value(1.5), alt.value(0)),
        tooltip=[alt.Tooltip(f"{name}:Q", format=".2f") for name in _PAIR],
    )
    words = base.encode(
        color=alt.condition(f"datum.above > {0.55 * high}", alt.value("#000"), alt.value("#fff"))
    )
    written = [
        words.mark_text(dy=-6, fontSize=12, fontWeight="bold").encode(text="said:N"),
        words.mark_text(dy=8, fontSize=9.5).encode(text="sum:N"),
    ]
    chart = alt.layer(cells, *(written if wordy else [])).properties(
        width=alt.Step(wide), height=alt.Step(tall)
    )
    note = "Outlined: the 95 % interval lies above 0." + (
        " Small: raw P minus what chance gives." if wordy else ""
    )
    grid = faceted(chart, "panel", list(shown["panel"]), columns=across, width=wide * steps)
    return titled(grid, title or pair_finding(data), note, more, fewer)


def _half(pairs: pd.DataFrame, judges: list[str]) -> pd.DataFrame:
    """Each pair once, below the diagonal, with what its cell says."""
    place = {judge: n for n, judge in enumerate(judges)}
    known = pairs[pairs["judge"].isin(judges) & pairs["other"].isin(judges)]
    swapped = known["judge"].map(place) > known["other"].map(place)
    sums = zip(known["p"], known["null"], strict=True)
    return known.assign(
        column=known["judge"].where(~swapped, known["other"]),
        row=known["other"].where(~swapped, known["judge"]),
        apart=known["low"] > 0,
        said=[f"{value:+.2f}" for value in known["above"]],
        sum=[f"{p:.2f} − {null:.2f}" for p, null in sums],
    )


def method_finding(methods: pd.DataFrame) -> str:
    """On how many items judges lie closer when they may name several stages, or farther apart."""
    known = methods.dropna(subset=["single", "subset"])
    changes = known["subset"] - known["single"]
    change = float(changes.mean())
    how = "farther apart" if change > 0 else "closer"
    moved = int((changes > 0).sum() if change > 0 else (changes < 0).sum())
    return (
        f"Judges lie {how} with subsets than with single stages on {moved} of {len(known)} "
        f"items ({change:+.2f} on average)"
    )


def method_figure(methods: pd.DataFrame, title: str | None = None) -> Figure | None:
    """Disagreement on each item with subsets against single stages, a panel per task.

    Args:
        methods: columns task, item, single, subset (squared distances).
        title: its heading; the finding, where it is None.
    """
    data = needed(methods, ["task", "item", "single", "subset"], known=["single", "subset"])
    if data.empty:
        return None
    shown, more = first(data, "task", fitting(260), "tasks")
    drawn = shown
    if len(shown) > _MAX_POINTS:  # a million points are a blot
        picks = seeded("method_figure", len(shown)).choice(len(shown), _MAX_POINTS, replace=False)
        drawn = shown.iloc[np.sort(picks)]
        more += f" {_MAX_POINTS} of {len(shown)} items, drawn at random."
    low = min(0.0, float(drawn[["single", "subset"]].min().min()))
    high = max(low + 0.1, float(drawn[["single", "subset"]].max().max()))
    scale = alt.Scale(domain=[low, high], nice=True)
    line = pd.DataFrame({"single": [low, high], "subset": [low, high]})
    x, y = (
        alt.X("single:Q", title="distance with single stages", scale=scale),
        alt.Y("subset:Q", title="distance with subsets", scale=scale),
    )
    diagonal = alt.Chart(line).mark_line(color=INK, strokeDash=[4, 3], opacity=0.6).encode(x=x, y=y)
    points = (
        alt.Chart()  # without data of its own, or every panel would show all items
        .mark_point(fill=BLUE, stroke=INK, strokeWidth=0.5, fillOpacity=0.8, size=45)
        .encode(x=x, y=y, tooltip=["item:N", "single:Q", "subset:Q"])
    )
    chart = alt.layer(diagonal, points, data=drawn).properties(width=260, height=260)
    grid = faceted(chart, "task", list(shown["task"]))
    note = "Squared distances, a point per item. Below the line: judges lie closer with subsets."
    return titled(grid, title or method_finding(data), note, more)
