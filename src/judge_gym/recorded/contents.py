"""What an importer reads of a log, row by row, until it is a recording for each question."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from sys import getsizeof
from typing import Any

import pandas as pd

from judge_gym.analysis.frames import NAMES_APART, TEXT
from judge_gym.axes import FOREIGN
from judge_gym.errors import DesignError
from judge_gym.recorded.recording import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    LabelScale,
    Recording,
    complete_columns,
)

Value = bool | float | str | None
"""A verdict or a label as a log writes it, numbers finite; None for none."""
MOST_TEXT = 128 * 2**20
"""The bytes of texts, prompts and answers that are kept of one log."""
MOST_ROWS = 300_000
"""The items, verdicts and labels that are kept of one log."""
MOST_QUESTIONS = 200
"""The questions of one log."""
MOST_LABELS = 20
"""With more different words than these, words are comments rather than labels."""
CUT = 0.5
"""Where scores between 0 and 1 are cut into two labels, if the tool does not say where."""
BELOW, ABOVE = f"below {CUT}", f"{CUT} or more"
_SCALES = (
    ("fail", "pass"),
    ("false", "true"),
    ("incorrect", "correct"),
    ("no", "yes"),
    ("i", "c"),
    ("i", "p", "c"),
)
"""Scales whose order is known, from the lowest label; a log may not show all of their labels."""
_NUMBERS = ("length", "usd", "seconds", "score", "judge.temperature", "judge.max_tokens")
_LEVEL = 80
"""The characters of a level of a knob; a longer text is shortened and ends with its digest."""


def messages_json(messages: Iterable[tuple[str, str]]) -> str:
    """Writes a prompt, given as roles and texts, as verdicts have it."""
    listed = [{"role": role, "content": text} for role, text in messages]
    return json.dumps(listed, ensure_ascii=False)


def as_text(value: Any) -> str:
    """Returns a text as it is, and anything else as JSON; nothing as no text."""
    if isinstance(value, str):
        # JSON may hold halves of characters, which nothing can store.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if type(value) is int:  # as JSON has it, too, but sooner
        return str(value)
    return "" if value is None else as_text(json.dumps(value, ensure_ascii=False))


def as_number(value: Any) -> float | None:
    """Returns a number, also one that is written as text; of anything else, None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_value(value: Any) -> Value:
    """Returns a verdict or label; what is neither flag, number nor text is none."""
    return value if isinstance(value, bool | str) else as_number(value)


@dataclass(slots=True)
class _Item:
    case: str
    system: tuple[str, ...]
    columns: dict[str, Any]


class _Rows:
    """Rows by column, which take a fifth of the memory of rows as dictionaries."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, row: Mapping[str, Any]) -> None:
        for name in row:
            if name not in self.columns:
                self.columns[name] = [None] * self._count
        for name, column in self.columns.items():
            column.append(row.get(name))
        self._count += 1


@dataclass(slots=True)
class _Question:
    verdicts: _Rows = field(default_factory=_Rows)
    labels: list[tuple[str, int, str, Value]] = field(default_factory=list)
    truths: dict[int, Value] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class LogContents:
    """The items of a log, and the verdicts and labels about them by question."""

    def __init__(self, source: str, format: str) -> None:
        self.source = source
        self._format = format
        self._items: list[_Item] = []
        self._numbers: dict[tuple[str, tuple[str, ...], str], int] = {}
        self._questions: dict[str, _Question] = {}
        self._skipped: Counter[str] = Counter()
        self._notes: list[str] = []
        self._bytes = 0
        self._rows = 0

    def add_item(
        self, case: str, output: str = "", system: tuple[str, ...] = (), **columns: Any
    ) -> int:
        """Adds what was judged, unless it is known, and returns its number.

        Args:
            case: the user's id of the input; several systems, or one asked again, may answer it.
            output: the text that was judged. Different outputs of one case are different items.
            system: what wrote the output, such as a model and a prompt.
            **columns: further columns of the item: `title`, which names the case if it is the only
                one of this title, and fields such as `input`.
        """
        system = tuple(map(_level, system))
        key = (case, system, output)
        if key not in self._numbers:
            self._numbers[key] = len(self._items)
            fields = {name: value for name, value in columns.items() if value}
            self._items.append(_Item(case, system, {"text": output, **fields}))
            self.count(case, output, *fields.values())
        return self._numbers[key]

    def add_verdict(
        self,
        question: str,
        item: int,
        judge: str,
        value: Value,
        knobs: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> None:
        """Adds a verdict; without a value, its status is `parse_failed` unless one is given."""
        value = _cleaned(value)
        status = "parse_failed" if value is None else "scored"
        levels = {
            name: _level(level) if name.startswith(FOREIGN) else level
            for name, level in (knobs or {}).items()
            if level is not None
        }
        row = {"judge": judge, "item": item, "value": value, "status": status, **columns, **levels}
        self._question(question).verdicts.add(row)
        self.count(*columns.values())

    def add_label(self, question: str, item: int, rater: str, value: Value, time: str = "") -> None:
        """Adds a person's label; of several by one person, that of the latest time counts."""
        if (value := _cleaned(value)) is not None:
            self._question(question).labels.append((time, item, rater, value))
            self.count(rater)

    def set_truth(self, question: str, item: int, value: Value) -> None:
        """Sets the right label of an item."""
        self._question(question).truths[item] = _cleaned(value)

    def note(self, sentence: str) -> None:
        """Says once what was taken for granted."""
        if sentence not in self._notes:
            self._notes.append(sentence)

    def skip(self, what: str) -> None:
        """Counts something that is left out, such as `samples without a score`."""
        several = len(self._skipped) >= MOST_QUESTIONS and what not in self._skipped
        self._skipped["other entries" if several else what] += 1

    def count(self, *values: Any) -> None:
        """Counts what is kept for a row, and refuses more than there is room for."""
        self._rows += 1
        self._bytes += sum(getsizeof(value) for value in values if isinstance(value, str))
        if self._bytes > MOST_TEXT:
            raise DesignError(
                f"the log holds over {MOST_TEXT // 2**20} MB of text; import a part of it at a time"
            )
        if self._rows > MOST_ROWS:
            raise DesignError(
                f"the log holds over {MOST_ROWS:,} items, verdicts and labels; import a part of it "
                "at a time"
            )

    def recordings(
        self, criteria: Mapping[str, tuple[str, ...]] | None = None
    ) -> Sequence[Recording]:
        """Makes a recording of each question that has verdicts; `criteria` say what labels mean."""
        judged = {name: part for name, part in self._questions.items() if part.verdicts}
        for name in sorted(self._questions.keys() - judged.keys()):
            self.note(f"{name} has labels of people, but no verdict; it is left out.")
        cases = self._case_names()
        names = self._item_names(cases)
        made, problems = [], []
        for name, part in judged.items():
            try:
                scale, labels, sentence = _scale(name, part)
            except _NoScale as problem:
                problems.append(str(problem))
                continue
            if sentence:
                part.notes.append(sentence)
            made.append(self._recording(name, part, cases, names, scale, labels, criteria or {}))
        if not made:
            reasons = [*problems, *self._left_out()]
            raise DesignError(
                f"{self.source} has no verdicts that can be read"
                + (": " + " ".join(reasons[:5]) if reasons else "")
            )
        general = (*self._notes, *problems, *self._left_out())
        return [replace(each, notes=(*each.notes, *general)) for each in made]

    def _recording(
        self,
        name: str,
        part: _Question,
        cases: Mapping[str, str],
        names: Sequence[str],
        scale: LabelScale,
        labels: Mapping[Value, str],
        criteria: Mapping[str, tuple[str, ...]],
    ) -> Recording:
        columns = part.verdicts.columns
        columns["label"] = [labels.get(value, "") for value in columns.pop("value")]
        judged = columns["item"]
        columns["item"] = [names[number] for number in judged]
        verdicts = _frame(columns)
        setup = ["judge", "item", *(column for column in verdicts if "." in str(column))]
        verdicts["repeat"] = verdicts.groupby(setup, dropna=False, sort=False).cumcount()
        given = sorted(part.labels, key=lambda label: label[0])
        people = {(item, rater): labels[value] for _, item, rater, value in given}
        if overwritten := len(part.labels) - len(people):
            part.notes.append(
                f"{overwritten} labels were given again by the same person; the latest counts."
            )
        unknown = [value for value in part.truths.values() if value not in labels]
        if unknown:
            part.notes.append(f"{len(unknown)} true values are no label of {name}.")
        used = sorted({*judged, *(item for item, _ in people)})
        truths = {item: labels.get(value, "") for item, value in part.truths.items()}
        return Recording(
            source=self.source,
            format=self._format,
            question=name,
            scale=scale,
            items=self._item_frame(used, cases, names, truths),
            verdicts=complete_columns(verdicts, VERDICT_COLUMNS),
            labels=complete_columns(
                pd.DataFrame(
                    [(names[item], rater, label) for (item, rater), label in people.items()],
                    columns=[*LABEL_COLUMNS],
                ),
                LABEL_COLUMNS,
            ),
            notes=tuple(part.notes),
            criteria={label: criteria[label] for label in scale.labels if label in criteria},
        )

    def _item_frame(
        self,
        numbers: Sequence[int],
        cases: Mapping[str, str],
        names: Sequence[str],
        truths: Mapping[int, str],
    ) -> pd.DataFrame:
        rows = _Rows()
        for number in numbers:
            item = self._items[number]
            rows.add(
                {
                    "item": names[number],
                    "title": names[number],
                    "truth": truths.get(number, ""),
                    "cluster": cases[item.case],
                    "length": len(item.columns["text"]) or None,
                    "system": ", ".join(part for part in item.system if part),
                    **item.columns,
                }
            )
        frame = _frame(rows.columns)
        if frame["cluster"].is_unique:
            frame["cluster"] = ""
        if frame["system"].nunique() == 1:
            system = frame["system"].iloc[0]
            frame = frame.drop(columns="system") if not system else frame
        return complete_columns(frame, ITEM_COLUMNS)

    def _item_names(self, cases: Mapping[str, str]) -> list[str]:
        """Names each item by its case, and by what tells it from others of the same case."""
        parts = list(zip(*(item.system for item in self._items), strict=False))
        varying = [index for index, values in enumerate(parts) if len(set(values)) > 1]
        sizes = Counter(item.case for item in self._items)
        names: dict[str, None] = {}
        outputs: Counter[str] = Counter()
        for item in self._items:
            name = base = cases[item.case]
            if sizes[item.case] > 1:
                name = base = ", ".join([name, *(item.system[index] for index in varying)])
            while name in names:
                outputs[base] += 1
                name = f"{base} (output {outputs[base] + 1})"
            names[name] = None
        return list(names)

    def _case_names(self) -> dict[str, str]:
        titles = {item.case: item.columns.get("title", "") for item in self._items}
        unique = all(titles.values()) and len(set(titles.values())) == len(titles)
        return titles if unique else {case: case for case in titles}

    def _left_out(self) -> list[str]:
        return [f"Left out: {what} ({count})." for what, count in self._skipped.items()]

    def _question(self, name: str) -> _Question:
        name = as_text(name)
        if name not in self._questions:
            if len(self._questions) == MOST_QUESTIONS:
                raise DesignError(
                    f"the log holds over {MOST_QUESTIONS} questions, such as {name!r}"
                )
            self._questions[name] = _Question()
        return self._questions[name]


class _NoScale(Exception):
    """Values from which no labels can be made."""


def _scale(name: str, part: _Question) -> tuple[LabelScale, Mapping[Value, str], str]:
    """Returns the scale of a question, the label of each value, and what it takes for granted."""
    values = {*part.verdicts.columns["value"], *(value for *_, value in part.labels)}
    values.discard(None)
    words = {value for value in values if isinstance(value, str)}
    numbers = {value for value in values if isinstance(value, float)}
    if not values:
        raise _NoScale(f"{name} has no value.")
    if not words:
        return _scale_of_numbers(name, numbers)
    if not numbers:
        return _scale_of_words(name, part, words)
    if words <= {"false", "true"} and numbers <= {0.0, 1.0}:
        flags: dict[Value, str] = {"false": "false", "true": "true", 0.0: "false", 1.0: "true"}
        return _ordered_scale(("false", "true")), flags, ""
    raise DesignError(
        f"values of {name} are of two kinds, words and numbers: {min(words)!r} and {min(numbers):g}"
    )


def _scale_of_words(
    name: str, part: _Question, words: set[str]
) -> tuple[LabelScale, Mapping[Value, str], str]:
    for ordered in _SCALES:
        if {word.lower() for word in words} <= set(ordered):
            spelled = {word.lower(): word for word in sorted(words)}
            capital = all(word.isupper() for word in words)
            labels = tuple(spelled.get(word, word.upper() if capital else word) for word in ordered)
            meaning: dict[Value, str] = {word: spelled[word.lower()] for word in words}
            merged = len(spelled) < len(words)
            sentence = f"Spellings of {name} are read as one: {', '.join(sorted(words))}."
            return _ordered_scale(labels), meaning, sentence if merged else ""
    if len(words) == 1:
        [word] = words
        return _single_scale(name, word, word)
    if len(words) > MOST_LABELS:
        raise _NoScale(f"{name} has {len(words)} different words, which are no labels.")
    scores: dict[str, set[float]] = {word: set() for word in words}
    columns = part.verdicts.columns
    for value, score in zip(columns["value"], columns.get("score", ()), strict=False):
        if value is not None and score is not None:
            scores[value].add(score)
    same: dict[Value, str] = {word: word for word in words}
    distinct = {score for each in scores.values() for score in each}
    if all(len(each) == 1 for each in scores.values()) and len(distinct) == len(words) > 1:
        labels = tuple(sorted(words, key=lambda word: min(scores[word])))
        sentence = f"The labels of {name} are ordered by their scores: {', '.join(labels)}."
        return _ordered_scale(labels), same, sentence
    scale = LabelScale("binary" if len(words) == 2 else "nominal", tuple(sorted(words)))
    return scale, same, ""


def _single_scale(
    name: str, value: Value, label: str
) -> tuple[LabelScale, Mapping[Value, str], str]:
    """Returns a scale where all values are the same, for a scale has two labels at least."""
    labels = (f"not {label}", label)
    sentence = f"{name} has one value, {label}; what else there is, is called {labels[0]}."
    return LabelScale("binary", labels, label), {value: label}, sentence


def _ordered_scale(labels: tuple[str, ...]) -> LabelScale:
    if len(labels) == 2:
        return LabelScale("binary", labels, labels[1])
    return LabelScale("ordinal", labels)


def _scale_of_numbers(
    name: str, numbers: set[float]
) -> tuple[LabelScale, Mapping[Value, str], str]:
    low, high = min(numbers), max(numbers)
    if numbers <= {0.0, 1.0}:
        return LabelScale("binary", ("0", "1"), "1"), {0.0: "0", 1.0: "1"}, ""
    if low == high and low.is_integer():
        return _single_scale(name, low, str(int(low)))
    if all(number.is_integer() for number in numbers) and high - low <= 10:
        steps = [float(step) for step in range(int(low), int(high) + 1)]
    elif numbers <= {0.0, 0.5, 1.0}:
        steps = [0.0, 0.5, 1.0]
    elif 0 <= low and high <= 1:
        meaning: dict[Value, str] = {number: BELOW if number < CUT else ABOVE for number in numbers}
        sentence = (
            f"{name} has scores from {low:g} to {high:g} without a threshold; they are cut at "
            f"{CUT}, and the scores themselves are kept in the column score."
        )
        return LabelScale("binary", (BELOW, ABOVE), ABOVE), meaning, sentence
    else:
        raise _NoScale(
            f"{name} has {len(numbers)} different scores from {low:g} to {high:g} and no "
            "threshold; import them as a table, with --score."
        )
    labels: dict[Value, str] = {
        step: str(int(step)) if step.is_integer() else f"{step:g}" for step in steps
    }
    sentence = f"The scale of {name} is taken to end where its values do, at {low:g} and {high:g}."
    return LabelScale("ordinal", tuple(labels.values())), labels, sentence


def _cleaned(value: Value) -> Value:
    """Writes flags and words in one way; an empty word, and not a number, are none."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return float(value)
        case str():
            return as_text(value).replace(NAMES_APART, ", ").strip() or None
        case _:
            return None


def _level(value: Any) -> str:
    """Writes a level of a knob; a long text by its beginning and digest."""
    text = as_text(value)
    if len(text) <= _LEVEL:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{' '.join(text[:_LEVEL].split())}… ({digest})"


def _frame(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    """Makes a frame of columns of numbers and of texts, which are not copied."""
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=float)
            if name in _NUMBERS
            else pd.array(["" if value is None else value for value in values], dtype=TEXT)
            for name, values in columns.items()
        }
    )
