"""A plan: the walk of a run without a call, to say what it will cost and what is in the ledger.

Where an answer is in the ledger, the walk goes on with it; where not, a stand-in of typical length
takes its place, so that every later request can be built, counted and measured.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.calls.budget import input_tokens
from judge_gym.engine.runs.pipeline import chunked
from judge_gym.engine.runs.targets import rubric_authors, score_targets
from judge_gym.records import (
    STAGES,
    Completion,
    Evidence,
    OrdinalRubric,
    Request,
    Rubric,
    RubricStage,
    StageName,
    Status,
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
)
from judge_gym.stages.evidence import MAX_WORDS
from judge_gym.stages.rubric import ASKS
from judge_gym.store import Ledger, Run

OUTPUT_TOKENS: dict[StageName, int] = {
    "neutralizer": 220,
    "rubricer": 600,
    "critic": 150,
    "scorer": 350,
    "prober": 150,
}
"""What an answer of each stage typically holds."""
TYPICAL_ANSWER = "word " * 250
Scored = tuple[ScoreTarget, Request, Completion | None]


@dataclass(slots=True)
class StagePlan:
    """What one stage of a study will ask."""

    calls: int = 0
    """Distinct questions."""
    in_ledger: int = 0
    """Of these, already answered."""
    shared: int = 0
    """Further questions that are the same as one counted here."""
    input_tokens: int = 0
    """Of what is still to be paid, like all that follows."""
    output_tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0

    @property
    def to_pay(self) -> int:
        """Questions that are not answered yet."""
        return self.calls - self.in_ledger

    def to_json(self) -> dict[str, Any]:
        """What is still to be paid."""
        fields = ("input_tokens", "output_tokens", "usd", "seconds")
        return {"calls": self.to_pay} | {name: getattr(self, name) for name in fields}


@dataclass(slots=True)
class Plan:
    """What a study will ask, by stage and by experiment."""

    stages: dict[StageName, StagePlan] = field(
        default_factory=lambda: {name: StagePlan() for name in STAGES}
    )
    experiments: dict[str, dict[str, int]] = field(default_factory=dict)
    """Calls to pay and in the ledger, by tag."""

    def total(self) -> StagePlan:
        """All stages together."""
        total = StagePlan()
        for stage in self.stages.values():
            for name in (
                "calls",
                "in_ledger",
                "shared",
                "input_tokens",
                "output_tokens",
                "seconds",
            ):
                setattr(total, name, getattr(total, name) + getattr(stage, name))
            total.usd = None if total.usd is None or stage.usd is None else total.usd + stage.usd
        return total


class Planner:
    """Walks runs. They need no rows: a plan writes nothing."""

    def __init__(self, ledger: Ledger, models: Models, *, concurrency: int) -> None:
        self._ledger = ledger
        self._models = models
        self._concurrency = concurrency
        self._seen: set[str] = set()
        self.plan = Plan()

    def walk(self, run: Run) -> None:
        """Add what one run asks to the plan."""
        experiment, design = run.experiment, run.experiment.design
        own_targets, rival_targets = rubric_authors(run)
        texts = self._texts(run)
        given = experiment.task.rubric
        own = [given] if given else self._rubrics(run, own_targets)
        rivals = self._rubrics(run, rival_targets)
        scorer = Scorer(design, experiment.seed, run.series)
        targets = itertools.chain.from_iterable(
            score_targets(run, rubric, texts, is_swap=is_swap)
            for is_swap, rubrics in ((False, own), (True, rivals))
            for rubric in rubrics
        )
        for chunk in chunked(targets):
            requests = scorer.requests(chunk)
            answers = self._look_up(run, "scorer", requests)
            if run.probe:
                self._probes(run, scorer, zip(chunk, requests, answers, strict=True))

    def _probes(self, run: Run, scorer: Scorer, scored: Iterable[Scored]) -> None:
        """Count the probes of verdicts; where a verdict is not known yet, one of its own."""
        prober = Prober(scorer.design, scorer.seed, scorer.series)
        known = []
        for target, request, answer in scored:
            sample = scorer.read(target, answer)
            if answer is None:  # most verdicts will be scored
                guessed = replace(sample, status="scored", stages=(1,))
                asked = prober.requests([ProbeTarget(guessed, target.text, TYPICAL_ANSWER)])[0]
                self._count(run, "prober", f"{asked.key()} on {request.key()}", asked, known=False)
            elif sample.status == "scored":
                known.append(ProbeTarget(sample, target.text, answer.text))
        self._look_up(run, "prober", prober.requests(known))

    def _texts(self, run: Run) -> dict[int, str]:
        pool, stage = run.experiment.task.pool, Neutralizer(run.experiment.design)
        if run.experiment.design.evidence.resolve().editor is None:
            return {item.id: item.text for item in pool.items}
        answers = self._look_up(run, "neutralizer", stage.requests(pool.items))
        texts = {}
        for item, answer in zip(pool.items, answers, strict=True):
            text = stage.read(item, answer).text if answer else _shortened(item, stage.maker)
            if text is not None:
                texts[item.id] = text
        return texts

    def _rubrics(self, run: Run, targets: Sequence[RubricTarget]) -> list[Rubric]:
        """The rubrics to score under; those that are known not to come are left out."""
        stage = Rubricer(run.experiment.design, run.experiment.seed)
        found = [self._rubric(run, stage, target) for target in targets]
        rubrics = [rubric for rubric in found if isinstance(rubric, Rubric)]
        self._look_up(run, "critic", Critic(run.experiment.design).requests(rubrics))
        return rubrics

    def _rubric(self, run: Run, stage: Rubricer, target: RubricTarget) -> Rubric | Status:
        for ask in range(ASKS):
            requests = stage.requests([replace(target, ask=ask)])
            [answer] = self._look_up(run, "rubricer", requests)
            if answer is None:
                return _typical_rubric(target, stage.design.rubric.scale, stage.key(target))
            read = stage.read(target, answer)
            if read != "parse_failed":
                break
        return read

    def _look_up(
        self, run: Run, stage: StageName, requests: Sequence[Request]
    ) -> list[Completion | None]:
        """What the ledger holds of requests; the rest goes on the bill, each question once."""
        found: list[Completion | None] = []
        for chunk in chunked(requests):
            keys = [request.key(self._models.card(request.model).endpoint) for request in chunk]
            known = self._ledger.find(keys)
            for key, request in zip(keys, chunk, strict=True):
                self._count(run, stage, key, request, known=key in known)
            found += [known[key].completion if key in known else None for key in keys]
        return found

    def _count(
        self, run: Run, stage: StageName, key: str, request: Request, *, known: bool
    ) -> None:
        plan = self.plan.stages[stage]
        counts = self.plan.experiments.setdefault(
            run.experiment.tag, {"to_pay": 0, "in_ledger": 0, "shared": 0}
        )
        if key in self._seen:
            plan.shared += 1
            counts["shared"] += 1
            return
        self._seen.add(key)
        plan.calls += 1
        plan.in_ledger += known
        counts["in_ledger" if known else "to_pay"] += 1
        if known:
            return
        tokens = input_tokens(request), min(OUTPUT_TOKENS[stage], request.max_tokens)
        plan.input_tokens += tokens[0]
        plan.output_tokens += tokens[1]
        card = self._models.card(request.model)
        usd = card.price(*tokens)
        plan.usd = None if plan.usd is None or usd is None else plan.usd + usd
        plan.seconds += card.seconds(tokens[1], self._concurrency)


def _shortened(item: Evidence, maker: str) -> str:
    """A stand-in for a neutral view: as long as one, and different for each editor and wording."""
    return " ".join([maker[:8], *item.text.split()[: MAX_WORDS - 1]])


def _typical_rubric(target: RubricTarget, scale: int, key: str) -> Rubric:
    """A stand-in for a rubric: as long as one, and different for each author and wording."""
    criterion = f"An indicator of typical length, as the rubric {key[:8]} may give it"
    stages = (RubricStage(f"Typical label {n}", (criterion,) * 4) for n in range(1, scale + 1))
    return OrdinalRubric(tuple(stages), target.author, target.concept, target.country, target.draw)
