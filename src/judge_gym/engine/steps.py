"""The steps of a run of an experiment: what is missing of each, and where its records go.

A step is divided into shards, a few numbers each, that any process can execute. What is there is
neither asked for nor written again, so that a shard may be executed twice, and by two processes.
"""

import itertools
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from judge_gym.engine.calls.ask import Asker
from judge_gym.engine.calls.offline import OfflineAsker
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.orders import PausedAsOrdered, WorkOrder
from judge_gym.errors import ConflictError
from judge_gym.records import Critique, Probe, Rubric, Sample, StageName, Status, View
from judge_gym.records.inputs import WORKFLOWS
from judge_gym.stages import (
    Critic,
    Neutralizer,
    Prober,
    ProbeTarget,
    Rubricer,
    RubricTarget,
    Scorer,
    ScoreTarget,
    Stage,
)
from judge_gym.stages.rubric import POOR_QUALITY
from judge_gym.store import Payer, Progress, Run, Store
from judge_gym.studies import Experiment

T = TypeVar("T")
R = TypeVar("R", View, Critique, Sample, Probe)
SHARD = 256
"""Targets of one shard."""
Shard = list[Any]
"""Names and numbers."""


def ranges(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Divides a count into ranges of at most `size`."""
    for start in range(0, count, size):
        yield start, min(count, start + size)


def shown_texts(store: Store, run: Run) -> Mapping[int, str]:
    """Returns the text that is shown of each item; items whose view failed are left out."""
    design, pool = run.experiment.design, run.experiment.task.pool
    if design.evidence.resolve().editor is None:
        return {item.id: item.text for item in pool.items}
    return store.evidence.view_texts(Neutralizer(design).maker, pool)


def makers(experiment: Experiment) -> tuple[str | None, str | None]:
    """Returns the makers of an experiment's views and critiques; None where none are made."""
    design = experiment.design
    criticised = design.rubric.resolve(design.judge.model).critic and not experiment.task.rubric
    return (
        Neutralizer(design).maker if design.evidence.resolve().editor else None,
        Critic(design).maker if criticised else None,
    )


def rubric_authors(run: Run) -> tuple[list[RubricTarget], list[RubricTarget]]:
    """Returns the rubrics that a run scores under: its own, and its rivals'."""
    task, design = run.experiment.task, run.experiment.design
    strategy = design.rubric.resolve(design.judge.model)
    draws = range(strategy.draws)
    authors = [strategy.author] if strategy.author else []
    return (
        [
            RubricTarget(author, task.concept, task.country, draw)
            for author in authors
            for draw in draws
        ],
        [
            RubricTarget(rival, task.concept, task.country, draw)
            for rival in run.rivals
            for draw in draws
        ],
    )


def refuse_unprepared(
    store: Store, run: Run, workflows: Collection[str], target: str | None = None
) -> None:
    """Refuses a run, before it is stored, that needs a view or a rubric which it may not make.

    Args:
        store: of the lab.
        run: with its experiment, whose evidence need not be stored.
        workflows: that are ordered.
        target: what the error tells the user to name; else the experiment's tag.
    """
    experiment, ordered = run.experiment, set(workflows)
    name = shlex.quote(target or experiment.tag)
    design, items = experiment.design, experiment.task.pool.items
    editor = design.evidence.resolve().editor
    if editor is not None and "evidence" not in ordered and ordered & {"score", "swap"}:
        viewed = store.evidence.viewed_hashes(Neutralizer(design).maker)
        if missing := sum(item.hash not in viewed for item in items):
            raise _no_views(experiment, missing, editor, name)
    if experiment.task.rubric is None and "score" in ordered and "rubric" not in ordered:
        stage = Rubricer(design, experiment.seed)
        for author in rubric_authors(run)[0]:
            if store.rubrics.find(key=stage.key(author)) in (None, "provider_error"):
                raise _no_rubric(experiment, author, name)


def _no_views(experiment: Experiment, missing: int, editor: str, name: str) -> ConflictError:
    count = len(experiment.task.pool.items)
    return ConflictError(
        f"{experiment.tag}: {missing} of {count} items have no neutralized view by {editor}; make "
        f"them with: judge-gym evidence {name}"
    )


def _no_rubric(experiment: Experiment, target: RubricTarget, name: str) -> ConflictError:
    return ConflictError(
        f"{experiment.tag}: {target.author} has written no rubric of "
        f"{experiment.design.rubric.scale} stages for {target.concept!r}; make it: "
        f"judge-gym rubric {name}"
    )


def score_targets(
    run: Run,
    rubric: Rubric,
    texts: Mapping[int, str],
    *,
    is_swap: bool,
    replicates: Iterable[int] | None = None,
    items: slice = slice(None),
) -> Iterator[ScoreTarget]:
    """Yields the verdicts that a run needs under one rubric, replicate by replicate."""
    pool_items = [item for item in run.experiment.task.pool.items[items] if item.id in texts]
    orders = run.experiment.orders
    numbers = range(run.samples) if replicates is None else replicates
    for replicate, item, flipped in itertools.product(numbers, pool_items, orders):
        yield ScoreTarget(rubric, item, texts[item.id], replicate, is_swap, flipped)


@dataclass(frozen=True, slots=True)
class Questions(Generic[T, R]):
    """What is missing of a shard."""

    asked_by: StageName
    stage: Stage[T, R]
    targets: Sequence[T]
    save: Callable[[Sequence[R]], None]
    """Stores the records of some targets in one transaction, and counts them as done."""


@dataclass(frozen=True, slots=True)
class StudySteps:
    """The steps of a run of an experiment, as one workflow executes them."""

    store: Store
    asker: Asker | OfflineAsker
    run: Run
    texts: Callable[[], Mapping[int, str]]
    """Returns the text that is shown of each item; called once all views are made."""
    order: WorkOrder
    progress: RunProgress
    """Counts what this workflow does."""

    def announce(self) -> None:
        """Sets the number of targets, which stays, and the model that each workflow asks."""
        design = self.run.experiment.design
        judge = design.judge.model
        asked = {
            "evidence": design.evidence.resolve().editor,
            "rubric": design.rubric.resolve(judge).author,
            **dict.fromkeys(("score", "swap", "probe"), judge),
        }
        whole = self.progress.whole
        assert whole is not None
        progress = self.store.progress.of_run(self.run.id, self.run.experiment.tag)
        ordered = [workflow for workflow in WORKFLOWS if workflow in self.order.workflows]
        whole.targets = {workflow: progress.targets[workflow] for workflow in ordered}
        whole.asked = {workflow: asked[workflow] or "" for workflow in ordered}
        self.count_done(progress)

    def count_done(self, progress: Progress | None = None) -> None:
        """Sets the live counters from the rows; what is done from now on is added."""
        whole = self.progress.whole
        assert whole is not None
        progress = progress or self.store.progress.of_run(self.run.id, self.run.experiment.tag)
        whole.done = {
            step: progress.done[step] for step, targets in whole.targets.items() if targets
        }

    @property
    def names(self) -> list[str]:
        """The steps in their order: the ordered workflows, and those that make what they need."""
        ordered = set(self.order.workflows)
        needed_by = {
            "evidence": {"evidence", "score", "swap", "probe"},
            "rubric": {"rubric", "score"},
            "score": {"score"},
            "rival-rubrics": {"swap"},
            "swap": {"swap"},
            "probe": {"probe"},
        }
        return [step for step, workflows in needed_by.items() if ordered & workflows]

    def shards(self, step: str) -> list[Shard]:
        """Returns what is missing of a step, in shards; what is there is counted as done."""
        self.count_done()
        match step:
            case "evidence":
                return self._view_shards()
            case "score" | "swap":
                return self._score_shards(is_swap=step == "swap")
            case "probe":
                return self._probe_shards()
        return [[]]  # rubrics are few, and written in one go

    def questions(self, step: str, shard: Shard) -> Questions[Any, Any]:
        """Returns what is still missing of a shard."""
        match step:
            case "evidence":
                return self._missing_views(slice(*shard))
            case "score" | "swap":
                return self._missing_scores(*shard, is_swap=step == "swap")
        return self._missing_probes(*shard)

    def payer(self, asked_by: StageName) -> Payer:
        """Returns who pays for the calls of a stage."""
        return Payer(self.run.id, self.run.study, self.run.experiment.tag, asked_by)

    def finish(self, step: str) -> None:
        """Ends a step: warns of items without a view, and pauses the run if the order says so."""
        if step == "evidence":
            for warning in self._unread_views():
                self.progress.warn(warning)
        if self.order.pause_after == step:
            raise PausedAsOrdered(f"paused after {step}, as ordered")

    # --- W1 --------------------------------------------------------------------------------------

    def _view_shards(self) -> list[Shard]:
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        editor = design.evidence.resolve().editor
        if editor is None:
            return []
        viewed = self._viewed()
        missing = len(pool.items) - len(viewed)
        if missing and "evidence" not in self.order.workflows:
            experiment = self.run.experiment
            raise _no_views(experiment, missing, editor, shlex.quote(experiment.tag))
        return [
            [start, end]
            for start, end in ranges(len(pool.items), SHARD)
            if any(item.id not in viewed for item in pool.items[start:end])
        ]

    def _viewed(self) -> set[int]:
        """Returns the items that have a view, or an answer without one."""
        maker = Neutralizer(self.run.experiment.design).maker
        pool = self.run.experiment.task.pool
        readable = self.store.evidence.view_texts(maker, pool)
        return {*readable, *self.store.evidence.unread_views(maker, pool)}

    def _missing_views(self, items: slice) -> Questions[Any, View]:
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        stage, viewed = Neutralizer(design), self._viewed()
        editor = str(design.evidence.resolve().editor)

        def save(views: Sequence[View]) -> None:
            self.store.evidence.save_views(stage.maker, editor, views)
            self.progress.advance("evidence", len(views))

        missing = [item for item in pool.items[items] if item.id not in viewed]
        return Questions("neutralizer", stage, missing, save)

    def _unread_views(self) -> list[str]:
        """Returns warnings about items that cannot be judged."""
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        if design.evidence.resolve().editor is None:
            return []
        unread = self.store.evidence.unread_views(Neutralizer(design).maker, pool)
        titles = {item.id: item.title for item in pool.items}
        return [f"no view of {titles[id]!r}: {unread[id]}" for id in unread]

    # --- W2 --------------------------------------------------------------------------------------

    def rubrics_to_make(self, step: str) -> list[RubricTarget]:
        """Returns the rubrics of a step, unless the task provides one, which is only linked."""
        provided = self.run.experiment.task.rubric
        if provided is None or step != "rubric":
            return rubric_authors(self.run)[step != "rubric"]
        self.store.runs.link_rubric(self.run, provided.id, is_swap=False)
        self.count_done()
        return []

    @property
    def rubric_stage(self) -> Rubricer:
        """The stage that has rubrics written."""
        return Rubricer(self.run.experiment.design, self.run.experiment.seed)

    def find_rubric(self, target: RubricTarget) -> Rubric | Status | None:
        """Returns a rubric, or how its author's answer failed; None where there is no answer."""
        return self.store.rubrics.find(key=self.rubric_stage.key(target))

    def may_write(self, step: str) -> bool:
        """Whether the order covers the rubrics of a step; otherwise they must be there."""
        return ("rubric" if step == "rubric" else "swap") in self.order.workflows

    def refuse_unwritten(self, step: str, target: RubricTarget) -> None:
        """Raises an error where a rubric is missing and the order does not cover writing it."""
        if not self.may_write(step):
            experiment = self.run.experiment
            raise _no_rubric(experiment, target, shlex.quote(experiment.tag))

    def save_rubric(
        self, target: RubricTarget, rubric: Rubric | Status, *, asks: int, call_id: int
    ) -> None:
        """Stores what an author gave in the last of some asks."""
        self.store.rubrics.save(
            self.rubric_stage.key(target),
            rubric,
            asks=asks,
            call_id=call_id,
            author=target.author,
            concept=target.concept,
            country=target.country,
            scale=self.run.experiment.design.rubric.scale,
            draw=target.draw,
        )

    def link_rubric(self, step: str, target: RubricTarget, rubric: Rubric | Status) -> None:
        """Notes under which rubric the run scores, or warns that its author gave none."""
        rubric_id = self.store.rubrics.id_of(self.rubric_stage.key(target))
        self.store.runs.link_rubric(self.run, rubric_id, is_swap=step != "rubric")
        if not isinstance(rubric, Rubric):
            self.progress.warn(f"{target.author} gave no rubric for {target.concept!r}: {rubric}")
        self.count_done()

    def critique(self, rubric: Rubric) -> Questions[Rubric, Critique]:
        """Returns what is asked about a new rubric; nothing where the design has no critic."""
        design = self.run.experiment.design
        stage = Critic(design)

        def save(critiques: Sequence[Critique]) -> None:
            for critique in critiques:
                self.store.rubrics.save_critique(stage.maker, critique)
                for doubt in _doubts(critique):
                    self.progress.warn(doubt)

        criticised = design.rubric.critic is not None
        return Questions("critic", stage, [rubric] if criticised else [], save)

    # --- W3 and W4 -------------------------------------------------------------------------------

    def _score_shards(self, *, is_swap: bool) -> list[Shard]:
        """Returns rectangles of replicates and items for every rubric; complete ones are left out.

        A shard holds the rubric's id, the first and last replicate, and the first and last item.
        """
        items, orders = len(self.run.experiment.task.pool.items), self.run.experiment.orders
        cells = len(self.texts()) * len(orders)
        together = max(1, SHARD // max(1, items * len(orders)))
        shards: list[Shard] = []
        for rubric in self._rubrics(is_swap=is_swap):
            counted = self.store.verdicts.replicate_counts(self.run, rubric.id, is_swap)
            for first, last in ranges(self.run.samples, together):
                rows = [counted.get(replicate, (0, 0)) for replicate in range(first, last)]
                incomplete = (
                    any(failed for _, failed in rows)
                    if self.order.only_failed
                    else any(done < cells for done, _ in rows)
                )
                if incomplete:
                    size = max(1, SHARD // len(orders))
                    shards += [[rubric.id, first, last, *part] for part in ranges(items, size)]
        return shards

    def _rubrics(self, *, is_swap: bool) -> list[Rubric]:
        """Returns the rubrics to score under, where they could be written."""
        provided = self.run.experiment.task.rubric
        if provided is not None and not is_swap:
            return [provided]
        stage = Rubricer(self.run.experiment.design, self.run.experiment.seed)
        keys = [stage.key(target) for target in rubric_authors(self.run)[is_swap]]
        rubrics = [self.store.rubrics.find(key=key) for key in keys]
        return [rubric for rubric in rubrics if isinstance(rubric, Rubric)]

    def _missing_scores(
        self, rubric_id: int, first: int, last: int, begin: int, end: int, *, is_swap: bool
    ) -> Questions[ScoreTarget, Sample]:
        """Asks about the items from `begin` to `end` in the replicates from `first` to `last`."""
        rubric = self.store.rubrics.find(id=rubric_id)
        assert isinstance(rubric, Rubric), "a shard is made of rubrics that are there"
        experiment = self.run.experiment
        items = experiment.task.pool.items[begin:end]
        rows = self.store.verdicts.sample_keys(self.run, rubric_id, is_swap, first, last, items)

        def is_missing(target: ScoreTarget) -> bool:
            status = rows.get((target.evidence.id, target.replicate, target.flipped))
            return status == "provider_error" or (status is None and not self.order.only_failed)

        targets = score_targets(
            self.run,
            rubric,
            self.texts(),
            is_swap=is_swap,
            replicates=range(first, last),
            items=slice(begin, end),
        )
        stage = Scorer(experiment.design, experiment.seed, self.run.series, experiment.template)

        def save(samples: Sequence[Sample]) -> None:
            self.store.verdicts.save_samples(self.run, samples)
            self.progress.advance("swap" if is_swap else "score", len(samples))
            if self.run.probe:  # a verdict that is not scored needs no probe
                unscored = sum(sample.status != "scored" for sample in samples)
                self.progress.advance("probe", unscored)

        return Questions("scorer", stage, [*filter(is_missing, targets)], save)

    # --- W5 --------------------------------------------------------------------------------------

    def _probe_shards(self) -> list[Shard]:
        """Returns ranges of the rows of scored verdicts that have no probe yet."""
        if not self.run.probe:
            return []
        return self.store.verdicts.unprobed_ranges(
            self.run, SHARD, only_failed=self.order.only_failed
        )

    def _missing_probes(self, after: int, last: int) -> Questions[ProbeTarget, Probe]:
        experiment = self.run.experiment
        stage = Prober(experiment.design, experiment.seed, self.run.series)
        same = experiment.design.probe.resolve().same_context
        rubrics = self.store.runs.rubrics(self.run)
        page = self.store.verdicts.unprobed(
            self.run, rubrics, after, last, answers=same, only_failed=self.order.only_failed
        )
        targets = [
            ProbeTarget(sample, self.texts()[sample.evidence.id], answer) for sample, answer in page
        ]

        def save(probes: Sequence[Probe]) -> None:
            self.store.verdicts.save_probes(self.run, probes)
            self.progress.advance("probe", len(probes))

        return Questions("prober", stage, targets, save)


def _doubts(critique: Critique) -> Iterator[str]:
    """Yields warnings about a rubric from its critic's answer."""
    rubric = critique.rubric
    if critique.status != "scored":
        yield (
            f"{critique.critic} gave no scores of the rubric of {rubric.author} for "
            f"{rubric.concept!r}: {critique.status}"
        )
    for quality in ("observability", "discriminability"):
        score = getattr(critique, quality)
        if score is not None and score < POOR_QUALITY:
            yield (
                f"the rubric of {rubric.author} for {rubric.concept!r} has {quality} "
                f"{score:.2f}, below {POOR_QUALITY}"
            )
