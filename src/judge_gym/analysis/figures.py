"""Figures, in one grammar for notebook and report; titles say what is seen."""

import re
from typing import Any, Final

import altair as alt
import pandas as pd

from judge_gym.analysis.frames import JUDGE
from judge_gym.records import STATUSES, content_hash

# A sequential scheme for stages (they have an order), Okabe and Ito's colours for categories.
STAGE_SCHEME: Final = "viridis"
STATUS_COLOURS = ["#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#999999", "#000000"]
WIDTH = 340
Figure = alt.Chart | alt.FacetChart | alt.HConcatChart


def distribution_figure(distributions: pd.DataFrame, title: str) -> Figure:
    """The share of each stage, a bar per judge, a panel per task and variant."""
    distributions = panels(distributions)
    bars = (
        alt.Chart(distributions)
        .mark_bar()
        .encode(
            x=alt.X(
                "share:Q",
                title="share of scored verdicts",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y(f"{_field(JUDGE)}:N", title=None),
            color=alt.Color(
                "stage:O",
                title="stage",
                scale=alt.Scale(scheme=STAGE_SCHEME),
                legend=alt.Legend(orient="top"),
            ),
            order=alt.Order("stage:Q"),
            tooltip=[f"{_field(JUDGE)}:N", "stage:O", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=WIDTH, height=alt.Step(22))
    )
    return _panels(bars, distributions, title)


def status_figure(rates: pd.DataFrame, title: str) -> Figure:
    """How answers ended, a bar per judge."""
    long = rates.melt(
        id_vars=["task", "variant", JUDGE],
        value_vars=[f"share_{s}" for s in STATUSES],
        var_name="status",
        value_name="share",
    )
    long["status"] = long["status"].str.removeprefix("share_")
    long["rank"] = long["status"].map(STATUSES.index)
    long = panels(long)
    bars = (
        alt.Chart(long)
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="share of verdicts", axis=alt.Axis(format="%")),
            y=alt.Y(f"{_field(JUDGE)}:N", title=None),
            color=alt.Color(
                "status:N",
                scale=alt.Scale(domain=list(STATUSES), range=STATUS_COLOURS),
                legend=alt.Legend(orient="top", columns=3),
            ),
            order=alt.Order("rank:Q"),
        )
        .properties(width=WIDTH, height=alt.Step(22))
    )
    return _panels(bars, long, title)


def heat_figure(cells: pd.DataFrame, title: str) -> Figure:
    """The expected stage of each item by each judge, a panel per task, strongest items on top."""
    panels = [_heat_panel(part, str(task)) for task, part in cells.groupby("task", sort=False)]
    return _titled(alt.hconcat(*panels), title)


def _heat_panel(cells: pd.DataFrame, task: str) -> Any:
    ranked = cells.groupby("item")["mean"].mean().sort_values(ascending=False).index.tolist()
    return (
        alt.Chart(cells, title=alt.TitleParams(task, fontSize=11, fontWeight="normal"))
        .mark_rect()
        .encode(
            x=alt.X(f"{_field(JUDGE)}:N", title=None, axis=alt.Axis(labelAngle=-35)),
            y=alt.Y("item:N", title=None, sort=ranked, axis=alt.Axis(labelLimit=165)),
            color=alt.Color(
                "mean:Q",
                title="expected stage (0 to 1)",
                scale=alt.Scale(scheme=STAGE_SCHEME, domain=[0, 1]),
            ),
            tooltip=["item:N", f"{_field(JUDGE)}:N", alt.Tooltip("mean:Q", format=".2f")],
        )
        .properties(width=alt.Step(26), height=alt.Step(16))
    )


def polarization_figure(polarization: pd.DataFrame, title: str) -> Figure:
    """Raw P, a row per task and variant."""
    data = panels(polarization.dropna(subset=["p"]))
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=90, color=STATUS_COLOURS[0])
        .encode(
            x=alt.X(
                "p:Q",
                title="raw polarization P (0 = alike, 1 = farthest apart)",
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("panel:N", title=None, sort=list(data["panel"]), axis=alt.Axis(labelLimit=420)),
            tooltip=["panel:N", alt.Tooltip("p:Q", format=".2f"), "items:Q"],
        )
        .properties(width=2 * WIDTH - 80, height=alt.Step(24))
    )
    return _titled(points, title)


def probe_figure(probes: pd.DataFrame, title: str) -> Figure:
    """What judges say of expert agreement, under their own rubric and under a rival's."""
    used = [name for name in ("own", "rival's", "given") if (probes["rubric used"] == name).any()]
    bars = (
        alt.Chart(probes)
        .mark_boxplot(size=12, outliers=False)
        .encode(
            x=alt.X(
                "probe:Q",
                title="stated probability that two of three experts agree",
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y(f"{_field(JUDGE)}:N", title=None),
            yOffset=alt.YOffset("rubric used:N"),
            color=alt.Color(
                "rubric used:N",
                scale=alt.Scale(domain=used, range=STATUS_COLOURS),
            ),
        )
        .properties(width=WIDTH, height=alt.Step(36))
    )
    faceted = bars.facet(facet=alt.Facet("task:N", title=None), columns=2)
    return _titled(faceted, title)


def accuracy_figure(scores: pd.DataFrame, title: str) -> Figure:
    """Accuracy with its interval, a row per judge, a panel per `panel`."""
    judge = alt.Y(f"{_field(JUDGE)}:N", title=None, axis=alt.Axis(labelLimit=260))
    share = alt.Scale(domain=[0, 1])
    base = alt.Chart(scores).encode(y=judge)
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X(
            "low:Q", title="share right, 95 % interval", scale=share, axis=alt.Axis(format="%")
        ),
        x2="high:Q",
    )
    points = base.mark_point(filled=True, size=70, color=STATUS_COLOURS[0], opacity=1).encode(
        x="accuracy:Q",
        tooltip=[f"{_field(JUDGE)}:N", alt.Tooltip("accuracy:Q", format=".1%"), "n:Q"],
    )
    layered = alt.layer(bars, points).properties(width=WIDTH, height=alt.Step(24))
    return _panels(layered, scores, title)


def svg(chart: Figure) -> str:
    """The chart as a standalone picture; needs no browser and no network."""
    import vl_convert

    styled = chart.configure(font="sans-serif").configure_title(anchor="start", fontSize=14)
    return _own_ids(str(vl_convert.vegalite_to_svg(styled.to_dict())))


def _own_ids(picture: str) -> str:
    """Ids that repeat with the picture, and are its own on a page with others.

    The renderer numbers them through all pictures of a process.
    """
    ids = list(dict.fromkeys(re.findall(r'\bid="([^"]+)"', picture)))
    if not ids:
        return picture
    used = re.compile(rf"(?<=[\"#])({'|'.join(map(re.escape, ids))})(?=[\")])")
    mark = content_hash(used.sub("", picture))[:8]
    return used.sub(lambda match: f"f{mark}-{ids.index(match[0])}", picture)


def _titled(chart: Any, title: str) -> Figure:
    figure: Figure = chart.properties(title=title)
    return figure


def _panels(chart: Any, data: pd.DataFrame, title: str) -> Figure:
    """A panel per task and variant, wrapped, so that any number of variants can be read."""
    header = alt.Header(labelLimit=WIDTH + 60, labelAnchor="start")
    order = list(dict.fromkeys(data["panel"]))
    facet = alt.Facet("panel:N", title=None, header=header, sort=order)
    return _titled(chart.facet(facet=facet, columns=2, spacing=16), title)


def panels(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a column `panel`: its task, and its variant where there are several."""
    several = frame["variant"].nunique() > 1
    return frame.assign(panel=frame["task"] + (" · " + frame["variant"] if several else ""))


def _field(column: str) -> str:
    """A column's name as Vega reads it: a dot would mean a nested field."""
    return column.replace(".", "\\.")
