"""A report shows every quantity with one value, wherever it is shown."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.frames import JUDGE, tidy
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.analysis.report import Report, build_report
from judge_gym.analysis.report.digest import as_json, digest
from judge_gym.analysis.report.page import Table
from judge_gym.cli.report_display import print_summary
from judge_gym.records.judge_table import JudgeTable, column_value
from judge_gym.records.numbers import FORMATS
from panel_frames import samples
from verdict_frames import draw_verdicts


class Fact(NamedTuple):
    """A number of a report: what it is of, what it is, on how many items, and where it stands."""

    of: tuple[str, ...]
    quantity: str
    items: float
    value: float
    place: str

    def same_quantity(self, other: "Fact") -> bool:
        """Says whether two numbers must be equal: of one thing, on the same items if known."""
        known = not math.isnan(self.items) and not math.isnan(other.items)
        alike = (self.of, self.quantity) == (other.of, other.quantity)
        return alike and (not known or self.items == other.items)


RIGHT = "exact"
"""The one accuracy: of all verdicts asked."""
ALIASES = {
    **dict.fromkeys(("accuracy", "agreement with people", "right", "correct"), RIGHT),
    **dict.fromkeys(("known answers", "exact agreement", "agreement of judge"), RIGHT),
}
"""Other names of a quantity, so that a second definition under another name is noticed."""
NAMES = (
    *("setup", JUDGE, "judge", "other", "task", "variant", "at", "against", "knob", "level"),
    *("base", "endpoint", "kind", "place", "bias", "where", "evidence", "item", "quantity"),
    *("estimate", "verdict", "stage", "model", "shape", "editor", "rubric", "measure", "rule"),
    *("rubric_author", "rubric_draw", "option", "category", "reference", "component", "of"),
    *("metric", "standing", "note", "recommendation", "price", "count as", "missing", "unit"),
    *("rater", "judges", "text", "rank", "role", "reason", "sentence", "against"),
)
"""Columns that say what a row is about, or describe it in words."""
COUNTS = ("n", "items", "effective_n")
"""How many items a row is about."""
CORRECTIONS = ("q", "p", "holm", "level", "low", "high")
"""Columns that depend on what else a table shows, or that have no name of their own."""
SAME_ROWS = {
    "Differences between judges": "Contrasts of judges",
    "Choices and verdicts": "Effects of the axes",
    "Effects on the expected stage": "Effects of the axes",
}
"""Tables and figures whose rows are some of another table's."""


def facts_of(report: Report) -> Iterator[Fact]:
    """Yields every number of a report's tables, figures and sentences."""
    assert report.judge_table is not None
    yield from of_judge_table(report.judge_table)
    for table in report.every_table():
        yield from of_frame(table.title, table.frame)
    for chart in report.charts:
        yield from of_frame(chart.title, chart.frame)
    yield from of_digest(digest(report))
    for table_json in as_json(report)["tables"]:
        frame = pd.DataFrame(table_json["rows"])
        yield from of_frame(table_json["title"], frame, place=f"{table_json['title']} as JSON")


def of_judge_table(table: JudgeTable) -> Iterator[Fact]:
    for row in table["rows"]:
        for head in table["columns"]:
            value = column_value(row, head["name"])
            if value is not None:
                yield Fact((row["setup"],), head["name"], value["n"], value["value"], "judge table")
    if (confusion := table["confusion"]) is not None:
        labels = confusion["labels"]
        diagonal = sum(confusion["shares"][at][at] for at in range(len(labels)))
        chosen = confusion["setup"]
        yield Fact((chosen,), "diagonal", confusion["n"], diagonal, "confusion")


def of_digest(brief: Mapping[str, Any]) -> Iterator[Fact]:
    judges = brief["judges"]
    for cells in judges["rows"]:
        row = dict(zip(judges["columns"], cells, strict=True))
        for name, value in row.items():
            if name not in ("setup", "standing", "difference", "low", "high") and value is not None:
                yield Fact((row["setup"],), canonical(name), np.nan, value, "digest")


def canonical(name: str) -> str:
    return ALIASES.get(name, name)


def of_frame(title: str, frame: pd.DataFrame, place: str = "") -> Iterator[Fact]:
    """Yields the numbers of a table: wide ones by column, long ones by the names in their rows."""
    place, title = place or title, SAME_ROWS.get(title, title)
    for row in frame.to_dict("records"):
        yield from of_row(title, {str(name): value for name, value in row.items()}, place)


def of_row(title: str, row: dict[str, Any], place: str) -> Iterator[Fact]:
    # A judge under the only design of a study is a setup of that name.
    only_design = row.get("variant", "base") == "base"
    setup = row.get("setup", row.get(JUDGE) if only_design else None)
    items = next((row[name] for name in COUNTS if isinstance(row.get(name), int | float)), np.nan)
    numbers = {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float | np.number)
        and not isinstance(value, bool)
        and name not in (*NAMES, *COUNTS, *CORRECTIONS)
        and not name.endswith(("_low", "_high", "_n"))
        and not math.isnan(value)
    }
    if "quantity" in row and title == "Judges in numbers":
        unit = {"value": canonical(row["quantity"])}
        yield from (
            Fact((str(setup),), unit[name], items, value, place)
            for name, value in numbers.items()
            if name in unit
        )
        return
    for name, value in numbers.items():
        own_items = row.get(f"{name}_n", items)
        if title == "Judges":
            yield Fact((str(setup),), canonical(name), float(own_items), value, place)
        elif name in ALIASES and setup is not None:  # an accuracy, wherever it stands
            yield Fact((str(setup),), canonical(name), float(own_items), value, place)
        else:
            about = {
                key: str(row[key])
                for key in ("task", "at", "variant", "knob", "level", "base", "judge", "other",
                            "endpoint", "setup", "bias", "where", "kind", "place", "estimate",
                            "verdict", "label", "stage", "model", "rank", "shape", "evidence",
                            "quantity", "item", "editor", JUDGE, "component", "metric", "measure",
                            "option", "spent", "category", "count as")
                if key in row and not pd.isna(row[key])
            }  # fmt: skip
            if title == "Contrasts of judges":  # the page calls level and base judge and other
                about = {RENAMED.get(key, key): text for key, text in about.items()}
                about |= {"knob": JUDGE, "endpoint": "stage"} if "endpoint" not in about else {}
                about.setdefault("knob", JUDGE)
            key = (title, *(f"{key}={text}" for key, text in sorted(about.items())))
            yield Fact(key, name, float(items), value, place)


RENAMED = {"judge": "level", "other": "base"}


def conflicts(facts: Iterable[Fact]) -> list[str]:
    """Names every two places that show one quantity with two values."""
    by_quantity: dict[tuple[tuple[str, ...], str], list[Fact]] = {}
    for fact in facts:
        by_quantity.setdefault((fact.of, fact.quantity), []).append(fact)
    found = []
    for group in by_quantity.values():
        for at, fact in enumerate(group):
            for other in group[at + 1 :]:
                near = abs(fact.value - other.value) <= tolerance(fact, other)
                if fact.same_quantity(other) and not near:
                    found.append(f"{fact} and {other}")
    return found


def tolerance(fact: Fact, other: Fact) -> float:
    """Returns how far two places may be apart: a digest has three decimals."""
    rounded = "digest" in (fact.place, other.place)
    return 6e-4 if rounded else 1e-12


def judged(rights: Mapping[str, tuple[int, int]], items: int = 40) -> pd.DataFrame:
    """Judges that are right on their first items, and whose next answers cannot be read."""
    return samples(
        *(
            {
                **{JUDGE: judge, "evidence": item, "replicate": repeat, "truth": 2 - item % 2},
                **{"stages": "" if lost else str(1 + (item + (item < right)) % 2), "n_stages": 2},
                **{"status": "parse_failed" if lost else "scored"},
                **{"call_id": (n * items + item) * 2 + repeat, "usd": 0.01 * (n + 1)},
            }
            for n, (judge, (right, unread)) in enumerate(rights.items())
            for item in range(items)
            for lost in [right <= item < right + unread]
            for repeat in range(2)
        )
    )


def two_labels() -> Report:
    """Judges on fail and pass, of whose answers many cannot be read, under two designs."""
    parts = [
        judged(rights).assign(**{"verdict.output": output})
        for output, rights in (
            ("suffix", {"a": (30, 6), "b": (20, 0)}),
            ("json", {"a": (26, 10), "b": (24, 4)}),
        )
    ]
    frame = pd.concat(parts, ignore_index=True).assign(stage_names="fail | pass", call_id=None)
    return build_report("two labels", frame, None)


def ordered_with_people() -> Report:
    """Judges on four stages that three people rated."""
    frame = draw_verdicts(
        {"a": [0.6, 0.2, 0.1, 0.1], "b": [0.1, 0.2, 0.3, 0.4], "c": {"2": 0.7, "abstain": 0.3}},
        items=36,
    )
    raters = [
        ("", item, rater, 1 + (item + n * (item % 5 == 0)) % 4)
        for item in sorted(frame["evidence"].unique())
        for n, rater in enumerate("uvw")
    ]
    people = pd.DataFrame(raters, columns=["tag", "evidence", "rater", "stage"])
    return build_report("ordered", frame, None, people=people)


def pairs_in_both_orders() -> Report:
    """Judges of pairs: with ties, an unreadable answer and a preference for a place."""
    rng = np.random.default_rng(5)
    rows = []
    for judge, skill in (("careful", 0.9), ("hasty", 0.6)):
        for item in range(40):
            for flipped in (False, True):
                right = rng.random() < skill
                stage = "3" if item % 9 == 0 else "1" if right else "2"
                lost = item % 13 == 0 and flipped
                status = "parse_failed" if lost else "scored"
                stages = "" if lost else stage
                rows.append((judge, item, 0, status, stages, 3, 1, flipped, True, "nominal"))
    names = [JUDGE, "evidence", "replicate", "status", "stages", "n_stages", "truth"]
    frame = pd.DataFrame(rows, columns=[*names, "flipped", "pair", "rubric_kind"])
    return build_report("pairs", frame, None)


def clustered() -> Report:
    """Judges on texts of ten sources."""
    frame = judged({"a": (30, 3), "b": (22, 1), "c": (12, 12)})
    return build_report("clustered", frame.assign(cluster=frame["evidence"] % 10), None)


REPORTS = (two_labels, ordered_with_people, pairs_in_both_orders, clustered)


@pytest.fixture(scope="module", params=REPORTS, ids=lambda make: make.__name__)
def report(request: pytest.FixtureRequest) -> Report:
    made: Report = request.param()
    return made


def test_no_quantity_of_a_report_has_two_values(report: Report) -> None:
    facts = [*facts_of(report)]
    assert conflicts(facts) == []
    shared = {(fact.of, fact.quantity) for fact in facts if fact.quantity == RIGHT}
    assert report.judge_table is not None
    assert len(shared) == len(report.judge_table["rows"]), "each setup has one accuracy"
    places = {fact.place for fact in facts if fact.quantity == RIGHT}
    assert {"judge table", "Judges", "Judges as JSON", "Judges in numbers"} <= places


def test_a_second_definition_is_noticed(report: Report) -> None:
    """The share of scored verdicts that are right, which reports once showed as accuracy."""
    facts = [*facts_of(report)]
    assert report.judge_table is not None
    row = max(
        report.judge_table["rows"],
        key=lambda row: abs((row["truth"] or {"value": 0})["value"] - 0.5),
    )
    for title, name in (("Known answers", "accuracy"), ("Agreement", "agreement with people")):
        second = pd.DataFrame([{JUDGE: row["setup"], name: 0.4321, "low": 0.3, "high": 0.5}])
        planted = [*facts, *of_frame(title, second)]
        assert any("0.4321" in text for text in conflicts(planted)), title


def test_the_accuracy_of_a_report_is_that_of_all_verdicts_asked() -> None:
    report = two_labels()
    assert report.judge_table is not None
    rows = {row["setup"]: row for row in report.judge_table["rows"]}
    expected = {"a": 30 / 40, "b": 20 / 40, "a, output json": 26 / 40, "b, output json": 24 / 40}
    values = {name: row["truth"]["value"] for name, row in rows.items() if row["truth"]}
    assert sorted(values.values()) == pytest.approx(sorted(expected.values()))


def test_sentence_terminal_and_page_write_the_same_numbers(
    report: Report, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = report.judge_table
    assert table is not None
    monkeypatch.setenv("COLUMNS", "400")  # a narrow terminal leaves columns out
    print_summary(report)
    printed = " ".join(capsys.readouterr().out.split())
    [judges] = [one for one in report.tables if one.title == "Judges"]
    for head in (head for head in table["columns"] if head["main"]):
        for row, cells in zip(table["rows"], judges.cells.to_dict("records"), strict=True):
            value = column_value(row, head["name"])
            text = "" if value is None else FORMATS[head["unit"]](value["value"])
            assert str(cells[head["title"]]).startswith(text)
            assert text in printed
    quality = table["chosen_quality"]
    if quality is not None:
        shown = FORMATS[table["columns"][0]["unit"]](quality["value"])
        assert shown in table["sentence"]


def test_outcomes_of_calls_are_counted_once_everywhere() -> None:
    frame = judged({"a": (30, 5), "b": (30, 0)})
    twice = pd.concat([frame.assign(tag="x"), frame[frame[JUDGE] == "b"].assign(tag="y")])
    report = build_report("shared calls", twice.reset_index(drop=True), None)
    without = 10 / 160
    assert report.facts["scored"] == f"{100 * (1 - without):.1f} %"
    statuses = report.table("statuses")
    share = (statuses["n"] * (1 - statuses["scored"])).sum() / statuses["n"].sum()
    assert share == pytest.approx(without)
    assert report.appendix is not None
    part = report.appendix.sections["Statuses"](report.appendix.given)
    assert part is not None
    assert part.lead == f"{100 * without:.1f} % of the verdicts have no score."


ENGLISH = (
    r"\b1 (points|items|verdicts|setups|rows|clusters|judges|calls|knobs|panels|estimates)\b",
    r"\b1 (have|are) ",
    r"all 2 other",
    r"-0\.00\b",
    r"\+0(\.0+)?\b(?!\.)",
    r"\bpoints points\b",
    r"\d%",
    r"\bnan\b",
    r"stage \d of 2\b.*stage_names",
)
"""What a page must not say."""


def test_numbers_read_as_english(report: Report) -> None:
    page = report.markdown()
    wrong = [found.group() for form in ENGLISH for found in re.finditer(form, page)]
    assert wrong == []


def test_the_words_of_labels_are_used_where_they_are_known() -> None:
    page = two_labels().markdown()
    assert not re.search(r"stage \d", page)
    assert "pass" in page and "fail" in page


def test_intervals_say_what_they_are_over() -> None:
    assert "over 10 clusters of items" in note_of(clustered(), "Judges")
    assert "over 40 items," in note_of(two_labels(), "Judges")


def note_of(report: Report, title: str) -> str:
    tables: list[Table] = [one for one in report.tables if one.title == title]
    return tables[0].note


def test_setups_have_the_names_of_the_judge_table_in_every_table() -> None:
    report = two_labels()
    assert report.judge_table is not None
    frame = tidy(pd.concat([judged({"a": (30, 6)}), judged({"b": (20, 0)})], ignore_index=True))
    assert {setup.name for setup in setups_of(frame)} == {"a", "b"}
    names = {row["setup"] for row in report.judge_table["rows"]}
    for one in report.every_table():
        if "setup" in one.frame and one.title != "Biases":
            assert {*one.frame["setup"]} <= names, one.title
