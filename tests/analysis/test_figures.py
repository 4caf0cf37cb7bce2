"""Figures as pictures: valid, self-contained, and with a mark for everything they show."""

import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis import figures
from judge_gym.analysis.figures import drawing
from judge_gym.errors import DesignError
from judge_gym.protocols import figures as protocol
from judge_gym.records import content_hash, palette
from tables import each_row

JUDGE = "judge.model"
SVG = "{http://www.w3.org/2000/svg}"
TITLE = 'Judges & "rubrics" <apart>'
TASKS = ("fascism (ecc, Valdoria)", "quality <b> (control, Norvessa)")
VARIANTS = ("verdict.method=single", "verdict.method=subset")
JUDGES = ("sim:strict", "sim:alarmist")
GROUNDS = ("#ffffff", "#1b1f25")
Frame = pd.DataFrame


def cell_rows(judges: tuple[str, ...] = JUDGES) -> list[dict[str, Any]]:
    return [
        {"task": task, "variant": variant, JUDGE: judge}
        for task in TASKS
        for variant in VARIANTS
        for judge in judges
    ]


def shares(judges: tuple[str, ...] = JUDGES) -> Frame:
    stages = ((1, 0.75), (4, 0.25))
    return Frame([{**c, "stage": s, "share": p} for c in cell_rows(judges) for s, p in stages])


def cells(judges: tuple[str, ...] = JUDGES) -> Frame:
    means = {"low item": 0.1, "high item": 0.9, "middle item": 0.5}
    return Frame(
        {"task": task, "item": item, JUDGE: judge, "mean": mean}
        for task in TASKS
        for item, mean in means.items()
        for judge in judges
    )


def pairs(judges: tuple[str, ...] = (*JUDGES, "sim:balanced")) -> Frame:
    found = [
        {"task": TASKS[0], "variant": "base", "judge": b, "other": a, "p": 0.5, "null": 0.2}
        for a, b in combinations(judges, 2)
    ]
    above = np.linspace(0.3, -0.1, len(found))
    return Frame(
        {**row, "q": 0.01 if x > 0.15 else 0.2, "above": x, "low": x - 0.1, "high": x + 0.1}
        for row, x in zip(found, above, strict=True)
    )


def curve(judges: tuple[str, ...] = JUDGES) -> Frame:
    return Frame(
        {JUDGE: judge, "stated": x, "reference": x - 0.1, "low": x - 0.15, "high": x, "n": n}
        for judge in judges
        for x, n in ((0.3, 10), (0.6, 20), (0.9, 30))
    )


def swaps(judges: tuple[str, ...] = JUDGES) -> Frame:
    return Frame(
        {"task": task, JUDGE: judge, "own": 0.8 + up, "rival": 0.6 + up, "rubric_author": other}
        for task in TASKS
        for judge in judges
        for other in ("sim:one", "sim:two")
        for up in (-0.05, 0.05)
    )


def methods(_: tuple[str, ...] = JUDGES) -> Frame:
    return Frame(
        {"task": task, "item": str(n), "single": 0.1 * n, "subset": 0.1 * n + shift}
        for task in TASKS
        for n, shift in ((1, -0.1), (2, -0.1), (3, 0.05))
    )


def shapes(judges: tuple[str, ...] = JUDGES) -> Frame:
    kinds = (("abstain", 0.1, np.nan), ("singleton", 0.7, 0.9), ("non-adjacent", 0.2, 0.4))
    return Frame(
        {**c, "shape": shape, "share": share, "confidence": sure}
        for c in cell_rows(judges)
        for shape, share, sure in kinds
    )


def prices(judges: tuple[str, ...] = JUDGES) -> Frame:
    return Frame(
        {
            "setup": f"{judge}, {v}",
            JUDGE: judge,
            "usd": 0.001 * 40**n,
            "quality": a,
            "low": a - 0.05,
            "high": a,
        }
        for n, judge in enumerate(judges[:2])
        for v, a in (("x", 0.6 + 0.1 * n), ("y", 0.5 + 0.1 * n))
    )


def polarization(_: tuple[str, ...] = JUDGES) -> Frame:
    rows = [
        {"task": task, "variant": variant, "p": p, "null": 0.2, "above": p - 0.2}
        for task, p in zip(TASKS, (0.62, 0.11), strict=True)
        for variant in VARIANTS
    ]
    known = Frame(rows).assign(low=lambda f: f["above"] - 0.1, high=lambda f: f["above"] + 0.1)
    known = known.assign(holm=np.where(known["low"] > 0, 0.01, 0.3))
    none = {"task": "undefined", "variant": VARIANTS[0]}
    return pd.concat([known, Frame([none])], ignore_index=True)


def probes(judges: tuple[str, ...] = JUDGES) -> Frame:
    return Frame(
        {"task": TASKS[0], JUDGE: judge, "rubric used": used, "probe": probe}
        for judge in judges
        for used, middle in (("own", 0.6), ("rival's", 0.5))
        for probe in (0.2, middle, 0.8)
    )


def scores(judges: tuple[str, ...] = JUDGES) -> Frame:
    return Frame(
        {
            JUDGE: j,
            "panel": p,
            "accuracy": 0.5 + 0.1 * (n == 1),
            "low": 0.4,
            "high": 0.8 if n else None,
        }
        for n, j in enumerate(judges)
        for p in ("all", "math")
    )


def history(names: tuple[str, ...] = JUDGES) -> Frame:
    return Frame(
        {
            "name": name,
            "at": pd.Timestamp(f"2026-0{month}-01", tz="UTC"),
            "score": 0.1 * month + 0.2 * place,
            "low": 0.05,
            "high": 0.9,
        }
        for place, name in enumerate(names)
        for month in (1, 2, 3)
    )


def decisions(options: tuple[str, ...] = ("items", "repeats")) -> Frame:
    return Frame(
        {"option": option, "spent": spent, "half_width": 0.2 / (1 + spent + place), "unit": "usd"}
        for place, option in enumerate(options)
        for spent in (0.0, 1.0, 3.0)
    )


@dataclass(frozen=True)
class Case:
    data: Callable[..., Frame]
    marks: dict[str, int]
    """How many of each kind of mark stand for the data."""
    finding: str

    def draw(self, name: str, data: Frame, title: str | None = TITLE) -> figures.Figure | None:
        return figures.FIGURES[f"{name}_figure"](data, title)


CASES = {
    "distribution": Case(
        shares, {"bar": 16}, "All judges choose the same stage most often in 4 of 4 panels"
    ),
    "heat": Case(cells, {"rect mark": 12}, "“high item” has the highest expected stage, 0.90"),
    "pair": Case(
        pairs,
        {"rect mark": 3, "text mark": 6},
        "In 1 of 3 comparisons judges disagree more than by chance (q < 0.05); most, "
        "sim:alarmist and sim:strict (+0.30)",
    ),
    # The diagonal is a line in each of the two panels.
    "reliability": Case(
        curve,
        {"point": 6, "rule mark": 6, "line mark": 2},
        "Judges state 0.70 agreement on average, 0.60 is found",
    ),
    "swap": Case(
        swaps,
        {"point": 16, "rule mark": 8, "text mark": 8},
        "Judges state 0.20 more agreement under their own rubric than under a rival's; "
        "this holds for 2 of 2 judges",
    ),
    "method": Case(
        methods,
        {"point": 6, "line mark": 2},
        "Judges disagree less with subsets than with single stages on 4 of 6 items "
        "(-0.05 on average)",
    ),
    "shape": Case(
        shapes,
        {"bar": 24, "point": 16},
        "70 % of readable verdicts name one stage; 20 % name non-adjacent stages",
    ),
    "price": Case(
        prices,
        {"point": 4, "rule mark": 4, "text mark": 4, "line mark": 1},
        "sim:alarmist, x reaches 70 % at $0.04 per 1,000; "
        "the cheapest, sim:strict, x, reaches 60 % at $0.001",
    ),
    "polarization": Case(
        polarization,
        {"point": 12, "rule mark": 4},
        "Judges disagree more than by chance in 2 of 4 panels; most on "
        "fascism (ecc, Valdoria) · verdict.method=subset (+0.42)",
    ),
    "probe": Case(
        probes,
        {"bar": 4, "tick": 4, "rule mark": 4},
        "Median stated expert agreement: 0.60 under their own rubric, 0.50 under a rival's rubric",
    ),
    "accuracy": Case(
        scores,
        {"point": 4, "rule mark": 2},
        "Accuracy of each judge; the highest is 60.0 %",
    ),
    "history": Case(
        history,
        {"point": 6, "rule mark": 6, "line mark": 2},
        "Latest pass rates: sim:alarmist 50 %, sim:strict 30 %",
    ),
    "decision": Case(
        decisions,
        {"point": 6, "line mark": 2, "text mark": 2},
        "More repeats narrow the interval most: to ±0.04",
    ),
}
PICTURES: dict[str, str] = {}


def drawn(name: str) -> str:
    """The figure of a case; drawn once."""
    if name not in PICTURES:
        chart = CASES[name].draw(name, CASES[name].data())
        assert chart is not None
        PICTURES[name] = figures.svg(chart)
    return PICTURES[name]


def digest() -> str:
    """One word for pictures with gradients, panels, blocks and random places."""
    return content_hash("".join(drawn(name) for name in ("heat", "pair", "reliability", "price")))


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def picture(name: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawn(name))


def words(picture: ElementTree.Element) -> list[str]:
    return [" ".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def marks(picture: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [m for m in picture.iter() if m.get("aria-roledescription") == kind]


def size(picture: str) -> tuple[float, float]:
    root = ElementTree.fromstring(picture).attrib
    return float(root["width"]), float(root["height"])


def test_every_registered_figure_is_exported_and_has_a_case() -> None:
    assert {name.removesuffix("_figure") for name in figures.FIGURES} == set(CASES)
    exported = {**vars(figures), **vars(protocol)}
    assert all(exported[name] is kind for name, kind in figures.FIGURES.items())


# --- what is shown -------------------------------------------------------------------------------


def test_a_figure_has_a_mark_for_everything_it_shows(
    name: str, picture: ElementTree.Element
) -> None:
    found = {kind: len(marks(picture, kind)) for kind in CASES[name].marks}
    assert found == CASES[name].marks


def test_a_figure_shows_its_title(picture: ElementTree.Element) -> None:
    assert TITLE in words(picture)


def test_a_finding_states_what_the_data_show(name: str) -> None:
    case = CASES[name]
    assert figures.FIGURES[f"{name}_figure"].finding(case.data()) == case.finding


def test_without_a_title_the_finding_is_the_title(name: str) -> None:
    chart = CASES[name].draw(name, CASES[name].data(), None)
    assert chart is not None
    assert " ".join(chart.to_dict()["title"]["text"]) == CASES[name].finding
    assert figures.caption(chart) == CASES[name].finding


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("distribution", "bar", "share of scored verdicts: 75"),
        ("heat", "rect mark", "mean: 0.10"),
        ("polarization", "point", "0.62"),
    ],
)
def test_marks_have_their_values_as_labels(name: str, kind: str, value: str) -> None:
    labels = [
        m.attrib.get("aria-label", "") for m in marks(ElementTree.fromstring(drawn(name)), kind)
    ]
    assert any(value in label for label in labels)


def test_tasks_are_not_pooled_to_say_which_stage_is_chosen_most() -> None:
    """On one task all choose the first stage, on the other each its own."""
    chosen = {"x": {"a": 1, "b": 1}, "y": {"a": 2, "b": 3}}
    rows = [
        {"task": task, "variant": "base", "judge.model": judge, "stage": stage, "share": 1.0}
        for task, judges in chosen.items()
        for judge, stage in judges.items()
    ]
    found = pd.DataFrame(rows)
    assert figures.distribution_figure.finding(found).endswith("in 1 of 2 panels")
    one = figures.distribution_figure.finding(found[found["task"] == "x"])
    assert one == "All 2 judges choose stage 1 most often"


def test_the_highest_items_are_on_top() -> None:
    heights = {}
    for text in ElementTree.fromstring(drawn("heat")).iter(f"{SVG}text"):
        if (word := "".join(text.itertext())).endswith(" item"):
            heights[word] = float(re.findall(r"[\d.]+", text.attrib["transform"])[-1])
    assert sorted(heights, key=heights.__getitem__) == ["high item", "middle item", "low item"]


def test_a_pair_is_drawn_once_below_the_diagonal() -> None:
    given = pairs()
    turned = given.rename(columns={"judge": "other", "other": "judge"})
    places = []
    for frame in (given, turned[given.columns]):
        rows = rows_of(figures.pair_figure(frame))
        places.append({frozenset((row["row"], row["column"])) for row in rows})
        assert len(rows) == 3
    assert places[0] == places[1]


def rows_of(chart: figures.Figure | None) -> list[dict[str, Any]]:
    """The rows of the largest table that a chart carries."""
    assert chart is not None
    tables: list[list[dict[str, Any]]] = list(chart.to_dict()["datasets"].values())
    return max(tables, key=len)


def test_a_pair_shows_raw_minus_chance_in_its_cell() -> None:
    said = words(ElementTree.fromstring(drawn("pair")))
    assert {"+0.30", "+0.10", "-0.10"} <= set(said) and said.count("0.50 − 0.20") == 3


def test_a_price_is_filled_unless_another_is_cheaper_and_better() -> None:
    rng = np.random.default_rng(3)
    usd, right = rng.uniform(0.01, 1, 60).round(1), rng.uniform(0, 1, 60).round(1)
    frame = Frame({"setup": [f"j{n}" for n in range(60)], JUDGE: "j", "usd": usd})
    frame = frame.assign(quality=right, low=np.nan, high=np.nan)
    rows = rows_of(figures.price_figure(frame))
    seen = {row["setup"]: row["kind"].startswith("none") for row in rows}
    for n in range(60):
        beaten = ((usd <= usd[n]) & (right > right[n])) | ((usd < usd[n]) & (right >= right[n]))
        if beaten.any():
            assert not seen[f"j{n}"]
        else:  # of equals, one stands for all
            equal = (usd == usd[n]) & (right == right[n])
            assert sum(seen[f"j{m}"] for m in np.flatnonzero(equal)) == 1


def test_prices_over_decades_have_a_log_axis() -> None:
    near = prices().assign(usd=[1.0, 2.0, 3.0, 4.0])
    for frame, kind in ((prices(), "log"), (near, "linear"), (near.assign(usd=0.0), "linear")):
        chart = figures.price_figure(frame)
        assert chart is not None
        assert scales(chart) == {kind}
        figures.svg(chart)


def scales(chart: figures.Figure) -> set[str]:
    layers = chart.to_dict()["layer"]
    return {layer["encoding"]["x"]["scale"]["type"] for layer in layers}


# --- what is not there ---------------------------------------------------------------------------


def test_without_data_there_is_no_figure(name: str) -> None:
    case = CASES[name]
    whole = case.data()
    assert case.draw(name, whole.iloc[:0]) is None
    assert case.draw(name, Frame()) is None
    numbers = whole.select_dtypes("number").columns.difference(["n", "stage"])
    assert case.draw(name, whole.assign(**dict.fromkeys(numbers, np.nan))) is None


def test_a_missing_column_is_refused(name: str) -> None:
    frame = CASES[name].data()
    column = {"polarization": "task"}.get(name, str(frame.columns[-1]))
    with pytest.raises(DesignError, match=f"no column '{re.escape(column)}'"):
        CASES[name].draw(name, frame.drop(columns=column))


@pytest.mark.parametrize("name", [name for name in CASES if name != "pair"], indirect=True)
def test_one_judge_is_enough(name: str) -> None:
    chart = CASES[name].draw(name, CASES[name].data(("sim:only",)), None)
    assert chart is not None
    assert size(figures.svg(chart))[0] > 50


def test_polarization_without_a_null_is_drawn_raw() -> None:
    frame = polarization()[["task", "variant", "p"]]
    chart = figures.polarization_figure(frame)
    assert chart is not None
    found = ElementTree.fromstring(figures.svg(chart))
    assert len(marks(found, "point")) == 4 and "chance at this n" not in words(found)
    assert figures.polarization_figure.finding(frame).endswith("raw P 0.62")


# --- on the page ---------------------------------------------------------------------------------


PAGE = 760
"""The largest width in pixels: on a sheet of paper a figure shrinks to 688, its text to 8 pt."""


def test_a_judge_has_the_same_colour_whichever_judges_a_figure_shows() -> None:
    judges = ["c", "a", "b"]
    rows = Frame(
        {JUDGE: judge, "panel": "t", "accuracy": 0.5, "low": 0.4, "high": 0.6} for judge in judges
    )
    colours = figures.judge_colours(judges)
    assert len({*colours.values()}) == 3
    alone = figures.svg(figures.accuracy_figure(rows[rows[JUDGE] == "c"], judges=judges))
    assert colours["c"] in alone and colours["a"] not in alone
    assert all(colour in figures.svg(figures.accuracy_figure(rows)) for colour in colours.values())


def test_a_figure_fits_its_page(name: str) -> None:
    picture = drawn(name)
    width, height = size(picture)
    assert 50 < width <= PAGE and 50 < height < 1000
    assert min(map(float, re.findall(r'font-size="([\d.]+)px"', picture))) >= 12


@pytest.mark.slow
def test_many_long_names_stay_on_the_page_and_are_counted(name: str) -> None:
    many = tuple(f"router/lab-{n % 3}/some-model-{n}-20250929:thinking" for n in range(45))
    frame = CASES[name].data(many)
    chart = CASES[name].draw(name, frame, None)
    assert chart is not None
    drawn = figures.svg(chart)
    assert size(drawn)[0] <= PAGE and size(drawn)[1] < 2400
    if name not in {"method", "polarization", "price"}:  # no row per judge
        assert re.search(r"\d+ more of \d+", " ".join(words(ElementTree.fromstring(drawn))))


def test_many_items_are_cut_to_those_with_most_disagreement() -> None:
    frame = Frame(
        {"task": "t", "item": f"item {n}", JUDGE: judge, "mean": 0.5 + (n / 400) * up}
        for n in range(100)
        for judge, up in (("a", 1), ("b", -1))
    )
    chart = figures.heat_figure(frame)
    assert chart is not None
    found = ElementTree.fromstring(figures.svg(chart))
    assert len(marks(found, "rect mark")) == 80
    said = words(found)
    assert "item 99" in said and "item 60" in said and "item 59" not in said
    assert any("60 more of 100 items" in word for word in said)


def test_large_frames_become_small_pictures() -> None:
    n = 200_000
    rng = np.random.default_rng(0)
    frame = Frame({"task": "t", "item": "i", "single": rng.random(n), "subset": rng.random(n)})
    assert len(rows_of(protocol.method_figure(frame))) == 2000
    answers = Frame({"task": "t", JUDGE: "j", "rubric used": "own", "probe": rng.random(n)})
    [five] = rows_of(protocol.probe_figure(answers))
    assert [five[k] for k in ("low", "box", "median", "lid", "high")] == pytest.approx(
        [0.05, 0.25, 0.5, 0.75, 0.95], abs=0.01
    )


def test_shortened_names_are_distinct() -> None:
    rng = np.random.default_rng(5)
    parts = [["lab/", "router/other-lab/", ""], ["model-", "m"], ["1", "2", "30"], [":x" * 9, ""]]
    every = ["".join(str(rng.choice(p)) for p in parts) + "z" * int(n) for n in range(40)]
    for most in (14, 20, 28):
        cut = drawing.shortened(every, most)
        assert len(set(cut.values())) == len(set(every)) == len(cut)
        assert all(len(told) <= most for told in cut.values())
        assert all(cut[text] == text for text in every if len(text) <= most)


AWKWARD = (
    "<b>\"&'",
    "a\\nb {c} [d] `${e}`",
    "judge 🦉 & café",
    "__proto__",
    "日本" * 40,
    "🦉" * 60,
)


def test_awkward_names_are_shown_as_they_are_written() -> None:
    for draw, data in (
        (figures.distribution_figure, shares(AWKWARD)),
        (figures.accuracy_figure, scores(AWKWARD).assign(panel="'; alert(1) //")),
    ):
        chart = draw(data, "🦉 says <&>\"'")
        assert chart is not None
        said = words(ElementTree.fromstring(figures.svg(chart)))
        assert {*AWKWARD[:3], "🦉 says <&>\"'"} <= set(said)
        assert any(word.startswith("日本") and "…" in word for word in said)
        assert figures.png(chart)[:4] == b"\x89PNG"


# --- pictures ------------------------------------------------------------------------------------


def test_a_figure_fetches_nothing(picture: ElementTree.Element) -> None:
    for element in picture.iter():
        assert element.tag.removeprefix(SVG) not in {"image", "script", "style", "foreignObject"}
        for attribute, value in element.attrib.items():
            assert "href" not in attribute and "://" not in value
            for target in re.findall(r"url\((.*?)\)", value):
                assert target.startswith("#")


def test_a_figure_uses_the_font_of_pages(picture: ElementTree.Element) -> None:
    fonts = {element.get("font-family") for element in picture.iter(f"{SVG}text")}
    assert fonts == {f"{palette.FONT}, sans-serif"}


@pytest.mark.parametrize("config", ["", "/etc/fonts/fonts.conf"])
def test_the_renderer_leaves_the_environment_unchanged(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FONTCONFIG_FILE", raising=False)
    if config:
        monkeypatch.setenv("FONTCONFIG_FILE", config)
    before = dict(os.environ)
    drawing._renderer.cache_clear()
    drawn("distribution")
    assert dict(os.environ) == before


def test_text_and_lines_have_the_colour_of_the_page(
    name: str, picture: ElementTree.Element
) -> None:
    inks = {text.get("fill") for text in picture.iter(f"{SVG}text")}
    assert inks == {"currentColor"} | ({"#000", "#fff"} if name == "pair" else set())
    lines = {line.get("stroke") for line in picture.iter(f"{SVG}line")}
    named = {drawing.BLUE, drawing.ORANGE} if name == "history" else set()
    assert lines <= {"currentColor", drawing.SKY} | named


def test_a_figure_has_a_transparent_background(picture: ElementTree.Element) -> None:
    grounds = [e for e in picture.iter() if e.get("class") == "background"]
    assert grounds and {ground.get("fill") for ground in grounds} <= {None, drawing.GREY}
    assert not list(picture.iter(f"{SVG}rect"))


@each_row("ground", GROUNDS)
@each_row(
    "colour", [drawing.BLUE, drawing.ORANGE, drawing.RED, drawing.PINK, drawing.SKY, drawing.GREY]
)
def test_colours_are_visible_on_white_and_on_a_dark_page(ground: str, colour: str) -> None:
    dim, bright = sorted(map(luminance, (ground, colour)))
    assert (bright + 0.05) / (dim + 0.05) > 2


def luminance(colour: str) -> float:
    """The relative luminance of sRGB, as WCAG defines it."""
    parts = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_a_png_is_white_and_twice_the_size() -> None:
    chart = figures.distribution_figure(shares(), TITLE)
    assert chart is not None
    found = figures.png(chart)
    assert found == figures.png(chart)
    width, height = struct.unpack(">II", found[16:24])
    assert (width, height) == tuple(2 * side for side in size(drawn("distribution")))
    # The first pixel is stored as it is, whatever filter its row has: nothing comes before it.
    chunks = re.split(rb"IDAT", found)[1:]
    pixels = zlib.decompressobj().decompress(chunks[0], 16)
    assert pixels[1:4] == b"\xff\xff\xff"


def test_a_picture_is_the_same_each_time() -> None:
    for _ in range(2):
        chart = figures.heat_figure(cells(), TITLE)
        assert chart is not None
        assert figures.svg(chart) == drawn("heat")


@pytest.mark.slow
def test_pictures_are_the_same_in_another_process() -> None:
    code = "import sys; sys.path[:0] = sys.argv[1:]; import test_figures as t; print(t.digest())"
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code, str(here), str(here.parent)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert done.stdout.strip() == digest()
