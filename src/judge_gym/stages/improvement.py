"""Revised rubrics and prompts, which an assistant proposes from disagreements with people."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judge_gym.errors import DesignError
from judge_gym.records import Completion, Draw, Message, Request, Rubric, Status
from judge_gym.stages.prompts import enclose_in_tags, failure
from judge_gym.stages.rubric import list_stages, parse_rubric
from judge_gym.stages.templates import HEAD, PLACEHOLDER, read_template

IMPROVER_TOKENS = 8192
"""Enough for a rubric of 26 stages, or for a long prompt."""
LONGEST_ITEM, LONGEST_QUOTE = 4000, 600
"""Characters of an item and of a judge's answer that are shown."""
CUT = "[...]"

IMPROVER = (
    "You revise the instructions of judges, so that judges who follow them agree with people."
)
# People are the standard: the assistant is to find what they go by, not to argue with them.
IMPROVER_TASK = """Above are items on which a judge that followed this {what} disagrees with \
people. People's labels are taken as right. Find out what they go by that the {what} leaves out, \
leaves open or says otherwise, and revise it.

REQUIREMENTS
- {kept}
- What you write holds for items that nobody has seen yet: name observable indicators, and neither \
quote nor mention single items.
- Change what causes disagreements, and leave the rest as it is.

{closing}"""
RUBRIC_KEPT = "Keep the {scale} stages, with exactly their labels and in their order."
RUBRIC_CLOSING = """Answer in exactly this form:
STAGE 1: label
- criterion
- criterion
(and so on, up to STAGE {scale})
REASONING: what you changed, and why"""
PROMPT_KEPT = (
    "Keep the words in braces, which are replaced by each item, and keep how an answer has to end."
)
PROMPT_CLOSING = """Give your reasons in a few sentences. Then write the whole revised prompt \
between these two lines:
<revised-prompt>
</revised-prompt>"""
_REVISED = re.compile(r"<revised-prompt>[ \t]*\n(?P<body>.*?)\n?[ \t]*</revised-prompt>", re.S)


@dataclass(frozen=True, slots=True)
class ItemDisagreement:
    """An item on which a judge and people differ."""

    item: str
    """The item as the judge saw it."""
    people: str
    """People's labels in words."""
    judge: str
    """The judge's verdict in words."""
    quote: str
    """The judge's answer."""


@dataclass(frozen=True, slots=True)
class ImprovementTarget:
    """A proposal to be made."""

    number: int
    """From 1."""
    rubric: Rubric
    """The rubric under which the judge gave its verdicts."""
    disagreements: tuple[ItemDisagreement, ...]
    prompt: str = ""
    """The text of the judge's own prompt, which is then revised in place of the rubric."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A revised rubric or prompt, or how the assistant's answer failed."""

    number: int
    status: Status
    rubric: Rubric | None = None
    prompt: str = ""
    """The text of the whole file, with the head of the one before."""


@dataclass(frozen=True, slots=True)
class Improver:
    """Asks an assistant for revised rubrics or prompts."""

    assistant: str
    seed: int

    def requests(self, targets: Sequence[ImprovementTarget]) -> list[Request]:
        """Builds one request per proposal."""
        return [
            Request(
                model=self.assistant,
                messages=(Message("system", (IMPROVER,)), Message("user", _parts(target))),
                draw=Draw(str(self.seed), target.number),
                max_tokens=IMPROVER_TOKENS,
            )
            for target in targets
        ]

    def read(self, target: ImprovementTarget, completion: Completion | None) -> Proposal:
        """Reads a rubric with the stages of the one before, or a prompt with its placeholders."""
        status = failure(completion)
        if completion is None or status:
            return Proposal(target.number, status or "provider_error")
        if target.prompt:
            prompt = _revised_prompt(target.prompt, completion.text)
            return Proposal(target.number, "scored" if prompt else "parse_failed", prompt=prompt)
        rubric = _revised_rubric(target.rubric, completion.text)
        return Proposal(target.number, "scored" if rubric else "parse_failed", rubric)


def _parts(target: ImprovementTarget) -> tuple[str, ...]:
    """Writes the instructions in force, the disagreements and the task."""
    scale = target.rubric.scale
    before = list_stages(target.rubric)
    words: Mapping[str, str] = {
        "what": "rubric",
        "kept": RUBRIC_KEPT.format(scale=scale),
        "closing": RUBRIC_CLOSING.format(scale=scale),
    }
    if target.prompt:
        before = f"{before}\n\n{_enclosed_prompt(target.prompt)}"
        words = {"what": "prompt", "kept": PROMPT_KEPT, "closing": PROMPT_CLOSING}
    blocks = [before, *map(_block, target.disagreements), IMPROVER_TASK.format(**words)]
    return tuple(part for block in blocks for part in (block, "\n\n"))[:-1]


def _enclosed_prompt(text: str) -> str:
    return enclose_in_tags(_split(text)[1].strip(), "PROMPT", "prompt")


def _block(disagreement: ItemDisagreement) -> str:
    item = enclose_in_tags(_shortened(disagreement.item, LONGEST_ITEM), "DISAGREEMENT")
    # The end of an answer has its verdict and the reasons that led to it.
    quote = disagreement.quote.strip()
    quote = quote if len(quote) <= LONGEST_QUOTE else f"{CUT} {quote[-LONGEST_QUOTE:]}"
    return (
        f"{item}\nPEOPLE SAY: {disagreement.people}\nTHE JUDGE SAYS: {disagreement.judge}\n"
        f"{enclose_in_tags(quote, 'ITS ANSWER', 'answer')}"
    )


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]} {CUT}"


def _revised_rubric(before: Rubric, answer: str) -> Rubric | None:
    """Reads a rubric with the same labels in the same order; None where an answer has none."""
    stages, reasoning = parse_rubric(answer)
    if [_plain(stage.label) for stage in stages] != [
        _plain(stage.label) for stage in before.stages
    ]:
        return None
    revised = tuple(
        replace(old, criteria=new.criteria) for old, new in zip(before.stages, stages, strict=True)
    )
    return replace(before, stages=revised, reasoning=reasoning, id=0, call_id=None)


def _plain(label: str) -> str:
    return " ".join(label.strip(" \t*_`\"'“”.").casefold().split())


def _revised_prompt(before: str, answer: str) -> str:
    """Reads a prompt that shows the same parts of an item and can be read; empty otherwise."""
    bodies = _REVISED.findall(answer)
    if not bodies or not bodies[-1].strip():
        return ""
    head, body = _split(before)
    revised = bodies[-1].strip()
    if {*PLACEHOLDER.findall(revised)} != {*PLACEHOLDER.findall(body)}:
        return ""
    text = f"{head}{revised}\n"
    try:
        read_template(text, "the proposal")
    except DesignError:
        return ""
    return text


def _split(text: str) -> tuple[str, str]:
    """Splits the text of a prompt's file into its head and the prompt below it."""
    match = HEAD.match(text)
    return (text[: match.end()], text[match.end() :]) if match else ("", text)
