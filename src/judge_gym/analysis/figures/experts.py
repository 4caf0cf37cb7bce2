"""What judges say of experts: how sure they are, under whose rubric, and how rightly."""

import altair as alt
import pandas as pd

from judge_gym.analysis.figures.page import (
    BLUE,
    INK,
    MAX_PANELS,
    MAX_ROWS,
    ORANGE,
    OUTLINE,
    PINK,
    RED,
    SHARE,
    SKY,
    WIDTH,
    Figure,
    faceted,
    first,
    fitting,
    names,
    needed,
    short,
    spans,
    symbols,
    titled,
)
from judge_gym.analysis.frames import JUDGE

_MAX_RIVALS = 4
_USED = ("own", "rival's", "third party's", "given")
_STATED = "stated expert agreement"
_MEANT = "Stated: the probability that two of three experts would agree."


def probe_finding(probes: pd.DataFrame) -> str:
    """What judges state at the middle, by whose rubric was used."""
    middle = probes.groupby("rubric used")["probe"].median()
    told = [f"{middle[used]:.2f} under {_whose(used)}" for used in _USED if used in middle]
    return f"Judges state that experts would agree: at the median, {', '.join(told)}"


def _whose(used: str) -> str:
    return {"own": "their own rubric", "given": "a given one"}.get(used, f"a {used}")


def probe_figure(probes: pd.DataFrame, title: str | None = None) -> Figure | None:
    """What judges say of expert agreement, under their own rubric and under a rival's.

    Args:
        probes: columns task, judge.model, rubric used (own, rival's, third party's or given),
            probe; a row each.
        title: its heading; the finding, where it is None.
    """
    data = needed(probes, ["task", JUDGE, "rubric used", "probe"], known=["probe"])
    if data.empty:
        return None
    # The five numbers are taken here: a picture has no room for a million answers.
    marks = {"low": 0.05, "box": 0.25, "median": 0.5, "lid": 0.75, "high": 0.95}
    spread = data.groupby(["task", JUDGE, "rubric used"], sort=False)["probe"]
    five = pd.DataFrame({name: spread.quantile(at) for name, at in marks.items()}).reset_index()
    shown, more = first(five, JUDGE, MAX_ROWS // 2, "judges")
    height = 15 * shown["rubric used"].nunique() * shown[JUDGE].nunique()
    shown, fewer = first(shown, "task", fitting(height), "tasks")
    used = [name for name in _USED if (shown["rubric used"] == name).any()]
    base = alt.Chart(shown).encode(
        y=names(JUDGE, shown[JUDGE]),
        yOffset=alt.YOffset("rubric used:N", sort=used, scale=alt.Scale(paddingOuter=0.15)),
    )
    rules = base.mark_rule(opacity=0.7).encode(
        x=alt.X("low:Q", title=_STATED, scale=SHARE), x2="high:Q"
    )
    boxes = base.mark_bar(size=9, **OUTLINE).encode(
        x="box:Q",
        x2="lid:Q",
        color=alt.Color(
            "rubric used:N",
            sort=used,
            scale=alt.Scale(domain=used, range=[BLUE, ORANGE, SKY, PINK]),
            legend=alt.Legend(orient="top"),
        ),
    )
    medians = base.mark_tick(thickness=2, size=13).encode(x="median:Q")
    chart = alt.layer(rules, boxes, medians).properties(width=WIDTH, height=alt.Step(15))
    grid = faceted(chart, "task", list(shown["task"]))
    note = f"{_MEANT} Strokes: medians; bars: the middle half; lines: 90 % of answers."
    return titled(grid, title or probe_finding(data), note, more, fewer)


def reliability_finding(curve: pd.DataFrame) -> str:
    """How far what judges state lies from what others would say."""
    known = curve.dropna(subset=["stated", "reference", "n"])
    n = known["n"].sum()
    stated, found = (
        float((known[name] * known["n"]).sum() / n) for name in ("stated", "reference")
    )
    gap = stated - found
    told = "as much as they find" if abs(gap) < 0.005 else f"{abs(gap):.2f} too "
    told += "" if abs(gap) < 0.005 else ("much" if gap > 0 else "little")
    return f"Judges state {stated:.2f} agreement where {found:.2f} is found: {told}"


def reliability_figure(curve: pd.DataFrame, title: str | None = None) -> Figure | None:
    """Found against stated agreement, a panel per judge; on the line, judges are calibrated.

    Args:
        curve: columns judge.model, stated, reference, low, high, n; a row per bin.
        title: its heading; the finding, where it is None.
    """
    columns = [JUDGE, "stated", "reference", "low", "high", "n"]
    data = needed(curve, columns, known=["stated", "reference"])
    data = data[data["n"] > 0]
    if data.empty:
        return None
    shown, more = first(data, JUDGE, MAX_PANELS, "judges")
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
    chart = alt.layer(diagonal, spans(base, y), points, data=shown).properties(
        width=180, height=180
    )
    grid = faceted(chart, JUDGE, list(shown[JUDGE]), columns=3, width=180)
    note = "Below the line, judges are surer of experts than other verdicts bear out."
    return titled(grid, title or reliability_finding(data), note, more)


def swap_finding(pairs: pd.DataFrame) -> str:
    """Whether judges expect more agreement under their own rubric."""
    known = pairs.dropna(subset=["own", "rival"])
    gap = (known["own"] - known["rival"]).groupby(known[JUDGE]).mean()
    more = "more" if gap.mean() >= 0 else "less"
    same = int(((gap > 0) if gap.mean() >= 0 else (gap < 0)).sum())
    return (
        f"Judges state {abs(gap.mean()):.2f} {more} agreement under their own rubric than a "
        f"rival's; so do {same} of {len(gap)}"
    )


def swap_figure(pairs: pd.DataFrame, title: str | None = None) -> Figure | None:
    """Stated agreement under the own and under a rival's rubric, a line per judge and rival.

    Args:
        pairs: columns task, judge.model, own, rival (stated on the same evidence and replicate,
            or their means) and rubric_author (the rival).
        title: its heading; the finding, where it is None.
    """
    columns = ["task", JUDGE, "own", "rival", "rubric_author"]
    data = needed(pairs, columns, known=["own", "rival"])
    if data.empty:
        return None
    by = ["task", JUDGE, "rubric_author"]
    means = data.groupby(by, sort=False)[["own", "rival"]].mean().reset_index()
    rivals = int(means.groupby(["task", JUDGE])["rubric_author"].nunique().max())
    if rivals > _MAX_RIVALS:
        means["rubric_author"] = "all rivals"
        means = means.groupby(by, sort=False)[["own", "rival"]].mean().reset_index()
        rivals = 1
    shown, more = first(means, JUDGE, MAX_ROWS // 2, "judges")
    height = 14 * rivals * shown[JUDGE].nunique()
    shown, fewer = first(shown, "task", fitting(height), "tasks")
    ends = shown.assign(start=shown["own"], end=shown["rival"])
    long = ends.melt([*by, "start", "end"], ["own", "rival"], var_name="rubric")
    long["rubric"] = long["rubric"].map({"own": "own rubric", "rival": "rival's rubric"})
    # Rivals stand under their judge in an order of their own, whatever task they come from.
    ranks = long.groupby(JUDGE)["rubric_author"].transform(lambda part: pd.factorize(part)[0])
    last = long.groupby(by)["value"].transform("max")
    author = long["rubric_author"].map(short(long["rubric_author"], 14))
    long = long.assign(rank=ranks, last=last, author=author)
    base = alt.Chart(long).encode(y=names(JUDGE, shown[JUDGE]), yOffset=alt.YOffset("rank:O"))
    x = alt.X("value:Q", title=_STATED, scale=SHARE)
    own = base.transform_filter("datum.rubric == 'own rubric'")
    kinds = [("own rubric", "circle", BLUE, True), ("rival's rubric", "diamond", RED, False)]
    points = base.mark_point(size=60).encode(x=x, **symbols("rubric", kinds))
    authors = own.mark_text(align="left", dx=9, fontSize=9, opacity=0.8).encode(
        x="last:Q", text=alt.Text("author:N")
    )
    chart = alt.layer(spans(own, x, "start", "end"), points, authors).properties(
        width=210, height=alt.Step(14)
    )
    grid = faceted(chart, "task", list(shown["task"]), width=210)
    note = f"{_MEANT} Each line: a rival's rubric, named beside it."
    return titled(grid, title or swap_finding(data), note, more, fewer)
