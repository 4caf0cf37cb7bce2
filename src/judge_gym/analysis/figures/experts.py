"""Stated expert agreement: its distribution, its calibration, and the effect of another rubric."""

import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import BLUE, INK, MAX_ROWS, SHARE, alt
from judge_gym.analysis.frames import JUDGE

_MAX_RIVALS = 4
_USED = ("own", "rival's", "third party's", "given")
_STATED = "stated expert agreement"
_EXPLAINED = "Stated: the probability that two of three experts would agree."


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
    """Shows the distribution of stated agreement; rubrics used are own, rival's, and so on."""
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
        x=alt.X("low:Q", title=_STATED, scale=SHARE), x2="high:Q"
    )
    colours = [BLUE, drawing.ORANGE, drawing.SKY, drawing.PINK]
    boxes = base.mark_bar(size=9, **drawing.OUTLINE).encode(
        x="box:Q",
        x2="lid:Q",
        color=drawing.named_colours("rubric used", used, colours, title="rubric used"),
    )
    medians = base.mark_tick(thickness=2, size=13).encode(x="median:Q")
    chart = alt.layer(rules, boxes, medians).properties(width=drawing.WIDTH, height=alt.Step(15))
    note = f"{_EXPLAINED} Strokes: medians; bars: the middle half; lines: 90 % of answers."
    return drawing.faceted(chart, "task", list(shown["task"])), [note, more, fewer]


def _reliability_finding(curve: pd.DataFrame) -> str:
    """States how far stated agreement is from the agreement found in other verdicts."""
    known = curve.dropna(subset=["stated", "reference", "n"])
    n = known["n"].sum()
    stated, found = (
        float((known[name] * known["n"]).sum() / n) for name in ("stated", "reference")
    )
    gap = stated - found
    how = f"{'overconfident' if gap > 0 else 'underconfident'} by {abs(gap):.2f}"
    verdict = "calibrated on average" if abs(gap) < 0.005 else how
    return f"Judges state {stated:.2f} agreement, {found:.2f} is found: {verdict}"


@drawing.figure(
    [JUDGE, "stated", "reference", "low", "high", "n"],
    known=["stated", "reference"],
    finding=_reliability_finding,
)
def reliability_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows found against stated agreement, a panel per judge; the line is perfect calibration."""
    shown, more = drawing.first_values(data, JUDGE, drawing.MAX_PANELS, "judges")
    most = int(shown["n"].max())
    sizes = sorted({max(1, most // 10), max(1, most // 2), most})
    ends = pd.DataFrame({"stated": [0.0, 1.0], "reference": [0.0, 1.0]})
    x = alt.X("stated:Q", title="stated", scale=SHARE, axis=alt.Axis(tickCount=5))
    y = alt.Y("reference:Q", title="found", scale=SHARE, axis=alt.Axis(tickCount=5))
    diagonal = alt.Chart(ends).mark_line(color=INK, strokeDash=[4, 3], opacity=0.6).encode(x=x, y=y)
    # Without data of its own, or every panel would show all judges.
    base = alt.Chart().encode(x=x)
    points = base.mark_point(fill=BLUE, stroke=INK, strokeWidth=0.5, opacity=0.9).encode(
        y=y,
        size=alt.Size(
            "n:Q",
            title="verdicts",
            scale=alt.Scale(range=[20, 220], zero=True),
            legend=alt.Legend(orient="top", values=sizes, symbolFillColor=BLUE),
        ),
    )
    rules = drawing.interval_rules(base, y)
    chart = alt.layer(diagonal, rules, points, data=shown).properties(width=180, height=180)
    grid = drawing.faceted(chart, JUDGE, list(shown[JUDGE]), columns=3, width=180)
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
    height = 14 * rivals * shown[JUDGE].nunique()
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
    own = base.transform_filter("datum.rubric == 'own rubric'")
    kinds = [
        ("own rubric", "circle", BLUE, True),
        ("rival's rubric", "diamond", drawing.RED, False),
    ]
    points = base.mark_point(size=60).encode(x=x, **drawing.symbols("rubric", kinds))
    authors = own.mark_text(align="left", dx=9, fontSize=9, opacity=0.8).encode(
        x="last:Q", text=alt.Text("author:N")
    )
    rules = drawing.interval_rules(own, x, "start", "end")
    chart = alt.layer(rules, points, authors).properties(width=210, height=alt.Step(14))
    note = f"{_EXPLAINED} Each line: a rival's rubric, named beside it."
    return drawing.faceted(chart, "task", list(shown["task"]), width=210), [note, more, fewer]
