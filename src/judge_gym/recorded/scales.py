"""What the values of verdicts and labels mean: their scale, spellings, and words for none."""

import itertools
import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from judge_gym.errors import DesignError, unknown
from judge_gym.recorded.options import FileOptions, Question
from judge_gym.recorded.recording import LabelScale

MOST_LABELS = 26
LONGEST_LABEL = 60
RARE = 0.25
"""A word that differs by a letter is a mistake if it is at most this part as frequent."""
MISSING_WORDS = frozenset(
    (
        *("n/a", "na", "n.a.", "#n/a", "-", "--", "–", "—", "none", "null", "nan", "nil", "?"),
        *("??", "missing", "not applicable", "no label", "unlabeled", "unlabelled", "tbd"),
        *("skip", "skipped"),
    )
)
"""Words that usually stand for no label."""
POSITIVE_WORDS = (
    *("pass", "passed", "yes", "y", "true", "t", "1", "good", "correct", "right", "accept"),
    *("accepted", "acceptable", "ok", "positive", "pos", "helpful", "safe", "relevant"),
    *("faithful", "grounded", "supported", "win", "harmful", "unsafe", "toxic", "spam"),
)
"""Words for the positive one of two labels; of two that are listed, the first."""
ORDERS = tuple(
    tuple(order.split("<"))
    for order in (
        "very low<low<lower<medium low<mid<medium<moderate<medium high<higher<high<very high",
        "terrible<awful<very bad<bad<poor<weak<fair<mediocre<average<ok<okay<acceptable<decent"
        "<satisfactory<good<strong<very good<great<excellent<outstanding<perfect",
        "never<rarely<sometimes<often<usually<always",
        "strongly disagree<disagree<somewhat disagree<slightly disagree<neutral"
        "<neither agree nor disagree<slightly agree<somewhat agree<agree<strongly agree",
        "fail<partial<partial pass<pass",
        "incorrect<wrong<partially incorrect<partial<partly correct<partially correct"
        "<mostly correct<correct",
        "no<rather no<partly<partially<maybe<unsure<somewhat<rather yes<mostly<yes",
        "much worse<worse<slightly worse<same<equal<slightly better<better<much better",
        "very negative<negative<neutral<mixed<positive<very positive",
        "none<minimal<minor<mild<slight<some<moderate<major<severe<critical<extreme",
        "not helpful<unhelpful<slightly helpful<somewhat helpful<neutral<helpful<very helpful",
        "irrelevant<not relevant<slightly relevant<partially relevant<somewhat relevant<relevant"
        "<highly relevant<very relevant",
        "rude<impolite<neutral<polite<very polite",
        "safe<borderline<unsafe",
        "small<medium<large",
        "first<second<third<fourth<fifth",
    )
)
"""Words in the order that they usually have."""
PAIR_WORDS = (
    ("a", "1", "first", "left", "one", "a>b"),
    ("b", "2", "second", "right", "two", "b>a"),
    ("tie", "a=b", "[[c]]", "both", "equal", "draw", "same", "neither", "c", "0"),
)
"""Words for the first response, the second, and neither."""
RESPONSE_NAME = re.compile(
    r"(?:response|model|output|answer|assistant|candidate|option|system|text|reply)[\s_.-]*(\w+)"
)
"""The name of a response, which ends in a word for its place: `model_a`, `Response 1`."""
COMPARISON = re.compile(
    r"\s*(?P<name>.*?[^\s<>=])\s*(?P<sign>>=|<=|==|>|<)\s*(?P<number>-?\d+(\.\d+)?)\s*"
)
LEADING_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)\s*[^\d.\s].*")


class Comparison(NamedTuple):
    """A comparison that makes two labels of a column of numbers."""

    column: str
    sign: str
    number: float

    def holds(self, value: float) -> bool:
        """Whether a number fulfils it."""
        match self.sign:
            case ">=":
                return value >= self.number
            case "<=":
                return value <= self.number
            case ">":
                return value > self.number
            case "<":
                return value < self.number
        return value == self.number


def read_comparisons(text: str | None) -> tuple[Comparison, ...]:
    """Reads comparisons such as `score>=4`, several separated by commas.

    >>> [part.number for part in read_comparisons("gpt>=7, ann>3")]
    [7.0, 3.0]
    """
    found = []
    for part in (text or "").split(",") if text else ():
        match = COMPARISON.fullmatch(part)
        if not match:
            raise DesignError(
                f"--score {part.strip()!r} is no comparison; write --score 'score>=4'"
            )
        found.append(Comparison(match["name"], match["sign"], float(match["number"])))
    return tuple(found)


def as_number(text: str) -> float | None:
    """Returns the number that a text is, if it is one.

    >>> as_number("4.0"), as_number("nan"), as_number("four")
    (4.0, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def number_word(number: float) -> str:
    """Returns a number as a label: 2.0 becomes 2."""
    return str(int(number)) if number == int(number) else repr(number)


@dataclass(frozen=True)
class ScaleReading:
    """A scale, and what each value as written means on it."""

    scale: LabelScale
    meanings: Mapping[str, str]
    """The label of each value; empty for no label."""
    questions: tuple[Question, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    """Values that cannot be read, and why; what is wrong with all of them stands under none."""
    notes: tuple[str, ...] = ()


@dataclass
class _Findings:
    """What is gathered while values are read."""

    meanings: dict[str, str]
    scores: Sequence[str] = ()
    """The columns whose values are numbers."""
    questions: list[Question] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_scale(
    verdicts: Counter[str],
    labels: Counter[str],
    truths: Counter[str],
    options: FileOptions,
    *,
    paired: bool = False,
    scores: Sequence[str] = (),
) -> ScaleReading:
    """Finds the scale that verdicts and labels share, and what each of their values means.

    The counts are of values as they are written. A known answer must be a label of the scale; it
    makes one only if there are no verdicts and labels, or if it is a further option or number.
    `scores` are the columns whose values are numbers, which messages name.
    """
    counts = verdicts + labels
    every = counts + truths
    found = _Findings({value: value for value in every}, scores)
    _apply_words(found, every, options)
    _propose_missing(found, every, options)
    _join_polarities(found, verdicts, labels, truths, options)
    _write_numbers_alike(found)
    _propose_spellings(found, every, options)
    used = _labels_of(found, counts or truths)
    scale = _scale(found, used, _labels_of(found, truths), options, paired=paired)
    if options.positive is not None and scale.kind != "binary":
        found.problems[""] = (
            f"--positive is of two labels, and here are {len(scale.labels)} "
            f"({_some(', '.join(scale.labels))}); make two of numbers with {_score_option(found)}, "
            "or of words with --same WORD=LABEL"
        )
    for value in truths:
        label = found.meanings[value]
        if label and label not in scale.labels and value not in found.problems:
            listed = ", ".join(scale.labels)
            found.problems[value] = (
                f"the known answer {value!r} is none of {listed}; say what it means with --same "
                f"'{value}=LABEL', or --missing '{value}'"
            )
    return ScaleReading(
        scale,
        found.meanings,
        () if options.accept else tuple(found.questions),
        found.problems,
        tuple(found.notes),
    )


def _labels_of(found: _Findings, values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(label for value in values if (label := found.meanings[value])))


def _apply_words(found: _Findings, values: Collection[str], options: FileOptions) -> None:
    """Applies what the user says about spellings and missing words."""
    known = {value.casefold(): value for value in values}
    for spelling, label in options.same.items():
        value = spelling if spelling in values else known.get(spelling.casefold())
        if value is None:
            raise DesignError(unknown("value", spelling, sorted(values)[:20], "--same"))
        found.meanings[value] = label
    missing = {word.casefold() for word in options.missing}
    for value in values:
        if value.casefold() in missing:
            found.meanings[value] = ""


def _propose_missing(found: _Findings, counts: Counter[str], options: FileOptions) -> None:
    for value, label in found.meanings.items():
        named = {*options.same, *options.same.values(), *options.order}
        if label and value.casefold() in MISSING_WORDS and value not in named:
            found.meanings[value] = ""
            found.questions.append(
                Question(
                    f"{value!r} ({_times(counts[value])}) means no label?",
                    f"--missing {shlex.quote(value)}",
                )
            )


def _join_polarities(
    found: _Findings,
    verdicts: Counter[str],
    labels: Counter[str],
    truths: Counter[str],
    options: FileOptions,
) -> None:
    """Proposes what 1 and 0 mean beside fail and pass: the positive word of each is the same."""
    lead = labels or verdicts or truths
    words = _labels_of(found, lead)
    if len({_folded(word) for word in words}) != 2:
        return
    for others in (verdicts, labels, truths):
        theirs = _labels_of(found, others)
        if others is lead or len({_folded(word) for word in theirs}) != 2:
            continue
        if {_folded(word) for word in words} & {_folded(word) for word in theirs}:
            continue
        mine, other = positive_of(words), positive_of(theirs)
        if mine is None or other is None:
            continue
        negative = next(word for word in words if _folded(word) != _folded(mine))
        pairs = {word: mine if _folded(word) == _folded(other) else negative for word in theirs}
        for value in others:
            label = found.meanings[value]
            if label:
                found.meanings[value] = pairs[label]
        shown = ", ".join(f"{value} = {label}" for value, label in pairs.items())
        option = " ".join(
            f"--same {shlex.quote(f'{value}={label}')}" for value, label in pairs.items()
        )
        found.questions.append(Question(f"{shown}?", option))


def _write_numbers_alike(found: _Findings) -> None:
    """Writes the same number alike: 2.0 and 2."""
    for value, label in found.meanings.items():
        number = as_number(label) if label else None
        if number is not None:
            found.meanings[value] = number_word(number)


def _propose_spellings(found: _Findings, counts: Counter[str], options: FileOptions) -> None:
    """Proposes to merge labels that differ by case, or words that differ by a letter."""
    totals: Counter[str] = Counter()
    for value, label in found.meanings.items():
        if label:
            totals[label] += counts[value]
    named = {
        *options.same.values(),
        *options.order,
        *([options.positive] if options.positive else []),
    }
    spelled = _usual_spellings(totals, named)
    words: Counter[str] = Counter()
    for label, number in totals.items():
        words[spelled[label]] += number
    kept: list[str] = []
    target: dict[str, str] = {}
    for word in sorted(words, key=lambda word: (word not in named, -words[word], word)):
        same = next((other for other in kept if _same_word(word, other)), None)
        if word in named or same is None or words[word] > RARE * words[same]:
            kept.append(word)
            target[word] = word
        else:
            target[word] = same
    for label in sorted(totals, key=lambda label: (-totals[label], label)):
        same = target[spelled[label]]
        if label == same or label in named:
            continue
        how = "case" if _folded(label) == _folded(same) else "a letter"
        found.questions.append(
            Question(
                f"{label!r} ({_times(totals[label])}) and {same!r} ({_times(totals[same])}) "
                f"differ by {how}: the same label?",
                f"--same {shlex.quote(f'{label}={same}')}",
            )
        )
        for value, meaning in found.meanings.items():
            if meaning == label:
                found.meanings[value] = same


def _usual_spellings(totals: Counter[str], named: Collection[str]) -> dict[str, str]:
    """Returns the spelling for each label; of those that differ by case, in one style for all."""
    spellings: dict[str, list[str]] = {}
    for label in totals:
        spellings.setdefault(_folded(label), []).append(label)
    styles: Counter[str] = Counter()
    for labels in spellings.values():
        if len(labels) > 1:
            for label in labels:
                styles[_style(label)] += totals[label]

    def rank(label: str) -> tuple[bool, int, str, int, str]:
        style = _style(label)
        return (label not in named, -styles[style], style, -totals[label], label)

    return {
        label: label if label in named else min(labels, key=rank)
        for labels in spellings.values()
        for label in labels
    }


def _style(label: str) -> str:
    """Returns how a label is written; of equally frequent styles, the first by name is taken."""
    if label == label.lower():
        return "1 small"
    return "3 capital" if label == label.upper() else "2 title"


def _folded(word: str) -> str:
    return " ".join(word.casefold().split())


def _same_word(word: str, other: str) -> bool:
    """Whether two labels differ by case or spaces only, or by a letter that may be a mistake.

    >>> _same_word("HELPFUL", "helpful"), _same_word("Helpfull", "helpful")
    (True, True)
    >>> _same_word("typical", "atypical"), _same_word("A", "B"), _same_word("low", "mid")
    (False, False, False)
    """
    first, second = _folded(word), _folded(other)
    if first == second:
        return True
    short, long = sorted((first, second), key=len)
    longer = len(long) - len(short)
    if len(short) < 4 - longer or not short.isalpha() or short[0] != long[0] or longer > 1:
        return False
    start = next((n for n in range(len(short)) if short[n] != long[n]), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    swapped = short[start : start + 2] == long[start : start + 2][::-1]
    return short[start + 1 :] == long[start + 1 :] or (
        swapped and short[start + 2 :] == long[start + 2 :]
    )


def positive_of(labels: Sequence[str]) -> str | None:
    """Returns the label that usually is the positive one of two, if any.

    >>> positive_of(["fail", "pass"]), positive_of(["No", "Yes"]), positive_of(["cat", "dog"])
    ('pass', 'Yes', None)
    """
    words = {_folded(label): label for label in labels}
    return next((words[word] for word in POSITIVE_WORDS if word in words), None)


def _scale(
    found: _Findings,
    labels: list[str],
    truths: list[str],
    options: FileOptions,
    *,
    paired: bool,
) -> LabelScale:
    """Makes the scale of the labels that are used."""
    numbers = [as_number(label) for label in labels]
    if options.order and options.order != ("none",):
        return _declared(found, labels, options)
    further = [label for label in truths if label not in labels]
    if paired:
        return LabelScale("nominal", _pair_order([*labels, *further]))
    if labels and None not in numbers:
        extra = [label for label in further if as_number(label) is not None]
        return _numeric(found, [*labels, *extra], options)
    if any(number is not None for number in numbers):
        words = [label for label, n in zip(labels, numbers, strict=True) if n is None]
        digits = sorted((label for label in labels if label not in words), key=float)
        where = f" in {', '.join(found.scores)}" if found.scores else ""
        mixed = (
            f"the values mix numbers ({_some(', '.join(digits))}){where} and words "
            f"({_some(', '.join(words))})"
        )
        if found.scores:  # whole columns are numbers, others are words
            found.problems[""] = f"{mixed}; make labels of the numbers with {_score_option(found)}"
        else:
            fewer = words if len(words) <= len(labels) / 2 else digits
            problem = (
                f"{mixed}; say what the words mean with --same WORD=NUMBER or "
                f"--missing WORD, or make labels of the numbers with {_score_option(found)}"
            )
            values = (value for value in found.meanings if found.meanings[value] in fewer)
            found.problems |= dict.fromkeys(values, problem)
    if len(labels) > 2 and further:
        for label in further:
            found.questions.append(
                Question(
                    f"{label!r} is a known answer alone: a label of its own?",
                    f"--same {shlex.quote(f'{label}={label}')}",
                )
            )
        labels = [*labels, *further]
    if len(labels) > MOST_LABELS:
        found.problems[""] = (
            f"there are {len(labels)} different labels ({_some(', '.join(labels))}), and a scale "
            f"has {MOST_LABELS} at most"
        )
    if len(labels) <= 2:
        return _binary(found, labels, options, positive_of(labels))
    return _words(found, labels, options)


def _score_option(found: _Findings) -> str:
    comparisons = ",".join(f"{column}>=NUMBER" for column in found.scores or ["COLUMN"])
    return f"--score {shlex.quote(comparisons)}"


def _declared(found: _Findings, labels: list[str], options: FileOptions) -> LabelScale:
    """Makes the scale of the order that the user declares."""
    order = [*options.order]
    by_fold = {_folded(word): word for word in order}
    for value, label in found.meanings.items():
        if label and label not in order and _folded(label) in by_fold:
            found.meanings[value] = by_fold[_folded(label)]
    for value, label in found.meanings.items():
        if label and label not in order:
            found.problems[value] = f"{value!r} is not in --order {','.join(order)}"
    if len(order) == 2:
        positive = options.positive or order[1]
        return LabelScale("binary", tuple(order), positive)
    return LabelScale("ordinal", tuple(order))


def _binary(
    found: _Findings, labels: list[str], options: FileOptions, proposed: str | None
) -> LabelScale:
    """Makes a scale of two labels, of which the positive one is declared or proposed."""
    positive = proposed
    if options.positive is not None:
        same = [label for label in labels if _folded(label) == _folded(options.positive)]
        if not same and len(labels) != 1:
            message = unknown("label", options.positive, labels, "--positive")
            raise DesignError(message, choices=labels)
        positive = same[0] if same else options.positive
        labels = labels if same else [*labels, positive]
    if positive is None and len(labels) == 2:
        found.notes.append(
            f"Which of {labels[0]} and {labels[1]} is the positive label is not known: "
            f"--positive {shlex.quote(labels[0])} adds the rates of each."
        )
    ordered = sorted(labels, key=lambda label: label == positive)
    return LabelScale("binary", tuple(ordered), positive)


def _numeric(found: _Findings, labels: list[str], options: FileOptions) -> LabelScale:
    """Makes a scale of numbers, with those between that nobody used."""
    values = sorted({float(label) for label in labels})
    words = [number_word(value) for value in values]
    if words in (["0", "1"], ["0"], ["1"]):
        return _binary(found, ["0", "1"], options, "1")
    if options.positive is not None and len(words) == 2:
        return _binary(found, words, options, None)
    steps = {round(after - before, 6) for before, after in itertools.pairwise(values)}
    step = 1.0 if all(value == int(value) for value in values) else min(steps, default=1.0)
    count = (values[-1] - values[0]) / step + 1
    regular = all(abs((value - values[0]) / step % 1) < 1e-6 for value in values)
    if not regular or count > MOST_LABELS:
        found.problems[""] = (
            f"the values are {len(values)} different numbers from {words[0]} to {words[-1]}; make "
            f"labels of them with {_score_option(found)}"
        )
        return LabelScale("ordinal", tuple(words[:MOST_LABELS]))
    whole = [number_word(round(values[0] + step * place, 6)) for place in range(round(count))]
    unused = [word for word in whole if word not in words]
    if unused:
        found.notes.append(
            f"Nobody used {', '.join(unused)}, which the scale {whole[0]} to {whole[-1]} has."
        )
    if len(whole) == 2:
        return _binary(found, whole, options, None)
    return LabelScale("ordinal", tuple(whole))


def _words(found: _Findings, labels: list[str], options: FileOptions) -> LabelScale:
    if options.order == ("none",):
        return LabelScale("nominal", tuple(sorted(labels, key=_folded)))
    order = usual_order(labels)
    if order:
        shown = " < ".join(order)
        found.questions.append(
            Question(
                f"The labels in this order: {shown}?",
                f"--order {shlex.quote(','.join(order))}",
                "--order none: they have no order",
            )
        )
        return LabelScale("ordinal", tuple(order))
    named = sorted(labels, key=_folded)
    found.notes.append(
        f"The labels ({', '.join(named)}) were taken without an order; --order LOWEST,...,HIGHEST "
        "makes them a scale."
    )
    return LabelScale("nominal", tuple(named))


def usual_order(labels: Sequence[str]) -> list[str]:
    """Returns words in the order that they usually have, if they have one.

    >>> usual_order(["good", "bad", "ok"]), usual_order(["5 - great", "1 - bad", "3 - fair"])
    (['bad', 'ok', 'good'], ['1 - bad', '3 - fair', '5 - great'])
    >>> usual_order(["billing", "refund", "other"])
    []
    """
    numbered = [LEADING_NUMBER.fullmatch(label) for label in labels]
    numbers = [float(match[1]) for match in numbered if match]
    if len(set(numbers)) == len(labels):
        return [label for _, label in sorted(zip(numbers, labels, strict=True))]
    words = {re.sub(r"[\s_-]+", " ", label.casefold()).strip(): label for label in labels}
    for order in ORDERS:
        if set(words) <= set(order):
            return [words[word] for word in order if word in words]
    return []


def _pair_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Returns the labels of a pair: the first response, the second, then others.

    A response that nobody prefers has a label too, so that places keep their meaning.

    >>> _pair_order(["tie", "model_b"]), _pair_order(["old", "new"])
    (('model_a', 'model_b', 'tie'), ('new', 'old'))
    """
    last = len(PAIR_WORDS)
    places = {label: pair_place(label) for label in labels}
    if None not in places.values():
        for place in {0, 1} - {*places.values()}:
            other = next((label for label, number in places.items() if number == 1 - place), "")
            places[_counterpart(other, place)] = place

    def rank(label: str) -> tuple[int, str]:
        number = places[label]
        return last if number is None else number, _folded(label)

    return tuple(sorted(places, key=rank))


def _counterpart(label: str, place: int) -> str:
    """Returns the label of a response, like that of the other one; by its place without one.

    >>> _counterpart("Model_B", 0), _counterpart("2", 0), _counterpart("", 1)
    ('Model_A', '1', 'second')
    """
    for word, other in zip(PAIR_WORDS[1 - place], PAIR_WORDS[place], strict=True):
        match = re.fullmatch(rf"(.*[\W_])?{re.escape(word)}(\]\])?", label, re.IGNORECASE)
        if match:
            start = match[1] or ""
            end = other.upper() if label[len(start)].isupper() else other
            return f"{start}{end}{match[2] or ''}"
    return ("first", "second")[place]


def pair_place(label: str) -> int | None:
    """Returns 0 for a label of the first response, 1 of the second, 2 of neither.

    >>> [pair_place(label) for label in ("A", "[[B]]", "model_b", "Response 1", "Tie", "unclear")]
    [0, 1, 1, 0, 2, None]
    """
    word = _folded(label)
    place = next((n for n, words in enumerate(PAIR_WORDS) if word in words), None)
    if place is not None:
        return place
    match = RESPONSE_NAME.fullmatch(word) or re.fullmatch(r"\[\[(\w)\]\]", word)
    marks = PAIR_WORDS[:2]
    return next((n for n, words in enumerate(marks) if match and match[1] in words), None)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _some(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
