"""Charts of pages: marks stand where their values are, lead somewhere, and names do not overlap."""

from itertools import pairwise
from typing import Any, cast
from xml.etree import ElementTree

import pytest

from judge_gym.records.judge_table import JudgeTable
from judge_gym.records.planning import NextPurchase
from judge_gym.web.charts import BOTTOM, HEIGHT, TOP, price_chart, purchase_chart

HEAD = {"name": "exact", "title": "agreement", "about": "", "unit": "share", "main": True}


def quantity(value: float) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None, "n": 20}


def row(setup: str, price: float | None, value: float, frontier: bool) -> dict[str, Any]:
    return {
        "setup": setup,
        "judge": setup,
        "measures": {"exact": quantity(value)},
        "usd_per_1000": None if price is None else quantity(price),
        "on_frontier": frontier,
    }


def chart(*rows: dict[str, Any], kind: str | None = "agreement") -> ElementTree.Element | None:
    table = {"rows": [*rows], "columns": [HEAD], "kind": kind}
    colours = {row["setup"]: "#123456" for row in rows}
    svg = price_chart(cast("JudgeTable", table), colours, "/items")
    return None if svg is None else ElementTree.fromstring(str(svg))


def number(mark: ElementTree.Element, name: str) -> float:
    return float(mark.attrib[name])


def test_prices_stand_on_a_scale_of_powers_of_ten_and_dots_lead_to_the_items() -> None:
    shown = chart(
        row("cheap", 0.1, 0.5, True), row("middle", 1.0, 0.5, False), row("dear", 10.0, 1.0, True)
    )
    assert shown is not None
    dots = [*shown.iter("circle")]
    xs, ys = ([number(dot, axis) for dot in dots] for axis in ("cx", "cy"))
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1]), "the same factor, the same distance"
    assert ys[0] == ys[1] > ys[2] == TOP, "100 % is the end of the scale"
    assert ys[0] == pytest.approx(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) / 6, abs=0.1), (
        "from 40 %"
    )
    links = {link.attrib["href"]: link.attrib["aria-label"] for link in shown.iter("a")}
    assert [*links] == ["/items?setup=cheap", "/items?setup=middle", "/items?setup=dear"]
    assert "agreement 100 %, $10 per 1,000" in links["/items?setup=dear"]
    [frontier] = shown.iter("polyline")
    ends = [point.split(",") for point in frontier.attrib["points"].split()]
    assert [float(x) for x, _ in ends] == [xs[0], xs[2]]


@pytest.mark.parametrize("prices", [(0.0, 0.0), (None, 1.0)])
def test_free_judges_have_no_chart_of_prices(prices: tuple[float | None, float]) -> None:
    rows = [row(f"judge {n}", price, 0.5, True) for n, price in enumerate(prices)]
    assert chart(*rows) is None
    assert chart(row("a", 1.0, 0.5, True), row("b", 2.0, 0.5, True), kind=None) is None


def test_names_of_equal_setups_do_not_lie_on_each_other() -> None:
    shown = chart(*(row(f"judge {n}", 1.0, 0.5, False) for n in range(6)))
    assert shown is not None
    heights = sorted(number(link[2], "y") for link in shown.iter("a"))
    assert all(second - first >= 12 for first, second in pairwise(heights))


def test_text_of_setups_is_escaped() -> None:
    shown = chart(row('<b>"', 1.0, 0.5, False), row("b", 2.0, 0.5, True))
    assert shown is not None and shown.find(".//b") is None


def test_curves_begin_at_the_interval_of_today_and_fall() -> None:
    rows = [
        {"option": "items", "more": n, "calls": 10.0 * n, "half_width": 0.2 / n, "note": ""}
        for n in (2, 4)
    ]
    found = {"purchases": rows, "half_width": 0.2, "value": 0.1, "apart": "To tell a from b apart"}
    svg = purchase_chart(cast("NextPurchase", found))
    assert svg is not None
    shown = ElementTree.fromstring(str(svg))
    [curve] = shown.iter("polyline")
    heights = [float(point.split(",")[1]) for point in curve.attrib["points"].split()]
    assert heights == sorted(heights) and len(heights) == 3
    [goal] = [mark for mark in shown.iter("path") if mark.get("class") == "middle"]
    assert f" {heights[1]}H" in goal.attrib["d"], "the gap of 0.1 is the half width of two more"
    assert purchase_chart(cast("NextPurchase", {**found, "purchases": []})) is None
