from collections import Counter

import pytest

from judge_gym.errors import DesignError
from judge_gym.recorded.options import FileOptions
from judge_gym.recorded.recording import LabelScale
from judge_gym.recorded.scales import ScaleReading, read_scale

NOTHING: Counter[str] = Counter()


def read(
    *values: str,
    labels: tuple[str, ...] = (),
    truths: tuple[str, ...] = (),
    options: FileOptions = FileOptions(),  # noqa: B008 (frozen)
    paired: bool = False,
) -> ScaleReading:
    """Reads a scale on which each value is the verdict of ten items."""
    verdicts = Counter({value: 10 for value in values})
    return read_scale(verdicts, Counter(labels), Counter(truths), options, paired=paired)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (("pass", "fail"), LabelScale("binary", ("fail", "pass"), "pass")),
        (("No", "Yes"), LabelScale("binary", ("No", "Yes"), "Yes")),
        (("true", "false"), LabelScale("binary", ("false", "true"), "true")),
        (("harmless", "harmful"), LabelScale("binary", ("harmless", "harmful"), "harmful")),
        (("0", "1"), LabelScale("binary", ("0", "1"), "1")),
        (("1",), LabelScale("binary", ("0", "1"), "1")),
        (("1.0", "5.0", "3"), LabelScale("ordinal", ("1", "2", "3", "4", "5"))),
        (("0", "4", "2"), LabelScale("ordinal", ("0", "1", "2", "3", "4"))),
        (("10", "9", "1"), LabelScale("ordinal", tuple(str(n) for n in range(1, 11)))),
        (("-1", "1"), LabelScale("ordinal", ("-1", "0", "1"))),
        (("1.5", "2", "3"), LabelScale("ordinal", ("1.5", "2", "2.5", "3"))),
        (("billing", "refund", "Other"), LabelScale("nominal", ("billing", "Other", "refund"))),
    ],
)
def test_the_scale_follows_from_the_values(values: tuple[str, ...], scale: LabelScale) -> None:
    reading = read(*values)
    assert reading.scale == scale
    assert reading.questions == ()
    assert not reading.problems


def test_neither_of_two_unknown_words_is_taken_as_positive() -> None:
    assert read("cat", "dog").scale.positive is None
    assert read("cat", "dog", options=FileOptions(positive="Cat")).scale.positive == "cat"
    assert read("1", "2").scale.positive is None, "a code, not a word"
    with pytest.raises(DesignError, match="unknown label 'bird'"):
        read("cat", "dog", options=FileOptions(positive="bird"))
    assert not read("cat", "dog").scale.ordered, "the alphabet is no order"


def test_one_of_more_than_two_labels_cannot_be_positive() -> None:
    for values in (("1", "2", "5"), ("billing", "refund", "other")):
        reading = read(*values, options=FileOptions(positive=values[0]))
        assert "--positive is of two labels" in reading.problems[""]


def test_an_order_of_words_is_asked_about() -> None:
    reading = read("high", "low", "mid")
    assert reading.scale == LabelScale("ordinal", ("low", "mid", "high"))
    assert [question.option for question in reading.questions] == ["--order low,mid,high"]
    without = read("high", "low", "mid", options=FileOptions(order=("none",)))
    assert without.scale == LabelScale("nominal", ("high", "low", "mid"))
    own = read("mid", "low", "high", options=FileOptions(order=("high", "mid", "low")))
    assert own.scale == LabelScale("ordinal", ("high", "mid", "low"))
    assert (without.questions, own.questions) == ((), ())


def test_a_declared_order_must_name_every_label() -> None:
    reading = read("low", "mid", "high", options=FileOptions(order=("low", "high")))
    assert "'mid' is not in --order low,high" in reading.problems["mid"]


def test_spellings_are_merged_with_a_word_of_the_user() -> None:
    reading = read_scale(
        Counter({"helpful": 40, "HELPFUL": 2, "Helpfull": 1, "unhelpful": 20, "n/a": 3, "-": 1}),
        NOTHING,
        NOTHING,
        FileOptions(),
    )
    assert reading.scale.labels == ("unhelpful", "helpful")
    assert reading.meanings["HELPFUL"] == reading.meanings["Helpfull"] == "helpful"
    assert reading.meanings["n/a"] == reading.meanings["-"] == ""
    assert {question.option for question in reading.questions} == {
        *("--missing n/a", "--missing -", "--same HELPFUL=helpful", "--same Helpfull=helpful"),
    }


def test_what_the_user_says_about_values_is_not_asked() -> None:
    options = FileOptions(same={"Helpfull": "helpful", "n/a": "unhelpful"}, missing=("SKIP",))
    values = Counter({"helpful": 9, "Helpfull": 1, "n/a": 1, "unhelpful": 5, "skip": 2})
    reading = read_scale(values, NOTHING, NOTHING, options)
    assert reading.questions == ()
    assert reading.meanings["n/a"] == "unhelpful"
    assert reading.meanings["skip"] == ""
    with pytest.raises(DesignError, match="unknown value 'Unhelpfull'"):
        read_scale(values, NOTHING, NOTHING, FileOptions(same={"Unhelpfull": "unhelpful"}))


def test_different_words_that_look_alike_are_not_merged() -> None:
    assert read("typical", "atypical").questions == ()
    assert read("safe", "unsafe").questions == ()
    assert read("good", "gold").questions == (), "as frequent as each other"


def test_numbers_beside_words_are_joined_by_their_positive_one() -> None:
    reading = read("0", "1", labels=("pass", "fail"))
    assert reading.scale == LabelScale("binary", ("fail", "pass"), "pass")
    assert (reading.meanings["1"], reading.meanings["0"]) == ("pass", "fail")
    assert [question.text for question in reading.questions] == ["0 = fail, 1 = pass?"]


def test_numbers_and_words_of_one_scale_are_a_problem() -> None:
    reading = read("1", "2", "3", "great")
    assert "mix numbers (1, 2, 3) and words (great)" in reading.problems["great"]


def test_many_different_numbers_need_a_comparison() -> None:
    reading = read(*(str(number / 100) for number in range(0, 100, 3)))
    assert "--score" in next(iter(reading.problems.values()))


def test_a_known_answer_is_a_label_or_a_problem() -> None:
    assert read("pass", "fail", truths=("pass",)).problems == {}
    reading = read("pass", "fail", truths=("Bogus",))
    assert "'Bogus' is none of fail, pass" in reading.problems["Bogus"]
    assert read("1", "3", truths=("5",)).scale.labels == ("1", "2", "3", "4", "5")
    assert read(truths=("a", "b", "c")).scale.labels == ("a", "b", "c")


def test_a_known_answer_that_no_verdict_has_is_asked_about() -> None:
    reading = read("x", "y", "z", truths=("other",))
    assert reading.scale.labels == ("other", "x", "y", "z")
    assert "'other' is a known answer alone" in reading.questions[0].text


def test_labels_of_pairs_begin_with_the_first_response() -> None:
    scale = read("tie", "model_b", "model_a", paired=True).scale
    assert scale == LabelScale("nominal", ("model_a", "model_b", "tie"))


def test_accepting_leaves_no_question() -> None:
    reading = read("low", "mid", "high", "n/a", options=FileOptions(accept=True))
    assert reading.questions == ()
    assert reading.scale.labels == ("low", "mid", "high")


def test_spellings_that_differ_by_case_get_one_style() -> None:
    reading = read("positive", "negative", truths=("Positive",) * 30 + ("Negative",) * 4)
    assert reading.scale.labels in (("negative", "positive"), ("Negative", "Positive"))
    small = read("PASS", "FAIL", labels=("pass",) * 10 + ("fail",) * 10)
    assert small.scale == LabelScale("binary", ("fail", "pass"), "pass")


def test_a_column_of_scores_beside_words_is_named_with_its_option() -> None:
    values = Counter({str(number): 5 for number in range(1, 11)})
    labels = Counter({"pass": 9, "fail": 9})
    reading = read_scale(values, labels, NOTHING, FileOptions(), scores=["quality"])
    assert [*reading.problems] == [""], "no single value is wrong"
    assert "--score 'quality>=NUMBER'" in reading.problems[""]
    assert "(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) in quality" in reading.problems[""]
