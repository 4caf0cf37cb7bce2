"""Plans runs without calling a model: counts their calls, and estimates cost and duration.

Where an answer is in the ledger, the next requests are built from it; where not, from a placeholder
of typical length, so that every later request can be counted and measured.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.calls.budget import input_tokens
from judge_gym.engine.calls.limit import CONCURRENCY, endpoint_of
from judge_gym.engine.calls.progress import BASES, LIMITS, MEASURED, TYPICAL, Pace
from judge_gym.engine.orders import CODE_TOKENS, GENERATION
from judge_gym.engine.steps import rubric_authors, score_targets
from judge_gym.models import ModelCard
from judge_gym.models.model_card import Limits
from judge_gym.records import (
    STAGES,
    Completion,
    Evidence,
    OrdinalRubric,
    Request,
    Rubric,
    RubricStage,
    Status,
    content_hash,
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
from judge_gym.store import Ledger, Run, Usage
from judge_gym.store.usage import Speed

OUTPUT_TOKENS: Mapping[str, int] = {
    "neutralizer": 220,
    "rubricer": 600,
    "critic": 150,
    "scorer": 350,
    "prober": 150,
    GENERATION: CODE_TOKENS,
}
"""The typical length of an answer of each stage."""
T = TypeVar("T")
TYPICAL_ANSWER = "word " * 250
Found = tuple[str, Completion | None]
"""The ledger's key of a request, and its answer if it is there."""
TYPICAL_TOKENS = 350
"""The usual length of an answer."""
CHUNK = 64
"""Requests that are looked up together."""
NO_CALLS: Mapping[str, int] = {"to_pay": 0, "in_ledger": 0, "shared": 0}


class Paces:
    """Looks up how long calls to models take.

    Args:
        usage: of the ledger.
        limits: what the user gives in place of the endpoints' own.
    """

    def __init__(self, usage: Usage, limits: Limits) -> None:
        self._usage = usage
        self._given = {name: limit for name, limit in asdict(limits).items() if limit}
        self._speeds: dict[str, Speed | None] = {}

    def of(
        self, card: ModelCard, input_tokens: int = 0, output_tokens: int = TYPICAL_TOKENS
    ) -> Pace:
        """Returns what a call to a model adds: as earlier ones did, but within today's limits."""
        if card.id not in self._speeds:
            self._speeds[card.id] = self._usage.speed(card.id, card.endpoint)
        speed = self._speeds[card.id]
        card = replace(card, limits=replace(card.limits, **self._given))
        limited = card.rate_seconds(input_tokens, output_tokens)
        if speed is not None:
            most = card.limits.concurrency or speed.in_flight
            usual, basis = speed.seconds / min(speed.in_flight, most), MEASURED
        else:
            in_flight = card.limits.concurrency or CONCURRENCY
            usual, basis = card.seconds(input_tokens, output_tokens, in_flight), TYPICAL
        return Pace(limited, LIMITS) if limited and limited >= usual else Pace(usual, basis)


@dataclass(slots=True)
class StagePlan:
    """The calls of one stage of a study."""

    calls: int = 0
    """Distinct calls."""
    in_ledger: int = 0
    """Of these, calls that are answered in the ledger."""
    shared: int = 0
    """Further calls that are identical to one that is counted."""
    input_tokens: int = 0
    """Of the calls to pay, like all that follows."""
    output_tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0

    @property
    def to_pay(self) -> int:
        """Calls that are not answered yet."""
        return self.calls - self.in_ledger

    def to_json(self) -> dict[str, Any]:
        """Returns the estimate of the calls to pay."""
        names = ("input_tokens", "output_tokens", "usd", "seconds")
        return {"calls": self.to_pay} | {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class EndpointPlan:
    """The calls to pay at one endpoint; endpoints are asked at the same time."""

    models: list[str] = field(default_factory=list)
    to_pay: int = 0
    seconds: float = 0.0
    basis: str = MEASURED
    """What the duration is estimated from; of several models, the least that is known."""


@dataclass(slots=True)
class Plan:
    """The calls of a study, by stage, by experiment and by endpoint."""

    stages: dict[str, StagePlan] = field(
        default_factory=lambda: {name: StagePlan() for name in STAGES}
    )
    experiments: dict[str, dict[str, int]] = field(default_factory=dict)
    """Calls to pay and in the ledger, by tag; of suite runs by a name of the caller."""
    endpoints: dict[str, EndpointPlan] = field(default_factory=dict)

    def total(self) -> StagePlan:
        """Returns the sum of all stages; its price is None if one is unknown.

        Its duration is that of the slowest endpoint.
        """
        stages = self.stages.values()
        names = [field.name for field in fields(StagePlan) if field.name != "usd"]
        sums = {name: sum(getattr(stage, name) for stage in stages) for name in names}
        sums["seconds"] = max((plan.seconds for plan in self.endpoints.values()), default=0.0)
        prices = [stage.usd for stage in stages]
        return StagePlan(**sums, usd=None if None in prices else sum(filter(None, prices), 0.0))


class Planner:
    """Plans runs, which need not be stored: nothing is written."""

    def __init__(self, ledger: Ledger, models: Models, paces: Paces) -> None:
        self._ledger = ledger
        self._models = models
        self._paces = paces
        self._stage_seconds: dict[tuple[str, str], float] = defaultdict(float)
        self._seen: set[str] = set()
        self._known: set[str] = set()
        self._views: dict[str, str | None] = {}
        """The views of the ledger by call: runs share them, and each is checked when it is read."""
        self.plan = Plan()

    def payers(self) -> dict[str, int]:
        """Returns the studies that paid for planned calls in the ledger, with their numbers."""
        return self._ledger.payers(self._known)

    def add_generations(self, tag: str, requests: Sequence[Request]) -> None:
        """Adds the calls of one suite run to the plan, under a name."""
        self.plan.stages.setdefault(GENERATION, StagePlan())
        self.plan.experiments.setdefault(tag, dict(NO_CALLS))
        self._look_up(tag, GENERATION, requests)

    def add(self, run: Run) -> None:
        """Adds the calls of one run to the plan."""
        experiment, design = run.experiment, run.experiment.design
        own_targets, rival_targets = rubric_authors(run)
        texts = self._texts(run)
        provided = experiment.task.rubric
        own_rubrics = [provided] if provided else self._rubrics(run, own_targets)
        rival_rubrics = self._rubrics(run, rival_targets)
        scorer = Scorer(design, experiment.seed, run.series, experiment.template)
        targets = itertools.chain.from_iterable(
            score_targets(run, rubric, texts, is_swap=is_swap)
            for is_swap, rubrics in ((False, own_rubrics), (True, rival_rubrics))
            for rubric in rubrics
        )
        for chunk in _chunked(targets):
            requests = scorer.requests(chunk)
            answers = self._look_up(run.experiment.tag, "scorer", requests)
            if run.probe:
                self._probes(run, scorer, zip(chunk, answers, strict=True))

    def _probes(
        self, run: Run, scorer: Scorer, scored: Iterable[tuple[ScoreTarget, Found]]
    ) -> None:
        """Counts the probes of verdicts; an unknown verdict counts as scored, with a new probe."""
        design = scorer.design
        prober = Prober(design, scorer.seed, scorer.series)
        verdicts: list[ProbeTarget] = []
        placeholders: list[ProbeTarget] = []
        keys: list[str] = []
        for target, (key, answer) in scored:
            sample = scorer.read(target, answer)
            if answer is None:  # most verdicts will be scored
                sample = replace(sample, status="scored", stages=(1,))
                placeholders.append(ProbeTarget(sample, target.text, TYPICAL_ANSWER))
                keys.append(key)
            elif sample.status == "scored":
                verdicts.append(ProbeTarget(sample, target.text, answer.text))
        self._look_up(run.experiment.tag, "prober", prober.requests(verdicts))
        # Designs that probe alike share the probe of a verdict that they share.
        wording = content_hash(f"{design.probe!r} {design.prompt.slots.prober!r}")
        for key, asked in zip(keys, prober.requests(placeholders), strict=True):
            self._count(run.experiment.tag, "prober", f"{wording} on {key}", asked, known=False)

    def _texts(self, run: Run) -> dict[int, str]:
        pool, stage = run.experiment.task.pool, Neutralizer(run.experiment.design)
        if run.experiment.design.evidence.resolve().editor is None:
            return {item.id: item.text for item in pool.items}
        answers = self._look_up(run.experiment.tag, "neutralizer", stage.requests(pool.items))
        texts, maker = {}, stage.maker
        for item, (key, answer) in zip(pool.items, answers, strict=True):
            if answer and key not in self._views:
                self._views[key] = stage.read(item, answer).text
            text = self._views[key] if answer else _shortened(item, maker)
            if text is not None:
                texts[item.id] = text
        return texts

    def _rubrics(self, run: Run, targets: Sequence[RubricTarget]) -> list[Rubric]:
        """Returns the rubrics to score with; those that the author failed to write are left out."""
        stage = Rubricer(run.experiment.design, run.experiment.seed)
        rubrics_or_failures = [self._rubric(run, stage, target) for target in targets]
        rubrics = [rubric for rubric in rubrics_or_failures if isinstance(rubric, Rubric)]
        if run.experiment.design.rubric.critic is not None:
            self._look_up(
                run.experiment.tag, "critic", Critic(run.experiment.design).requests(rubrics)
            )
        return rubrics

    def _rubric(self, run: Run, stage: Rubricer, target: RubricTarget) -> Rubric | Status:
        for ask in range(ASKS):
            requests = stage.requests([replace(target, ask=ask)])
            [(_, answer)] = self._look_up(run.experiment.tag, "rubricer", requests)
            if answer is None:
                return _typical_rubric(target, stage.design.rubric.scale, stage.key(target))
            read = stage.read(target, answer)
            if read != "parse_failed":
                break
        return read

    def _look_up(self, tag: str, stage: str, requests: Sequence[Request]) -> list[Found]:
        """Returns keys and answers in the ledger, and counts every request once."""
        answers: list[Found] = []
        for chunk in _chunked(requests):
            keys = [request.key(self._models.card(request.model).endpoint) for request in chunk]
            stored = self._ledger.find(keys)
            for key, request in zip(keys, chunk, strict=True):
                self._count(tag, stage, key, request, known=key in stored)
            answers += [(key, stored[key].completion if key in stored else None) for key in keys]
        return answers

    def _count(self, tag: str, stage: str, key: str, request: Request, *, known: bool) -> None:
        plan = self.plan.stages[stage]
        counts = self.plan.experiments.setdefault(tag, dict(NO_CALLS))
        if key in self._seen:
            plan.shared += 1
            counts["shared"] += 1
            return
        self._seen.add(key)
        plan.calls += 1
        plan.in_ledger += known
        counts["in_ledger" if known else "to_pay"] += 1
        if known:
            self._known.add(key)
            return
        tokens = input_tokens(request), min(OUTPUT_TOKENS[stage], request.max_tokens)
        plan.input_tokens += tokens[0]
        plan.output_tokens += tokens[1]
        card = self._models.card(request.model)
        usd = card.price(*tokens, searches=int(request.web_search))
        plan.usd = None if plan.usd is None or usd is None else plan.usd + usd
        pace, endpoint_name = self._paces.of(card, *tokens), endpoint_of(card)
        endpoint = self.plan.endpoints.setdefault(endpoint_name, EndpointPlan())
        if card.id not in endpoint.models:
            endpoint.models.append(card.id)
        endpoint.basis = max(endpoint.basis, pace.basis, key=BASES.index)
        endpoint.to_pay += 1
        endpoint.seconds += pace.seconds
        self._stage_seconds[stage, endpoint_name] += pace.seconds
        plan.seconds = max(plan.seconds, self._stage_seconds[stage, endpoint_name])


def _chunked(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


def _shortened(item: Evidence, maker: str) -> str:
    """Returns a placeholder of a neutral view: as long as one, and specific to its maker."""
    return " ".join([maker[:8], *item.text.split()[: MAX_WORDS - 1]])


def _typical_rubric(target: RubricTarget, scale: int, key: str) -> Rubric:
    """Returns a placeholder of a rubric: as long as one, and specific to its author and wording."""
    criterion = f"An indicator of typical length, as the rubric {key[:8]} may give it"
    stages = (RubricStage(f"Typical label {n}", (criterion,) * 4) for n in range(1, scale + 1))
    return OrdinalRubric(tuple(stages), target.author, target.concept, target.country, target.draw)
