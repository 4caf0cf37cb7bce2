"""W2: an author writes a rubric, and a critic scores it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from judge_gym.axes import Design
from judge_gym.records import (
    Completion,
    Critique,
    Draw,
    Message,
    OrdinalRubric,
    Request,
    Rubric,
    RubricStage,
    Status,
)
from judge_gym.stages.answer_lines import DECORATION, clean_lines, read_probability
from judge_gym.stages.prompts import failure, instructions

ASKS = 3
"""The first request and at most two more if the number of stages is wrong."""
AUTHOR_TOKENS = 8192
"""Enough for 26 stages."""
POOR_QUALITY = 0.5
"""The critic's score below which a warning is shown."""

AUTHOR = "You design rubrics that are neutral, observable, and whose stages can be told apart."
# The wording does not say how many stages a judge may choose, because that is an axis of verdicts.
AUTHOR_TASK = """Design a rubric of {scale} stages for assessing how far {material} \
reflects "{concept}"{place}.

REQUIREMENTS
- Exactly {scale} stages, numbered 1 to {scale}, from the weakest signal (1: \
absent or minimal) to the strongest ({scale}).
- {midpoint_rule}
- Each stage has a label of 3 to 5 words and 3 to 5 criteria.
- A criterion is an observable indicator that can be checked in {material}; it is not an opinion.
- Neighbouring stages differ clearly in their criteria.
- Criteria are neutral: they describe conduct of institutions and persons \
("shift", "pattern", "frequency"), they do not judge it ("threat", "danger", "erosion").

Then give your reasons why these stages form one coherent spectrum.

Answer in exactly this form:
STAGE 1: label
- criterion
- criterion
- criterion
(and so on, up to STAGE {scale})
REASONING: your reasons"""

CRITIC = "You check whether the criteria of a rubric can be observed and its stages told apart."
CRITIC_TASK = """{rubric}

Score two qualities of this rubric, each from 0 to 1.

Observability: can every criterion be checked in {material}, and is it specific enough to be found \
false? Deduct for vague words such as "significant", "notable" or "concerning".
Discriminability: are neighbouring stages clearly different, so that trained raters would place \
evidence alike? Deduct for criteria that overlap.

Give your reasons in a few sentences, then end your response exactly like this:
OBSERVABILITY: a number from 0 to 1
DISCRIMINABILITY: a number from 0 to 1"""

_STAGE = re.compile(
    rf"[{DECORATION}\-]*+stage\s*+(?P<number>\d{{1,3}})[*_`]*+\s*+[:.)–—-][\s*_`]*+(?P<label>.*)\Z",
    re.I,
)
_REASONING = re.compile(
    rf"[{DECORATION}\-]*+(?:reasoning|rationale|reasons)[*_`]*+\s*+:[\s*_`]*+(?P<text>.*)\Z", re.I
)
_CRITERIA = re.compile(r"[*_`\s•+–—-]*+criteria[*_`]*+\s*+:[*_`\s]*+(?P<rest>.*)\Z", re.I)
_BULLET = re.compile(r"\s*+(?:[-*•+–—]|\d{1,2}[.)]|[a-z][.)])\s++(?P<text>.*)\Z")


@dataclass(frozen=True, slots=True)
class RubricTarget:
    """A rubric to be written."""

    author: str
    concept: str
    country: str
    draw: int = 0
    ask: int = 0


@dataclass(frozen=True, slots=True)
class Rubricer:
    """Asks an author for a rubric. The prompt depends on no verdict or presentation knob."""

    design: Design
    seed: int

    def requests(self, targets: Sequence[RubricTarget]) -> list[Request]:
        """Builds one request per rubric."""
        slots = self.design.prompt.slots.rubricer
        strategy = self.design.rubric.resolve(self.design.judge.model)
        system = instructions(self.design, "rubricer", slots.persona, AUTHOR)
        return [
            Request(
                model=target.author,
                messages=(
                    system,
                    Message(
                        "user",
                        (
                            AUTHOR_TASK.format(
                                scale=strategy.scale,
                                midpoint_rule=strategy.midpoint_rule,
                                material=slots.material,
                                concept=target.concept,
                                place=f" in {target.country}" if target.country else "",
                            ),
                        ),
                    ),
                ),
                draw=Draw(str(self.seed), target.draw, target.ask),
                max_tokens=AUTHOR_TOKENS,
            )
            for target in targets
        ]

    def key(self, target: RubricTarget) -> str:
        """Hashes what identifies a rubric, whichever of its requests succeeds."""
        return self.requests([replace(target, ask=0)])[0].key()

    def read(self, target: RubricTarget, completion: Completion | None) -> Rubric | Status:
        """Reads a rubric of exactly the requested stages, or else says what is wrong."""
        status = failure(completion)
        if completion is None or status:
            return status or "provider_error"
        stages, reasoning = parse_rubric(completion.text)
        if len(stages) != self.design.rubric.scale:
            return "parse_failed"
        return OrdinalRubric(
            stages=stages,
            author=target.author,
            concept=target.concept,
            country=target.country,
            draw=target.draw,
            reasoning=reasoning,
        )


def parse_rubric(text: str) -> tuple[tuple[RubricStage, ...], str]:
    r"""Parses stages, which must be numbered from 1, and reasoning of an author's answer.

    >>> text = "STAGE 1: Calm\n- quiet\nSTAGE 2: Stormy\n- loud\nREASONING: so"
    >>> stages, why = parse_rubric(text)
    >>> [stage.label for stage in stages], why
    (['Calm', 'Stormy'], 'so')
    """
    stages: list[tuple[str, list[str]]] = []
    reasoning: list[str] | None = None
    for line in clean_lines(text):
        if reasoning is not None:
            reasoning.append(line)
        elif match := _STAGE.match(line):
            if int(match["number"]) != len(stages) + 1:
                return (), ""
            stages.append((match["label"].strip(" \t*_`\"'“”"), []))
        elif match := _REASONING.match(line):
            reasoning = [match["text"]]
        elif stages:
            criteria = stages[-1][1]
            line_criteria = list(_criteria(line))
            if not line_criteria and criteria and line[:1].isspace() and line.strip():
                criteria[-1] += " " + line.strip(" *_`\t")  # a criterion that continues
            criteria += line_criteria
    if not stages or not all(label and criteria for label, criteria in stages):
        return (), ""
    rubric_stages = tuple(RubricStage(label, tuple(criteria)) for label, criteria in stages)
    return rubric_stages, "\n".join(reasoning or []).strip()


def _criteria(line: str) -> Iterator[str]:
    """Yields the criteria on one line: a bullet, or several after `Criteria:`."""
    packed = _CRITERIA.match(line)
    bullet = _BULLET.match(line)
    if packed:
        yield from filter(
            None, (part.strip(" .*_`") for part in _split_outside_brackets(packed["rest"]))
        )
    elif bullet and bullet["text"].strip(" *_`"):
        yield bullet["text"].strip(" *_`")


def _split_outside_brackets(text: str) -> list[str]:
    """Splits a line of criteria at semicolons outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth = max(0, depth + (char in "([") - (char in ")]"))
        if char == ";" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


@dataclass(frozen=True, slots=True)
class Critic:
    """Asks the critic, who is no judge and does not see the author, for a rubric's quality."""

    design: Design

    def requests(self, targets: Sequence[Rubric]) -> list[Request]:
        """Builds one request per rubric."""
        slots, critic = self.design.prompt.slots.critic, self._critic
        system = instructions(self.design, "critic", slots.persona, CRITIC)
        return [
            Request(
                model=critic,
                messages=(
                    system,
                    Message(
                        "user",
                        (CRITIC_TASK.format(rubric=list_stages(rubric), material=slots.material),),
                    ),
                ),
                draw=Draw("critique"),
            )
            for rubric in targets
        ]

    @property
    def _critic(self) -> str:
        assert self.design.rubric.critic is not None, "this rubric is not criticised"
        return self.design.rubric.critic

    @property
    def maker(self) -> str:
        """The hash of everything but the rubric: critic, wording, slots."""
        return self.requests([OrdinalRubric((), "", "", "")])[0].key()

    def read(self, target: Rubric, completion: Completion | None) -> Critique:
        """Reads the scores, which are null if they are unreadable."""
        status = failure(completion)
        observability = discriminability = None
        if completion is not None and status is None:
            observability = read_probability(completion.text, "observability")
            discriminability = read_probability(completion.text, "discriminability")
            status = "parse_failed" if None in (observability, discriminability) else "scored"
        assert status is not None
        return Critique(target, self._critic, status, observability, discriminability)


def list_stages(rubric: Rubric) -> str:
    """Writes a rubric with its numbered stages, as those who write or review one see it."""
    country = f" in {rubric.country}" if rubric.country else ""
    stages = [
        "\n".join(
            [
                f'Stage {number}: "{stage.label}"',
                *(f"  - {criterion}" for criterion in stage.criteria),
            ]
        )
        for number, stage in enumerate(rubric.stages, 1)
    ]
    return f'RUBRIC for "{rubric.concept}"{country}\n' + "\n".join(stages)
