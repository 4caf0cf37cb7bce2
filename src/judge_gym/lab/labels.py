"""The noun `lab.labels`: the stages that people give to items."""

import csv
import io
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from judge_gym.analysis.judges.label_draws import LabelDraw
from judge_gym.analysis.judges.splits import (
    DEFAULT_SHARES,
    PARTS,
    check_shares,
    cluster_name,
    split_parts,
)
from judge_gym.axes import RECORDED
from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown
from judge_gym.lab.labelling import Labelling
from judge_gym.lab.studies import Studies
from judge_gym.lab.study_labels import stage_names
from judge_gym.lab.texts import files_of
from judge_gym.records import Evidence
from judge_gym.records.requests import Label, Name, Sent, TargetName
from judge_gym.records.responses import (
    Counts,
    LabelQueueRow,
    LabelRow,
    LabelSplit,
    LabelStatus,
    SplitPart,
    as_records,
)
from judge_gym.sources import read_labels
from judge_gym.store import Store

CSV = "labels.csv"


class Labels:
    """Imports and lists people's labels."""

    def __init__(self, store: Store, studies: Studies, labelling: Labelling) -> None:
        self._store = store
        self._studies = studies
        self._labelling = labelling

    def add(
        self,
        labels: Annotated[
            Sequence[Mapping[str, str]],
            Sent(Sequence[Label]),
            Field(min_length=1, max_length=100_000),
        ],
        *,
        target: Annotated[TargetName | None, Field(description="Whose evidence is meant.")] = None,
        concept: Annotated[str, Field(description="What the raters judged.")] = "",
        replace: Annotated[bool, Field(description="Accept a rater's changed stage.")] = False,
    ) -> Counts:
        """Adds the stages that people gave to items, all or none."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, ["item", "rater", "stage"])
        writer.writeheader()
        writer.writerows(labels)
        with files_of({CSV: text.getvalue()}) as folder:
            return self.import_file(folder / CSV, target=target, concept=concept, replace=replace)

    def import_file(
        self, path: Path, *, target: str | None = None, concept: str = "", replace: bool = False
    ) -> Counts:
        """Imports all labels of a CSV with the columns item, rater and stage, or none.

        Args:
            path: the file.
            target: a study or tag whose evidence is meant; else everything that the lab holds.
            concept: what the raters judged; else whatever the items are judged for.
            replace: accept a stage that differs from the rater's earlier one.
        """
        source = None if target is None else self._studies.read(target)
        name = None if source is None else self._studies.name(source)
        items, stages = self._items_and_stages(name)
        labels = read_labels(path)
        rows_of_study = [] if source is None else self._studies.find(source)
        recorded = any(RECORDED in row["design"] for row in rows_of_study)
        # Labels of a recorded study are its own: another recording of the same texts has others.
        study = str(rows_of_study[0]["study"]) if recorded else ""
        names = _names(items, {label.item for label in labels} if recorded else None)
        ids = {label.item: _item_id(label.item, names, path) for label in labels}
        stage_by_rater: dict[tuple[int, str], str] = {}
        rows = []
        for label in labels:
            key = (ids[label.item], label.rater)
            if stage_by_rater.setdefault(key, label.stage) != label.stage:
                raise DesignError(
                    f"{path}: {label.rater} gives evidence {key[0]}, by two names, the stages "
                    f"{stage_by_rater[key]!r} and {label.stage!r}"
                )
            if stages and label.stage not in stages:
                raise DesignError(
                    f"{path}: {label.rater} gives {label.item!r} the stage {label.stage!r}; "
                    f"choose {', '.join(stages)}",
                    choices=stages,
                )
            rows.append(
                {
                    "evidence_id": ids[label.item],
                    "study": study,
                    "concept": concept,
                    "rater": label.rater,
                    "stage": label.stage,
                }
            )
        return self._store.labels.save(rows, replace=replace)

    def _items_and_stages(self, name: str | None) -> tuple[tuple[Evidence, ...], Sequence[str]]:
        """Finds the items that labels may be about, and the stages that they may name.

        Args:
            name: of a study or an experiment; None for everything that the lab holds.
        """
        if name is None:
            return self._store.evidence.all_evidence(), []
        rows = self._store.experiments.rows(study=name) or self._store.experiments.rows(tags=[name])
        experiments = [self._store.experiments.find(row["tag"])[0] for row in rows]
        items = {item.id: item for experiment in experiments for item in experiment.task.pool.items}
        return tuple(items.values()), stage_names(experiments)

    def split(
        self,
        study: TargetName,
        *,
        shares: Annotated[
            Sequence[float],
            Field(min_length=3, max_length=3, description="Of train, dev and test."),
        ] = DEFAULT_SHARES,
        seed: Annotated[int, Field(description="Decides which clusters.")] = 0,
        replace: Annotated[bool, Field(description="Draw an existing split anew.")] = False,
    ) -> LabelSplit:
        """Splits items by cluster: train for rubrics, dev for choices, test for estimates.

        Items that joined the study after a split are added to it; the others stay where they are.

        Args:
            study: its name or file.
            shares: the shares of clusters in train, dev and test; without dev, choices use train.
            seed: decides which clusters.
            replace: draw a split anew; how often its test part was used stays counted.
        """
        of_part = check_shares(shares)
        name = self._studies.name(study)
        items, _ = self._items_and_stages(name)
        if not items:
            names = [row["study"] for row in self._store.studies.rows()]
            raise NotFoundError(unknown("study", name, names), choices=names)
        earlier = None if replace else self._store.splits.find(name)
        if earlier and (earlier.seed, dict(earlier.shares)) != (seed, of_part):
            listed = ", ".join(f"{share:.0%} {part}" for part, share in earlier.shares.items())
            raise ConflictError(
                f"{name} is split already, with seed {earlier.seed} into {listed}; another split "
                "would put items into test on which choices were made. If none was made, "
                "`replace` draws it anew"
            )
        before = {} if earlier is None else earlier.items
        answers = self._answers(name, items)
        parts = split_parts(items, before, answers, of_part, seed)
        self._store.splits.save(name, seed, of_part, parts, replace=replace)
        split = self._split(name, items, answers)
        assert split is not None
        return split

    def status(self, study: TargetName) -> LabelStatus:
        """Counts a study's labelled items, by rater and by part of its split."""
        name = self._studies.name(study)
        items, _ = self._items_and_stages(name)
        labels = self._labels_of(name, items)
        return {
            "study": name,
            "items": len(items),
            "labelled": len({label["evidence"] for label in labels}),
            "known_answers": sum(item.truth is not None for item in items),
            "raters": Counter(str(label["rater"]) for label in labels),
            "queues": [*self._labelling.queues(name)],
            "split": self._split(name, items, self._answers(name, items)),
        }

    def ask(
        self,
        study: TargetName,
        raters: Annotated[Sequence[Name], Field(min_length=1, max_length=50)],
        *,
        items: Annotated[int, Field(ge=1, le=100_000, description="How many.")] = 50,
        by: Annotated[
            Literal["random", "disagreement"],
            Field(description="disagreement: items that divide setups are drawn more often."),
        ] = "random",
        core: Annotated[
            float, Field(gt=0, le=1, description="The share that is drawn at random all the same.")
        ] = 0.5,
        overlap: Annotated[
            float | None, Field(ge=0, le=1, description="The share that two raters label.")
        ] = None,
        hard: Annotated[
            int, Field(ge=0, le=10_000, description="Disputed items that enter no rate.")
        ] = 0,
        seed: Annotated[int, Field(description="Decides the draw.")] = 0,
    ) -> LabelQueueRow:
        """Draws items of a study for people to label, in a queue for each rater."""
        draw = LabelDraw(items, by == "disagreement", core, hard, seed)
        return self._labelling.ask(study, raters, draw, overlap)

    def list_queues(self, *, study: TargetName | None = None) -> Sequence[LabelQueueRow]:
        """Lists the queues of items that people label, and how far each rater is."""
        name = None if study is None else self._studies.name(study)
        return self._labelling.queues(name)

    def _labels_of(self, name: str, items: Sequence[Evidence]) -> Sequence[Mapping[str, Any]]:
        """Reads the labels of items that count in a study."""
        ids = {item.id for item in items}
        studies = {"", *(row["study"] for row in self._studies.find(name))}
        return [
            label
            for label in self._store.labels.all()
            if label["evidence"] in ids and label["study"] in studies
        ]

    def _answers(self, name: str, items: Sequence[Evidence]) -> dict[int, str]:
        """Finds the label or known answer of items that have one; of several labels the last."""
        answers = {label["evidence"]: str(label["stage"]) for label in self._labels_of(name, items)}
        return {item.id: str(item.truth) for item in items if item.truth is not None} | answers

    def _split(
        self, study: str, items: Sequence[Evidence], answered: Collection[int]
    ) -> LabelSplit | None:
        """Counts the parts of a study's split. None means that it has none."""
        split = self._store.splits.find(study)
        if split is None:
            return None
        parts: list[SplitPart] = []
        for name in PARTS:
            part = [item for item in items if split.items.get(item.id) == name]
            if part or split.shares.get(name):
                clusters = len({cluster_name(item) for item in part})
                known = sum(item.id in answered for item in part)
                parts.append(
                    {"part": name, "items": len(part), "clusters": clusters, "known": known}
                )
        return {
            "study": study,
            "seed": split.seed,
            "shares": dict(split.shares),
            "parts": parts,
            "uses": split.uses,
        }

    def list(self) -> Sequence[LabelRow]:
        """Lists all labels, in the order in which they were given."""
        return as_records(LabelRow, self._store.labels.all())


def _names(items: Sequence[Evidence], used: Collection[str] | None = None) -> dict[str, set[int]]:
    """Lists what an item may be called: its number, address, hash, own id or title.

    Of recorded items `used` has the names that a file uses: where all are own ids, which may be
    numbers too, these are meant.
    """
    ids_by_own_id: dict[str, set[int]] = {}
    for item in items:
        for name in {str(item.metadata.get("id", "")), *item.metadata.get("ids", ())} - {""}:
            ids_by_own_id.setdefault(name, set()).add(item.id)
    if used is not None and ids_by_own_id.keys() >= {*used}:
        return ids_by_own_id
    names = {name: {*ids} for name, ids in ids_by_own_id.items()}
    for item in items:
        for name in {str(item.id), item.url, item.hash, item.title} - {""}:
            names.setdefault(name, set()).add(item.id)
    return names


def _item_id(name: str, names: Mapping[str, set[int]], path: Path) -> int:
    """Finds the one item that a label is about."""
    ids = names.get(name, set())
    if len(ids) > 1:
        listed = ", ".join(map(str, sorted(ids)))
        raise DesignError(
            f"{path}: {name!r} may be evidence {listed}; name it by number or by an address, hash "
            "or id that is its own, or name the study"
        )
    if not ids:
        raise NotFoundError(
            f"{path}: there is no evidence {name!r}, by number, address, published id or title; "
            "nothing was imported"
        )
    return next(iter(ids))
