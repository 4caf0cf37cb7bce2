"""W5: a judge states the probability that experts would agree with its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

from judge_gym.axes import Design
from judge_gym.records import Completion, Display, Draw, Message, Probe, Request, Sample, Status
from judge_gym.stages.answer_lines import read_probability
from judge_gym.stages.prompts import failure, instructions, rubric_block, shown_evidence
from judge_gym.stages.scoring import Scorer, ScoreTarget

INSTRUCTIONS = "You estimate how far independent raters agree on a verdict."
REVIEWED = "VERDICT UNDER REVIEW\nThe evidence was judged to be at: {stages}."
ABOVE = "VERDICT UNDER REVIEW\nYour verdict above: {stages}."
# The event is stated, because "the experts agree" may mean all of them or most of them.
QUESTION = """QUESTION
Three {panel}, working independently with the same evidence and the same rubric, each choose the \
one {noun} that fits best. What is the probability that at least two of the three choose {event}?

Consider how clearly the evidence meets these criteria, whether a neighbouring {noun} fits as \
well, and how far the criteria constrain a judgment.

End your response exactly like this:
PROBABILITY: a number from 0 to 1"""


def prompted_labels(
    display: Display, stages: Sequence[int], *, flipped: bool
) -> list[tuple[str, int]]:
    """Lists the labels and stages that a probe of a verdict names, as they were shown.

    They are in display order, so that the list does not reveal the order of the scale.
    """
    prompt_display = display.flipped() if flipped else display
    pairs = zip(prompt_display.labels, prompt_display.stages, display.stages, strict=True)
    return [(label, named) for label, named, decoded in pairs if decoded in stages]


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """A scored sample to ask about, the text that was scored, and the answer that was given."""

    sample: Sample
    text: str
    answer: str = ""
    """The judge's reply; needed only if the probe continues its conversation."""


@dataclass(frozen=True, slots=True)
class Prober:
    """Asks the judge about its whole verdict, in a fresh context or after its own answer."""

    design: Design
    seed: int
    series: str

    def requests(self, targets: Sequence[ProbeTarget]) -> list[Request]:
        """Builds one request per scored sample."""
        persona = self.design.prompt.slots.prober.persona
        system = instructions(self.design, "prober", persona, INSTRUCTIONS)
        return [self._request(target, system) for target in targets]

    def _request(self, target: ProbeTarget, system: Message) -> Request:
        sample, slots, judge = target.sample, self.design.prompt.slots.prober, self.design.judge
        decoded = self._display(sample)
        prompt_display = decoded.flipped() if sample.flipped else decoded
        labelled = prompted_labels(decoded, sample.stages, flipped=sample.flipped)
        noun = "stage" if sample.rubric.kind == "ordinal" else "option"
        labels = [label for label, _ in labelled]
        named = ", ".join(
            f'{noun.capitalize()} {label} ("{sample.rubric.stages[s - 1].label}")'
            for label, s in labelled
        )
        event = f"{noun} {labels[0]}" if len(labels) == 1 else f"one of {', '.join(labels)}"
        question = QUESTION.format(panel=slots.panel, noun=noun, event=event)
        if self.design.probe.resolve().same_context:
            request = Scorer(self.design, self.seed, self.series).requests([_score_target(target)])[
                0
            ]
            reviewed = ABOVE.format(stages=named)
            messages = (
                *request.messages,
                Message("assistant", (target.answer,)),
                Message("user", ("\n\n".join([reviewed, *self.design.notes("prober"), question]),)),
            )
        else:
            rubric = rubric_block(sample.rubric, prompt_display)
            evidence = shown_evidence(
                self.design, sample.evidence, target.text, flipped=sample.flipped
            )
            reviewed = REVIEWED.format(stages=named)
            messages = (
                system,
                Message("user", (rubric, "\n\n", evidence, "\n\n", reviewed, "\n\n", question)),
            )
        return Request(
            model=judge.model,
            messages=messages,
            draw=Draw(self.series, sample.replicate),
            temperature=judge.temperature,
            max_tokens=judge.max_tokens,
        )

    def _display(self, sample: Sample) -> Display:
        """The display of a sample. One without has what our prompt would have shown."""
        if sample.display.labels:
            return sample.display
        target = ScoreTarget(sample.rubric, sample.evidence, "", sample.replicate)
        display = Scorer(self.design, self.seed, self.series).display(target)
        return display.flipped() if sample.flipped else display

    def read(self, target: ProbeTarget, completion: Completion | None) -> Probe:
        """Reads the probability, which is null if it is unreadable."""
        status: Status | None = failure(completion)
        probability = None
        if completion is not None and status is None:
            probability = read_probability(completion.text)
            status = "parse_failed" if probability is None else "scored"
        assert status is not None
        return Probe(target.sample, status, probability)


def _score_target(target: ProbeTarget) -> ScoreTarget:
    sample = target.sample
    return ScoreTarget(
        sample.rubric,
        sample.evidence,
        target.text,
        sample.replicate,
        sample.is_swap,
        sample.flipped,
    )
