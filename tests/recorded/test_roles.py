from collections.abc import Mapping

import pandas as pd
import pytest

from judge_gym.recorded.options import FileOptions
from judge_gym.recorded.roles import Layout, find_layout
from judge_gym.recorded.tables import read_table

N = 40
TEXTS = [f"The reply number {n} says what to do." for n in range(N)]
VERDICTS = ["pass" if n % 3 else "fail" for n in range(N)]
SPARSE = [("pass" if n % 2 else "fail") if n % 3 == 0 else "" for n in range(N)]
NUMBERS = [f"T{n}" for n in range(N)]


def find(columns: Mapping[str, object], **options: object) -> Layout:
    table = read_table(pd.DataFrame(columns))
    return find_layout(table, FileOptions(**options))  # type: ignore[arg-type]  # by name


def uncertain(layout: Layout) -> set[str]:
    return {role.column for role in layout.roles if not role.certain}


def test_columns_without_telling_names_are_told_by_their_values() -> None:
    layout = find({"ticket": NUMBERS, "body": TEXTS, "v1": VERDICTS, "mk": SPARSE, "jd": SPARSE})
    assert (layout.item, layout.text) == ("ticket", "body")
    assert set(layout.raters) == {"mk", "jd"}, "few rows have their labels"
    assert set(layout.judges) == {"v1"}
    assert uncertain(layout) == set()


def test_two_sparse_columns_alone_are_people() -> None:
    layout = find({"body": TEXTS, "one": SPARSE, "two": SPARSE})
    assert (set(layout.raters), layout.judges, uncertain(layout)) == ({"one", "two"}, {}, set())


def test_two_full_columns_may_be_judges_or_people() -> None:
    layout = find({"body": TEXTS, "ann": VERDICTS, "bob": VERDICTS})
    assert set(layout.judges) == uncertain(layout) == {"ann", "bob"}
    said = find({"body": TEXTS, "ann": VERDICTS, "bob": VERDICTS}, people=("ann", "bob"))
    assert (set(said.raters), uncertain(said)) == ({"ann", "bob"}, set())


def test_a_sparse_column_with_the_name_of_a_model_is_asked_about() -> None:
    assert "gpt" in uncertain(find({"body": TEXTS, "haiku": VERDICTS, "gpt": SPARSE}))


@pytest.mark.parametrize("name", ["human", "gold_label", "Annotator1", "expert", "rater_2"])
def test_a_full_column_with_the_name_of_a_person_is_a_person(name: str) -> None:
    layout = find({"id": NUMBERS, "body": TEXTS, "gpt": VERDICTS, name: VERDICTS})
    assert (set(layout.judges), set(layout.raters)) == ({"gpt"}, {name})
    assert uncertain(layout) == set()


def test_columns_that_are_no_labels_are_left_out() -> None:
    topics = ["billing" if n % 2 else "refund" for n in range(N)]
    days = [f"2026-01-{1 + n % 28:02}" for n in range(N)]
    layout = find({"id": NUMBERS, "gpt": VERDICTS, "topic_": topics, "day": days})
    assert set(layout.judges) == {"gpt"}
    assert {"day"} <= set(layout.unused)


def test_numbered_columns_are_repeats_of_a_judge() -> None:
    layout = find({"id": NUMBERS, "gpt_1": VERDICTS, "gpt_2": VERDICTS, "ann": SPARSE})
    assert layout.judges == {"gpt_1": ("gpt", 0), "gpt_2": ("gpt", 1)}


@pytest.mark.parametrize("names", [("llama_2", "llama_3"), ("gpt_4", "gpt_5")])
def test_numbers_of_a_version_are_no_repeats(names: tuple[str, str]) -> None:
    layout = find({"id": NUMBERS, names[0]: VERDICTS, names[1]: VERDICTS, "human": SPARSE})
    assert [judge for judge, _ in layout.judges.values()] == list(names)


def test_numbered_judges_are_asked_about_and_numbered_raters_are_people() -> None:
    columns = {"judge_1": VERDICTS, "judge_2": VERDICTS, "rater_1": VERDICTS, "rater_2": VERDICTS}
    layout = find({"id": NUMBERS, **columns})
    assert {judge for judge, _ in layout.judges.values()} == {"judge_1", "judge_2"}
    assert uncertain(layout) == {"judge_1", "judge_2"}
    assert set(layout.raters) == {"rater_1", "rater_2"}
    said = find({"id": NUMBERS, **columns}, judges=("judge",))
    assert set(said.judges.values()) == {("judge", 0), ("judge", 1)}


LONG = {
    "ref": [number for number in NUMBERS for _ in range(2)],
    "who": ["gpt", "haiku"] * N,
    "verdict": [verdict for verdict in VERDICTS for _ in range(2)],
}


def test_a_long_table_names_who_judged() -> None:
    columns = {"ref": LONG["ref"], "judge": LONG["who"], "verdict": LONG["verdict"]}
    layout = find(columns)
    assert (layout.item, layout.who, layout.verdict) == ("ref", "judge", "verdict")
    assert (layout.people, layout.judges) == (frozenset(), {})
    assert find(LONG, judges=("who",)).who == "who"


def test_a_persons_column_beside_a_long_table_is_the_same_for_an_item() -> None:
    human = [label for label in SPARSE for _ in range(2)]
    columns = {"ref": LONG["ref"], "judge": LONG["who"], "verdict": LONG["verdict"]}
    layout = find({**columns, "human": human})
    assert (layout.verdict, set(layout.raters)) == ("verdict", {"human"})


def test_people_and_judges_in_one_column_are_told_by_name_and_asked_about() -> None:
    columns = {"ref": LONG["ref"], "annotator": ["gpt-5", "mia"] * N, "label": LONG["verdict"]}
    layout = find(columns)
    assert (layout.who, layout.people) == ("annotator", frozenset({"mia"}))
    assert uncertain(layout) == {"annotator"}
    said = find(columns, people=("mia",))
    assert (said.people, uncertain(said)) == (frozenset({"mia"}), set())


def test_a_version_whose_texts_differ_is_a_system_and_a_prompt_is_a_setting() -> None:
    ref, verdict = LONG["ref"], LONG["verdict"]
    version = ["v1", "v2"] * N
    same = [text for text in TEXTS for _ in range(2)]
    other = [text + version[n] for n, text in enumerate(same)]
    system = find({"ref": ref, "version": version, "reply": other, "gpt": verdict})
    assert (system.item, system.system, system.knobs) == ("ref", "version", {})
    setting = find({"ref": ref, "prompt": version, "reply": same, "gpt": verdict})
    assert (setting.system, setting.knobs) == (None, {"prompt": "foreign.prompt"})


def test_prices_times_lengths_reasons_and_clusters_are_found() -> None:
    layout = find(
        {
            "id": NUMBERS,
            "gpt": VERDICTS,
            "reasoning": TEXTS,
            "cost_usd": [n / 1000 for n in range(N)],
            "latency": [n / 10 for n in range(N)],
            "n_tokens": range(N),
            "conversation_id": [f"c{n // 4}" for n in range(N)],
        }
    )
    assert (layout.usd, layout.seconds, layout.length) == ("cost_usd", "latency", "n_tokens")
    assert (layout.rationale, layout.cluster, layout.text) == ("reasoning", "conversation_id", None)


def test_texts_of_a_pair_are_found_by_their_names() -> None:
    columns = {"prompt": TEXTS, "answer_a": TEXTS[::-1], "answer_b": TEXTS, "winner": VERDICTS}
    layout = find(columns)
    assert (layout.text, layout.responses) == ("prompt", ("answer_a", "answer_b"))


def test_two_texts_without_a_telling_name_are_asked_about() -> None:
    layout = find({"alpha": TEXTS, "beta": TEXTS[::-1], "gpt": VERDICTS})
    assert uncertain(layout) == {layout.text}
    assert find({"alpha": TEXTS, "output": TEXTS[::-1], "gpt": VERDICTS}).text == "output"


def test_an_unknown_column_is_a_problem_with_the_choices() -> None:
    layout = find({"id": NUMBERS, "gpt": VERDICTS}, item="ref", people=("ann",))
    assert len(layout.problems) == 2
    assert "choose 'id' or 'gpt'" in layout.problems[0]


def test_names_of_writers_questions_and_ids_are_not_taken_for_labels() -> None:
    writer = find({"id": NUMBERS, "response_model": ["gpt-4o"] * N, "label": VERDICTS})
    assert (writer.who, set(writer.raters)) == (None, {"label"})
    raters = find({"id": NUMBERS, "annotator_id": [n % 5 for n in range(N)], "gpt": VERDICTS})
    assert "annotator_id" in raters.unused
    pairs = find({"answer1": TEXTS, "answer2": TEXTS[::-1], "label": ["A>B", "B>A"] * (N // 2)})
    assert pairs.responses == ("answer1", "answer2")


def test_a_column_that_alone_tells_rows_apart_is_asked_about() -> None:
    criteria = ["clarity", "tone"] * N
    layout = find({"ref": LONG["ref"], "criterion": criteria, "gpt": LONG["verdict"]})
    assert layout.knobs == {"criterion": "foreign.criterion"}
    assert uncertain(layout) == {"criterion"}


def test_numbered_columns_of_unknown_meaning_are_asked_about() -> None:
    layout = find({"id": NUMBERS, "q1": VERDICTS, "q2": VERDICTS[::-1], "human": SPARSE})
    assert uncertain(layout) == {"q1", "q2"}


def test_one_label_for_all_judges_may_be_a_persons() -> None:
    columns = {"ref": LONG["ref"], "judge": LONG["who"]}
    assert uncertain(find({**columns, "label": LONG["verdict"]})) == {"label"}
    different = ["pass" if n % 5 else "fail" for n in range(2 * N)]
    assert uncertain(find({**columns, "label": different})) == set()


def test_columns_that_the_user_names_are_all_of_their_kind() -> None:
    columns = {"id": NUMBERS, "gpt": VERDICTS, "haiku": VERDICTS, "mk": SPARSE, "jd": SPARSE}
    layout = find(columns, judges=("haiku",), people=("mk",))
    assert (set(layout.judges), set(layout.raters)) == ({"haiku"}, {"mk"})
    assert {"gpt", "jd"} <= set(layout.unused)


@pytest.mark.parametrize("name", ["gpt_run{}", "GPT run {}", "gptTrial{}"])
def test_columns_of_runs_are_repeats_of_their_judge(name: str) -> None:
    columns = {name.format(n): VERDICTS for n in (1, 2, 3)}
    layout = find({"id": NUMBERS, **columns, "human": SPARSE})
    judges = {judge.lower() for judge, _ in layout.judges.values()}
    assert (judges, len(layout.judges), uncertain(layout)) == ({"gpt"}, 3, set())
    numbers = find({"id": NUMBERS, "gpt": VERDICTS, "run": [1, 2] * (N // 2), "human": SPARSE})
    assert (set(numbers.judges), "run" in numbers.unused) == ({"gpt"}, True)


def test_a_model_whose_texts_differ_wrote_them() -> None:
    texts = [f"{text} {model}" for text in TEXTS for model in ("old", "new")]
    columns = {"question": LONG["ref"], "model": ["gpt-4", "llama"] * N, "reply": texts}
    layout = find({**columns, "judge_score": LONG["verdict"], "human": LONG["verdict"]})
    assert (layout.system, layout.who, layout.item) == ("model", None, "question")
    assert (set(layout.judges), set(layout.raters)) == ({"judge_score"}, {"human"})
    one = find({"id": NUMBERS, "reply": TEXTS, "model": ["gpt-4"] * N, "prediction": VERDICTS})
    assert (one.who, one.verdict) == ("model", "prediction"), "it names the one judge"


def test_a_conversation_of_several_texts_is_a_cluster_and_no_item() -> None:
    conversation = [f"c{n // 3}" for n in range(N)]
    columns = {"conversation_id": conversation, "turn": range(N), "text": TEXTS}
    layout = find({**columns, "gpt": VERDICTS, "human": SPARSE})
    assert (layout.item, layout.cluster) == ("turn", "conversation_id")
    long = {"conversation_id": LONG["ref"], "judge": LONG["who"], "verdict": LONG["verdict"]}
    assert find(long).item == "conversation_id", "one verdict of each judge on each"


@pytest.mark.parametrize("name", ["expected", "y_true", "target", "expected_label", "Ground Truth"])
def test_a_known_answer_is_told_by_its_name_and_labels(name: str) -> None:
    layout = find({"id": NUMBERS, "body": TEXTS, name: VERDICTS, "actual": VERDICTS})
    assert (layout.truth, set(layout.judges), uncertain(layout)) == (name, {"actual"}, set())
    assert find({"id": NUMBERS, "reference": TEXTS, "gpt": VERDICTS}).truth is None


def test_full_columns_beside_a_judge_may_be_peoples() -> None:
    raters = {"R1": VERDICTS, "R2": VERDICTS[::-1], "R3": VERDICTS}
    layout = find({"id": NUMBERS, "body": TEXTS, "LLM": VERDICTS, **raters})
    assert (set(layout.judges), set(layout.raters)) == ({"LLM"}, set(raters))
    assert uncertain(layout) == set(raters)


def test_numbers_of_a_judge_beside_words_of_a_person_are_found() -> None:
    words = ["yes" if verdict == "pass" else "no" for verdict in VERDICTS]
    numbers = [int(verdict == "pass") for verdict in VERDICTS]
    layout = find({"id": NUMBERS, "body": TEXTS, "auto": numbers, "human": words})
    assert (set(layout.judges), set(layout.raters)) == ({"auto"}, {"human"})


def test_labels_of_a_wide_judge_beside_a_row_for_each_person() -> None:
    who = ["mia", "jo"] * N
    columns = {"ref": LONG["ref"], "annotator": who, "label": LONG["verdict"]}
    layout = find({**columns, "gpt": LONG["verdict"]})
    assert (layout.people, layout.verdict) == (frozenset({"mia", "jo"}), "label")
    assert (set(layout.judges), uncertain(layout)) == ({"gpt"}, set())


def test_a_column_of_unknown_words_that_the_user_names_holds_labels() -> None:
    words = ["gut" if verdict == "pass" else "schlecht" for verdict in VERDICTS]
    numbers = [int(verdict == "pass") for verdict in VERDICTS]
    layout = find({"nr": NUMBERS, "urteil": words, "mensch": numbers}, judges=("urteil",))
    assert (layout.who, set(layout.judges)) == (None, {"urteil"})


def test_a_column_of_who_may_be_named_beside_some_of_its_names() -> None:
    columns = {"ref": LONG["ref"], "by": ["gpt-5", "mia"] * N, "label": LONG["verdict"]}
    layout = find(columns, judges=("by",), people=("mia",))
    assert (layout.who, layout.people, layout.problems) == ("by", frozenset({"mia"}), [])


def test_what_columns_may_be_is_said_where_none_has_verdicts() -> None:
    scores = [n / 3 for n in range(N)]
    answers = [f"It is fine, mostly.\nVERDICT: {verdict}" for verdict in VERDICTS]
    hints = find(
        {
            **{"id": NUMBERS, "body": TEXTS, "human": VERDICTS, "score": scores},
            **{"gpt": answers, "judgments": ['[{"judge": "gpt"}]'] * N},
        }
    ).hints
    assert "gpt holds whole answers" in hints[0]
    assert "judgments holds lists" in hints[1]
    assert "score holds 40 different numbers, from 0 to 13" in hints[2]
    assert "--score 'score>=NUMBER'" in hints[2]
    assert find({"id": NUMBERS, "gpt": VERDICTS, "score": scores}).hints == ()


def test_texts_of_a_pair_are_told_by_the_labels_that_name_them() -> None:
    chosen = ["links" if n % 3 else "rechts" for n in range(N)]
    texts = {"Frage": TEXTS, "Antwort links": TEXTS[::-1], "Antwort rechts": TEXTS}
    layout = find({**texts, "Urteil GPT": chosen, "human": chosen})
    assert (layout.responses, layout.text) == (("Antwort links", "Antwort rechts"), "Frage")
    other = find({**texts, "Urteil GPT": VERDICTS, "human": VERDICTS})
    assert other.responses is None


def test_truth_values_and_numbers_of_other_columns_are_no_verdicts() -> None:
    flags = [verdict == "pass" for verdict in VERDICTS]
    same = [a == b for a, b in zip(flags, flags[::-1], strict=True)]
    layout = find(
        {"id": NUMBERS, "llm_label": flags, "human_label": flags[::-1], "match": same, "vip": flags}
    )
    assert (set(layout.judges), set(layout.raters)) == ({"llm_label"}, {"human_label"})
    assert {"match", "vip"} <= set(layout.unused)
    scores = [1 + n % 5 for n in range(N)]
    rated = find({"id": NUMBERS, "gpt_score": scores, "human": scores[::-1], "turns": scores})
    assert (set(rated.judges), set(rated.raters)) == ({"gpt_score"}, {"human"})
    long = {"ref": LONG["ref"], "judge": LONG["who"], "verdict": flags * 2, "human": flags * 2}
    vip = [flag for flag in flags for _ in range(2)]
    assert set(find({**long, "human": vip, "vip": vip}).raters) == {"human"}


def test_unnamed_columns_of_truth_values_are_asked_about() -> None:
    flags = [verdict == "pass" for verdict in VERDICTS]
    layout = find({"id": NUMBERS, "alpha": flags, "beta": flags[::-1], "human": flags})
    assert uncertain(layout) == {"alpha", "beta"}
    words = find({"id": NUMBERS, "alpha": VERDICTS, "beta": VERDICTS[::-1], "human": VERDICTS})
    assert uncertain(words) == set(), "pass and fail say more than true and false"


RATED = {
    "ref": [number for number in NUMBERS for _ in range(3)][: 3 * N - 20],
    "who": (["gpt-5", "custom", "mia"] * N)[: 3 * N - 20],
    "verdict": (["pass", "fail", "pass", "pass"] * N)[: 3 * N - 20],
}
"""A long table of a model, a judge of another name, and a person, with equally many rows."""


def test_a_column_of_kinds_says_who_of_a_long_table_is_a_person() -> None:
    kinds = ["human" if who == "mia" else "llm" for who in RATED["who"]]
    layout = find({**RATED, "kind": kinds})
    assert (layout.who, layout.people, uncertain(layout)) == ("who", frozenset({"mia"}), set())
    assert "kind" not in layout.unused
    mixed = ["human" if row % 2 else "llm" for row in range(len(kinds))]
    assert find({**RATED, "kind": mixed}).people == frozenset(), "mia is of both kinds"


def test_a_name_of_a_person_in_a_long_table_is_one() -> None:
    named = {**RATED, "who": [who.replace("mia", "human 1") for who in RATED["who"]]}
    layout = find(named)
    assert (layout.people, uncertain(layout)) == (frozenset({"human 1"}), set())


def test_who_rates_fewer_items_than_a_model_is_asked_about() -> None:
    rows = [row for row in range(len(RATED["ref"])) if row % 3 == 0 or row % 9 == 2]
    sparse = {name: [values[row] for row in rows] for name, values in RATED.items()}
    layout = find(sparse)
    assert layout.people == frozenset({"mia"})
    assert [role.role for role in layout.roles if not role.certain] == ["person"], "one question"
    assert find(RATED).people == frozenset(), "all rate as many"


def test_who_is_named_by_no_option_is_neither_judge_nor_person() -> None:
    layout = find(RATED, judges=("gpt-5",), people=("mia",))
    assert (layout.people, layout.ignored) == (frozenset({"mia"}), frozenset({"custom"}))
