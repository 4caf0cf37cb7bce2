"""The steps of one run, each in shards that any process can execute.

A shard is a few numbers. Existing results are neither asked for nor written again, so that a shard
may be executed twice, and by any process.
"""

import asyncio
import itertools
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from judge_gym.engine.calls.ask import Asker, OnAnswers
from judge_gym.engine.calls.offline import OfflineAsker
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.orders import PausedAsOrdered, WorkOrder
from judge_gym.errors import ConflictError
from judge_gym.records import (
    Critique,
    Probe,
    Request,
    Rubric,
    Sample,
    StageName,
    View,
)
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
from judge_gym.stages.rubric import ASKS, POOR_QUALITY
from judge_gym.store import Answer, Payer, Progress, Run, Store
from judge_gym.studies import Experiment

T = TypeVar("T")
R = TypeVar("R", View, Critique, Sample, Probe)
SHARD = 256
"""Targets of one shard."""
CHUNK = 64
"""Targets that are asked for together."""
Shard = list[Any]
"""Names and numbers."""


def chunked(items: Iterable[T]) -> Iterator[list[T]]:
    """Yields items in lists of at most `CHUNK`."""
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


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
    own = [strategy.author] if strategy.author else []
    return (
        [
            RubricTarget(author, task.concept, task.country, draw)
            for author in own
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
        there = store.evidence.viewed_hashes(Neutralizer(design).maker)
        if missing := sum(item.hash not in there for item in items):
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
    shown = [item for item in run.experiment.task.pool.items[items] if item.id in texts]
    orders = run.experiment.orders
    drawn = range(run.samples) if replicates is None else replicates
    for replicate, item, flipped in itertools.product(drawn, shown, orders):
        yield ScoreTarget(rubric, item, texts[item.id], replicate, is_swap, flipped)


@dataclass(frozen=True, slots=True)
class StudyPipeline:
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
        found = self.store.progress.of_run(self.run.id, self.run.experiment.tag)
        ordered = [workflow for workflow in WORKFLOWS if workflow in self.order.workflows]
        whole.targets = {workflow: found.targets[workflow] for workflow in ordered}
        whole.asked = {workflow: asked[workflow] or "" for workflow in ordered}
        self._count_done(found)

    def _count_done(self, found: Progress | None = None) -> None:
        """Sets the live counters from the rows; what is done from now on is added."""
        whole = self.progress.whole
        assert whole is not None
        found = found or self.store.progress.of_run(self.run.id, self.run.experiment.tag)
        whole.done = {step: found.done[step] for step, targets in whole.targets.items() if targets}

    @property
    def steps(self) -> list[str]:
        """The ordered workflows, with those that make what they need."""
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
        self._count_done()
        match step:
            case "evidence":
                return self._view_shards()
            case "score" | "swap":
                return self._score_shards(is_swap=step == "swap")
            case "probe":
                return self._probe_shards()
        return [[]]  # rubrics are few, and written in one go

    async def perform(self, step: str, shard: Shard) -> None:
        """Executes one shard."""
        match step:
            case "evidence":
                await self._make_views(slice(*shard))
            case "score" | "swap":
                await self._score(*shard, is_swap=step == "swap")
            case "probe":
                await self._probe(*shard)
            case _:
                await self._make_rubrics(is_swap=step == "rival-rubrics")

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
        there = self._viewed()
        missing = len(pool.items) - len(there)
        if missing and "evidence" not in self.order.workflows:
            experiment = self.run.experiment
            raise _no_views(experiment, missing, editor, shlex.quote(experiment.tag))
        return [
            [start, end]
            for start, end in ranges(len(pool.items), SHARD)
            if any(item.id not in there for item in pool.items[start:end])
        ]

    def _viewed(self) -> set[int]:
        """Returns the items that have a view, or an answer without one."""
        maker = Neutralizer(self.run.experiment.design).maker
        pool = self.run.experiment.task.pool
        found, unread = (
            self.store.evidence.view_texts(maker, pool),
            self.store.evidence.unread_views(maker, pool),
        )
        return {*found, *unread}

    async def _make_views(self, items: slice) -> None:
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        stage, there = Neutralizer(design), self._viewed()
        editor = str(design.evidence.resolve().editor)

        def save(views: Sequence[View]) -> None:
            self.store.evidence.save_views(stage.maker, editor, views)
            self.progress.advance("evidence", len(views))

        missing = (item for item in pool.items[items] if item.id not in there)
        await self._in_chunks("neutralizer", stage, missing, save)

    def _unread_views(self) -> list[str]:
        """Returns warnings about items that cannot be judged."""
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        if design.evidence.resolve().editor is None:
            return []
        unread = self.store.evidence.unread_views(Neutralizer(design).maker, pool)
        titles = {item.id: item.title for item in pool.items}
        return [f"no view of {titles[id]!r}: {unread[id]}" for id in unread]

    # --- W2 --------------------------------------------------------------------------------------

    async def _make_rubrics(self, *, is_swap: bool) -> None:
        """Has the rubrics to score under written and criticised."""
        given = self.run.experiment.task.rubric
        if given is not None and not is_swap:
            self.store.runs.link_rubric(self.run, given.id, is_swap=False)
            self._count_done()
            return
        for target in rubric_authors(self.run)[is_swap]:
            await self._make_rubric(target, is_swap=is_swap)
            self._count_done()

    async def _make_rubric(self, target: RubricTarget, *, is_swap: bool) -> None:
        experiment = self.run.experiment
        stage = Rubricer(experiment.design, experiment.seed)
        key = stage.key(target)
        may_write = ("swap" if is_swap else "rubric") in self.order.workflows
        rubric = self.store.rubrics.find(key=key)
        if rubric in (None, "provider_error"):
            if not may_write:
                raise _no_rubric(experiment, target, shlex.quote(experiment.tag))
            await self._write_rubric(stage, key, target)
            rubric = self.store.rubrics.find(key=key)
            if rubric is None:
                return  # it was not in the ledger, and no model may be called
        rubric_id = self.store.rubrics.id_of(key)
        self.store.runs.link_rubric(self.run, rubric_id, is_swap=is_swap)
        if not isinstance(rubric, Rubric):
            self.progress.warn(f"{target.author} gave no rubric for {target.concept!r}: {rubric}")
        elif may_write:
            await self._criticise(rubric)

    async def _write_rubric(self, stage: Rubricer, key: str, target: RubricTarget) -> None:
        """Asks for a rubric, and again where its number of stages is wrong."""
        for ask in range(ASKS):
            asked = stage.requests([replace(target, ask=ask)])
            [answer] = await self._ask("rubricer", asked)
            if answer is None:
                return
            call_id, read = answer.call_id, stage.read(target, answer.completion)
            if read != "parse_failed":
                break
        self.store.rubrics.save(
            key,
            read,
            asks=ask + 1,
            call_id=call_id,
            author=target.author,
            concept=target.concept,
            country=target.country,
            scale=stage.design.rubric.scale,
            draw=target.draw,
        )

    async def _criticise(self, rubric: Rubric) -> None:
        if self.run.experiment.design.rubric.critic is None:
            return
        stage = Critic(self.run.experiment.design)

        def save(critiques: Sequence[Critique]) -> None:
            for critique in critiques:
                self.store.rubrics.save_critique(stage.maker, critique)
                for doubt in _doubts(critique):
                    self.progress.warn(doubt)

        await self._in_chunks("critic", stage, [rubric], save)

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
        given = self.run.experiment.task.rubric
        if given is not None and not is_swap:
            return [given]
        stage = Rubricer(self.run.experiment.design, self.run.experiment.seed)
        keys = [stage.key(target) for target in rubric_authors(self.run)[is_swap]]
        rubrics = [self.store.rubrics.find(key=key) for key in keys]
        return [rubric for rubric in rubrics if isinstance(rubric, Rubric)]

    async def _score(
        self, rubric_id: int, first: int, last: int, begin: int, end: int, *, is_swap: bool
    ) -> None:
        """Scores the items from `begin` to `end` in the replicates from `first` to `last`."""
        rubric = self.store.rubrics.find(id=rubric_id)
        assert isinstance(rubric, Rubric), "a shard is made of rubrics that are there"
        experiment = self.run.experiment
        rows = self.store.verdicts.sample_keys(self.run, rubric_id, is_swap, first, last)

        def missing(target: ScoreTarget) -> bool:
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
                self.progress.advance("probe", sum(one.status != "scored" for one in samples))

        await self._in_chunks("scorer", stage, filter(missing, targets), save)

    # --- W5 --------------------------------------------------------------------------------------

    def _probe_shards(self) -> list[Shard]:
        """Returns ranges of the rows of scored verdicts that have no probe yet."""
        if not self.run.probe:
            return []
        return self.store.verdicts.unprobed_ranges(
            self.run, SHARD, only_failed=self.order.only_failed
        )

    async def _probe(self, after: int, last: int) -> None:
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

        await self._in_chunks("prober", stage, targets, save)

    # --- asking ----------------------------------------------------------------------------------

    async def _in_chunks(
        self,
        name: StageName,
        stage: Stage[T, R],
        targets: Iterable[T],
        save: Callable[[Sequence[R]], None],
    ) -> None:
        """Asks about targets, and saves what is read from each answer soon after it is recorded.

        Chunks of targets are asked concurrently; all of them end, even if one fails.
        """

        async def work(chunk: list[T]) -> None:
            def read(answers: Mapping[int, Answer]) -> None:
                save(
                    [
                        replace(stage.read(chunk[n], answer.completion), call_id=answer.call_id)
                        for n, answer in answers.items()
                    ]
                )

            await self._ask(name, stage.requests(chunk), read)

        ended = await asyncio.gather(*map(work, chunked(targets)), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def _ask(
        self,
        stage: StageName,
        requests: Sequence[Request],
        on_answers: OnAnswers = lambda answers: None,
    ) -> Sequence[Answer | None]:
        payer = Payer(self.run.id, self.run.study, self.run.experiment.tag, stage)
        return await self.asker.ask(requests, payer, self.progress, on_answers)


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
