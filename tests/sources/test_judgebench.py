"""JudgeBench's published formats: on invented lines, and on the published files where they are."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.analysis.judges.pairs import pair_verdicts, recorded_samples, score_pairs
from judge_gym.errors import DesignError
from judge_gym.recorded.importers.judgebench import category, read_decision
from judge_gym.sources.judgebench import Disagreement, read_judgments, read_pairs
from tables import each_row

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "data" / "judgebench"
published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="JudgeBench's published files are not beside the project"
)
PAIR: dict[str, Any] = {
    "pair_id": "0f6c1d2e-aaaa",
    "original_id": 12,
    "source": "mmlu-pro-law",
    "question": "Which is a tort?\u2028(A) Theft (B) Trespass",
    "response_model": "some-model",
    "response_A": "AAAAA",
    "response_B": "BBBBB",
    "label": "B>A",
}


def entry(decision: Any, text: str | None = None, **judgment: Any) -> dict[str, Any]:
    """A judgment as it is recorded, with the text that it was read from where there is one."""
    if text is not None:
        judgment = {"judge_model": "m", "prompt": "", "response": text, **judgment}
    return {"judgment": judgment, "decision": decision}


def judged(*judgments: Any, **changes: Any) -> dict[str, Any]:
    return {**PAIR, "judge_name": "arena_hard", "judgments": list(judgments), **changes}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    return path


# --- pairs ---------------------------------------------------------------------------------------


def test_a_pair_is_evidence_with_two_responses_and_the_better_one_as_truth(path: Path) -> None:
    second = {**PAIR, "pair_id": "77ab34cd-bbbb", "source": "livebench-math", "original_id": None}
    first, other = read_pairs(write(path, PAIR, {**second, "label": "A>B"}))
    assert first.title == "mmlu-pro-law 12"
    assert first.text == PAIR["question"], "as published"
    assert first.responses == ("AAAAA", "BBBBB")
    assert first.source == "mmlu-pro-law"
    assert first.metadata == {
        "id": "0f6c1d2e-aaaa",
        "category": "knowledge",
        "response_model": "some-model",
    }
    assert (first.truth, other.truth) == (2, 1)
    assert other.title == "livebench-math 77ab34cd", "without a number of its own"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("mmlu-pro-computer science", "knowledge"),
        ("mmlu-pro-math", "knowledge"),
        ("livebench-reasoning", "reasoning"),
        ("livebench-math", "math"),
        ("livecodebench", "coding"),
        ("my-own", "my-own"),
    ],
)
def test_sources_have_the_benchmarks_categories(source: str, expected: str) -> None:
    assert category(source) == expected


FAULTS = [
    ({"label": "A=B"}, "unknown label 'A=B'; choose 'A>B' or 'B>A'"),
    ({"label": None}, "'label' is missing"),
    ({"pair_id": ""}, "'pair_id' is missing"),
    ({"pair_id": 7}, "'pair_id' is a text, not 7"),
    ({"source": None}, "'source' is missing"),
]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        *FAULTS,
        ({"question": None}, "'question' is missing"),
        ({"response_B": ["x"]}, "'response_B' is a text, not ['x']"),
        ({"response_A": "\ud83d"}, "'response_A' has a lone surrogate"),
    ],
)
def test_invalid_pair_is_reported_with_its_line(
    path: Path, changes: dict[str, Any], fault: str
) -> None:
    rows = [PAIR, {**PAIR, "pair_id": "other", **changes}]
    path.write_text("\n\n".join(json.dumps(row) for row in rows))
    with pytest.raises(DesignError) as raised:
        read_pairs(path)
    assert f"lines.jsonl:3: {fault}" in raised.value.message


@pytest.mark.parametrize("read", [read_pairs, read_judgments])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "lines.jsonl has no pairs"),
        ("\n \n", "lines.jsonl has no pairs"),
        ("{", "lines.jsonl:1: broken JSON"),
        ("[1]", "lines.jsonl:1: a line is an object, not [1]"),
        (json.dumps({}), "lines.jsonl:1: 'pair_id' is missing"),
    ],
)
def test_a_file_that_holds_no_pairs_is_refused(
    path: Path, read: Any, text: str, fault: str
) -> None:
    path.write_text(text)
    with pytest.raises(DesignError) as raised:
        read(path)
    assert fault in raised.value.message


@pytest.mark.parametrize("read", [read_pairs, read_judgments])
def test_repeated_pair_is_refused(path: Path, read: Any) -> None:
    write(path, judged(None), judged(None))
    with pytest.raises(DesignError, match=r"lines\.jsonl:2: pair_id '0f6c1d2e-aaaa' is on line 1"):
        read(path)


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    with pytest.raises(DesignError, match=r"there is no file .*lines\.jsonl"):
        read_pairs(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DesignError, match=r"lines\.jsonl cannot be read"):
        read_pairs(path)


# --- judged files --------------------------------------------------------------------------------


def test_the_second_decision_is_turned_to_the_identity_of_the_responses(path: Path) -> None:
    rows = [
        judged(entry("A>B"), entry("A>B"), pair_id="first shown, twice"),
        judged(entry("B>A"), entry("A>B"), pair_id="B, twice", label="A>B"),
        judged(entry("A=B"), entry("B>A"), pair_id="tie, then A", source="livecodebench"),
    ]
    decisions = read_judgments(write(path, *rows)).decisions
    assert len({one.cluster for one in decisions}) == 1, "they are about one question"
    assert [(one.evidence, one.truth, one.category) for one in decisions[::2]] == [
        ("first shown, twice", 2, "knowledge"),
        ("B, twice", 1, "knowledge"),
        ("tie, then A", 2, "coding"),
    ]
    assert [one.decision for one in decisions] == [1, 2, 2, 2, 3, 1]
    assert [one.flipped for one in decisions] == [False, True] * 3


def test_one_judgment_is_the_given_order_alone(path: Path) -> None:
    [decision] = read_judgments(write(path, judged(entry("B>A")))).decisions
    assert (decision.decision, decision.flipped) == (2, False)


@pytest.mark.parametrize(
    "nothing", [None, {}, entry(None), {"judgment": None, "decision": None}, {"decision": None}]
)
def test_a_judgment_that_failed_has_no_decision_and_is_not_lost(path: Path, nothing: Any) -> None:
    found = read_judgments(write(path, judged(nothing, entry("A>B"))))
    assert [one.decision for one in found.decisions] == [None, 2]
    assert (found.read, found.unread, found.disagreements) == (0, 2, ())


@pytest.mark.parametrize(
    ("recorded", "stage"),
    [
        ("A>B", 1),
        ("A>>B", 1),
        ("B<A", 1),
        ("B<<A", 1),
        (" A > B \n", 1),
        ("B>A", 2),
        ("B>>A", 2),
        ("A<B", 2),
        ("A=B", 3),
        ("B=A", 3),
        ("A==B", 3),
    ],
)
def test_a_decision_may_be_written_in_several_ways(path: Path, recorded: str, stage: int) -> None:
    [decision] = read_judgments(write(path, judged(entry(recorded)))).decisions
    assert decision.decision == stage


@pytest.mark.parametrize(
    "recorded", ["A", "A>A", "A>", "tie", "", "a>b", "A>B>A", 1, ["A>B"], True]
)
def test_any_other_decision_is_refused_with_the_choices(path: Path, recorded: Any) -> None:
    write(path, judged(None), judged(entry("A>B"), entry(recorded), pair_id="other"))
    with pytest.raises(DesignError) as raised:
        read_judgments(path)
    expected = f"lines.jsonl:2: unknown decision {recorded!r}; choose 'A>B', 'B>A' or 'A=B'"
    assert expected in raised.value.message
    assert raised.value.choices == ("A>B", "B>A", "A=B")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        *FAULTS,
        ({"judgments": None}, "'judgments' is a list of one or two"),
        ({"judgments": []}, "'judgments' is a list of one or two"),
        ({"judgments": [None] * 3}, "'judgments' is a list of one or two"),
        ({"judgments": ["A>B"]}, "a judgment is null or an object, not 'A>B'"),
        ({"judge_name": "vanilla"}, "judge_name is 'vanilla' and was 'arena_hard' above"),
        (
            {"judgments": [entry("A>B", judge_model="n")]},
            "judge_model is 'n' and was 'm' above",
        ),
    ],
)
def test_invalid_judgment_is_reported_with_its_line(
    path: Path, changes: dict[str, Any], fault: str
) -> None:
    good = judged(entry("A>B", "[[A>B]]"))
    write(path, good, {**good, "pair_id": "other", **changes})
    with pytest.raises(DesignError) as raised:
        read_judgments(path)
    assert f"lines.jsonl:2: {fault}" in raised.value.message


def test_a_judge_is_named_by_what_the_file_says(path: Path) -> None:
    assert read_judgments(write(path, judged(entry("A>B", "[[A>B]]")))).judge == "arena_hard m"
    assert read_judgments(write(path, judged(None))).judge == "arena_hard"
    assert read_judgments(write(path, judged(None, judge_name=None))).judge == "lines"


# --- our own reading -----------------------------------------------------------------------------


@each_row(
    ("text", "expected"),
    [
        ("My final verdict is Assistant A is significantly better: [[A>>B]]", "A>B"),
        ("My final verdict is tie: [[A=B]]", "A=B"),
        ("**[[B>A]]**\n", "B>A"),
        ("[[ B >> A ]]", "B>A"),
        ("[[A<B]]", "B>A"),
        ("[[B>A]] ... Final verdict: [[B>A]]", "B>A"),
        ("**Final Verdict: [[B>A]]**\n\nB names the answer.\n\n**My verdict is [[B>>A]]**", "B>A"),
        ("[[A>>B]] or [[A>B]]: slightly or much", "A>B"),
        ("I lean to [[A>B]].\nYet A's proof has a gap.\nMy final verdict is: [[B>A]]", "B>A"),
        ("[[A>B]] or [[B>A]]", None),
        ("[[A>B]]\n\n---\n\n[[B>A]]", None),
        ("1. A is better: [[A>B]]\n2. a tie: [[A=B]]\n3. B is better: [[B>A]]", None),
        ("[[A>B]]\nReasoning in between.\n[[A=B]] [[B>A]]", None),
        ("A>B", None),
        ("[A>B]", None),
        ("[[A]]", None),
        ("[[A>A]]", None),
        ("[[A>B", None),
        ("The matrix is [[1, 2], [3, 4]].", None),
        ("Output (a)", None),
        ("", None),
    ],
)
def test_last_verdict_decides_unless_another_is_adjacent(text: str, expected: str | None) -> None:
    assert read_decision(text) == expected


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.text("[]AB<>= \nx", max_size=60))
def test_any_text_is_read_or_not_and_turning_it_round_turns_the_reading(text: str) -> None:
    turned = text.translate(str.maketrans("AB", "BA"))
    opposite = {"A>B": "B>A", "B>A": "A>B", "A=B": "A=B", None: None}
    assert read_decision(turned) == opposite[read_decision(text)]


def test_disagreements_with_the_record_are_listed_as_shown(path: Path) -> None:
    changed = "[[A>B]]\nBut no.\n[[B>A]]"  # the published reader finds no decision in it
    rows = [
        judged(entry("A>B", "[[A>>B]]"), entry("A>B", "so: [[B>A]]")),
        judged(entry(None, changed), entry(None, "[[A>B]] [[B>A]]"), pair_id="other"),
        judged(entry("A>B", "[[A>B]] [[B>A]]"), pair_id="third"),
    ]
    found = read_judgments(write(path, *rows))
    assert found.disagreements == (
        Disagreement("0f6c1d2e-aaaa", "reversed", recorded="A>B", read="B>A"),
        Disagreement("other", "given", recorded=None, read="B>A"),
        Disagreement("third", "given", recorded="A>B", read=None),
    )
    assert (found.read, found.unread) == (5, 0)
    assert [one.decision for one in found.decisions[:2]] == [1, 2], "the record stands"


@pytest.mark.parametrize(
    "judgment",
    [
        {"judge_model": "m", "prompt": "", "response": "", "scores": [1.5, 0.2]},
        {"judge_model": "m", "scores": [float("inf"), None]},
        {"response": "Output (a)"},
        {"response": '{"verdict": "A"}'},
        {"response": None, "judge_model": None},
        {"response": ["[[B>A]]"]},
        "Output (a)",
        [1, 2],
        3.5,
        None,
    ],
)
def test_other_styles_are_unread_and_no_disagreement(path: Path, judgment: Any) -> None:
    found = read_judgments(write(path, judged({"judgment": judgment, "decision": "A>B"})))
    assert (found.read, found.unread, found.disagreements) == (0, 1, ())
    assert [one.decision for one in found.decisions] == [1]


def test_a_judgment_that_is_a_text_is_read(path: Path) -> None:
    found = read_judgments(write(path, judged({"judgment": "[[A>B]]", "decision": "A>B"})))
    assert (found.read, found.disagreements) == (1, ())


# --- the published files -------------------------------------------------------------------------


@published
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("pairs-gpt-4o", {"knowledge": 154, "reasoning": 98, "math": 56, "coding": 42}),
        ("pairs-claude-3-5-sonnet", {"knowledge": 154, "reasoning": 51, "math": 34, "coding": 31}),
    ],
)
def test_published_pairs_are_read_whole(name: str, counts: dict[str, int]) -> None:
    pairs = read_pairs(PUBLISHED / f"{name}.jsonl")
    found = [pair.metadata["category"] for pair in pairs]
    assert {part: found.count(part) for part in counts} == counts
    assert len(pairs) == sum(counts.values())
    assert len({pair.hash for pair in pairs}) == len({pair.title for pair in pairs}) == len(pairs)


@published
def test_o1_mini_scores_what_was_published() -> None:
    published = read_judgments(PUBLISHED / "judged-gpt-4o-by-o1-mini.jsonl")
    samples = recorded_samples(published.judge, published.decisions)
    score = score_pairs(pair_verdicts({published.judge: samples})).to_json()
    # The published accuracies, and both-orders and inconsistency rates by the published rule.
    assert (score["n"], score["accuracy"], score["nulls"]) == (350, 65.71, 0)
    assert (score["both_correct"], score["inconsistent"]) == (58.0, 31.43)
    assert {name: part["accuracy"] for name, part in score["by_category"].items()} == {
        "knowledge": 58.44,
        "reasoning": 62.24,
        "math": 82.14,
        "coding": 78.57,
    }
    # 367 of its 700 judgments are for the response shown first, 289 for the second.
    assert score["position_bias"] == round(100 * (367 - 289) / 700, 2)


@published
def test_every_recorded_answer_of_o1_mini_is_read_as_recorded() -> None:
    found = read_judgments(PUBLISHED / "judged-gpt-4o-by-o1-mini.jsonl")
    assert found.judge == "arena_hard o1-mini-2024-09-12"
    assert (found.read, found.unread, found.disagreements) == (700, 0, ())


@published
def test_judged_pairs_are_those_of_the_pairs_file() -> None:
    pairs = read_pairs(PUBLISHED / "pairs-gpt-4o.jsonl")
    found = read_judgments(PUBLISHED / "judged-gpt-4o-by-o1-mini.jsonl").decisions
    expected = {(one.metadata["id"], one.truth, one.metadata["category"]) for one in pairs}
    assert {(one.evidence, one.truth, one.category) for one in found} == expected
