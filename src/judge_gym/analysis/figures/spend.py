"""Spending by day and model."""

import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import alt

COLOURS = (drawing.BLUE, drawing.ORANGE, drawing.SKY, drawing.RED, drawing.PINK)
OTHERS = "others"


def _finding(spend: pd.DataFrame, unit: str = "US $") -> str:
    """States which model accounts for most of the spending."""
    by_model = spend.groupby("model", sort=False)["amount"].sum()
    total, top = float(by_model.sum()), str(by_model.idxmax())
    if not total:
        return f"Nothing was spent ({unit})"
    return f"{top} accounts for {by_model[top] / total:.0%} of {total:,.4g} {unit}"


@drawing.figure(["day", "model", "amount"], known=["day", "amount"], finding=_finding)
def spend_figure(data: pd.DataFrame, unit: str = "US $") -> drawing.Drawn:
    """Shows spending by day, newest last, coloured by model, with the unit of the amount."""
    days = sorted(data["day"].unique())
    ranked = data.groupby("model")["amount"].sum().sort_values(ascending=False, kind="stable")
    named = list(ranked.index[: len(COLOURS)])
    known = drawing.shortened(named, 24)
    shown = data[data["day"].isin(days[-drawing.MAX_ROWS :])]
    shown = shown.assign(model=[known.get(model, OTHERS) for model in shown["model"]])
    summed = shown.groupby(["day", "model"])["amount"].sum().reset_index()
    legend = [*known.values(), *([OTHERS] if len(ranked) > len(named) else [])]
    colours = [*COLOURS[: len(named)], drawing.GREY][: len(legend)]
    chart = (
        alt.Chart(summed)
        .mark_bar(size=min(40, 420 / len(days)), **drawing.OUTLINE)
        .encode(
            x=alt.X("day:O", title=None, axis=alt.Axis(labelAngle=-40, ticks=False)),
            y=alt.Y("amount:Q", title=unit),
            color=drawing.named_colours("model", legend, colours, columns=3),
        )
        .properties(width=560, height=240)
    )
    fewer = drawing.omitted(len(ranked), len(named), "models").replace("not shown", "combined")
    return chart, [drawing.omitted(len(days), drawing.MAX_ROWS, "days"), fewer]
