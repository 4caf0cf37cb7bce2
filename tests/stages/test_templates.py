"""A judge's own prompt: what it is filled with, how its answers are read, what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from judge_gym.axes import NONE, Design, inactive_knobs, template_level
from judge_gym.errors import DesignError
from judge_gym.records import (
    Completion,
    Evidence,
    Finish,
    NominalRubric,
    OrdinalRubric,
    Pool,
    RubricStage,
    render_fields,
)
from judge_gym.stages import Prober, ProbeTarget, Scorer, ScoreTarget
from judge_gym.stages.templates import PromptTemplate, read_template
from tables import each_row

LAST = "---\nread: last line\n---\n"
RUBRIC = OrdinalRubric(
    (
        RubricStage("not helpful", ("turns the customer away",)),
        RubricStage("helpful", ("gives the steps", "is kind")),
    ),
    "provided",
    "helpfulness",
    "",
)
OPTIONS = NominalRubric(
    (RubricStage("A", ("the first is better",)), RubricStage("B", ("the second is better",))),
    "provided",
    "the better response",
    "",
)
FIELDS = {"input": "How?", "output": "Like {labels} and {input}.", "reference": "So."}
ITEM = Evidence("t", render_fields(FIELDS), fields=FIELDS)
TEXT = Evidence("t", "It is {rubric}.")
ASKED = Evidence("t", "INPUT\nHow?", fields={"input": "How?"})
PAIR = Evidence("t", "Which?", responses=("one", "two"))


def scorer(text: str, **knobs: Any) -> Scorer:
    named = {"judge.model": "sim:strict", "prompt.template": template_level("p.md", text), **knobs}
    return Scorer(Design.of(named), 7, "7", text)


def target(item: Evidence = ITEM, **changes: Any) -> ScoreTarget:
    rubric = OPTIONS if item.responses else RUBRIC
    return replace(ScoreTarget(rubric, item, item.text, 0), **changes)


def asked(prompt: str, item: Evidence = ITEM, **changes: Any) -> str:
    [request] = scorer(prompt).requests([target(item, **changes)])
    return "\n=\n".join(f"{message.role}: {message.content}" for message in request.messages)


def reading(head: str, answer: str, finish: Finish = "stop") -> tuple[str, tuple[int, ...]]:
    stage = scorer(f"---\n{head}\n---\n{{output}}")
    sample = stage.read(target(), Completion(answer, finish, "m", 1, 1, 0.0))
    return sample.status, sample.stages


# --- asking --------------------------------------------------------------------------------------


def test_placeholders_are_replaced_and_nothing_else_is_touched() -> None:
    body = 'Q: {input}\nA: {output} {"verdict": {"of": 1}} { output } {} \\{x y} 100%'
    assert asked(LAST + body) == (
        'user: Q: How?\nA: Like {labels} and {input}. {"verdict": {"of": 1}} { output } {} '
        "\\{x y} 100%"
    )


def test_a_text_of_an_item_that_contains_placeholders_is_never_filled() -> None:
    assert asked(LAST + "{text}|{labels}", TEXT) == "user: It is {rubric}.|not helpful, helpful"
    assert asked(LAST + "{output}", TEXT) == "user: It is {rubric}."


def test_rubric_and_labels_stand_in_the_order_of_the_rubric_under_its_words() -> None:
    head = "---\nread: last line\nlabels: {GOOD: helpful, SKIP: abstain}\n---\n"
    assert asked(head + "{rubric}\n{labels}") == (
        "user: not helpful\n  - turns the customer away\nGOOD\n  - gives the steps\n"
        "  - is kind\nnot helpful, GOOD, SKIP"
    )


def test_the_system_message_is_filled_too_and_left_out_without_one() -> None:
    head = "---\nread: last line\nsystem: One of {labels}.\n---\n"
    assert asked(head + "x {output}").startswith("system: One of not helpful, helpful.\n=\nuser: x")
    assert asked(LAST + "x").startswith("user: ")


def test_a_named_part_that_an_item_lacks_is_empty() -> None:
    bare = replace(ITEM, fields={"output": "Fine."})
    assert asked(LAST + "<{reference}> {output}", bare) == "user: <> Fine."


def test_responses_are_filled_in_the_order_in_which_a_pair_is_shown() -> None:
    body = LAST + "{input} 1 {response_a} 2 {response_b}"
    assert asked(body, PAIR) == "user: Which? 1 one 2 two"
    assert asked(body, PAIR, flipped=True) == "user: Which? 1 two 2 one"


def test_no_schema_is_sent_and_the_key_depends_on_the_words_alone() -> None:
    body = LAST + "Is {output} good?"
    [request] = scorer(body).requests([target()])
    assert request.schema is None
    level = {"prompt.template": template_level("renamed.md", body)}
    [renamed] = scorer(body, **level).requests([target()])
    [fixed] = scorer(body, **{"presentation.order": "fixed"}).requests([target()])
    [other] = scorer(body + "!").requests([target()])
    assert renamed.key() == fixed.key() == request.key() != other.key()


def test_the_level_names_the_file_and_the_design_is_identified_by_the_text_alone() -> None:
    designs = [scorer(text).design for text in (LAST + "a", LAST + "b")]
    renamed = designs[0].replace({"prompt.template": template_level("q.md", LAST + "a")})
    assert designs[0].prompt.template.startswith("p.md~")
    assert renamed != designs[0] and renamed.identity() == designs[0].identity()
    assert designs[1].identity() != designs[0].identity()
    assert "prompt.template" not in Design.of({"judge.model": "sim:a"}).identity()


def test_a_design_whose_prompt_is_not_known_asks_nothing() -> None:
    stage = replace(scorer(LAST + "x"), template="")
    with pytest.raises(DesignError, match=r"the text of the prompt p\.md~\w+ is not known here"):
        stage.requests([target()])


def test_knobs_of_our_prompt_are_inactive_under_one_of_its_own() -> None:
    ours = {
        *("presentation.labels", "presentation.order", "presentation.first", "probe.context"),
        *("verdict.method", "verdict.output", "verdict.abstain", "evidence.fields"),
        *(f"prompt.slots.scorer.{name}" for name in ("persona", "language", "framing")),
    }
    inactive = inactive_knobs({"prompt.template": "p.md~0123456789ab"})
    assert inactive >= ours
    assert not {"evidence.view", "rubric.scale", "judge.temperature"} & inactive
    assert inactive_knobs({"prompt.template": NONE}) == set()


# --- reading -------------------------------------------------------------------------------------

LAST_LINES = [
    ("Kind and clear.\nhelpful", "scored", (2,)),
    ("Kind.\n\n**Helpful.**\n\n", "scored", (2,)),
    ("Kind.\n```\nhelpful\n```", "scored", (2,)),
    ('- "Not  helpful"', "scored", (1,)),
    ("not - helpful", "parse_failed", ()),
    ("> HELPFUL!", "scored", (2,)),
    ("<think>not helpful</think>\nhelpful", "scored", (2,)),
    ("abstain", "abstained", ()),
    ("It cannot be judged.\n**ABSTAIN**", "abstained", ()),
    ("helpful\nBecause it is kind.", "parse_failed", ()),
    ("It is helpful", "parse_failed", ()),
    ("helpful or not helpful", "parse_failed", ()),
    ("unhelpful", "parse_failed", ()),
    ("2", "parse_failed", ()),
    ("", "parse_failed", ()),
    ("***\n\n", "parse_failed", ()),
]


@each_row(("answer", "status", "stages"), LAST_LINES)
def test_the_last_line_that_says_something_is_the_verdict(
    answer: str, status: str, stages: tuple[int, ...]
) -> None:
    assert reading("read: last line", answer) == (status, stages)


JSON = [
    ('{"why": "kind", "grade": "helpful"}', "scored", (2,)),
    ('Here:\n```json\n{"grade": "Not helpful"}\n```\nDone.', "scored", (1,)),
    ('{"grade": "helpful"} No, worse: {"grade": "not helpful"}', "scored", (1,)),
    ('{"Grade": "helpful"}', "scored", (2,)),
    ('{"grade": "abstain"}', "abstained", ()),
    ('{"grade": "helpful"}\n{"grade": "not helpful"}', "parse_failed", ()),
    ('{"grade": ["helpful"]}', "parse_failed", ()),
    ('{"grade": null}', "parse_failed", ()),
    ('{"verdict": "helpful"}', "parse_failed", ()),
    ('{"grade": "helpful"', "parse_failed", ()),
    ("helpful", "parse_failed", ()),
]


@each_row(("answer", "status", "stages"), JSON)
def test_the_key_of_the_last_json_object_is_the_verdict(
    answer: str, status: str, stages: tuple[int, ...]
) -> None:
    assert reading("read: json: grade", answer) == (status, stages)


@each_row(("value", "stages"), [("true", (2,)), ("false", (1,)), ("5", (2,)), ("1.0", (1,))])
def test_truth_values_and_numbers_of_json_may_be_labels(
    value: str, stages: tuple[int, ...]
) -> None:
    head = "labels: {true: helpful, 5: helpful, false: not helpful, 1: not helpful}"
    assert reading(f"read: {{json: ok}}\n{head}", f'{{"ok": {value}}}') == ("scored", stages)


def test_the_group_of_the_last_match_of_a_pattern_is_the_verdict() -> None:
    head = r"read: regex: (?i)rating:\s*\[\[(.+?)\]\]"
    assert reading(head, "Rating: [[helpful]]\nOn reflection:\nrating: [[Not helpful]]") == (
        "scored",
        (1,),
    )
    assert reading(head, "[[helpful]]") == ("parse_failed", ())
    assert reading(head, "Rating: [[fair]]") == ("parse_failed", ())
    assert reading(head, "Rating: [[abstain]]") == ("abstained", ())


def test_a_pattern_of_yaml_reads_as_one_that_is_written_plainly() -> None:
    plain = read_template("---\nread: regex: V:\\s(\\w)\n---\n{text}")
    quoted = read_template('---\nread: {regex: "V:\\\\s(\\\\w)"}\n---\n{text}')
    assert plain == quoted and plain.key == r"V:\s(\w)"


def test_words_of_the_head_mean_stages_and_yes_is_a_word() -> None:
    head = "read: last line\nlabels: {yes: helpful, no: not helpful, unsure: abstain}"
    assert reading(head, "Yes.") == ("scored", (2,))
    assert reading(head, "no") == ("scored", (1,))
    assert reading(head, "UNSURE") == ("abstained", ())
    assert reading(head, "helpful") == ("parse_failed", ()), "a stage that has another word"


def test_labels_that_differ_in_a_plus_are_told_apart() -> None:
    graded = replace(RUBRIC, stages=(RubricStage("A", ("x",)), RubricStage("A+", ("y",))))
    template = read_template(LAST + "{text}")
    template.check(Pool((TEXT,)), graded)
    assert template.read("**A+.**", graded)[1] == (2,) and template.read("A", graded)[1] == (1,)


def test_an_answer_that_must_not_be_parsed_has_its_status() -> None:
    assert reading("read: last line", "helpful", "refusal") == ("refused", ())
    assert reading("read: last line", "helpful", "length") == ("truncated", ())
    failed = scorer(LAST + "{text}").read(target(), None)
    assert (failed.status, failed.stages) == ("provider_error", ())


def test_a_verdict_on_a_pair_names_the_response_whichever_came_first() -> None:
    stage = scorer(LAST + "{response_a} {response_b}")
    said = Completion("A", "stop", "m", 1, 1, 0.0)
    samples = [stage.read(target(PAIR, flipped=flipped), said) for flipped in (False, True)]
    assert [sample.stages for sample in samples] == [(1,), (2,)]
    assert [stage.reread(sample, said) for sample in samples] == samples


def test_an_answer_is_read_again_as_it_was() -> None:
    stage = scorer(LAST + "{output}")
    said = Completion("helpful", "stop", "m", 1, 1, 0.0)
    sample = stage.read(target(), said)
    assert stage.reread(replace(sample, status="parse_failed", stages=()), said) == sample


@pytest.mark.timeout(120)  # without a limit of its own it would not end
def test_a_slow_pattern_reads_nothing_instead_of_hanging() -> None:
    slow = PromptTemplate("p", "{text}", "regex", "(x+x+)+y", {}, "")
    assert slow.read("x" * 5000, RUBRIC) == ("parse_failed", ())


def test_a_probe_shows_the_rubric_as_our_prompt_would_have() -> None:
    """So that designs that probe alike share the probe of a verdict."""
    own, ours = scorer(LAST + "{text}"), Scorer(Design.of({"judge.model": "sim:strict"}), 7, "7")
    sample = own.read(target(TEXT), Completion("helpful", "stop", "m", 1, 1, 0.0))
    assert sample.display.labels == ()
    label = ours.display(target(TEXT)).labels[ours.display(target(TEXT)).stages.index(2)]
    said = Completion(f"VERDICT: {label}", "stop", "m", 1, 1, 0.0)
    twin = ours.read(target(TEXT), said)
    assert twin.stages == sample.stages == (2,)
    probes = [
        Prober(stage.design, 7, "7").requests([ProbeTarget(read, TEXT.text)])
        for stage, read in ((own, sample), (ours, twin))
    ]
    assert probes[0] == probes[1]


# --- refusals ------------------------------------------------------------------------------------

REFUSED = [
    ("Is {text} good?", "its head says how the verdict is read"),
    ("---\nsystem: x\n---\n{text}", "read is last line, json: KEY, regex: PATTERN, not None"),
    ("---\nread: first line\n---\n{text}", "read is last line"),
    ("---\nread: json\n---\n{text}", "read is last line"),
    ("---\nread: [x\n---\n{text}", "broken head"),
    ("---\n- read\n---\n{text}", "its head is a mapping with read, labels, system"),
    ("---\nread: last line\nlable: x\n---\n{text}", "unknown key 'lable'; choose 'read', 'labels'"),
    ("---\nread: last line\nlabels: [a, b]\n---\n{text}", "labels says what the prompt calls"),
    (LAST, "below its head there is no prompt"),
    (LAST + "{txt}", "unknown placeholder '{txt}'; choose '{text}', '{input}'"),
    ("---\nread: last line\nsystem: '{txt}'\n---\n{text}", "unknown placeholder '{txt}'"),
    (LAST + "{{ output }}", "{{ output }} has two braces; a placeholder has one: {output}"),
    ("---\nread: regex: ((x)\n---\n{text}", "broken pattern"),
    ("---\nread: regex: x\n---\n{text}", "has 0 groups; it has one, around the verdict"),
    ("---\nread: regex: (a)(b)\n---\n{text}", "has 2 groups"),
    ("---\nread: regex: (\\w+\\s?)+$\n---\n{text}", "takes too long on some answers"),
    (f"---\nread: regex: ({'x' * 600})\n---\n{{text}}", "a pattern has at most 500 characters"),
    (LAST + "x" * 100_001, "a prompt has at most 100,000 characters"),
]


@each_row(("text", "says"), REFUSED)
def test_a_prompt_that_cannot_be_asked_or_read_is_refused(text: str, says: str) -> None:
    with pytest.raises(DesignError) as refusal:
        read_template(text, "judge.md")
    assert refusal.value.message.startswith("judge.md: ")
    assert says in refusal.value.message


MISFITS = [
    (TEXT, LAST + "{input}", "these items have no input for {input}; choose {text}, {output}"),
    (ITEM, LAST + "{context}", "these items have no context for {context}; choose {text}, {input}"),
    (ITEM, LAST + "{response_a}", "these items have no response_a"),
    (PAIR, LAST + "{output}", "these items have no output for {output}; choose {text}, {input}"),
    (ITEM, "---\nread: last line\nlabels: {a: helpfull}\n---\n{text}", "unknown stage 'helpfull'"),
    (
        ITEM,
        "---\nread: last line\nlabels: {a: helpful, A.: not helpful}\n---\n{text}",
        "'a' means two stages",
    ),
]


@each_row(("item", "text", "says"), MISFITS)
def test_a_prompt_that_does_not_fit_the_items_or_the_rubric_is_refused(
    item: Evidence, text: str, says: str
) -> None:
    rubric = OPTIONS if item.responses else RUBRIC
    with pytest.raises(DesignError) as refusal:
        read_template(text, "judge.md").check(Pool((item,)), rubric)
    assert says in refusal.value.message


def test_named_parts_are_not_shown_beside_a_neutralized_view() -> None:
    with pytest.raises(DesignError, match="which no editor neutralizes"):
        read_template(LAST + "{output}").check(Pool((ITEM,)), RUBRIC, neutralized=True)
    read_template(LAST + "{output}").check(Pool((TEXT,)), RUBRIC, neutralized=True)
    assert asked(LAST + "{output}", TEXT, text="The view.") == "user: The view."


def test_words_for_stages_need_a_rubric_that_is_given() -> None:
    named = read_template("---\nread: last line\nlabels: {a: good}\n---\n{text}", "judge.md")
    with pytest.raises(DesignError, match=r"judge.md names the stages of a rubric"):
        named.check(Pool((TEXT,)), None)
    read_template(LAST + "{text} {rubric}").check(Pool((TEXT,)), None)


# --- what is missing -----------------------------------------------------------------------------

COMPLETE = "Is {output} helpful or not helpful? Else say ABSTAIN."
DOUBTS = [
    (ITEM, LAST + COMPLETE, []),
    (ITEM, LAST + "{output}: {labels}, or abstain", []),
    (ITEM, LAST + "Is {input} helpful or not helpful, or abstain?", ["shows no item"]),
    (ITEM, LAST + "Is {output} helpful or not helpful?", ["names no way to abstain"]),
    (ITEM, LAST + "Is {output} helpful? Or abstain.", ["does not name the label 'not helpful'"]),
    (ITEM, LAST + "Is {output} not helpful? Or abstain.", ["does not name the label 'helpful'"]),
    (ASKED, LAST + "Is {input} helpful or not helpful, or abstain?", []),
    (
        ITEM,
        "---\nread: last line\nlabels: {OK: helpful, BAD: not helpful, SKIP: abstain}\n---\n"
        "{output}: OK or BAD or SKIP",
        [],
    ),
    (
        ITEM,
        "---\nread: last line\nlabels: {OK: helpful, BAD: not helpful}\n---\n{output} OKAY abstain",
        ["does not name the label 'not helpful'", "does not name the label 'helpful'"],
    ),
    (ITEM, f"---\nread: json: grade\n---\n{COMPLETE}", ["does not name the JSON key 'grade'"]),
    (ITEM, f'{LAST}{COMPLETE} {{{{"x": 1}}}}', ["contains {{"]),
    (PAIR, LAST + "{response_a}: A or B or abstain", ["does not show both"]),
]


@each_row(("item", "text", "says"), DOUBTS)
def test_a_plan_says_what_is_missing_in_a_prompt(
    item: Evidence, text: str, says: list[str]
) -> None:
    rubric = OPTIONS if item.responses else RUBRIC
    doubts = [*read_template(text).doubts(Pool((item,)), rubric)]
    assert len(doubts) == len(says), doubts
    assert all(start in doubt for start, doubt in zip(says, doubts, strict=True)), doubts


def test_a_plan_says_which_items_lack_a_part_that_is_shown() -> None:
    bare = replace(ITEM, fields={"output": "Fine."})
    text = LAST + COMPLETE + " {reference}"
    assert [*read_template(text).doubts(Pool((ITEM, bare)), RUBRIC)] == [
        "{reference} is empty for 1 of 2 items"
    ]


def test_a_rubric_that_is_yet_to_be_written_must_be_shown() -> None:
    [doubt] = read_template(LAST + "{text} or abstain").doubts(Pool((TEXT,)), None)
    assert "shows neither {rubric} nor {labels}" in doubt
