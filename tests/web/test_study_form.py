"""What is entered into the form of a new study becomes a study file, and says what is missing."""

from typing import Any

import pytest
import yaml

from judge_gym.studies import read_study
from judge_gym.web.study_form import StudyForm

TABLE = "reply,ann\nThank you for it.,good\nNo idea.,bad\nRead it.,bad\n"
BASE = [("samples", "3"), ("seed", "0"), ("study", "mine"), ("probe", "true")]
FILLED = [
    *BASE,
    ("source", "paste"),
    ("texts", "one\ntwo"),
    ("task.concept", "tone"),
    ("judge", "sim:balanced"),
]


def written(*fields: tuple[str, str]) -> Any:
    """The study that a form writes."""
    return read_study(StudyForm([*BASE, *fields]).text(), "")


def test_an_empty_form_says_what_each_step_lacks() -> None:
    assert StudyForm(BASE).lacking() == {
        "evidence": "texts",
        "question": "a question",
        "judges": "a judge",
    }
    assert StudyForm(FILLED).lacking() == {}


@pytest.mark.parametrize("text", ["yes", "null", "4", "a: b # c", 'say "x"', "–", "a\\b"])
def test_any_text_stays_the_text_that_it_is(text: str) -> None:
    study = written(*FILLED[4:6], ("task.concept", text), ("judge", "sim:balanced"))
    assert study.tasks[0].concept == text


@pytest.mark.parametrize(
    ("turned", "scale", "kind"),
    [
        (False, "", "nominal"),  # as the table shows: two words without an order
        (False, "ordered", "list"),
        (True, "", "list"),  # the user put them in order
        (True, "nominal", "nominal"),
    ],
)
def test_labels_become_a_scale_or_options(turned: bool, scale: str, kind: str) -> None:
    table = TABLE.replace("good", "red").replace("bad", "blue")
    fields = [("texts", table), ("header", "reply,ann"), ("accept", "true"), ("scale", scale)]
    fields += [("role:reply", "text"), ("role:ann", "person")]
    proposed = StudyForm([*BASE, *fields]).propose_stages().splitlines()
    assert sorted(proposed) == ["blue", "red"]
    stages = "\n".join(reversed(proposed) if turned else proposed)
    form = StudyForm([*BASE, *fields, ("task.concept", "tone"), ("task.stages", stages)])
    [task] = yaml.safe_load(form.text())["tasks"]
    found = "list" if isinstance(task["rubric"], list) else task["rubric"]["kind"]
    assert found == kind


def test_what_was_said_about_one_table_is_not_said_of_another() -> None:
    said = [("role:reply", "text"), ("role:ann", ""), ("header", "reply,ann")]
    assert StudyForm([("texts", TABLE), *said]).pasted.raters == []
    other = TABLE.replace("reply,ann", "reply,bo")
    assert StudyForm([("texts", other), *said, ("accept", "true")]).pasted.raters == ["bo"]


def test_each_line_knows_its_step() -> None:
    fields = [("base:rubric.scale", "99"), ("budget.usd", "2")]
    form = StudyForm([*FILLED, *fields])
    steps = {line.text.strip().partition(":")[0]: line.step for line in form.lines()}
    assert steps["rubric.scale"] == "vary" and steps["budget"] == "review"
    assert steps["tasks"] == "question" and steps["judges"] == "judges"
    for number, line in enumerate(form.lines(), 1):
        assert form.step_of(number) == line.step
    assert form.step_of(0) == form.step_of(1000) == ""


def test_a_file_changed_by_hand_counts_in_place_of_the_form() -> None:
    form = StudyForm([*FILLED, ("edited", "true"), ("yaml", "study: x\n")])
    assert form.text() == "study: x\n" and form.step_of(1) == ""


def test_names_are_proposed_until_the_user_writes_one() -> None:
    form = StudyForm(FILLED)
    assert form.propose_name([]) == "tone"
    assert form.propose_name(["tone", "tone-2"]) == "tone-3"
    assert not form.followed("study"), "the user named it"
    assert StudyForm([("study", "tone"), ("proposed:study", "tone")]).followed("study")


def test_an_assistant_is_no_judge_and_of_the_first_judges_provider() -> None:
    models = {"sim": {"missing": None, "ids": {"sim:balanced": ""}, "assistants": ["sim:editor"]}}
    assert StudyForm(FILLED).propose_assistant(models) == "sim:editor"
    assert StudyForm(BASE).propose_assistant(models) == ""


def test_a_key_that_is_not_set_is_named() -> None:
    models = {"openai": {"missing": "OPENAI_API_KEY"}}
    assert StudyForm(FILLED).missing_key(models) == ""
    missing = StudyForm([("judges", "openai:gpt-5.2")]).missing_key(models)
    assert missing.startswith("OPENAI_API_KEY is not set, so openai cannot be called")
