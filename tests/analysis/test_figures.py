"""Figures as pictures: valid, self-contained, and with a mark for everything they show."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree

import pandas as pd
import pytest

from judge_gym.analysis import figures
from judge_gym.records import STATUSES

JUDGE = "judge.model"
SVG = "{http://www.w3.org/2000/svg}"
TITLE = 'Judges & "rubrics" <apart>'
TASKS = ("fascism (ecc, Valdoria)", "quality <b> (control, Norvessa)")


def shares() -> pd.DataFrame:
    rows = [
        {"task": task, "variant": variant, JUDGE: judge, "stage": stage, "share": share}
        for task in TASKS
        for variant in ("verdict.method=single", "verdict.method=subset")
        for judge in ("sim:strict", "sim:alarmist")
        for stage, share in ((1, 0.75), (4, 0.25))
    ]
    return pd.DataFrame(rows)


def rates() -> pd.DataFrame:
    even = {f"share_{status}": 1 / len(STATUSES) for status in STATUSES}
    rows = [{"task": TASKS[0], "variant": "base", JUDGE: judge, **even} for judge in "ab"]
    return pd.DataFrame(rows)


def cells() -> pd.DataFrame:
    means = {"low item": 0.1, "high item": 0.9, "middle item": 0.5}
    rows = [
        {"task": task, "item": item, JUDGE: judge, "mean": mean}
        for task in TASKS
        for item, mean in means.items()
        for judge in "ab"
    ]
    return pd.DataFrame(rows)


def polarization() -> pd.DataFrame:
    rows = [
        {"task": task, "variant": variant, "p": p, "items": 12}
        for task, p in zip(TASKS, (0.62, 0.11), strict=True)
        for variant in ("single", "subset")
    ]
    return pd.DataFrame([*rows, {"task": "undefined", "variant": "single", "p": None, "items": 0}])


def probes() -> pd.DataFrame:
    rows = [
        {"task": TASKS[0], JUDGE: judge, "rubric used": used, "probe": probe}
        for judge in "ab"
        for used in ("own", "rival's")
        for probe in (0.2, 0.5, 0.8)
    ]
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Case:
    draw: Callable[[pd.DataFrame, str], figures.Figure]
    data: Callable[[], pd.DataFrame]
    mark: str
    count: int
    """One mark per row of data that has a value; a box per judge and rubric."""
    says: tuple[str, ...]


CASES = {
    "distribution": Case(
        figures.distribution_figure, shares, "bar", 16, ("share of scored verdicts: 75", "stage: 4")
    ),
    "status": Case(figures.status_figure, rates, "bar", 12, ("status: parse_failed",)),
    "heat": Case(
        figures.heat_figure, cells, "rect mark", 12, ("item: low item", "mean: 0.10", "mean: 0.90")
    ),
    "polarization": Case(figures.polarization_figure, polarization, "point", 4, ("p: 0.62",)),
    "probe": Case(figures.probe_figure, probes, "box", 4, ("Median", ": 0.5", "rival's")),
}
PICTURES: dict[str, ElementTree.Element] = {}


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def picture(name: str) -> ElementTree.Element:
    """The figure, parsed; drawn once."""
    if name not in PICTURES:
        case = CASES[name]
        PICTURES[name] = ElementTree.fromstring(figures.svg(case.draw(case.data(), TITLE)))
    return PICTURES[name]


def test_a_figure_is_an_svg_with_a_size(picture: ElementTree.Element) -> None:
    assert picture.tag == f"{SVG}svg"
    assert float(picture.attrib["width"]) > 50 and float(picture.attrib["height"]) > 50


def test_a_figure_shows_its_title(picture: ElementTree.Element) -> None:
    assert TITLE in ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def test_a_figure_has_a_mark_for_everything_it_shows(
    name: str, picture: ElementTree.Element
) -> None:
    marks = [
        mark
        for mark in picture.iter()
        if mark.get("aria-roledescription") == CASES[name].mark and mark.get("d")
    ]
    assert len(marks) == CASES[name].count
    assert len({(mark.get("d"), mark.get("transform")) for mark in marks}) > 1
    spoken = " ".join(mark.attrib["aria-label"] for mark in marks)
    assert all(words in spoken for words in CASES[name].says)


def test_a_figure_fetches_nothing(picture: ElementTree.Element) -> None:
    for element in picture.iter():
        assert element.tag.removeprefix(SVG) not in {"image", "script", "style", "foreignObject"}
        for attribute, value in element.attrib.items():
            assert "href" not in attribute and "://" not in value
            for target in re.findall(r"url\((.*?)\)", value):
                assert target.startswith("#")


def test_a_figure_needs_no_font_but_the_systems(picture: ElementTree.Element) -> None:
    fonts = {element.get("font-family") for element in picture.iter(f"{SVG}text")}
    assert fonts == {"sans-serif"}


def test_the_strongest_items_stand_on_top() -> None:
    picture = ElementTree.fromstring(figures.svg(figures.heat_figure(cells(), TITLE)))
    heights = {}
    for text in picture.iter(f"{SVG}text"):
        if (word := "".join(text.itertext())).endswith(" item"):
            heights[word] = float(re.findall(r"[\d.]+", text.attrib["transform"])[-1])
    assert sorted(heights, key=heights.__getitem__) == ["high item", "middle item", "low item"]


def test_a_picture_is_the_same_each_time() -> None:
    first, second = (figures.svg(figures.status_figure(rates(), TITLE)) for _ in range(2))
    assert first == second
