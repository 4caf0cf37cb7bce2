"""The design system: its components, its colours, and how much a page loads."""

import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import judge_gym.web
from judge_gym.records.palette import DARK, FONTS, JUDGE_COLOURS, LIGHT, judge_colours
from lab_server import ServedLab, serve_lab

STATIC = Path(judge_gym.web.__file__).parent / "static"
SNAPSHOT = Path(__file__).with_name("styleguide.html")
BUDGET = 120_000
"""Bytes that a page may load in all, compressed."""
GROUNDS = ("page", "card", "hover", "chosen")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("styleguide")) as opened:
        yield opened


def contrast(first: str, second: str) -> float:
    """The contrast of two colours, as WCAG defines it."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_components_are_those_of_the_snapshot(lab: ServedLab) -> None:
    text = lab.ask("GET", "/styleguide", headers={"Accept": "text/html"}).text
    content = text[text.index("<main") : text.index("</main>")]
    if os.environ.get("WRITE_SNAPSHOTS"):
        SNAPSHOT.write_text(content, encoding="utf-8")
    assert content == SNAPSHOT.read_text(encoding="utf-8"), "if you mean it: make snapshots"


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_colours_of_judges_can_be_told_from_their_grounds(scheme: dict[str, str]) -> None:
    for ground in GROUNDS:
        for ink in ("ink", "soft", "link"):
            assert contrast(scheme[ink], scheme[ground]) >= 4.5, (ink, ground)
    for state in ("good", "warn", "bad", "busy"):
        assert contrast(scheme[state], scheme[f"{state}-page"]) >= 4.5, state
        assert contrast(scheme[state], scheme["card"]) >= 4.5, state
    for colour in JUDGE_COLOURS:
        assert contrast(colour, scheme["card"]) >= 3, colour


def test_a_judge_keeps_its_colour_where_few_are_shown() -> None:
    everyone = judge_colours(["strict", "hasty", "balanced", "hasty"])
    assert list(everyone) == ["balanced", "hasty", "strict"]
    assert len(set(everyone.values())) == 3


def test_the_style_sheet_names_only_colours_that_exist(lab: ServedLab) -> None:
    served = lab.ask("GET", "/static/colours.css").text
    assert LIGHT.keys() == DARK.keys()
    sheets = [path.read_text() for path in STATIC.glob("*.css")]
    named = {name for sheet in sheets for name in re.findall(r"var\(--([\w-]+)\)", sheet)}
    own = {name for sheet in sheets for name in re.findall(r"--([\w-]+):", sheet)}
    assert named - own <= set(re.findall(r"--([\w-]+):", served))


def test_all_that_a_page_loads_is_small_and_served_by_the_lab(lab: ServedLab) -> None:
    page = lab.ask("GET", "/styleguide", headers={"Accept": "text/html"}).text
    addresses = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert {"/static/vendor/htmx.js", "/static/lab.css"} <= {*addresses}
    loaded = {address: lab.ask("GET", address) for address in [*addresses]}
    assert {answer.status_code for answer in loaded.values()} == {200}
    sizes = [
        len(answer.content) if address.endswith("woff2") else len(gzip.compress(answer.content))
        for address, answer in loaded.items()
    ]
    assert sum(sizes) + len(gzip.compress(page.encode())) < BUDGET
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_the_font_and_the_libraries_come_with_their_licences() -> None:
    assert "SIL Open Font License, Version 1.1" in (FONTS / "OFL.txt").read_text()
    notes = (STATIC / "vendor" / "README.md").read_text()
    for file in (STATIC / "vendor").glob("*.js"):
        assert f"`{file.name}`" in notes, file
