"""One run, top to bottom: evidence, rubric, scoring, rubric swap, probe."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from judge_gym.engine.asking import Answering, Tally
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
from judge_gym.studies import Experiment

Workflow = Literal["evidence", "rubric", "score", "swap", "probe"]
WORKFLOWS: tuple[Workflow, ...] = ("evidence", "rubric", "score", "swap", "probe")
T = TypeVar("T")
R = TypeVar("R", View, Critique, Sample, Probe)
CHUNK = 64
"""Targets that are asked for, read and written together; few, since answers wait meanwhile."""
CHUNKS_AT_ONCE = 12
"""So that no slot is idle while a chunk waits for its last answer."""


def chunked(items: Iterable[T]) -> Iterator[list[T]]:
    """Items in lists of at most `CHUNK`."""
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


async def overlapped(chunks: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Work on chunks in their order, a few at once; after a fault no further one is begun."""
    going: set[asyncio.Task[None]] = set()
    faults: list[BaseException] = []
    for chunk in chunks:
        going.add(asyncio.ensure_future(work(chunk)))
        if len(going) == CHUNKS_AT_ONCE:
            done, going = await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
            faults += [fault for task in done if (fault := task.exception())]
        if faults:
            break
    ended = await asyncio.gather(*going, return_exceptions=True)
    faults += [fault for fault in ended if isinstance(fault, BaseException)]
    if faults:
        raise faults[0]


def makers(experiment: Experiment) -> tuple[str | None, str | None]:
    """Who makes the views and the critiques of an experiment; None where none are made."""
    editor = experiment.design.evidence.resolve().editor
    return (
        Neutralizer(experiment.design).maker if editor else None,
        None if experiment.task.rubric else Critic(experiment.design).maker,
    )


def rubric_authors(run: Run) -> tuple[list[RubricTarget], list[RubricTarget]]:
    """The rubrics that a run scores under: its own, and its rivals'."""
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


def score_targets(
    run: Run, rubric: Rubric, texts: dict[int, str], *, is_swap: bool
) -> Iterator[ScoreTarget]:
    """Every verdict that a run wants under one rubric, replicate by replicate."""
    items = [item for item in run.experiment.task.pool.items if item.id in texts]
    orders = run.experiment.orders
    for replicate, item, flipped in itertools.product(range(run.samples), items, orders):
        yield ScoreTarget(rubric, item, texts[item.id], replicate, is_swap, flipped)


@dataclass(slots=True)
class Pipeline:
    """Carries out one run. What is there already is neither asked nor written again."""

    store: Store
    asker: Answering
    run: Run
    tally: Tally
    workflows: Collection[Workflow]
    """What may be made; what is missing of the others is an error."""

    async def carry_out(self) -> None:
        """The five workflows."""
        own_targets, rival_targets = rubric_authors(self.run)
        does = set(self.workflows)
        texts = await self.evidence() if does - {"rubric"} else {}
        own = await self.rubrics("rubric", own_targets) if does & {"rubric", "score"} else []
        if "score" in does:
            await self.score("score", texts, own)
        if "swap" in does:
            rivals = await self.rubrics("swap", rival_targets)
            await self.score("swap", texts, rivals)
        if "probe" in does and self.run.probe:
            await self.probe(texts)

    def announce(self) -> None:
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
        self.tally.wanted = {
            workflow: wanted[workflow] for workflow in WORKFLOWS if workflow in self.workflows
        }

    # --- W1 --------------------------------------------------------------------------------------

    async def evidence(self) -> dict[int, str]:
        """The text that is shown of each item; items whose view failed are left out."""
        design, pool = self.run.experiment.design, self.run.experiment.task.pool
        editor = design.evidence.resolve().editor
        if editor is None:
            return {item.id: item.text for item in pool.items}
        stage = Neutralizer(design)
        texts = self.store.materials.find_views(stage.maker, pool)
        unread = self.store.materials.unread_views(stage.maker, pool)  # answered, without a text
        missing = [item for item in pool.items if item.id not in texts | unread]
        if missing and "evidence" not in self.workflows:
            raise ConflictError(
                f"{self.run.experiment.tag}: {len(missing)} of {len(pool.items)} items have no "
                f"neutralized view by {editor}; make them with: "
                f"judge-gym evidence {self.run.experiment.tag!r}"
            )
        self.tally.advance("evidence", len(texts) + len(unread))

        async def make(chunk: list[Evidence]) -> None:
            views = await self._perform("neutralizer", stage, chunk)
            self.store.materials.save_views(stage.maker, editor, views)
            texts.update({view.evidence.id: view.text for view in views if view.text is not None})
            unread.update({view.evidence.id: view.status for view in views if view.text is None})
            self.tally.advance("evidence", len(views))

        await overlapped(chunked(missing), make)
        titles = {item.id: item.title for item in pool.items}
        self.tally.warnings += [f"no view of {titles[id]!r}: {unread[id]}" for id in unread]
        return texts

    # --- W2 --------------------------------------------------------------------------------------

    async def rubrics(self, workflow: Workflow, targets: Sequence[RubricTarget]) -> list[Rubric]:
        """The rubrics to score under, criticised; those that no author gave are left out."""
        given = self.run.experiment.task.rubric
        if given is not None and workflow == "rubric":
            self.store.runs.link_rubric(self.run, given.id, is_swap=False)
            self.tally.advance("rubric", 1)
            return [given]
        made = []
        for target in targets:
            rubric = await self._rubric(workflow, target)
            if rubric is not None:
                made.append(rubric)
            if workflow == "rubric":
                self.tally.advance("rubric", 1)
        return made

    async def _rubric(self, workflow: Workflow, target: RubricTarget) -> Rubric | None:
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
            await self._write_rubric(stage, key, target)
            found = self.store.materials.find_rubric(key=key)
            if found is None:
                return None  # it was not in the ledger, and nothing else may be asked
        rubric_id = self.store.materials.rubric_id(key)
        self.store.runs.link_rubric(self.run, rubric_id, is_swap=workflow == "swap")
        if not isinstance(found, Rubric):
            self.tally.warnings.append(
                f"{target.author} gave no rubric for {target.concept!r}: {found}"
            )
            return None
        if workflow in self.workflows:
            await self._criticise(found)
        return found

    async def _write_rubric(self, stage: Rubricer, key: str, target: RubricTarget) -> None:
        """Ask for a rubric, and again where it has not the stages that were asked for."""
        for ask in range(ASKS):
            [answer] = await self._ask("rubricer", stage.requests([replace(target, ask=ask)]))
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

    async def _criticise(self, rubric: Rubric) -> None:
        stage = Critic(self.run.experiment.design)
        for critique in await self._perform("critic", stage, [rubric]):
            self.store.materials.save_critique(stage.maker, critique)
            self.tally.warnings += _doubts(critique)

    # --- W3 and W4 -------------------------------------------------------------------------------

    async def score(
        self, workflow: Workflow, texts: dict[int, str], rubrics: Iterable[Rubric]
    ) -> None:
        """Score every item under every rubric, as often as there are replicates."""
        experiment = self.run.experiment
        stage = Scorer(experiment.design, experiment.seed, self.run.series)

        async def judge(chunk: list[ScoreTarget]) -> None:
            samples = await self._perform("scorer", stage, chunk)
            self.store.runs.save_samples(self.run, samples)
            self.tally.advance(workflow, len(samples))

        for rubric in rubrics:
            done = self.store.runs.done_samples(self.run, rubric.id)
            self.tally.advance(workflow, len(done))
            targets = (
                target
                for target in score_targets(self.run, rubric, texts, is_swap=workflow == "swap")
                if (rubric.id, target.evidence.id, target.replicate, target.flipped, target.is_swap)
                not in done
            )
            await overlapped(chunked(targets), judge)

    # --- W5 --------------------------------------------------------------------------------------

    async def probe(self, texts: dict[int, str]) -> None:
        """Ask about every scored verdict that has no probe yet."""
        experiment = self.run.experiment
        stage = Prober(experiment.design, experiment.seed, self.run.series)
        by_id = self.store.runs.rubrics(self.run)
        same = experiment.design.probe.resolve().same_context

        def pages() -> Iterator[list[ProbeTarget]]:
            after = 0
            while page := self.store.runs.unprobed(self.run, by_id, after, CHUNK, answers=same):
                yield [
                    ProbeTarget(sample, texts[sample.evidence.id], said) for sample, said in page
                ]
                after = page[-1][0].id

        async def ask(targets: list[ProbeTarget]) -> None:
            probes = await self._perform("prober", stage, targets)
            self.store.runs.save_probes(self.run, probes)
            self.tally.advance("probe", len(probes))

        await overlapped(pages(), ask)
        self.tally.wanted["probe"] = self.tally.done.get("probe", 0)

    async def _perform(self, name: StageName, stage: Stage[T, R], targets: Sequence[T]) -> list[R]:
        """Ask about targets and read what answers there are; each record knows its call."""
        answers = await self._ask(name, stage.requests(targets))
        return [
            replace(stage.read(target, answer.completion), call_id=answer.call_id)
            for target, answer in zip(targets, answers, strict=True)
            if answer is not None
        ]

    async def _ask(self, stage: StageName, requests: Sequence[Request]) -> Sequence[Answer | None]:
        payer = Payer(self.run.id, self.run.study, self.run.experiment.tag, stage)
        return await self.asker.ask(requests, payer, self.tally)


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
