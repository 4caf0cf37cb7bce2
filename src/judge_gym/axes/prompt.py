"""A judge's own prompt, and free text slots of ours, so that no persona is hard-coded.

Each slot is a knob of its own: `prompt.slots.scorer.persona`. The defaults fit any material; a
protocol replaces them, and a study on code review or medicine may name its own.
"""

from pydantic import BaseModel

from judge_gym.axes._knobs import NONE, OWN_PROMPT, Axes, Conditions, knob
from judge_gym.axes.evidence import UNEDITED
from judge_gym.axes.rubric import UNCRITICISED, UNWRITTEN
from judge_gym.records import StageName, content_hash

PERSONA = "Does the persona given to the model matter?"
LANGUAGE = "Does the language or register of the instructions matter? Empty adds nothing."
FRAMING = "Does a sentence of context change the answer? Empty adds nothing."
MATERIAL = "What are the texts called?"
NO_CRITIC: Conditions = {**UNCRITICISED, "rubric.critic": (None,)}
CONTINUED: Conditions = {"probe.context": ("same",)}
"""When the probe continues the conversation of the verdict, in the persona of the judge."""


def template_level(name: str, text: str) -> str:
    """Names the level of a template by its file and the digest of its text.

    >>> template_level("judge.md", "Is it good?")
    'judge.md~4b0003c9f1db'
    """
    return f"{name}~{content_hash(text)[:12]}"


def template_digest(level: str) -> str:
    """Extracts the digest from a level, which is only a file's name before that is read."""
    return level.rpartition("~")[2]


def template_file(level: str) -> str:
    """Extracts the name of the file from the level of a template.

    >>> template_file("judge.md~4b0003c9f1db"), template_file("none")
    ('judge.md', 'none')
    """
    name, _, digest = level.rpartition("~")
    return name or digest


class NeutralizerSlots(Axes):
    """Slots of the neutralizer's prompt."""

    persona: str = knob(
        "a clinical editor", question=PERSONA, examples=("a court reporter",), inactive=UNEDITED
    )
    material: str = knob("text", question=MATERIAL, examples=("review comment",), inactive=UNEDITED)
    language: str = knob(
        "", question=LANGUAGE, examples=("Write in plain English.",), inactive=UNEDITED
    )
    framing: str = knob(
        "", question=FRAMING, examples=("The text is one of many.",), inactive=UNEDITED
    )


class RubricerSlots(Axes):
    """Slots of the rubric author's prompt."""

    persona: str = knob(
        "an expert evaluator", question=PERSONA, examples=("a senior engineer",), inactive=UNWRITTEN
    )
    material: str = knob(
        "text", question=MATERIAL, examples=("code review comments",), inactive=UNWRITTEN
    )
    language: str = knob(
        "", question=LANGUAGE, examples=("Write in plain English.",), inactive=UNWRITTEN
    )
    framing: str = knob(
        "", question=FRAMING, examples=("The rubric will be used by others.",), inactive=UNWRITTEN
    )


class CriticSlots(Axes):
    """Slots of the critic's prompt."""

    persona: str = knob(
        "an auditor of measurement quality",
        question=PERSONA,
        examples=("a psychometrician",),
        inactive=NO_CRITIC,
    )
    material: str = knob(
        "text", question=MATERIAL, examples=("code review comments",), inactive=NO_CRITIC
    )
    language: str = knob(
        "", question=LANGUAGE, examples=("Write in plain English.",), inactive=NO_CRITIC
    )
    framing: str = knob("", question=FRAMING, examples=("Be strict.",), inactive=NO_CRITIC)


class ScorerSlots(Axes):
    """Slots of the judge's prompt."""

    persona: str = knob(
        "an expert evaluator",
        question=PERSONA,
        examples=("a senior engineer",),
        inactive=OWN_PROMPT,
    )
    language: str = knob(
        "", question=LANGUAGE, examples=("Write in plain English.",), inactive=OWN_PROMPT
    )
    framing: str = knob(
        "", question=FRAMING, examples=("The verdict will be published.",), inactive=OWN_PROMPT
    )


class ProberSlots(Axes):
    """Slots of the probe's prompt."""

    persona: str = knob(
        "an expert evaluator", question=PERSONA, examples=("a senior engineer",), inactive=CONTINUED
    )
    panel: str = knob(
        "experts",
        question="Whose agreement is predicted?",
        examples=("senior engineers",),
    )
    language: str = knob("", question=LANGUAGE, examples=("Write in plain English.",))
    framing: str = knob("", question=FRAMING, examples=("Experts often disagree.",))


class Slots(Axes):
    """The slots of every stage, in pipeline order."""

    neutralizer: NeutralizerSlots = NeutralizerSlots()
    rubricer: RubricerSlots = RubricerSlots()
    critic: CriticSlots = CriticSlots()
    scorer: ScorerSlots = ScorerSlots()
    prober: ProberSlots = ProberSlots()


class PromptAxes(Axes):
    """The judge's own prompt, and the slots of ours."""

    template: str = knob(
        NONE,
        question="Does the prompt that you have in production judge as well as ours, or as a "
        "variant of it? A file; its words stand as they are.",
        examples=(NONE, "judge.md"),
        min_length=1,
    )
    slots: Slots = Slots()

    def remarks(self, stage: StageName) -> tuple[str, ...]:
        """Lists a stage's framing and language, if a study gives them."""
        slots: BaseModel = getattr(self.slots, stage)
        slot_texts = slots.model_dump()
        return tuple(slot_texts[name] for name in ("framing", "language") if slot_texts[name])
