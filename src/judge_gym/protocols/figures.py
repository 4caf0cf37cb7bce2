"""Figures of the protocol: stated expert agreement, swaps, single stages against subsets.

They are drawn as those of `analysis.figures`.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import BLUE, GREY, INK, MAX_ROWS, SHARE, alt
from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.stats.intervals import seeded

_MAX_RIVALS = 4
_USED = ("own", "rival's", "third party's", "given")
_STATED = "stated expert agreement"
_EXPLAINED = "Stated: the probability that two of three experts would agree."
_MAX_POINTS = 2000


def _probe_finding(probes: pd.DataFrame) -> str:
    """States the median stated agreement by the rubric's author."""
    whose = {"own": "their own rubric", "given": "a given rubric"}
    medians = probes.groupby("rubric used")["probe"].median()
    parts = [
        f"{medians[used]:.2f} under {whose.get(used, f'a {used} rubric')}"
        for used in _USED
        if used in medians
    ]
    return f"Median stated expert agreement: {', '.join(parts)}"


@drawing.figure(["task", JUDGE, "rubric used", "probe"], known=["probe"], finding=_probe_finding)
def probe_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows the distribution of stated agreement by the rubric used: own, rival's, and so on."""
    # Quantiles are computed here, because a picture has no room for a million answers.
    marks = {"low": 0.05, "box": 0.25, "median": 0.5, "lid": 0.75, "high": 0.95}
    spread = data.groupby(["task", JUDGE, "rubric used"], sort=False)["probe"]
    five = pd.DataFrame({name: spread.quantile(at) for name, at in marks.items()}).reset_index()
    shown, more = drawing.first_values(five, JUDGE, MAX_ROWS // 2, "judges")
    height = 15 * shown["rubric used"].nunique() * shown[JUDGE].nunique()
    shown, fewer = drawing.first_values(shown, "task", drawing.panel_limit(height), "tasks")
    used = [name for name in _USED if (shown["rubric used"] == name).any()]
    base = alt.Chart(shown).encode(
        y=drawing.row_names(JUDGE, shown[JUDGE]),
        yOffset=alt.YOffset("rubric used:N", sort=used, scale=alt.Scale(paddingOuter=0.15)),
    )
    rules = base.mark_rule(opacity=0.7).encode(
        x=alt.X("low:Q", title=_STATED, scale=SHARE), x2=alt.X2("high:Q")
    )
    colours = [BLUE, drawing.ORANGE, drawing.SKY, drawing.PINK]
    boxes = base.mark_bar(size=9, **drawing.OUTLINE).encode(
        x=alt.X("box:Q"),
        x2=alt.X2("lid:Q"),
        color=drawing.named_colours("rubric used", used, colours, title="rubric used"),
    )
    medians = base.mark_tick(thickness=2, size=13).encode(x=alt.X("median:Q"))
    chart = alt.layer(rules, boxes, medians).properties(width=drawing.WIDTH, height=alt.Step(15))
    note = f"{_EXPLAINED} Strokes: medians; bars: the middle half; lines: 90 % of answers."
    return drawing.faceted(chart, "task", list(shown["task"])), [note, more, fewer]


def _reliability_finding(curve: pd.DataFrame) -> str:
    """States how far stated agreement is from the agreement found in other verdicts."""
    with_reference = curve.dropna(subset=["stated", "reference", "n"])
    n = with_reference["n"].sum()
    stated, observed = (
        float((with_reference[name] * with_reference["n"]).sum() / n)
        for name in ("stated", "reference")
    )
    return f"Judges state {stated:.2f} agreement on average, {observed:.2f} is found"


@drawing.figure(
    [JUDGE, "stated", "reference", "low", "high", "n"],
    known=["stated", "reference"],
    finding=_reliability_finding,
    by_judge=True,
)
def reliability_figure(data: pd.DataFrame, judges: Iterable[str]) -> drawing.Drawn:
    """Shows observed against stated agreement by judge, with a line of perfect calibration."""
    shown, more = drawing.first_values(data, JUDGE, drawing.MAX_PANELS, "judges")
    most = int(shown["n"].max())
    sizes = sorted({max(1, most // 10), max(1, most // 2), most})
    ends = pd.DataFrame({"stated": [0.0, 1.0], "reference": [0.0, 1.0]})
    x = alt.X("stated:Q", title="stated", scale=SHARE, axis=alt.Axis(tickCount=5))
    y = alt.Y("reference:Q", title="found", scale=SHARE, axis=alt.Axis(tickCount=5))
    diagonal = alt.Chart(ends).mark_line(color=INK, strokeDash=[4, 3], opacity=0.6).encode(x=x, y=y)
    # Without data of its own, or every panel would show all judges.
    base = alt.Chart().encode(x=x)
    colours = drawing.by_judge(JUDGE, shown[JUDGE], judges)
    points = base.mark_point(filled=True, opacity=0.9).encode(
        y=y,
        color=colours,
        size=alt.Size(
            "n:Q",
            title="verdicts",
            scale=alt.Scale(range=[20, 220], zero=True),
            legend=alt.Legend(orient="top", values=sizes, symbolFillColor=GREY),
        ),
    )
    rules = drawing.interval_rules(base, y)
    chart = alt.layer(diagonal, rules, points, data=shown).properties(width=200, height=200)
    grid = drawing.faceted(chart, JUDGE, list(shown[JUDGE]), columns=3, width=200)
    note = "Below the line, judges are overconfident: other verdicts agree less than stated."
    return grid, [note, more]


def _swap_finding(pairs: pd.DataFrame) -> str:
    """States whether judges expect more agreement under their own rubric."""
    gap = (pairs["own"] - pairs["rival"]).groupby(pairs[JUDGE]).mean()
    more = "more" if gap.mean() >= 0 else "less"
    same = int(((gap > 0) if gap.mean() >= 0 else (gap < 0)).sum())
    return (
        f"Judges state {abs(gap.mean()):.2f} {more} agreement under their own rubric than under a "
        f"rival's; this holds for {same} of {len(gap)} judges"
    )


@drawing.figure(
    ["task", JUDGE, "own", "rival", "rubric_author"], known=["own", "rival"], finding=_swap_finding
)
def swap_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows stated agreement under the own and under a rival's rubric, per judge and rival."""
    by = ["task", JUDGE, "rubric_author"]
    means = data.groupby(by, sort=False)[["own", "rival"]].mean().reset_index()
    rivals = int(means.groupby(["task", JUDGE])["rubric_author"].nunique().max())
    if rivals > _MAX_RIVALS:
        means["rubric_author"] = "all rivals"
        means = means.groupby(by, sort=False)[["own", "rival"]].mean().reset_index()
        rivals = 1
    shown, more = drawing.first_values(means, JUDGE, MAX_ROWS // 2, "judges")
    height = 16 * rivals * shown[JUDGE].nunique()
    shown, fewer = drawing.first_values(shown, "task", drawing.panel_limit(height), "tasks")
    ends = shown.assign(start=shown["own"], end=shown["rival"])
    long = ends.melt([*by, "start", "end"], ["own", "rival"], var_name="rubric")
    long["rubric"] = long["rubric"].map({"own": "own rubric", "rival": "rival's rubric"})
    # The rivals of a judge have the same order in every task.
    ranks = long.groupby(JUDGE)["rubric_author"].transform(lambda part: pd.factorize(part)[0])
    last = long.groupby(by)["value"].transform("max")
    author = long["rubric_author"].map(drawing.shortened(long["rubric_author"], 14))
    long = long.assign(rank=ranks, last=last, author=author)
    base = alt.Chart(long).encode(
        y=drawing.row_names(JUDGE, shown[JUDGE]), yOffset=alt.YOffset("rank:O")
    )
    x = alt.X("value:Q", title=_STATED, scale=SHARE)
    own_rubrics = base.transform_filter("datum.rubric == 'own rubric'")
    kinds = [
        ("own rubric", "circle", BLUE, True),
        ("rival's rubric", "diamond", drawing.RED, False),
    ]
    points = base.mark_point(size=60).encode(x=x, **drawing.symbols("rubric", kinds))
    authors = own_rubrics.mark_text(align="left", dx=9, opacity=0.8).encode(
        x=alt.X("last:Q"), text=alt.Text("author:N")
    )
    rules = drawing.interval_rules(own_rubrics, x, "start", "end")
    chart = alt.layer(rules, points, authors).properties(width=240, height=alt.Step(16))
    note = f"{_EXPLAINED} Each line: a rival's rubric, named beside it."
    return drawing.faceted(chart, "task", list(shown["task"]), width=240), [note, more, fewer]


def _method_finding(methods: pd.DataFrame) -> str:
    """States on how many items judges disagree less, or more, with subsets."""
    changes = methods["subset"] - methods["single"]
    change = float(changes.mean())
    how = "more" if change > 0 else "less"
    moved = int((changes > 0).sum() if change > 0 else (changes < 0).sum())
    return (
        f"Judges disagree {how} with subsets than with single stages on {moved} of {len(methods)} "
        f"items ({change:+.2f} on average)"
    )


@drawing.figure(
    ["task", "item", "single", "subset"], known=["single", "subset"], finding=_method_finding
)
def method_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows disagreement on each item with subsets against single stages, a panel per task."""
    shown, more = drawing.first_values(data, "task", drawing.panel_limit(260), "tasks")
    sample = shown
    if len(shown) > _MAX_POINTS:
        picks = seeded("method_figure", len(shown)).choice(len(shown), _MAX_POINTS, replace=False)
        sample = shown.iloc[np.sort(picks)]
        more += f" {_MAX_POINTS} of {len(shown)} items, sampled at random."
    low = min(0.0, float(sample[["single", "subset"]].min().min()))
    high = max(low + 0.1, float(sample[["single", "subset"]].max().max()))
    scale = alt.Scale(domain=[low, high], nice=True)
    line = pd.DataFrame({"single": [low, high], "subset": [low, high]})
    x = alt.X("single:Q", title="distance with single stages", scale=scale)
    y = alt.Y("subset:Q", title="distance with subsets", scale=scale)
    diagonal = alt.Chart(line).mark_line(color=INK, strokeDash=[4, 3], opacity=0.6).encode(x=x, y=y)
    points = (
        alt.Chart()  # without data of its own, or every panel would show all items
        .mark_point(fill=BLUE, stroke=INK, strokeWidth=0.5, fillOpacity=0.8, size=45)
        .encode(x=x, y=y, tooltip=[alt.Tooltip(of) for of in ("item:N", "single:Q", "subset:Q")])
    )
    chart = alt.layer(diagonal, points, data=sample).properties(width=280, height=260)
    note = "Squared distances, one point per item. Below the line, subsets reduce disagreement."
    return drawing.faceted(chart, "task", list(shown["task"])), [note, more]
