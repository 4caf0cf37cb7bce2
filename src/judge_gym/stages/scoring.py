"""W3 and W4: a judge scores an item under its own or a rival's rubric."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from judge_gym.axes import Design
from judge_gym.records import (
    Completion,
    Display,
    Draw,
    Evidence,
    Message,
    Request,
    Rubric,
    Sample,
    Status,
)
from judge_gym.stages.display import display
from judge_gym.stages.prompts import evidence_block, failure, instructions, numbered, rubric_block
from judge_gym.stages.verdicts import parse_json_verdict, parse_verdict

INSTRUCTIONS = (
    "You judge evidence against a rubric by its criteria alone. Neither the labels nor the order "
    "in which the rubric is listed means anything."
)


@dataclass(frozen=True, slots=True)
class ScoreTarget:
    """One verdict to ask for."""

    rubric: Rubric
    evidence: Evidence
    text: str
    """The view that is shown."""
    replicate: int
    is_swap: bool = False
    flipped: bool = False


@dataclass(frozen=True, slots=True)
class Scorer:
    """Asks the judge for verdicts."""

    design: Design
    seed: int
    series: str

    def requests(self, targets: Sequence[ScoreTarget]) -> list[Request]:
        """One request per verdict."""
        return [self._request(target) for target in targets]

    def _request(self, target: ScoreTarget) -> Request:
        slots, judge = self.design.prompt.slots.scorer, self.design.judge
        verdict = self.design.verdict.resolve()
        shown = self.display(target)
        blocks = [
            rubric_block(target.rubric, shown),
            evidence_block(target.evidence, target.text, flipped=target.flipped),
        ]
        if not self.design.presentation.resolve().rubric_first:
            blocks.reverse()
        task = f"TASK\n{numbered(verdict.steps)}\n\n{verdict.closing(shown.labels)}"
        return Request(
            model=judge.model,
            messages=(
                instructions(self.design, "scorer", slots.persona, INSTRUCTIONS),
                Message("user", (blocks[0], "\n\n", blocks[1], "\n\n", task)),
            ),
            draw=Draw(self.series, target.replicate),
            temperature=judge.temperature,
            max_tokens=judge.max_tokens,
            schema=verdict.schema(shown.labels),
        )

    def display(self, target: ScoreTarget) -> Display:
        """What the judge is shown for a target; of a pair, the same labels in both orders."""
        strategy = self.design.presentation.resolve()
        return display(
            strategy, self.seed, target.evidence.hash, target.replicate, target.rubric.scale
        )

    def read(self, target: ScoreTarget, completion: Completion | None) -> Sample:
        """The sample; what could not be read has a status that says so and no stage."""
        shown = self.display(target)
        # Of a pair, a stage is the identity of a response, in whichever order it was shown.
        decoded = shown.flipped() if target.flipped else shown
        status, stages = self._verdict(decoded, completion)
        return Sample(
            rubric=target.rubric,
            evidence=target.evidence,
            replicate=target.replicate,
            display=decoded,
            status=status,
            stages=stages,
            flipped=target.flipped,
            is_swap=target.is_swap,
        )

    def reread(self, sample: Sample, completion: Completion) -> Sample:
        """The sample as its answer reads now, under the labels that were shown then."""
        status, stages = self._verdict(sample.display, completion)
        return replace(sample, status=status, stages=stages)

    def _verdict(
        self, decoded: Display, completion: Completion | None
    ) -> tuple[Status, tuple[int, ...]]:
        """How an answer reads: its status, and the stages behind the labels that it names."""
        status = failure(completion)
        if completion is None or status is not None:
            return status or "provider_error", ()
        strategy = self.design.verdict.resolve()
        parse = parse_json_verdict if strategy.json else parse_verdict
        verdict = parse(
            completion.text, decoded.labels, method=strategy.method, abstain=strategy.abstain
        )
        return verdict.status, decoded.decode(verdict.labels)
