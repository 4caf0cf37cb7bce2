"""The items of a study as a grid: what every setup said about each, sorted, searched, filtered."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judge_gym.errors import DesignError, NotFoundError, unknown
from judge_gym.lab.cursors import read_row
from judge_gym.lab.imports import load_analysis
from judge_gym.records.responses import (
    CrossedLabels,
    ItemAnswer,
    ItemCell,
    ItemChoices,
    ItemKey,
    JudgedItem,
    JudgedItemDetail,
    RaterLabel,
    SetupAnswers,
    SetupRow,
    as_record,
    as_records,
)
from judge_gym.store import Page, Store
from judge_gym.store.items import PoolItem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from judge_gym.analysis.item_grid import ItemGrid

SORTS = ("disagreement", "people", "position")
UNKNOWN = -2
"""A stage that no item has."""
DIVIDED_LABEL = "divided"
"""What stands for a label where several were given by equally many people."""
RERUN = "/rerun/"
"""Between the tag of an experiment and the item on which its judge was asked again."""
MAX_AGE = 120.0
"""Seconds after which a grid is read again even if nothing was added: `reparse` changes verdicts
in place."""
SHARE = 20
"""A grid whose data change is kept for this many times the time that reading it took."""
SEVERAL = " or "
"""Between the names of the stages of one verdict."""
GRIDS, ORDERS = 4, 32
"""Grids that are kept, and orders of the items of each."""


@dataclass(frozen=True)
class _Setup:
    name: str
    judge: str
    knobs: Mapping[str, Any]
    tags: Sequence[str]


@dataclass(frozen=True)
class _Query:
    """Which items are listed, in which order, for which setups."""

    sort: str
    task: str | None
    status: str | None
    wrong: bool
    differs: bool
    verdict: str | None
    label: str | None
    truth: str | None
    search: str | None
    setups: tuple[int, ...]


@dataclass
class _Study:
    """The grid of a study, as it was read at one time."""

    version: tuple[int, ...]
    at: float
    setups: Sequence[_Setup]
    tasks: Sequence[str]
    experiments: Mapping[str, Mapping[str, Any]]
    """The rows of experiments, by tag."""
    task_of: Sequence[int]
    """By item; one text under two concepts is two items."""
    evidence: Sequence[int]
    ordinal: Sequence[bool]
    n_stages: Sequence[int]
    stages: Sequence[Sequence[str]]
    """The names of the stages by task; empty where each judge writes its own rubric."""
    grid: "ItemGrid"
    seconds: float = 0.0
    orders: dict[_Query, "npt.NDArray[np.int64]"] = field(default_factory=dict)
    values: dict[tuple[str, tuple[int, ...]], "npt.NDArray[np.float64]"] = field(
        default_factory=dict
    )

    @cached_property
    def items(self) -> dict[tuple[int, int], int]:
        """The number of each item, by task and evidence."""
        keys = zip(self.task_of, self.evidence, strict=True)
        return {key: number for number, key in enumerate(keys)}

    def disagreement(self, setups: tuple[int, ...]) -> "npt.NDArray[np.float64]":
        """Measures how much setups disagree on every item."""
        return self._cached_values("disagreement", setups)

    def from_people(self, setups: tuple[int, ...]) -> "npt.NDArray[np.float64]":
        """Measures how far setups' verdicts on every item are from people's labels."""
        return self._cached_values("from_people", setups)

    def _cached_values(self, name: str, setups: tuple[int, ...]) -> "npt.NDArray[np.float64]":
        if (name, setups) not in self.values:
            self.values[name, setups] = getattr(self.grid, name)(setups)
        return self.values[name, setups]

    def words(self, task: int, verdict: str) -> str:
        """Writes a verdict or a label by the names of its task's stages, where these are given.

        A status without a score keeps its name.
        """
        names = self.stages[task]
        numbers = [int(stage) for stage in verdict.split() if stage.isdigit()]
        if not numbers or max(numbers) > len(names):
            return verdict
        return SEVERAL.join(names[number - 1] for number in numbers)

    def has_stages(self, task: int, verdict: str) -> bool:
        """Whether the stages of a verdict are on the scale of a task that names them."""
        numbers = [int(stage) for stage in verdict.split() if stage.isdigit()]
        return not self.stages[task] or max(numbers, default=0) <= len(self.stages[task])

    def verdict_of(self, task: int, words: str) -> str:
        """Finds the verdict of a task that some words mean, the reverse of `words`."""
        names = self.stages[task]
        parts = [words] if words in names else words.split(SEVERAL)
        if not all(part in names for part in parts):
            return words
        return " ".join(str(names.index(part) + 1) for part in parts)


class StudyItems:
    """Reads the grids of studies, and keeps the last few while their data are the same."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._grids: dict[str, _Study] = {}
        self._lock = threading.Lock()

    def setups(self, study: str) -> Sequence[SetupRow]:
        """Lists the setups of a study."""
        return [
            {
                "setup": setup.name,
                "judge": setup.judge,
                "knobs": {**setup.knobs},
                "tags": [*setup.tags],
            }
            for setup in self._read(study).setups
        ]

    def tasks(self, study: str) -> Sequence[str]:
        """Lists the names of a study's tasks."""
        return self._read(study).tasks

    def choices(self, study: str) -> ItemChoices:
        """Lists the verdicts, labels and known answers by which items can be chosen."""
        data = self._read(study)
        grid = data.grid
        used = {
            "verdicts": grid.verdicts,
            "labels": [str(number + 1) for number in grid.labels.sum(axis=0).nonzero()[0]],
            "truths": [str(stage) for stage in sorted({*grid.truths.tolist()} - {0})],
        }
        words = {
            name: dict.fromkeys(
                data.words(task, verdict)
                for task in range(len(data.tasks))
                for verdict in verdicts
                if data.has_stages(task, verdict)
            )
            for name, verdicts in used.items()
        }
        if (grid.majority < 0).any():
            words["labels"][DIVIDED_LABEL] = None
        return as_record(ItemChoices, {name: [*chosen] for name, chosen in words.items()})

    def crossed(self, study: str, setup: str, *, truth: bool) -> CrossedLabels | None:
        """Counts the items of each usual verdict of a setup and each label of most people.

        Args:
            study: the study's name.
            setup: the setup.
            truth: count known answers in place of labels.

        Returns:
            The counts; None where tasks have different scales or nothing can be counted.
        """
        data = self._read(study)
        number = _place([entry.name for entry in data.setups], setup, "setup")
        reference = data.grid.truths if truth else data.grid.majority
        pairs = data.grid.crossed(number, reference)
        if not pairs or len({tuple(data.stages[data.task_of[item]]) for item, _ in pairs}) > 1:
            return None
        task = data.task_of[pairs[0][0]]
        scale = max(data.n_stages[item] for item, _ in pairs)
        counts = Counter((verdict, int(reference[item])) for item, verdict in pairs)
        stages = [*map(str, range(1, scale + 1))]
        off_scale = [verdict for verdict in data.grid.verdicts if verdict not in stages]
        verdicts = stages + [v for v in off_scale if any(row == v for row, _ in counts)]
        labels = [*range(1, scale + 1)]
        labels += sorted({label for _, label in counts} - {*labels})
        return {
            "setup": setup,
            "verdicts": [data.words(task, verdict) for verdict in verdicts],
            "labels": [
                DIVIDED_LABEL if label < 0 else data.words(task, str(label)) for label in labels
            ],
            "counts": [[counts[verdict, label] for label in labels] for verdict in verdicts],
            "items": len(pairs),
        }

    def labels(self, tag: str, evidence: int) -> list[RaterLabel]:
        """Lists the labels that people gave to an item of an experiment."""
        [row] = self._store.experiments.rows(tags=[tag])
        names = self._store.items.given_stages([tag]).get(tag, [])
        labels = self._store.items.labels_of(row["study"], evidence, row["concept"])
        return [{"rater": rater, "label": _label_name(stage, names)} for rater, stage in labels]

    def disagreements(self, study: str) -> dict[int, float]:
        """Measures how much the setups of a study disagree on each item that two of them judged."""
        known = self._read(study)
        values = known.disagreement(tuple(range(len(known.setups))))
        by_item: dict[int, float] = {}
        for evidence, value in zip(known.evidence, values.tolist(), strict=True):
            if value == value:  # NaN with fewer than two verdicts
                by_item[evidence] = max(value, by_item.get(evidence, 0.0))
        return by_item

    def answers_on(self, study: str, evidence: int) -> list[dict[str, Any]]:
        """Lists the first verdict of each setup on an item, in words, with what the judge wrote."""
        known = self._read(study)
        answers = []
        for (task, item_id), item in known.items.items():
            if item_id != evidence:
                continue
            for setup in self._answers(known, item, range(len(known.setups))):
                for answer in setup["samples"][:1]:
                    verdict = answer["stages"] or answer["status"]
                    answers.append(
                        {
                            "setup": setup["setup"],
                            "sample": answer["sample"],
                            "verdict": known.words(task, verdict),
                            "text": answer["text"] or "",
                        }
                    )
        return answers

    def page(self, study: str, *, after: str | None, limit: int, **query: Any) -> Page:
        """Reads items after a position in their order."""
        data = self._read(study)
        selection = _query(data, **query)
        order = self._order(study, data, selection)
        start = read_row(after) or 0
        page = order[start : start + limit]
        end = start + len(page)
        rows = self._rows(data, [int(item) for item in page], selection.setups)
        return Page(rows, str(end) if end < len(order) else None)

    def count(self, study: str, **query: Any) -> int:
        """Counts the items that a query finds."""
        data = self._read(study)
        return len(self._order(study, data, _query(data, **query)))

    def show(self, study: str, task: str, evidence: int, **query: Any) -> JudgedItemDetail:
        """Shows what every setup said about an item, and its neighbours in the order."""
        data = self._read(study)
        item = data.items.get((_place(data.tasks, task, "task"), evidence))
        if item is None:
            raise NotFoundError(f"{study} has no item {evidence} of the task {task!r}")
        selection = _query(data, **query)
        order = self._order(study, data, selection)
        [row] = self._rows(data, [item], selection.setups)
        places = (order == item).nonzero()[0]
        at = int(places[0]) if len(places) else None
        near = [at - 1, at + 1] if at is not None else [-1, -1]
        before, after = (
            self._key(data, int(order[position])) if 0 <= position < len(order) else None
            for position in near
        )
        return {
            **row,
            "position": None if at is None else at + 1,
            "found": len(order),
            "before": before,
            "after": after,
            "labels": self._labels(data, item),
            "answers": self._answers(data, item, selection.setups),
        }

    def _answers(self, known: _Study, item: int, setups: Sequence[int]) -> list[SetupAnswers]:
        """Collects the verdicts of each setup on an item with its words, and fresh ones."""
        task = known.tasks[known.task_of[item]]
        tags = [tag for tag, row in known.experiments.items() if row["task"] == task]
        evidence = known.evidence[item]
        reruns = [f"{tag}{RERUN}{evidence}" for tag in tags]
        samples = self._store.items.answers([*tags, *reruns], evidence)
        answers: list[SetupAnswers] = []
        for number in setups:
            setup = known.setups[number]
            tags_here = [tag for tag in setup.tags if tag in tags]
            fresh = {f"{tag}{RERUN}{evidence}" for tag in tags_here}
            answers.append(
                {
                    "setup": setup.name,
                    "judge": setup.judge,
                    "tags": tags_here,
                    "samples": as_records(
                        ItemAnswer, (row for row in samples if row["tag"] in tags_here)
                    ),
                    "reruns": as_records(
                        ItemAnswer, (row for row in samples if row["tag"] in fresh)
                    ),
                }
            )
        return answers

    def _labels(self, known: _Study, item: int) -> list[RaterLabel]:
        task = known.tasks[known.task_of[item]]
        tag = next(tag for tag, row in known.experiments.items() if row["task"] == task)
        return self.labels(tag, known.evidence[item])

    def _key(self, known: _Study, item: int) -> ItemKey:
        return {"task": known.tasks[known.task_of[item]], "evidence": known.evidence[item]}

    def _rows(
        self, known: _Study, items: Sequence[int], setups: tuple[int, ...]
    ) -> list[JudgedItem]:
        from judge_gym.analysis.item_grid import most_frequent

        titles = self._store.items.titles([known.evidence[item] for item in items])
        values, far = known.disagreement(setups), known.from_people(setups)
        rows: list[JudgedItem] = []
        for item in items:
            counts, evidence = known.grid.counts(item), known.evidence[item]
            cells: list[ItemCell] = [
                {
                    "setup": known.setups[setup].name,
                    "verdict": most_frequent(counts.get(setup, {})),
                    "verdicts": dict(sorted(counts.get(setup, {}).items())),
                    "mean": _mean_stage(counts.get(setup, {})) if known.ordinal[item] else None,
                }
                for setup in setups
            ]
            value, truth = float(values[item]), int(known.grid.truths[item])
            task, majority = known.task_of[item], int(known.grid.majority[item])
            given = {
                n: count for n, count in enumerate(known.grid.labels[item].tolist(), 1) if count
            }
            rows.append(
                {
                    "task": known.tasks[task],
                    "evidence": evidence,
                    "title": titles.get(evidence, ""),
                    "truth": truth or None,
                    "ordinal": known.ordinal[item],
                    "n_stages": known.n_stages[item],
                    "stages": [*known.stages[task]],
                    "disagreement": None if value != value else value,
                    "people": {known.words(task, str(n)): count for n, count in given.items()},
                    "people_mean": _mean_stage({str(n): count for n, count in given.items()})
                    if known.ordinal[item]
                    else None,
                    "majority": majority if majority > 0 else None,
                    "from_people": None if far[item] != far[item] else float(far[item]),
                    "cells": cells,
                }
            )
        return rows

    def _order(self, study: str, known: _Study, query: _Query) -> "npt.NDArray[np.int64]":
        import numpy as np

        if query in known.orders:
            return known.orders[query]
        matches = np.ones(len(known.evidence), dtype=bool)
        if query.task is not None:
            matches &= np.array(known.task_of) == _place(known.tasks, query.task, "task")
        if query.status is not None:
            matches &= known.grid.with_status(query.status, query.setups)
        if query.wrong:
            matches &= known.grid.wrong(query.setups)
        if query.differs:
            matches &= known.grid.against_people(query.setups)
        if query.verdict is not None:
            verdicts = [known.verdict_of(task, query.verdict) for task in range(len(known.tasks))]
            of_item = [verdicts[task] for task in known.task_of]
            matches &= known.grid.with_verdict(of_item, query.setups)
        if query.label is not None:
            matches &= known.grid.majority == _stages_of_items(known, query.label)
        if query.truth is not None:
            matches &= known.grid.truths == _stages_of_items(known, query.truth)
        if query.search:
            hits = self._store.items.search([*known.experiments], query.search)
            matches &= np.isin(known.evidence, [*hits])
        order = np.flatnonzero(matches)
        if query.sort != "position":
            by_people = query.sort == "people"
            values = known.from_people if by_people else known.disagreement
            value = values(query.setups)[order]
            order = order[np.argsort(-np.nan_to_num(value, nan=-1.0), kind="stable")]
        while len(known.orders) >= ORDERS:
            known.orders.pop(next(iter(known.orders)))
        known.orders[query] = order
        return order

    def _read(self, study: str) -> _Study:
        """Reads the grid of a study, again only if its data have changed."""
        with self._lock:
            data, now = self._grids.pop(study, None), time.monotonic()
            if data is not None and now - data.at > SHARE * data.seconds:
                version = self._store.studies.fingerprint(study)
                if data.version != version or now - data.at > MAX_AGE:
                    data = None
            if data is None:
                data = self._build(study)
                data.seconds = time.monotonic() - now
            self._grids[study] = data
            while len(self._grids) > GRIDS:
                self._grids.pop(next(iter(self._grids)))
            return data

    def _build(self, study: str) -> _Study:
        load_analysis()
        from judge_gym.analysis.item_grid import Cell, ItemGrid

        version = self._store.studies.fingerprint(study)
        rows = self._store.experiments.rows
        experiments = {row["tag"]: row for row in rows(study=study) or rows(tags=[study])}
        pools = self._store.items.pools({row["pool_id"] for row in experiments.values()})
        setups = _setups(experiments, pools)
        tasks = [*dict.fromkeys(row["task"] for row in experiments.values())]
        of_tag: dict[str, list[int]] = {}
        for number, setup in enumerate(setups):
            for tag in setup.tags:
                of_tag.setdefault(tag, []).append(number)
        items: dict[tuple[int, int], int] = {}
        truths: list[int] = []
        for row in experiments.values():
            task = tasks.index(row["task"])
            for evidence, truth, _ in pools.get(row["pool_id"], ()):
                number = items.setdefault((task, evidence), len(items))
                if number == len(truths):
                    truths.append(truth if isinstance(truth, int) else 0)
        stages = self._task_stages(tasks, experiments)
        scales = self._store.items.scales([*experiments])
        cells, ordinal, n_stages = [], [True] * len(items), [0] * len(items)
        for tag, rubric, evidence, verdicts in self._store.items.verdicts([*experiments]):
            index = items.get((tasks.index(experiments[tag]["task"]), evidence))
            if index is None:  # it was dropped from the pool since
                continue
            kind, scale = scales[rubric]
            ordinal[index], n_stages[index] = kind == "ordinal", max(n_stages[index], scale)
            for setup_number in of_tag.get(tag, ()):
                cells.append(Cell(index, setup_number, verdicts, scale, kind == "ordinal"))
        return _Study(
            version,
            time.monotonic(),
            setups,
            tasks,
            experiments,
            [task for task, _ in items],
            [evidence for _, evidence in items],
            ordinal,
            n_stages,
            stages,
            ItemGrid(cells, truths, self._count_labels(tasks, stages, experiments, items)),
        )

    def _task_stages(
        self, tasks: Sequence[str], experiments: Mapping[str, Mapping[str, Any]]
    ) -> list[list[str]]:
        """Names the stages of each task's rubric, none if judges write their own."""
        names = self._store.items.given_stages([*experiments])
        by_task = {row["task"]: names.get(tag, []) for tag, row in experiments.items()}
        return [by_task[task] for task in tasks]

    def _count_labels(
        self,
        tasks: Sequence[str],
        stages: Sequence[Sequence[str]],
        experiments: Mapping[str, Mapping[str, Any]],
        items: Mapping[tuple[int, int], int],
    ) -> "npt.NDArray[np.int64]":
        """Counts the people who gave each item each stage."""
        import numpy as np

        concepts = {tasks.index(row["task"]): row["concept"] for row in experiments.values()}
        pools = {row["pool_id"] for row in experiments.values()}
        study = next(iter({row["study"] for row in experiments.values()}), "")
        scales = [
            len(names) or max(_scale(row) for row in experiments.values() if row["task"] == task)
            for task, names in zip(tasks, stages, strict=True)
        ]
        counts = np.zeros((len(items), max(scales, default=0)), dtype=np.int64)
        for concept in {*concepts.values()}:
            about = [task for task in concepts if concepts[task] == concept]
            for evidence, stage, count in self._store.items.label_counts(study, pools, concept):
                for task in about:
                    item = items.get((task, evidence))
                    number = stage_number(stage, stages[task], scales[task])
                    if item is not None and number:
                        counts[item, number - 1] += count
        return counts


def _mean_stage(verdicts: Mapping[str, int]) -> float | None:
    """Returns the mean of verdicts by their stages; None if none has a stage.

    >>> _mean_stage({"1": 2, "2 3": 1, "refused": 4})
    1.5
    """
    middles = {
        verdict: sum(map(int, verdict.split())) / len(verdict.split())
        for verdict in verdicts
        if verdict[:1].isdigit()
    }
    total = sum(verdicts[verdict] for verdict in middles)
    return sum(middles[v] * verdicts[v] for v in middles) / total if total else None


def _query(
    known: _Study,
    *,
    sort: str = "disagreement",
    task: str | None = None,
    status: str | None = None,
    wrong: bool = False,
    differs: bool = False,
    verdict: str | None = None,
    label: str | None = None,
    truth: str | None = None,
    search: str | None = None,
    setups: Sequence[str] = (),
) -> _Query:
    if sort not in SORTS:
        raise DesignError(unknown("order", sort, SORTS), choices=SORTS)
    if task is not None:
        _place(known.tasks, task, "task")
    names = [setup.name for setup in known.setups]
    requested = tuple(sorted({_place(names, name, "setup") for name in setups}))
    columns = requested or tuple(range(len(names)))
    return _Query(sort, task, status, wrong, differs, verdict, label, truth, search, columns)


def _stages_of_items(known: _Study, label: str) -> "npt.NDArray[np.int64]":
    """Finds the stage that a label means for each item, one of no item if it is unknown."""
    import numpy as np

    from judge_gym.analysis.item_grid import DIVIDED

    stages = []
    for task in range(len(known.tasks)):
        stage = known.verdict_of(task, label)
        tied = DIVIDED if label == DIVIDED_LABEL else UNKNOWN
        stages.append(int(stage) if stage.isdigit() else tied)
    return np.array(stages, dtype=np.int64)[np.array(known.task_of, dtype=np.int64)]


def _label_name(stage: str, names: Sequence[str]) -> str:
    """Finds the name of a stage that a person may have given by its number."""
    number = stage_number(stage, names, len(names))
    return names[number - 1] if number else stage


def stage_number(stage: str, names: Sequence[str], scale: int) -> int:
    """Finds the number of a stage that a person named or numbered, 0 if the scale lacks it."""
    if stage in names:
        return names.index(stage) + 1
    return int(stage) if stage.isdecimal() and 1 <= int(stage) <= scale else 0


def _scale(row: Mapping[str, Any]) -> int:
    """Counts the stages of an experiment whose judges write their rubrics."""
    return int(row["design"]["rubric.scale"])


def _place(names: Sequence[str], name: str, noun: str) -> int:
    if name not in names:
        raise NotFoundError(unknown(noun, name, names), choices=names)
    return names.index(name)


def _setups(
    experiments: Mapping[str, dict[str, Any]], pools: Mapping[int, Sequence[PoolItem]]
) -> list[_Setup]:
    """Names the setups of experiments as the judge table does, and adds the task to rows."""
    from judge_gym.analysis.frames import task_names
    from judge_gym.analysis.judges.setups import setups_of
    from judge_gym.lab.sample_frames import annotations

    rows = [*experiments.values()]
    facts = ("concept", "task_type", "country", "protocol")
    about = annotations(rows).assign(
        **{name: [row[name] for row in rows] for name in facts},
        tag=[*experiments],
        pool=[row["pool_name"] for row in rows],
        pair=[any(item.pair for item in pools.get(row["pool_id"], ())[:1]) for row in rows],
    )
    about["task"] = task_names(about)
    for row, task in zip(rows, about["task"], strict=True):
        row["task"] = str(task)
    return [
        _Setup(
            setup.name,
            setup.judge,
            setup.knobs,
            [str(tag) for tag in about["tag"].iloc[setup.index]],
        )
        for setup in setups_of(about)
    ]
