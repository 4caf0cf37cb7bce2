"""Evidence and rubrics from files: every form, and every fault with its file, line and choices."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, NominalRubric, OrdinalRubric, Window
from judge_gym.sources import load_files, load_rubric

FIELDS = (
    *("title", "text", "responses", "url", "date", "source", "cluster", "truth", "metadata"),
    *("input", "messages", "context", "output", "reference"),
)
KINDS = (".md", ".txt", ".html", ".htm", ".json", ".jsonl", ".csv")
PAGE = """<!doctype html><html><head><title>Court reopens | The Gazette</title>
<meta property="og:title" content="Court reopens">
<meta property="og:site_name" content="The Gazette">
<meta property="article:published_time" content="2026-01-04T08:00:00+00:00">
<link rel="canonical" href="https://gazette.example/court"></head><body>
<nav><a href="/">Home</a> <a href="/about">Subscribe now</a></nav>
<article><h1>Court reopens</h1>
<p>The constitutional court reopened on Monday after three weeks in which no hearing took place.</p>
<p>Twelve judges were present. The first case was about the budget of the electoral commission.</p>
<p>Lawyers of both sides said that they would accept the ruling, which is expected in February.</p>
</article><footer>All rights reserved</footer></body></html>"""


def write(folder: Path, **files: str) -> None:
    """Files by name; `a__b_md` is `a/b.md`."""
    for name, text in files.items():
        stem, _, suffix = name.replace("__", "/").rpartition("_")
        path = folder / f"{stem}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def lines(*rows: dict[str, Any]) -> str:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


# --- forms ---------------------------------------------------------------------------------------


def test_a_line_of_jsonl_is_an_item_with_all_its_fields(tmp_path: Path) -> None:
    full = {
        "title": "Court ☃",
        "text": "  The court upheld it.  ",
        "url": "https://x/1",
        "date": "2026-01-04",
        "source": "wire",
        "cluster": "The Gazette",
        "truth": 2,
        "metadata": {"latent": 0.3},
    }
    write(tmp_path, e_jsonl=lines(full, {"text": "Second."}) + "\n\n   \n")
    first, second = load_files("e.jsonl", tmp_path).items
    assert first == Evidence(**{**full, "text": "The court upheld it."})  # type: ignore[arg-type]
    assert second == Evidence("e 2", "Second.")


@pytest.mark.parametrize("truth", [3, "Stormy", None])
def test_a_truth_is_a_stage_number_or_label(tmp_path: Path, truth: object) -> None:
    write(tmp_path, e_jsonl=lines({"text": "x", "truth": truth}))
    assert load_files("e.jsonl", tmp_path).items[0].truth == truth


@pytest.mark.parametrize(
    "odd", ["line\u2028separator", "next\x85line", "form\x0cfeed", "a\u2029b", 'quo"te', "tab\t"]
)
def test_a_line_ends_at_a_newline_and_nowhere_else(tmp_path: Path, odd: str) -> None:
    """JSON allows every one of these raw or escaped inside a string."""
    write(tmp_path, e_jsonl=lines({"text": f"Before {odd} after"}, {"text": "Second."}))
    assert [item.text for item in load_files("e.jsonl", tmp_path).items] == [
        f"Before {odd} after",
        "Second.",
    ]


def test_a_text_file_is_one_item_named_after_it(tmp_path: Path) -> None:
    write(tmp_path, calm_txt="\nAll quiet.\n\nStill quiet.\n", storm_md="# Storm\n\nLoud.")
    found = load_files(["*.txt", "*.md"], tmp_path).items
    assert [(item.title, item.text) for item in found] == [
        ("calm", "All quiet.\n\nStill quiet."),
        ("storm", "# Storm\n\nLoud."),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_front_matter_gives_the_fields_and_never_reaches_the_text(
    tmp_path: Path, newline: str, mark: str
) -> None:
    text = (
        "---\ntitle: Court\nurl: https://x/1\ndate: 2026-01-04\ntruth: 4\ncluster: 12\n"
        "metadata: {latent: 0.9}\n---\n\nThe court --- was closed.\n\n---\n\nIt reopened.\n"
    )
    (tmp_path / "court.md").write_bytes((mark + text).replace("\n", newline).encode())
    [item] = load_files("court.md", tmp_path).items
    assert item == Evidence(
        "Court",
        "The court --- was closed.\n\n---\n\nIt reopened.",
        "https://x/1",
        "2026-01-04",
        truth=4,
        metadata={"latent": 0.9},
        cluster="12",
    )


def test_a_byte_order_mark_before_jsonl_is_no_part_of_it(tmp_path: Path) -> None:
    write(tmp_path, e_jsonl="\ufeff" + lines({"text": "First."}))
    assert [item.text for item in load_files("e.jsonl", tmp_path).items] == ["First."]


def test_an_article_of_html_comes_without_what_is_around_it(tmp_path: Path) -> None:
    write(tmp_path, court_html=PAGE)
    [item] = load_files("court.html", tmp_path).items
    assert (item.title, item.date, item.source) == ("Court reopens", "2026-01-04", "The Gazette")
    assert item.url == "https://gazette.example/court"
    assert item.text.startswith("The constitutional court") or "Twelve judges" in item.text
    assert "Subscribe" not in item.text and "rights reserved" not in item.text


def test_a_json_file_holds_one_item_or_a_list(tmp_path: Path) -> None:
    write(tmp_path, one_json='{"text": "One."}', two_json='[{"text": "A."}, {"text": "B."}]')
    found = load_files(["one.json", "two.json"], tmp_path).items
    assert [(item.title, item.text) for item in found] == [
        ("one 1", "One."), ("two 1", "A."), ("two 2", "B."),
    ]  # fmt: skip


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_columns_of_a_table_are_the_fields_and_others_metadata(
    tmp_path: Path, delimiter: str
) -> None:
    head = ["title", "text", "url", "date", "truth", "desk"]
    row = ["Court", '"A text\nover two lines, with ""quotes""; and marks."', "https://x/1"]
    row += ["5 January 2026", "3", "politics"]
    write(tmp_path, e_csv="\n".join([delimiter.join(head), delimiter.join(row), ""]))
    [item] = load_files("e.csv", tmp_path).items
    assert item == Evidence(
        "Court",
        'A text\nover two lines, with "quotes"; and marks.',
        "https://x/1",
        "2026-01-05",
        truth=3,
        metadata={"desk": "politics"},
    )


def test_a_table_of_texts_alone_is_enough(tmp_path: Path) -> None:
    write(tmp_path, e_csv="text\nFirst one.\nSecond one.\n")
    assert [item.text for item in load_files("e.csv", tmp_path).items] == [
        "First one.",
        "Second one.",
    ]


def test_an_item_with_two_responses_is_a_pair(tmp_path: Path) -> None:
    pair = {"text": "2 + 2?", "responses": [" 4 ", "5"], "truth": 1}
    write(tmp_path, e_jsonl=lines(pair, {**pair, "responses": ["5", "4"]}))
    first, second = load_files("e.jsonl", tmp_path).items
    assert first.responses == ("4", "5") and second.responses == ("5", "4")
    assert first.hash != second.hash != Evidence("", "2 + 2?").hash


def test_folder_yields_all_evidence_in_it_and_counts_other_files(tmp_path: Path) -> None:
    write(tmp_path, in__a_md="A", in__deep__b_txt="B", in__c_csv="text\nC\n", in__d_png="?")
    write(tmp_path, in___hidden__e_md="E", in___f_md="F")
    (tmp_path / "in/.hidden").mkdir()
    (tmp_path / "in/.hidden/g.md").write_text("G")
    found = load_files("in", tmp_path)
    assert [item.text for item in found.items] == ["F", "E", "A", "C", "B"]
    assert found.dropped == {"other kinds of file": 1}


# --- the window ----------------------------------------------------------------------------------

JANUARY = Window("Valdoria", date(2026, 1, 1), date(2026, 1, 31))


def test_what_lies_outside_the_window_is_dropped_and_counted(tmp_path: Path) -> None:
    days = ["2025-12-31", "2026-01-01", "2026-01-31T23:59:00Z", "2026-02-01", ""]
    rows = [{"text": f"Text {n}.", "date": day} for n, day in enumerate(days)]
    write(tmp_path, e_jsonl=lines(*rows))
    found = load_files("e.jsonl", tmp_path, JANUARY)
    assert [item.text for item in found.items] == ["Text 1.", "Text 2.", "Text 4."]
    assert found.dropped == {"outside the dates": 2}
    assert any("no date" in note for note in found.notes)  # it is kept, and said


def test_near_duplicates_of_files_are_kept_and_reported(tmp_path: Path) -> None:
    words = [f"word{n}" for n in range(200)]
    write(tmp_path, a_txt=" ".join(words), b_txt=" ".join([*words[:-1], "other"]))
    found = load_files(["a.txt", "b.txt"], tmp_path, JANUARY)
    assert len(found.items) == 2
    assert any("nearly the same" in note for note in found.notes)


# --- order and duplicates ------------------------------------------------------------------------


def test_files_come_in_the_order_of_patterns_and_then_of_names(tmp_path: Path) -> None:
    write(tmp_path, b_md="B", a_md="A", in__deep__c_md="C", z_txt="Z", skip_csv="x")
    (tmp_path / "folder.md").mkdir()

    def texts(*patterns: str) -> str:
        return "".join(item.text for item in load_files(patterns, tmp_path).items)

    assert texts("*.md") == "AB"
    assert texts("z.txt", "*.md") == "ZAB"
    assert texts("**/*.md") == "ABC"
    assert texts(str(tmp_path / "b.md")) == "B"


def test_repeated_texts_are_dropped_and_counted(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_jsonl=lines({"title": "one", "text": "Same."}, {"title": "two", "text": " Same. "}),
        b_txt="Same.",
        c_txt="Other.",
    )
    loaded = load_files(["*.jsonl", "*.txt"], tmp_path)
    assert [(item.title, item.text) for item in loaded.items] == [("one", "Same."), ("c", "Other.")]
    assert loaded.dropped == {"same text": 2}


def test_repeated_addresses_are_dropped(tmp_path: Path) -> None:
    """Evidence is deduplicated by URL and by content; no address is not an address."""
    write(
        tmp_path,
        a_jsonl=lines(
            {"text": "First edition.", "url": "https://x/1"},
            {"text": "Second edition.", "url": "https://x/1"},
            {"text": "Elsewhere.", "url": "https://x/2"},
            {"text": "Nowhere."},
            {"text": "Nowhere either."},
        ),
    )
    loaded = load_files("a.jsonl", tmp_path)
    assert [item.text for item in loaded.items] == [
        "First edition.", "Elsewhere.", "Nowhere.", "Nowhere either.",
    ]  # fmt: skip
    assert loaded.dropped == {"same address": 1}


# --- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "says", "choices"),
    [
        ("e.jsonl", '{"text": "x"}\n{"text": ', "e.jsonl:2: broken JSON", ()),
        ("e.jsonl", '\n\n["x"]', "e.jsonl:3: an item is an object", ()),
        ("e.jsonl", '{"text": "x", "head": "y"}', "e.jsonl:1: unknown field 'head'", FIELDS),
        ("e.jsonl", '{"text": "x"}\n{"title": "y"}', "e.jsonl:2: the text is empty", ()),
        ("e.jsonl", '{"text": "  \\n "}', "e.jsonl:1: the text is empty", ()),
        ("e.jsonl", '{"text": "x", "metadata": 3}', "e.jsonl:1: metadata is a mapping", ()),
        ("e.jsonl", "", "e.jsonl holds no evidence", ()),
        ("e.jsonl", " \n\n", "e.jsonl holds no evidence", ()),
        ("e.txt", " \n", "e.txt holds no evidence", ()),
        ("e.md", "---\ntitle: x\n---\n  \n", "e.md: the text is empty", ()),
        ("e.md", "---\ntitel: x\n---\nText", "unknown field 'titel'; did you mean", ("title",)),
        ("e.csv", "text,truht\na,1\n", "e.csv:1: unknown field 'truht'; did you mean", ("truth",)),
        ("e.md", "---\ntitle: [x\n---\nText", "e.md: broken front matter", ()),
        ("e.md", "---\njust words\n---\nText", "e.md: front matter is a mapping", ()),
        ("e.pdf", "%PDF", "unknown kind of file 'e.pdf'", KINDS),
        ("e.jsonl", '{"text": "q", "responses": ["a"]}', "e.jsonl:1: a pair has two responses", ()),
        (
            "e.jsonl",
            '{"text": "q", "responses": ["a", " "]}',
            "e.jsonl:1: the second response is empty",
            (),
        ),
        ("e.json", '[{"text": "x"},\n{"text": }]', "e.json:2: broken JSON", ()),
        ("e.json", '[{"text": "x"}, 3]', "e.json: item 2: an item is an object", ()),
        ("e.json", "[]", "e.json holds no evidence", ()),
        ("e.csv", "title,body\na,b\n", "e.csv:1: the header lacks text", ()),
        ("e.csv", "title,text\na,b\nc\n", "e.csv:3: 1 cells under a header of 2", ()),
        ("e.csv", "title,text\na,b,c\n", "e.csv:2: 3 cells under a header of 2", ()),
        ("e.csv", 'title,text\na,"b\n', "e.csv:2: broken CSV", ()),
        ("e.csv", "title,text\na,\n", "e.csv:2: the text is empty", ()),
        ("e.csv", "title,text\n", "e.csv holds no evidence", ()),
        ("e.html", "<html><body><nav>Menu</nav></body></html>", "e.html holds no article text", ()),
    ],
)  # fmt: skip
def test_invalid_content_is_reported_with_its_place(
    tmp_path: Path, name: str, text: str, says: str, choices: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DesignError) as refusal:
        load_files(name, tmp_path)
    assert says in refusal.value.message
    assert refusal.value.choices == choices
    assert all(choice in refusal.value.message for choice in choices)


def test_all_invalid_files_are_reported_together(tmp_path: Path) -> None:
    write(tmp_path, a_txt="", b_jsonl="{", c_md="Fine.", d_csv="title\nx\n")
    with pytest.raises(DesignError, match="3 files cannot be read") as refusal:
        load_files(["*.*"], tmp_path)
    assert all(name in refusal.value.message for name in ("a.txt", "b.jsonl:1", "d.csv:1"))


def test_other_fields_of_front_matter_are_metadata(tmp_path: Path) -> None:
    write(tmp_path, a_md="---\ntitle: T\ntags: [x, y]\nauthor: Ann\n---\nText.")
    [item] = load_files("a.md", tmp_path).items
    assert (item.title, item.text) == ("T", "Text.")
    assert item.metadata["author"] == "Ann" and "x" in item.metadata["tags"]


def test_the_columns_of_a_spreadsheet_may_be_written_large_and_its_last_row_blank(
    tmp_path: Path,
) -> None:
    write(tmp_path, e_csv="Title;Text;Date\nA;First one.;05.01.2026\n;;\n")
    [item] = load_files("e.csv", tmp_path).items
    assert (item.title, item.text, item.date) == ("A", "First one.", "2026-01-05")


def test_empty_file_among_many_is_refused(tmp_path: Path) -> None:
    write(tmp_path, a_txt="Text.", b_txt="")
    with pytest.raises(DesignError, match=r"b\.txt holds no evidence"):
        load_files("*.txt", tmp_path)


def test_pattern_without_matches_is_refused_with_the_folder(tmp_path: Path) -> None:
    write(tmp_path, a_txt="Text.")
    with pytest.raises(DesignError, match=r"no file matches 'missing/\*\.md'") as refusal:
        load_files(["a.txt", "missing/*.md"], tmp_path)
    assert str(tmp_path) in refusal.value.message


@pytest.mark.parametrize("name", ["e.jsonl", "e.txt", "e.md"])
def test_file_that_is_not_utf8_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'{"text": "caf\xe9"}')
    with pytest.raises(DesignError, match=f"{name[0]}.{name[2:]} cannot be read"):
        load_files(name, tmp_path)


def test_half_a_character_in_an_escape_never_becomes_a_text_that_cannot_be_kept(
    tmp_path: Path,
) -> None:
    """It may be refused with its place, or mended; a text that no file can hold it must not be."""
    (tmp_path / "e.jsonl").write_text('{"text": "Half \\ud83d a face."}')
    try:
        [item] = load_files("e.jsonl", tmp_path).items
    except DesignError as fault:
        assert "e.jsonl:1" in fault.message
    else:
        assert item.text.encode("utf-8").decode("utf-8") == item.text


# --- rubrics -------------------------------------------------------------------------------------

STAGES = [{"label": "Calm", "criteria": ["quiet"]}, {"label": "Stormy", "criteria": ["loud"]}]


@pytest.mark.parametrize(
    ("kind", "type"),
    [("ordinal", OrdinalRubric), ("nominal", NominalRubric), (None, OrdinalRubric)],
)
def test_a_given_rubric_is_of_its_kind_or_ordinal(
    tmp_path: Path, kind: str | None, type: type
) -> None:
    given = {"kind": kind, "stages": STAGES} if kind else {"stages": STAGES}
    (tmp_path / "r.json").write_text(json.dumps(given))
    rubric = load_rubric(tmp_path / "r.json", "severity", "Valdoria")
    assert isinstance(rubric, type)
    assert (rubric.author, rubric.concept, rubric.scale) == ("provided", "severity", 2)
    assert [stage.label for stage in rubric.stages] == ["Calm", "Stormy"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{\n"kind": ordinal}', "r.json:2: broken JSON"),
        ("[]", "r.json: a rubric is"),
        ('"ordinal"', "r.json: a rubric is"),
        ("{}", "r.json: a rubric is"),
        (
            json.dumps({"kind": "cardinal", "stages": STAGES}),
            "r.json: unknown kind of rubric 'cardinal'",
        ),
        (json.dumps({"kind": "ordinal", "stages": [{"label": "x"}] * 2}), "r.json: stage 1 needs"),
        (json.dumps({"kind": "ordinal", "stages": STAGES[:1]}), "2 to 26 stages; this one has 1"),
        (json.dumps({"kind": "ordinal", "stages": STAGES * 14}), "this one has 28"),
    ],
)
def test_invalid_rubric_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DesignError) as refusal:
        load_rubric(tmp_path / "r.json", "severity", "")
    assert says in refusal.value.message


def test_a_missing_rubric_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"there is no file .*r\.json"):
        load_rubric(tmp_path / "r.json", "severity", "")


@pytest.mark.parametrize(
    ("written", "read"),
    [("5/1/2026", "5/1/2026"), ("26/1/2026", "2026-01-26"), ("5.1.2026", "2026-01-05")],
)
def test_a_date_that_may_mean_two_days_stays_as_it_was_written(
    tmp_path: Path, written: str, read: str
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "words", "date": written}))
    assert [item.date for item in load_files("a.jsonl", tmp_path).items] == [read]
