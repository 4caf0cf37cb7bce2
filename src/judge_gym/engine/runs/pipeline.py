"""One run: what its five workflows do, each in shards that any worker can carry out.

A shard is a few numbers. What is there already is neither asked nor written again, so a shard may
be carried out twice, and by whom it was begun does not matter.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from judge_gym.engine.calls.ask import Answering
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.options import WORKFLOWS, Workflow
from judge_gym.engine.runs.targets import makers, rubric_authors, score_targets
from judge_gym.errors import ConflictError
from judge_gym.records import (
    Critique,
    Evidence,
    Probe,
    Request,
    Rubric,
    Sample,
    StageName,
    View,
)
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
from judge_gym.store import Answer, Payer, Run, Store

T = TypeVar("T")
R = TypeVar("R", View, Critique, Sample, Probe)
SHARD = 256
"""Targets that go to one worker together."""
CHUNK = 64
"""Targets that are asked for, read and written together; few, since answers wait meanwhile."""
Shard = list[int]


def chunked(items: Iterable[T]) -> Iterator[list[T]]:
    """Items in lists of at most `CHUNK`."""
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


async def in_chunks(items: Iterable[T], work: Callable[[list[T]], Awaitable[None]]) -> None:
    """Work on items in chunks, side by side; all of them end, even if one fails."""
    ended = await asyncio.gather(*map(work, chunked(items)), return_exceptions=True)
    for fault in ended:
        if isinstance(fault, BaseException):
            raise fault


def ranges(count: int, size: int) -> Iterator[tuple[int, int]]:
    """A count in ranges of at most so many."""
    for start in range(0, count, size):
        yield start, min(count, start + size)


@dataclass(slots=True)
class Pipeline:
    """What a run does. Work is counted in the tally that is handed over with it."""

    store: Store
    asker: Answering
    run: Run
    workflows: Collection[Workflow]
    """What may be made; what is missing of the others is an error."""
    only_failed: bool = False
    """Ask again for what no attempt brought an answer to, and for nothing else."""
    _texts: dict[int, str] | None = None

    def announce(self, tally: RunProgress) -> None:
        """Say how much there is to do, as far as it is known before it is done."""
        own, rivals = rubric_authors(self.run)
        experiment = self.run.experiment
        cells = len(experiment.task.pool.items) * self.run.samples * len(experiment.orders)
        scores, swaps = max(1, len(own)) * cells, len(rivals) * cells
        wanted = {
            "evidence": len(experiment.task.pool.items) if makers(experiment)[0] else 0,
            "rubric": len(own),
            "score": scores,
            "swap": swaps,
            "probe": (scores + swaps) if self.run.probe else 0,
        }
        tally.wanted = {
            workflow: wanted[workflow] for workflow in WORKFLOWS if workflow in self.workflows
        }

    def shards(self, workflow: Workflow, tally: RunProgress) -> list[Shard]:
        """What is missing of a workflow, in pieces; what is there is counted as done."""
        match workflow:
            case "evidence":
                return self._view_shards(tally)
            case "score" | "swap":
                return self._score_shards(workflow, tally)
            case "probe":
                return self._probe_shards(tally)
        return []  # rubrics are few: they are written in one go

    async def perform(self, workflow: Workflow, shard: Shard, tally: RunProgress) -> None:
        """Carry out one shard."""
        match workflow:
            case "evidence":
                await self._make_views(slice(*shard), tally)
            case "score" | "swap":
                await self._score(workflow, *shard, tally=tally)
            case "probe":
                await self._probe(*shard, tally=tally)

    # --- W1 --------------------------------------------------------------------------------------

    @property
    def texts(self) -> dict[int, str]:
        """The text that is shown of each item; items whose view failed are left out."""
        if self._texts is None:
            design, pool = self.run.experiment.design, self.run.experiment.task.pool
            if design.evidence.resolve().editor is None:
                self._texts = {item.id: item.text for item in pool.items}
            else:
                self._texts = self.store.materials.find_views(Neutralizer(design).maker, pool)
        return self._texts

    def _view_shards(self, tally: RunProgress) -> list[Shard]:
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        editor = design.evidence.resolve().editor
        if editor is None:
            return []
        there = self._viewed()
        missing = len(pool.items) - len(there)
        if missing and "evidence" not in self.workflows:
            raise ConflictError(
                f"{self.run.experiment.tag}: {missing} of {len(pool.items)} items have no "
                f"neutralized view by {editor}; make them with: "
                f"judge-gym evidence {self.run.experiment.tag!r}"
            )
        tally.advance("evidence", len(there))
        return [
            [start, end]
            for start, end in ranges(len(pool.items), SHARD)
            if any(item.id not in there for item in pool.items[start:end])
        ]

    def _viewed(self) -> set[int]:
        """The items that have a view, or an answer that holds none."""
        maker = Neutralizer(self.run.experiment.design).maker
        pool = self.run.experiment.task.pool
        found, unread = (
            self.store.materials.find_views(maker, pool),
            self.store.materials.unread_views(maker, pool),
        )
        return {*found, *unread}

    async def _make_views(self, items: slice, tally: RunProgress) -> None:
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        stage, there = Neutralizer(design), self._viewed()
        editor = str(design.evidence.resolve().editor)

        async def make(chunk: list[Evidence]) -> None:
            views = await self._perform("neutralizer", stage, chunk, tally)
            self.store.materials.save_views(stage.maker, editor, views)
            self._texts = None
            tally.advance("evidence", len(views))

        await in_chunks((item for item in pool.items[items] if item.id not in there), make)

    def unread_views(self) -> list[str]:
        """Warnings about items that cannot be judged."""
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        if design.evidence.resolve().editor is None:
            return []
        unread = self.store.materials.unread_views(Neutralizer(design).maker, pool)
        titles = {item.id: item.title for item in pool.items}
        return [f"no view of {titles[id]!r}: {unread[id]}" for id in unread]

    # --- W2 --------------------------------------------------------------------------------------

    async def rubrics(self, workflow: Workflow, tally: RunProgress) -> None:
        """Have the rubrics to score under written and criticised."""
        given = self.run.experiment.task.rubric
        if workflow == "rubric" and given is not None:
            self.store.runs.link_rubric(self.run, given.id, is_swap=False)
            tally.advance("rubric", 1)
            return
        for target in rubric_authors(self.run)[workflow == "swap"]:
            await self._rubric(workflow, target, tally)
            if workflow == "rubric":
                tally.advance("rubric", 1)

    async def _rubric(self, workflow: Workflow, target: RubricTarget, tally: RunProgress) -> None:
        experiment = self.run.experiment
        stage = Rubricer(experiment.design, experiment.seed)
        key = stage.key(target)
        found = self.store.materials.find_rubric(key=key)
        if found in (None, "provider_error"):
            if workflow not in self.workflows:
                raise ConflictError(
                    f"{experiment.tag}: {target.author} has written no rubric of "
                    f"{experiment.design.rubric.scale} stages for {target.concept!r}; make it: "
                    f"judge-gym rubric {experiment.tag!r}"
                )
            await self._write_rubric(stage, key, target, tally)
            found = self.store.materials.find_rubric(key=key)
            if found is None:
                return  # it was not in the ledger, and nothing else may be asked
        rubric_id = self.store.materials.rubric_id(key)
        self.store.runs.link_rubric(self.run, rubric_id, is_swap=workflow == "swap")
        if not isinstance(found, Rubric):
            tally.warn(f"{target.author} gave no rubric for {target.concept!r}: {found}")
        elif workflow in self.workflows:
            await self._criticise(found, tally)

    async def _write_rubric(
        self, stage: Rubricer, key: str, target: RubricTarget, tally: RunProgress
    ) -> None:
        """Ask for a rubric, and again where it has not the stages that were asked for."""
        for ask in range(ASKS):
            asked = stage.requests([replace(target, ask=ask)])
            [answer] = await self._ask("rubricer", asked, tally)
            if answer is None:
                return
            call_id, read = answer.call_id, stage.read(target, answer.completion)
            if read != "parse_failed":
                break
        self.store.materials.save_rubric(
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

    async def _criticise(self, rubric: Rubric, tally: RunProgress) -> None:
        stage = Critic(self.run.experiment.design)
        for critique in await self._perform("critic", stage, [rubric], tally):
            self.store.materials.save_critique(stage.maker, critique)
            for doubt in _doubts(critique):
                tally.warn(doubt)

    # --- W3 and W4 -------------------------------------------------------------------------------

    def _score_shards(self, workflow: Workflow, tally: RunProgress) -> list[Shard]:
        """Rectangles of replicates and items, of every rubric; whole ones are left out."""
        items, orders = len(self.run.experiment.task.pool.items), self.run.experiment.orders
        cells = len(self.texts) * len(orders)
        together = max(1, SHARD // max(1, items * len(orders)))
        shards: list[Shard] = []
        for rubric in self._rubrics_of(workflow):
            counted = self.store.runs.replicate_counts(self.run, rubric.id, workflow == "swap")
            tally.advance(workflow, sum(done for done, _ in counted.values()))
            for first, last in ranges(self.run.samples, together):
                rows = [counted.get(replicate, (0, 0)) for replicate in range(first, last)]
                wanted = (
                    any(failed for _, failed in rows)
                    if self.only_failed
                    else any(done < cells for done, _ in rows)
                )
                if wanted:
                    size = max(1, SHARD // len(orders))
                    shards += [[rubric.id, first, last, *part] for part in ranges(items, size)]
        return shards

    def _rubrics_of(self, workflow: Workflow) -> list[Rubric]:
        """The rubrics that there are to score under."""
        given = self.run.experiment.task.rubric
        if given is not None and workflow == "score":
            return [given]
        stage = Rubricer(self.run.experiment.design, self.run.experiment.seed)
        keys = [stage.key(target) for target in rubric_authors(self.run)[workflow == "swap"]]
        found = [self.store.materials.find_rubric(key=key) for key in keys]
        return [rubric for rubric in found if isinstance(rubric, Rubric)]

    async def _score(
        self,
        workflow: Workflow,
        rubric_id: int,
        first: int,
        last: int,
        begin: int,
        end: int,
        *,
        tally: RunProgress,
    ) -> None:
        """Score some items under a rubric, in some replicates."""
        rubric = self.store.materials.find_rubric(id=rubric_id)
        assert isinstance(rubric, Rubric), "a shard is made of rubrics that are there"
        is_swap, experiment = workflow == "swap", self.run.experiment
        rows = self.store.runs.sample_keys(self.run, rubric_id, is_swap, first, last)

        def wanted(target: ScoreTarget) -> bool:
            status = rows.get((target.evidence.id, target.replicate, target.flipped))
            return status == "provider_error" or (status is None and not self.only_failed)

        asked = score_targets(
            self.run,
            rubric,
            self.texts,
            is_swap=is_swap,
            replicates=range(first, last),
            items=slice(begin, end),
        )
        stage = Scorer(experiment.design, experiment.seed, self.run.series)

        async def judge(chunk: list[ScoreTarget]) -> None:
            samples = await self._perform("scorer", stage, chunk, tally)
            self.store.runs.save_samples(self.run, samples)
            tally.advance(workflow, len(samples))

        await in_chunks(filter(wanted, asked), judge)

    # --- W5 --------------------------------------------------------------------------------------

    def _probe_shards(self, tally: RunProgress) -> list[Shard]:
        """Ranges of the rows of scored verdicts that have no probe yet."""
        if not self.run.probe:
            return []
        return self.store.runs.unprobed_ranges(self.run, SHARD, only_failed=self.only_failed)

    async def _probe(self, after: int, last: int, *, tally: RunProgress) -> None:
        experiment = self.run.experiment
        stage = Prober(experiment.design, experiment.seed, self.run.series)
        same = experiment.design.probe.resolve().same_context
        rubrics = self.store.runs.rubrics(self.run)
        page = self.store.runs.unprobed(
            self.run, rubrics, after, last, answers=same, only_failed=self.only_failed
        )
        targets = [
            ProbeTarget(sample, self.texts[sample.evidence.id], said) for sample, said in page
        ]

        async def ask(chunk: list[ProbeTarget]) -> None:
            probes = await self._perform("prober", stage, chunk, tally)
            self.store.runs.save_probes(self.run, probes)
            tally.advance("probe", len(probes))

        await in_chunks(targets, ask)

    async def _perform(
        self, name: StageName, stage: Stage[T, R], targets: Sequence[T], tally: RunProgress
    ) -> list[R]:
        """Ask about targets and read what answers there are; each record knows its call."""
        answers = await self._ask(name, stage.requests(targets), tally)
        return [
            replace(stage.read(target, answer.completion), call_id=answer.call_id)
            for target, answer in zip(targets, answers, strict=True)
            if answer is not None
        ]

    async def _ask(
        self, stage: StageName, requests: Sequence[Request], tally: RunProgress
    ) -> Sequence[Answer | None]:
        payer = Payer(self.run.id, self.run.study, self.run.experiment.tag, stage)
        return await self.asker.ask(requests, payer, tally)


def _doubts(critique: Critique) -> Iterator[str]:
    """What a critic's answer says against a rubric."""
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
