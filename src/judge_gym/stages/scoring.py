"""W3 and W4: a judge scores an item under its own or a rival's rubric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judge_gym.axes import NONE, Design
from judge_gym.axes.verdict import VerdictStrategy
from judge_gym.errors import DesignError
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
from judge_gym.stages.prompts import (
    display,
    failure,
    instructions,
    number_steps,
    rubric_block,
    shown_evidence,
)
from judge_gym.stages.templates import PromptTemplate, read_template
from judge_gym.stages.verdicts import parse_json_verdict, parse_verdict

INSTRUCTIONS = (
    "You judge evidence against a rubric by its criteria alone. Neither the labels nor the order "
    "in which the rubric is listed means anything."
)

NO_DISPLAY = Display((), ())
"""The display of the judge's own prompt, which shows no labels of ours in no order of ours."""


@dataclass(frozen=True, slots=True)
class ScoreTarget:
    """A verdict to be given."""

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
    template: str = ""
    """The text of the judge's own prompt, if the design names one."""

    def requests(self, targets: Sequence[ScoreTarget]) -> list[Request]:
        """Builds one request per verdict."""
        if (template := self._own_prompt()) is not None:
            return [self._own_request(target, template) for target in targets]
        persona = self.design.prompt.slots.scorer.persona
        system = instructions(self.design, "scorer", persona, INSTRUCTIONS)
        verdict = self.design.verdict.resolve()
        task = f"TASK\n{number_steps(verdict.steps)}"
        return [self._request(target, system, task, verdict) for target in targets]

    def _request(
        self, target: ScoreTarget, system: Message, task: str, verdict: VerdictStrategy
    ) -> Request:
        judge, display = self.design.judge, self.display(target)
        blocks = [
            rubric_block(target.rubric, display),
            shown_evidence(self.design, target.evidence, target.text, flipped=target.flipped),
        ]
        if not self.design.presentation.resolve().rubric_first:
            blocks.reverse()
        task = f"{task}\n\n{verdict.closing(display.labels)}"
        return Request(
            model=judge.model,
            messages=(system, Message("user", (blocks[0], "\n\n", blocks[1], "\n\n", task))),
            draw=Draw(self.series, target.replicate),
            temperature=judge.temperature,
            max_tokens=judge.max_tokens,
            schema=verdict.schema(display.labels),
        )

    def _own_prompt(self) -> PromptTemplate | None:
        """The judge's own prompt, or None where the design asks in our words."""
        level = self.design.prompt.template
        if level == NONE:
            return None
        if not self.template:
            raise DesignError(f"the text of the prompt {level} is not known here")
        return read_template(self.template, level)

    def _own_request(self, target: ScoreTarget, own: PromptTemplate) -> Request:
        values = own.values(target.evidence, target.text, target.rubric, flipped=target.flipped)
        system = own.fill(own.system, values)
        message = Message("user", own.fill(own.body, values))
        judge = self.design.judge
        return Request(
            model=judge.model,
            messages=(Message("system", system), message) if system else (message,),
            draw=Draw(self.series, target.replicate),
            temperature=judge.temperature,
            max_tokens=judge.max_tokens,
        )

    def display(self, target: ScoreTarget) -> Display:
        """The labels and order shown for a target, which both orders of a pair share."""
        strategy = self.design.presentation.resolve()
        return display(
            strategy, self.seed, target.evidence.hash, target.replicate, target.rubric.scale
        )

    def read(self, target: ScoreTarget, completion: Completion | None) -> Sample:
        """Reads the sample. An unreadable answer has a status and no stage."""
        if (template := self._own_prompt()) is not None:
            status, stages = _own_verdict(
                template, target.rubric, completion, flipped=target.flipped
            )
            return self._sample(target, NO_DISPLAY, status, stages)
        display = self.display(target)
        # In a pair, a stage identifies a response, whichever was shown first.
        decoded = display.flipped() if target.flipped else display
        status, stages = self._verdict(decoded, _names(target.rubric, display), completion)
        return self._sample(target, decoded, status, stages)

    def _sample(
        self, target: ScoreTarget, display: Display, status: Status, stages: tuple[int, ...]
    ) -> Sample:
        return Sample(
            rubric=target.rubric,
            evidence=target.evidence,
            replicate=target.replicate,
            display=display,
            status=status,
            stages=stages,
            flipped=target.flipped,
            is_swap=target.is_swap,
        )

    def reread(self, sample: Sample, completion: Completion) -> Sample:
        """Parses the answer of a sample anew, under the labels that were shown."""
        if (template := self._own_prompt()) is not None:
            verdict = _own_verdict(template, sample.rubric, completion, flipped=sample.flipped)
            return replace(sample, status=verdict[0], stages=verdict[1])
        decoded = sample.display
        names = _names(sample.rubric, decoded.flipped() if sample.flipped else decoded)
        status, stages = self._verdict(decoded, names, completion)
        return replace(sample, status=status, stages=stages)

    def _verdict(
        self, decoded: Display, names: Mapping[str, str], completion: Completion | None
    ) -> tuple[Status, tuple[int, ...]]:
        """Reads the status of an answer, and the stages of the labels that it names."""
        status = failure(completion)
        if completion is None or status is not None:
            return status or "provider_error", ()
        strategy = self.design.verdict.resolve()
        parse = parse_json_verdict if strategy.json else parse_verdict
        verdict = parse(
            completion.text,
            decoded.labels,
            method=strategy.method,
            abstain=strategy.abstain,
            names=names,
        )
        return verdict.status, decoded.decode(verdict.labels)


def _own_verdict(
    own: PromptTemplate, rubric: Rubric, completion: Completion | None, *, flipped: bool
) -> tuple[Status, tuple[int, ...]]:
    """Reads the status and the stage of an answer to the judge's own prompt."""
    status = failure(completion)
    if completion is None or status is not None:
        return status or "provider_error", ()
    status, stages = own.read(completion.text, rubric)
    # In a pair, a stage identifies a response, whichever was shown first.
    return status, tuple({1: 2, 2: 1}.get(stage, stage) for stage in stages) if flipped else stages


def _names(rubric: Rubric, shown: Display) -> dict[str, str]:
    """Maps each label to the stage name that was shown with it."""
    stages = zip(shown.labels, shown.stages, strict=True)
    return {label: rubric.stages[number - 1].label for label, number in stages}
