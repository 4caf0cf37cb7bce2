"""Evidence and rubrics from files: every form, and every fault with its file, line and choices."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, NominalRubric, OrdinalRubric
from judge_gym.sources import load_files, load_rubric

FIELDS = ("title", "text", "url", "date", "source", "truth", "metadata")


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
        "---\ntitle: Court\nurl: https://x/1\ndate: 2026-01-04\ntruth: 4\n"
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
    )


def test_a_byte_order_mark_before_jsonl_is_no_part_of_it(tmp_path: Path) -> None:
    write(tmp_path, e_jsonl="\ufeff" + lines({"text": "First."}))
    assert [item.text for item in load_files("e.jsonl", tmp_path).items] == ["First."]


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


def test_a_text_stands_once_and_its_repetitions_are_counted(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_jsonl=lines({"title": "one", "text": "Same."}, {"title": "two", "text": " Same. "}),
        b_txt="Same.",
        c_txt="Other.",
    )
    loaded = load_files(["*.jsonl", "*.txt"], tmp_path)
    assert [(item.title, item.text) for item in loaded.items] == [("one", "Same."), ("c", "Other.")]
    assert loaded.duplicates == 2


def test_an_address_stands_once_too(tmp_path: Path) -> None:
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
    assert loaded.duplicates == 1


# --- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "says", "choices"),
    [
        ("e.jsonl", '{"text": "x"}\n{"text": ', "e.jsonl:2: broken JSON", ()),
        ("e.jsonl", '\n\n["x"]', "e.jsonl:3: a line is an object", ()),
        ("e.jsonl", '{"text": "x", "head": "y"}', "e.jsonl:1: unknown field 'head'", FIELDS),
        ("e.jsonl", '{"text": "x"}\n{"title": "y"}', "e.jsonl:2: the text is empty", ()),
        ("e.jsonl", '{"text": "  \\n "}', "e.jsonl:1: the text is empty", ()),
        ("e.jsonl", '{"text": "x", "metadata": 3}', "e.jsonl:1: metadata is a mapping", ()),
        ("e.jsonl", "", "e.jsonl holds no evidence", ()),
        ("e.jsonl", " \n\n", "e.jsonl holds no evidence", ()),
        ("e.txt", " \n", "e.txt holds no evidence", ()),
        ("e.md", "---\ntitle: x\n---\n  \n", "e.md: the text is empty", ()),
        ("e.md", "---\nheadline: x\n---\nText", "e.md: unknown field 'headline'", FIELDS),
        ("e.md", "---\ntitle: [x\n---\nText", "e.md: broken front matter", ()),
        ("e.md", "---\njust words\n---\nText", "e.md: front matter is a mapping", ()),
        ("e.csv", "a,b", "unknown kind of file 'e.csv'", (".jsonl", ".md", ".txt")),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, says: str, choices: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DesignError) as refusal:
        load_files(name, tmp_path)
    assert says in refusal.value.message
    assert refusal.value.choices == choices
    assert all(choice in refusal.value.message for choice in choices)


def test_one_empty_file_among_many_is_a_fault(tmp_path: Path) -> None:
    write(tmp_path, a_txt="Text.", b_txt="")
    with pytest.raises(DesignError, match=r"b\.txt holds no evidence"):
        load_files("*.txt", tmp_path)


def test_a_pattern_that_matches_nothing_is_a_fault_and_says_where(tmp_path: Path) -> None:
    write(tmp_path, a_txt="Text.")
    with pytest.raises(DesignError, match=r"no file matches 'missing/\*\.md'") as refusal:
        load_files(["a.txt", "missing/*.md"], tmp_path)
    assert str(tmp_path) in refusal.value.message


@pytest.mark.parametrize("name", ["e.jsonl", "e.txt", "e.md"])
def test_bytes_that_are_no_text_are_a_fault(tmp_path: Path, name: str) -> None:
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


@pytest.mark.parametrize(("kind", "type"), [("ordinal", OrdinalRubric), ("nominal", NominalRubric)])
def test_a_given_rubric_is_of_its_kind(tmp_path: Path, kind: str, type: type) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"kind": kind, "stages": STAGES}))
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
        (json.dumps({"kind": "cardinal", "stages": STAGES}), "r.json: unknown kind 'cardinal'"),
        (json.dumps({"kind": "ordinal", "stages": [{"label": "x"}] * 2}), "r.json: stage 1 needs"),
        (json.dumps({"kind": "ordinal", "stages": STAGES[:1]}), "2 to 26 stages; this one has 1"),
        (json.dumps({"kind": "ordinal", "stages": STAGES * 14}), "this one has 28"),
    ],
)
def test_a_faulty_rubric_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DesignError) as refusal:
        load_rubric(tmp_path / "r.json", "severity", "")
    assert says in refusal.value.message


def test_a_missing_rubric_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"there is no file .*r\.json"):
        load_rubric(tmp_path / "r.json", "severity", "")
