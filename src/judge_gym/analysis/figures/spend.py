"""What was spent, and on whom."""

import altair as alt
import pandas as pd

from judge_gym.analysis.figures.page import (
    BLUE,
    GREY,
    MAX_ROWS,
    ORANGE,
    OUTLINE,
    PINK,
    RED,
    SKY,
    Figure,
    left_out,
    needed,
    short,
    titled,
)

COLOURS = (BLUE, ORANGE, SKY, RED, PINK)
OTHERS = "others"


def spend_finding(spend: pd.DataFrame, unit: str = "US $") -> str:
    """Which model took most of it."""
    known = spend.dropna(subset=["amount"])
    by_model = known.groupby("model", sort=False)["amount"].sum()
    total, top = float(by_model.sum()), str(by_model.idxmax())
    if not total:
        return f"Nothing was spent ({unit})"
    return f"{top} took {by_model[top] / total:.0%} of {total:,.4g} {unit}"


def spend_figure(
    spend: pd.DataFrame, title: str | None = None, unit: str = "US $"
) -> Figure | None:
    """What was spent by day, newest last, told apart by model.

    Args:
        spend: columns day, model, amount.
        title: its heading; the finding, where it is None.
        unit: of the amount.
    """
    data = needed(spend, ["day", "model", "amount"], known=["day", "amount"])
    if data.empty:
        return None
    days = sorted(data["day"].unique())
    heading = title or spend_finding(data, unit)
    ranked = data.groupby("model")["amount"].sum().sort_values(ascending=False, kind="stable")
    named = list(ranked.index[: len(COLOURS)])
    known = short(named, 24)
    shown = data[data["day"].isin(days[-MAX_ROWS:])]
    shown = shown.assign(model=[known.get(model, OTHERS) for model in shown["model"]])
    summed = shown.groupby(["day", "model"])["amount"].sum().reset_index()
    legend = [*known.values(), *([OTHERS] if len(ranked) > len(named) else [])]
    scale = alt.Scale(domain=legend, range=[*COLOURS[: len(named)], GREY][: len(legend)])
    chart = (
        alt.Chart(summed)
        .mark_bar(size=min(40, 420 / len(days)), **OUTLINE)
        .encode(
            x=alt.X("day:O", title=None, axis=alt.Axis(labelAngle=-40, ticks=False)),
            y=alt.Y("amount:Q", title=unit),
            color=alt.Color(
                "model:N", title=None, scale=scale, legend=alt.Legend(orient="top", columns=3)
            ),
        )
        .properties(width=560, height=240)
    )
    return titled(
        chart,
        heading,
        left_out(len(days), MAX_ROWS, "days"),
        left_out(len(ranked), len(named), "models").replace("not shown", "taken together"),
    )
