"""LLM-Rubric's evaluations: probabilities of answers to questions, and people's answers.

A folder has a table of a model's evaluations (a text, a question, the sampled answer, and the
probability of each answer) and a table of people's answers, with a column for each question
(Hashemi et al. 2024, ACL). Each question is a recording of its own.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_gym.errors import DesignError
from judge_gym.recorded.documents import read_head, read_table, shorten
from judge_gym.recorded.recording import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    LabelScale,
    Recording,
    complete_columns,
)

ABOUT = "LLM-Rubric: a folder with a model's evaluations and people's answers (two TSV files)"
READ = "foreign.read"
"""How the verdict was read: the most probable answer, or the one that was sampled."""
ARGMAX, SAMPLED = "argmax", "sampled"
LEAST_MASS = 0.9
"""Answers whose probabilities sum to less are unreadable: the model mostly wrote something else."""
TEXT, QUESTION, SAMPLE, RATER = "text_id", "criterion", "sample_llm", "annotator_id"
PROBABILITY = re.compile(r"answer(\d{1,2})_prob")
NAME = re.compile(r"_(?:real|synth)\w*\Z|_evaluations?\w*\Z", re.I)
"""What follows the model's name in the name of its file."""


class Errors(NamedTuple):
    """Root mean squared errors against people's answers to a question."""

    argmax: float
    """Of the most probable answer."""
    expected: float
    """Of the expected answer, which is no label."""
    constant: float
    """Of the constant that fits best, people's mean: what knows nothing about the texts gets."""
    n: int
    """The number of people's answers."""


class _Tables(NamedTuple):
    model: str
    labels: tuple[str, ...]
    evaluations: pd.DataFrame
    people: pd.DataFrame
    questions: tuple[str, ...]
    left_out: tuple[str, ...]


def detect(path: Path) -> bool:
    """Whether a path is one of the two tables, or a folder with both."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir() or not (path.is_dir() or _kind(path)):
        return False
    files = islice(sorted(folder.glob("*.tsv")), 20)
    return {_kind(file) for file in files} >= {"evaluations", "people"}


def _kind(path: Path) -> str:
    """Names the table that a file holds by its header; empty if it is none of the two."""
    header = read_head(path).partition("\n")[0].rstrip("\r").split("\t")
    if {TEXT, QUESTION, SAMPLE} <= {*header} and any(map(PROBABILITY.fullmatch, header)):
        return "evaluations"
    return "people" if {TEXT, RATER} <= {*header} else ""


def read(path: Path) -> Sequence[Recording]:
    """Reads both tables as one recording for each question that people answered too."""
    tables = _read_tables(path)
    return [_recording(tables, question, path) for question in tables.questions]


def probability_errors(path: Path) -> dict[str, Errors]:
    """Computes, for each question, the errors of the most probable and of the expected answer."""
    tables = _read_tables(path)
    errors = {question: _errors(tables, question) for question in tables.questions}
    return {question: of for question, of in errors.items() if of is not None}


# --- the two tables ------------------------------------------------------------------------------


def _read_tables(path: Path) -> _Tables:
    folder = path if path.is_dir() else path.parent
    files: dict[str, list[Path]] = {"evaluations": [], "people": [], "": []}
    for file in sorted(folder.glob("*.tsv")):
        files[_kind(file)].append(file)
    for kind in ("evaluations", "people"):
        if len(files[kind]) != 1:
            names = ", ".join(file.name for file in files[kind]) or "none"
            raise DesignError(f"{folder} needs one table of {kind}, and has {names}; {ABOUT}")
    [evaluated], [answered] = files["evaluations"], files["people"]
    header, rows = read_table(evaluated)
    numbers = [int(match[1]) for name in header if (match := PROBABILITY.fullmatch(name))]
    if numbers != [*range(1, len(numbers) + 1)] or not 2 <= len(numbers) <= 26:
        raise DesignError(f"{evaluated}: the answers are {numbers}; they are numbered 1, 2, ...")
    labels = tuple(map(str, numbers))
    evaluations = _evaluations(rows, labels, evaluated)
    columns, answers = read_table(answered)
    criteria = list(dict.fromkeys(evaluations[QUESTION]))
    questions = tuple(name for name in criteria if name in columns)
    if not questions:
        raise DesignError(f"{answered} has no column for any of {', '.join(criteria[:5])}")
    _check_ids(answers, answered)
    unused = {*columns} - {*questions, TEXT, RATER, "dialogue_system"}
    left_out = (*(name for name in criteria if name not in columns), *sorted(unused))
    people = pd.DataFrame(answers, columns=columns)
    model = NAME.sub("", evaluated.stem)
    return _Tables(NAME.sub("", model), labels, evaluations, people, questions, left_out)


def _evaluations(rows: list[dict[str, str]], labels: Sequence[str], path: Path) -> pd.DataFrame:
    """Checks the probabilities; those of a row without any are not numbers."""
    if not rows:
        raise DesignError(f"{path} has no evaluations")
    names = [f"answer{label}_prob" for label in labels]
    seen: dict[tuple[str, str], int] = {}
    table = []
    for number, row in enumerate(rows, 2):
        where = f"{path}:{number}"
        if not row[TEXT] or not row[QUESTION]:
            raise DesignError(f"{where}: {TEXT} and {QUESTION} are needed")
        key = (row[TEXT], row[QUESTION])
        if (first := seen.setdefault(key, number)) != number:
            raise DesignError(f"{where}: {row[QUESTION]} of {row[TEXT]} is on line {first} already")
        values = [_probability(row[name], name, where) for name in names]
        table.append({**{name: row[name] for name in (TEXT, QUESTION, SAMPLE)}, "p": values})
    return pd.DataFrame(table)


def _probability(cell: str, name: str, where: str) -> float:
    if not cell.strip():
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1.000001:
        raise DesignError(f"{where}: {name} is a probability, not {shorten(cell)}")
    return value


def _check_ids(answers: list[dict[str, str]], path: Path) -> None:
    if not answers:
        raise DesignError(f"{path} has no answers")
    for number, row in enumerate(answers, 2):
        if not row[TEXT] or not row[RATER]:
            raise DesignError(f"{path}:{number}: {TEXT} and {RATER} are needed")


# --- one question --------------------------------------------------------------------------------


def _recording(tables: _Tables, question: str, path: Path) -> Recording:
    labels, ignored, repeated = _labels(tables, question)
    texts = list(dict.fromkeys([*_rows_of(tables, question)[TEXT], *labels["item"]]))
    notes = []
    if ignored:
        notes.append(
            f"People's cells that are none of the answers {tables.labels[0]} to "
            f"{tables.labels[-1]} (0 stands for a question that does not apply), and no labels: "
            f"{ignored}."
        )
    if repeated:
        notes.append(
            f"Answers that repeat a person's answer to a text, of which the first counts: "
            f"{repeated}."
        )
    if tables.left_out:
        notes.append(f"Columns and questions without a counterpart: {', '.join(tables.left_out)}.")
    if (errors := _errors(tables, question)) is not None:
        notes.append(
            f"Root mean squared error against {errors.n} answers of people: {errors.argmax:.3f} "
            f"of the most probable answer, {errors.expected:.3f} of the expected one, and "
            f"{errors.constant:.3f} of the best constant."
        )
    notes.append("The texts themselves are not in these files.")
    return Recording(
        source=path.resolve().name,
        format="llm-rubric",
        question=question,
        scale=LabelScale("ordinal" if len(tables.labels) > 2 else "binary", tables.labels),
        items=complete_columns(pd.DataFrame({"item": texts}), ITEM_COLUMNS),
        verdicts=complete_columns(pd.DataFrame([*_verdicts(tables, question)]), VERDICT_COLUMNS),
        labels=labels,
        notes=tuple(notes),
    )


def _rows_of(tables: _Tables, question: str) -> pd.DataFrame:
    return tables.evaluations[tables.evaluations[QUESTION] == question]


def _verdicts(tables: _Tables, question: str) -> Iterator[dict[str, object]]:
    """Yields for each text the most probable answer, and the sampled one."""
    for row in _rows_of(tables, question).itertuples(index=False):
        values = np.array(row.p)
        readable = bool(np.isfinite(values).all() and values.sum() >= LEAST_MASS)
        text = ", ".join(
            f"{label}: {p:.4f}" for label, p in zip(tables.labels, values, strict=True)
        )
        best = tables.labels[int(values.argmax())] if readable else ""
        sample = _answer(str(getattr(row, SAMPLE)), tables.labels)
        for how, label, answer in ((ARGMAX, best, text), (SAMPLED, sample, getattr(row, SAMPLE))):
            yield {
                "judge": tables.model,
                "item": getattr(row, TEXT),
                "status": "scored" if label else "parse_failed",
                "label": label,
                "answer": answer,
                READ: how,
            }


def _answer(cell: str, labels: Sequence[str]) -> str:
    """Returns the answer that a cell names, such as 3 or 3.0; empty if it names none."""
    cell = cell.strip()
    cell = cell.removesuffix(".0")
    return cell if cell in labels else ""


def _labels(tables: _Tables, question: str) -> tuple[pd.DataFrame, int, int]:
    """Returns people's labels, and how many cells are none and how many repeat a person's."""
    people = tables.people
    labels = pd.DataFrame(
        {
            "item": people[TEXT],
            "rater": people[RATER],
            "label": [_answer(str(cell), tables.labels) for cell in people[question]],
        }
    )
    valid = labels[labels["label"] != ""]
    once = valid.drop_duplicates(["item", "rater"])
    ignored, repeated = len(labels) - len(valid), len(valid) - len(once)
    return complete_columns(once, LABEL_COLUMNS), ignored, repeated


def _errors(tables: _Tables, question: str) -> Errors | None:
    """Compares with every answer of a person; None without a text that has both."""
    rows = _rows_of(tables, question)
    values = np.array([*rows["p"]])
    readable = np.isfinite(values).all(axis=1) & (values.sum(axis=1) >= LEAST_MASS)
    values = values[readable] / values[readable].sum(axis=1, keepdims=True)
    stages = np.arange(1, len(tables.labels) + 1)
    guesses = pd.DataFrame(
        {"item": rows[TEXT][readable], "argmax": values.argmax(axis=1) + 1, "mean": values @ stages}
    )
    labels = _labels(tables, question)[0].merge(guesses, on="item")
    if labels.empty:
        return None
    people = labels["label"].astype(int).to_numpy(dtype=float)

    def error(guess: object) -> float:
        return float(np.sqrt(np.mean((np.asarray(guess, dtype=float) - people) ** 2)))

    constant = error(people.mean())
    return Errors(error(labels["argmax"]), error(labels["mean"]), constant, len(labels))
