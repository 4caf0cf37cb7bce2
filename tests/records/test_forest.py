"""Forest plots: dots and intervals at their places on one scale, groups, and what is compared."""

from typing import Any, cast
from xml.etree import ElementTree

import pytest

from judge_gym.records.forest import MARGIN, WIDTH, axis_of, judge_plot, row_svg
from judge_gym.records.judge_table import JudgeTable, Quantity, Unit, verdicts_by_label
from tables import each_row

SVG = "{http://www.w3.org/2000/svg}"
SPAN = WIDTH - 2 * MARGIN


def quantity(value: float, low: float | None = None, high: float | None = None) -> Quantity:
    return {"value": value, "low": low, "high": high, "n": 20}


def drawn(svg: str) -> ElementTree.Element:
    """The picture, whose parts are then named as in HTML."""
    return ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '))


def marks(svg: str, kind: str) -> list[dict[str, str]]:
    return [mark.attrib for mark in drawn(svg).iter() if mark.get("class") == kind]


def table(standings: dict[str, str], **more: Any) -> JudgeTable:
    """A judge table with accuracies from 90 % down."""
    head = {"name": "exact", "title": "accuracy", "about": "", "unit": "share", "main": True}
    rows = [
        {
            "setup": name,
            "standing": standing,
            "measures": {"exact": quantity(0.9 - place / 10, 0.5, 0.95)},
        }
        for place, (name, standing) in enumerate(standings.items())
    ]
    plain = {"kind": "accuracy", "columns": [head], "rows": rows, "people": None, "constant": None}
    return cast(JudgeTable, {**plain, **more})


@each_row(
    ("unit", "signed", "ends", "ticks"),
    [
        ("share", False, (0.4, 0.3, 0.6), ["0 %", "25 %", "50 %", "75 %", "100 %"]),
        ("coefficient", False, (0.4, 0.2, 0.5), [".00", ".20", ".40", ".60", ".80", "1.00"]),
        ("coefficient", False, (0.4, -0.2, 0.5), ["-.50", ".00", ".50", "1.00"]),
        ("share", True, (0.06, -0.05, 0.16), ["-20", "-10", "0", "+10", "+20"]),
        ("stages", True, (0.0, 0.0, 0.0), None),
    ],
)
def test_an_axis_has_round_numbers_and_room_for_every_interval(
    unit: Unit, signed: bool, ends: tuple[float, float, float], ticks: list[str] | None
) -> None:
    axis = axis_of([quantity(*ends)], unit, signed=signed)
    assert axis.low <= min(ends) and max(ends) <= axis.high
    if signed:
        assert axis.low == -axis.high
    if ticks is not None:
        assert [axis.text(tick) for tick in axis.ticks] == ticks
        assert [text.text for text in drawn(axis.svg()).iter(f"{SVG}text")] == ticks


def test_dot_and_interval_lie_where_the_scale_says() -> None:
    picture = row_svg(axis_of([], "share"), quantity(0.75, 0.5, 1.0), colour="#123456")
    [dot] = [mark.attrib for mark in drawn(picture).iter(f"{SVG}circle")]
    [interval] = marks(picture, "range")
    assert float(dot["cx"]) == pytest.approx(MARGIN + 0.75 * SPAN)
    assert float(interval["x1"]) == pytest.approx(MARGIN + 0.5 * SPAN)
    assert float(interval["x2"]) == pytest.approx(MARGIN + SPAN)
    assert dot["fill"] == interval["stroke"] == "#123456"


def test_people_are_a_band_with_a_line_and_a_constant_answer_is_a_line() -> None:
    people = quantity(0.6, 0.5, 0.7)
    picture = row_svg(axis_of([], "share"), None, people=people, constant=0.25)
    [band], [middle], [constant] = (marks(picture, kind) for kind in ("band", "middle", "constant"))
    assert float(band["x"]) == pytest.approx(MARGIN + 0.5 * SPAN)
    assert float(band["width"]) == pytest.approx(0.2 * SPAN)
    assert float(middle["x1"]) == pytest.approx(MARGIN + 0.6 * SPAN, abs=0.06)
    assert float(constant["x1"]) == pytest.approx(MARGIN + 0.25 * SPAN)
    assert not list(drawn(picture).iter(f"{SVG}circle")), "nothing is drawn for an unknown estimate"


def test_an_estimate_without_an_interval_is_a_dot_alone() -> None:
    picture = row_svg(axis_of([], "share"), quantity(0.5))
    assert len(list(drawn(picture).iter(f"{SVG}circle"))) == 1 and not marks(picture, "range")


def test_a_name_is_escaped() -> None:
    picture = row_svg(axis_of([], "share"), None, label="<b>\"x\" & 'y'")
    root = drawn(picture)
    assert root.get("aria-label") == "<b>\"x\" & 'y'"


def test_setups_as_good_as_the_best_stand_apart_from_worse_ones() -> None:
    plot = judge_plot(table({"a": "best", "b": "tied", "c": "worse", "d": "unknown"}))
    assert plot is not None
    assert [[row["setup"] for row in rows] for _, rows in plot.groups] == [["a", "b"], ["c"], ["d"]]
    alone = judge_plot(table({"a": "tied", "b": "tied"}))
    assert alone is not None and [title for title, _ in alone.groups] == [""]


def test_without_labels_setups_are_drawn_by_consistency() -> None:
    head = {"name": "consistency", "title": "c", "about": "", "unit": "share", "main": True}
    rows = [{"setup": "a", "standing": "unknown", "measures": {}, "consistency": quantity(0.9)}]
    plain = table({}, kind=None, columns=[head], rows=rows, constant=0.3)
    plot = judge_plot(plain)
    assert plot is not None and plot.head["name"] == "consistency" and plot.key == ()
    assert judge_plot(table({}, kind=None, columns=[], rows=rows)) is None


def test_the_key_has_the_numbers_of_people_and_of_a_constant_answer() -> None:
    people = {"measures": {"exact": quantity(0.64, 0.48, 0.78)}}
    plot = judge_plot(table({"a": "best"}, people=people, constant=0.26))
    assert plot is not None
    assert plot.key == (
        ("band", "people agree with each other: 64 % [48, 78]"),
        ("constant", "always the same answer: 26 %"),
    )


def test_verdicts_are_shares_of_the_items_of_each_label() -> None:
    shares = [[0.4, 0.1, 0.0], [0.1, 0.4, 0.0]]
    confusion = {"setup": "a", "verdicts": ["1", "2"], "labels": ["1", "2", "3"], "n": 10}
    by_label = verdicts_by_label({**confusion, "shares": shares})  # type: ignore[typeddict-item]
    assert by_label[0] == pytest.approx([0.8, 0.2])
    assert by_label[1] == pytest.approx([0.2, 0.8])
    assert by_label[2] is None
