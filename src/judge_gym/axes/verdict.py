"""The form of a verdict: one stage or several, text or JSON, with or without abstaining."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judge_gym.axes._knobs import OWN_PROMPT, Axes, knob

# The gate precedes the reasoning, so that abstaining is a decision and not an afterthought.
GATE = "Decide whether the evidence allows a judgment at all. If it does not, abstain."
REASON = "Reason step by step about which criteria the evidence meets."
REASON_AFTER_GATE = "If it does, reason step by step about which criteria the evidence meets."
SINGLE = "Conclude with the one label whose criteria fit the evidence best."
# Several labels express uncertain evidence; they are not a way to avoid a decision.
SUBSET = (
    "Conclude with every label whose criteria the evidence supports. Choose more than one only "
    "where the evidence genuinely supports more than one."
)


@dataclass(frozen=True, slots=True)
class VerdictStrategy:
    """How a verdict is requested, and which answers are valid."""

    method: Literal["single", "subset"]
    json: bool
    abstain: bool

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the task."""
        conclude = SUBSET if self.method == "subset" else SINGLE
        return (GATE, REASON_AFTER_GATE, conclude) if self.abstain else (REASON, conclude)

    def closing(self, labels: Sequence[str]) -> str:
        """Says how the answer must end, with exactly the labels that are shown."""
        if self.json:
            return self._json_closing(labels)
        choice = f"[{'/'.join(labels)}]"
        if self.method == "subset":
            choice = f"[one or more of {', '.join(labels)}, separated by commas]"
        line = f"VERDICT: {choice}" + (" or ABSTAIN" if self.abstain else "")
        return f"End your response exactly like this:\n{line}"

    def _json_closing(self, labels: Sequence[str]) -> str:
        value = f"one of {', '.join(labels)}"
        if self.method == "subset":
            value = f"a list of one or more of {', '.join(labels)}"
        value += ', or "ABSTAIN"' if self.abstain else ""
        return (
            'Answer with one JSON object with two fields: "reasoning", a string, '
            f'and "verdict", {value}.'
        )

    def schema(self, labels: Sequence[str]) -> dict[str, Any] | None:
        """The output schema for providers that enforce one, None for free text."""
        if not self.json:
            return None
        label: dict[str, Any] = {"type": "string", "enum": list(labels)}
        verdict: dict[str, Any] = label
        if self.method == "subset":
            verdict = {"type": "array", "items": label, "minItems": 1}
        if self.abstain:
            verdict = {"anyOf": [verdict, {"type": "string", "enum": ["ABSTAIN"]}]}
        return {
            "type": "object",
            "properties": {"reasoning": {"type": "string"}, "verdict": verdict},
            "required": ["reasoning", "verdict"],
            "additionalProperties": False,
        }


class VerdictAxes(Axes):
    """Cardinality, output form and the exit option."""

    aliases = {
        "scoringMethod": {
            "freeform-suffix-single": {"verdict.method": "single", "verdict.output": "suffix"},
            "freeform-suffix-subset": {"verdict.method": "subset", "verdict.output": "suffix"},
            "structured-json": {"verdict.method": "single", "verdict.output": "json"},
        },
        "abstainEnabled": "verdict.abstain",
    }

    method: Literal["single", "subset"] = knob(
        "single",
        question="How much disagreement disappears when a judge may name several stages?",
        cite="Dempster 1967; Shafer 1976; Guerdan et al. 2025",
        inactive=OWN_PROMPT,
    )
    output: Literal["suffix", "json"] = knob(
        "suffix",
        question="Does asking for JSON change the verdict?",
        cite="Tam et al. 2024",
        inactive=OWN_PROMPT,
    )
    abstain: bool = knob(
        True,
        question="Does an exit option remove noise, or does it hide disagreement?",
        cite="Krumdick et al. 2025",
        inactive=OWN_PROMPT,
    )

    def resolve(self) -> VerdictStrategy:
        """Builds the strategy of a verdict."""
        return VerdictStrategy(method=self.method, json=self.output == "json", abstain=self.abstain)
