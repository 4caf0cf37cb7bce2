"""What failures have in common, and what to do about each; templates filled from rows."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from judge_gym.outcomes import EvalResult
from judge_gym.triage.findings import Finding
from judge_gym.triage.gate import failed_steps
from judge_gym.triage.markdown import code
from judge_gym.triage.signs import signs

EVALS, CONFIG, MODEL, NO_ACTION = ADVICE = (
    "Eval improvements",
    "Lint and configuration",
    "Model-specific notes",
    "No action needed",
)
KINDS = ("rule", "exception", "step", "category")
"""What failures may share, the most telling first."""
CHECKING_STEPS = frozenset({"lint", "types", "ruff", "mypy", "pyright", "eslint", "tsc"})
"""Steps that hold code against rules; what is too strict there is a matter of configuration."""


class Pattern(NamedTuple):
    """What two or more failures share."""

    kind: str
    name: str
    results: tuple[EvalResult, ...]


def patterns(findings: Sequence[Finding]) -> list[Pattern]:
    """Steps, rules, exceptions and categories of two or more failures, the most common first."""
    groups: dict[tuple[str, str], list[EvalResult]] = defaultdict(list)
    for result in (one.case.result for one in findings):
        for step in failed_steps(result):
            groups["step", step.name].append(result)
        groups["category", result.category].append(result)
        for sign in signs(result):
            if sign.kind != "test":  # whose names are an eval's own
                groups[sign.kind, sign.name].append(result)
    found = [Pattern(*key, tuple(those)) for key, those in groups.items() if len(those) > 1]
    return sorted(found, key=lambda one: (-len(one.results), KINDS.index(one.kind), one.name))


def advice(one: Finding, findings: Sequence[Finding]) -> tuple[str, str]:
    """The group that a decided finding falls into, and what is recommended."""
    facts, steps = one.case.facts, [step.name for step in failed_steps(one.case.result)]
    at = " and ".join(map(code, steps))
    if facts.reference_failed:
        where = " and ".join(map(code, facts.reference_failed))
        return EVALS, (
            f"the reference answer fails this grader at {where}; repair the eval before all else."
        )
    rules = sorted(sign.name for sign in signs(one.case.result) if sign.kind == "rule")
    match one.classification:
        case "OVERLY_STRICT" if CHECKING_STEPS.issuperset(steps):
            named = f" ({', '.join(map(code, rules))})" if rules else ""
            return (
                CONFIG,
                f"relax what is demanded at {at}{named}, or state it in the task.",
            )
        case "OVERLY_STRICT":
            return EVALS, f"relax {at} to what the task says, or say it there."
        case "AMBIGUOUS_TASK":
            return EVALS, "say in the task what the grader takes for granted."
        case "KNOWN_GAP":
            return EVALS, (
                "close the known gap, or write down the one that was meant."
                if one.supported is False
                else "close the known gap."
            )
    return _fault(one, findings)


def _fault(one: Finding, findings: Sequence[Finding]) -> tuple[str, str]:
    """A fault is worth a note where it repeats within the run, or where others do better."""
    mine = {sign for sign in signs(one.case.result) if sign.kind == "rule"}
    repeated = sorted(
        {
            sign.name
            for other in findings
            if other is not one and other.classification == one.classification
            for sign in mine.intersection(signs(other.case.result))
        }
    )
    facts = one.case.facts
    if repeated:
        return MODEL, f"the same rule is broken elsewhere too: {', '.join(map(code, repeated))}."
    if facts.earlier:
        return (
            MODEL,
            f"a repeated fault; earlier reports that have it: {len(facts.earlier)}.",
        )
    if facts.others and 2 * len(facts.others_failed) < facts.others:
        others = f"only {len(facts.others_failed)} of {facts.others} other models fail"
        if not facts.others_failed:
            others = f"none of {facts.others} other models fails"
            others = "the one other model does not fail" if facts.others == 1 else others
        return MODEL, f"{others} here."
    return NO_ACTION, "the model's own fault."
