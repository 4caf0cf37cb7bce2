"""W1: an editor rewrites an item as a neutral view."""

from collections.abc import Sequence
from dataclasses import dataclass

from judge_gym.axes import Design
from judge_gym.records import Completion, Draw, Evidence, Message, Request, View
from judge_gym.stages.fidelity import check_view
from judge_gym.stages.prompts import enclose_in_tags, failure, instructions

MAX_WORDS = 150
INSTRUCTIONS = "You reduce a text to its facts and leave its style and rhetoric behind."
TASK = """Rewrite the {material} above as a clinical summary of at most {words} words.

RULES
- Keep factual claims, figures and named sources, and nothing else.
- Leave out emotional language, rhetorical questions and comment.
- Leave out adjectives that judge, such as "alarming" or "unprecedented".
- Prefer the passive voice, so that no author is heard.
- Add nothing that the text does not say.
- A text that is too short for {words} words gets a shorter summary.

Answer with the summary alone."""


@dataclass(frozen=True, slots=True)
class Neutralizer:
    """Asks the editor for a clinical summary, which does not depend on the study."""

    design: Design

    def requests(self, targets: Sequence[Evidence]) -> list[Request]:
        """Builds one request per item."""
        editor = self.design.evidence.resolve().editor
        assert editor is not None, "raw evidence is shown as it is"
        slots = self.design.prompt.slots.neutralizer
        task = TASK.format(material=slots.material, words=MAX_WORDS)
        system = instructions(self.design, "neutralizer", slots.persona, INSTRUCTIONS)
        return [
            Request(
                model=editor,
                messages=(
                    system,
                    Message(
                        "user", (enclose_in_tags(item.text, slots.material.upper()), "\n\n", task)
                    ),
                ),
                draw=Draw("view"),
            )
            for item in targets
        ]

    @property
    def maker(self) -> str:
        """The hash of everything but the item: editor, wording, slots."""
        return self.requests([Evidence("", "")])[0].key()

    def read(self, target: Evidence, completion: Completion | None) -> View:
        """Reads the view. One without text has a status that says why."""
        status = failure(completion)
        text = completion.text.strip() if completion else ""
        if status or not text:
            return View(target, None, status or "parse_failed")
        return View(target, text, "scored", checks=check_view(text, target.text, MAX_WORDS))
