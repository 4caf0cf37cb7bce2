"""Reference values from a file in V-Dem's format, with invented numbers."""

import csv
import os
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.sources.vdem import vdem_truth

HEADER = (
    "country_name,country_text_id,country_id,year,v2x_libdem,v2x_corr,v2x_regime,v2elrstrct,name"
)
ROWS = [
    ["Norway", "NOR", 186, 2022, 0.861, 0.01, 3, "", "Kingdom of Norway"],
    ["Norway", "NOR", 186, 2023, 0.857, 0.012, 3, "", "Kingdom of Norway"],
    ["Norway", "NOR", 186, 2024, "", 0.013, 3, "", "Kingdom, of\nNorway"],
    ["United States of America", "USA", 20, 1789, 0.2, 0.3, 1, -1.75, "USA"],
    ["United States of America", "USA", 20, 1791, 0.21, 0.31, 1, -1.5, "USA"],
    ["Türkiye", "TUR", 99, 2023, 0.1, 0.8, 1, "", "Republic"],
    ["Namibia", "NAM", 127, 2023, 0.5, 0.4, 2, "NA", "Namibia"],
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "V-Dem-CY-Core.csv", HEADER.split(","), *ROWS)


def write(path: Path, *rows: list[Any], encoding: str = "utf-8") -> Path:
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file).writerows(rows)
    return path


def test_a_truth_names_its_source_and_has_the_published_value(path: Path) -> None:
    assert vdem_truth(path, "Norway", 2023) == {
        "source": "v-dem v2x_libdem Norway 2023",
        "value": 0.857,
        "direction": "up",
    }


@pytest.mark.parametrize(
    "country", ["United States of America", "united states OF america", "USA", " usa "]
)
def test_a_country_has_a_name_and_a_code_in_any_case(path: Path, country: str) -> None:
    found = vdem_truth(path, country, 1791)
    assert (found["value"], found["source"]) == (
        0.21,
        "v-dem v2x_libdem United States of America 1791",
    )


def test_names_keep_their_letters(path: Path) -> None:
    assert vdem_truth(path, "TÜRKIYE", 2023)["source"] == "v-dem v2x_libdem Türkiye 2023"


def test_more_corruption_is_worse(path: Path) -> None:
    assert vdem_truth(path, "Norway", 2023, "v2x_corr")["direction"] == "down"


def test_direction_may_be_given(path: Path) -> None:
    assert vdem_truth(path, "Norway", 2023, "v2x_corr", direction="up")["direction"] == "up"
    assert vdem_truth(path, "Norway", 2023, direction="down")["direction"] == "down"


def test_another_scale_is_not_rescaled(path: Path) -> None:
    assert vdem_truth(path, "Norway", 2023, "v2x_regime")["value"] == 3
    assert vdem_truth(path, "USA", 1789, "v2elrstrct")["value"] == -1.75


def test_a_file_may_open_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "v.csv", HEADER.split(","), *ROWS, encoding="utf-8-sig")
    assert vdem_truth(path, "NOR", 2022)["value"] == 0.861


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"country": "Norwey"}, "unknown country 'Norwey'; choose 'Norway'"),
        ({"country": "United States"}, "unknown country 'United States'; choose 'United States of"),
        ({"country": "Atlantis Q"}, "unknown country 'Atlantis Q'"),
        ({"year": 2030}, "no year 2030 for Norway in"),
        ({"year": 2030}, "it has 2022 to 2024"),
        ({"country": "usa", "year": 1790}, "it has 1789, 1791"),
        ({"index": "v2x_libdm"}, "unknown index 'v2x_libdm' for"),
        ({"index": "v2x_libdm"}, "choose 'v2x_libdem'"),
        ({"year": 2024}, "v2x_libdem is missing for Norway 2024 in"),
        ({"year": 2024}, "it is given for 2022 to 2023"),
        ({"country": "NAM", "index": "v2elrstrct"}, "it is given for no year"),
        ({"direction": "left"}, "unknown direction 'left'; choose 'up' or 'down'"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(
    path: Path, asked: dict[str, Any], fault: str
) -> None:
    with pytest.raises(DesignError) as raised:
        vdem_truth(path, **{"country": "Norway", "year": 2023, **asked})
    assert fault in raised.value.message


def test_near_names_are_choices(path: Path) -> None:
    with pytest.raises(DesignError) as raised:
        vdem_truth(path, "Nambia", 2023)
    assert raised.value.choices[0] == "Namibia"


def test_a_file_with_several_rows_a_year_is_refused(path: Path) -> None:
    write(path, HEADER.split(","), *ROWS, ROWS[1])
    with pytest.raises(DesignError, match=r"holds 2 rows for Norway 2023; the country-year file"):
        vdem_truth(path, "Norway", 2023)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "has no column 'country_name'"),
        ("country_name,year,v2x_libdem\nNorway,2023,0.8\n", "has no column 'country_text_id'"),
        (f"{HEADER}\nNorway,NOR,186,soon,0.8,0.1,3,,x\n", "cannot be read"),
        (f"{HEADER}\nNorway,NOR\n", "cannot be read"),
    ],
)
def test_a_file_that_is_not_v_dems_is_refused(path: Path, text: str, fault: str) -> None:
    path.write_text(text)
    with pytest.raises(DesignError) as raised:
        vdem_truth(path, "Norway", 2023)
    assert path.name in raised.value.message
    assert fault in raised.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"there is no file .*v\.csv"):
        vdem_truth(tmp_path / "v.csv", "Norway", 2023)
    with pytest.raises(DesignError, match="cannot be read"):
        vdem_truth(tmp_path, "Norway", 2023)


def test_only_what_is_needed_is_read_of_a_wide_file(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    wide = [f"v2col{number}" for number in range(2_000)]
    values = ",".join(["not a number"] * len(wide))
    lines = [",".join(["country_name", "country_text_id", "year", *wide, "v2x_libdem"])]
    lines += [
        f"Country {n},C{n},{year},{values},0.5" for n in range(5) for year in range(1990, 2020)
    ]
    path.write_text(os.linesep.join(lines), newline="")
    assert vdem_truth(path, "c3", 2019)["value"] == 0.5


def test_line_ends_in_cells_do_no_harm_in_a_long_file(tmp_path: Path) -> None:
    rows = [[f"Country {n}", f"C{n}", n, 2000, 0.5, "", "", "", "a\nb" * 9] for n in range(40_000)]
    path = write(tmp_path / "long.csv", HEADER.split(","), *rows)
    assert path.stat().st_size > 2**21, "longer than what is read at once"
    assert vdem_truth(path, "C39999", 2000)["value"] == 0.5
