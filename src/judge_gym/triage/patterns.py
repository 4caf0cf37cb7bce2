"""Finds what failures have in common, and recommends an action for each."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from judge_gym.records.outcomes import EvalResult
from judge_gym.triage.findings import Finding
from judge_gym.triage.markdown import code
from judge_gym.triage.results import failed_steps
from judge_gym.triage.signatures import signatures

EVALS, CONFIG, MODEL, NO_ACTION = ADVICE = (
    "Eval improvements",
    "Lint and configuration",
    "Model-specific notes",
    "No action needed",
)
KINDS = ("rule", "exception", "step", "category")
"""What failures may share, the most specific first."""
CHECKING_STEPS = frozenset({"lint", "types", "ruff", "mypy", "pyright", "eslint", "tsc"})
"""Steps that check code against rules, where strictness is a matter of configuration."""


class Pattern(NamedTuple):
    """Something that two or more failures share."""

    kind: str
    name: str
    results: tuple[EvalResult, ...]


def patterns(findings: Sequence[Finding]) -> list[Pattern]:
    """Returns what two or more failures share, the most common first."""
    groups: dict[tuple[str, str], list[EvalResult]] = defaultdict(list)
    for result in (finding.case.result for finding in findings):
        for step in failed_steps(result):
            groups["step", step.name].append(result)
        groups["category", result.category].append(result)
        for signature in signatures(result):
            if signature.kind != "test":  # whose names are an eval's own
                groups[signature.kind, signature.name].append(result)
    found = [Pattern(*key, tuple(results)) for key, results in groups.items() if len(results) > 1]
    return sorted(found, key=lambda one: (-len(one.results), KINDS.index(one.kind), one.name))


def advice(finding: Finding, findings: Sequence[Finding]) -> tuple[str, str]:
    """Returns the group of recommendations for a decided finding, and the recommendation."""
    facts, result = finding.case.facts, finding.case.result
    steps = [step.name for step in failed_steps(result)]
    at = " and ".join(map(code, steps))
    if facts.reference_failed:
        where = " and ".join(map(code, facts.reference_failed))
        return EVALS, (f"the reference answer fails this grader at {where}; repair the eval first.")
    rules = sorted(one.name for one in signatures(result) if one.kind == "rule")
    match finding.classification:
        case "OVERLY_STRICT" if CHECKING_STEPS.issuperset(steps):
            named = f" ({', '.join(map(code, rules))})" if rules else ""
            return CONFIG, f"relax what is required at {at}{named}, or state it in the task."
        case "OVERLY_STRICT":
            return EVALS, f"relax {at} to what the task says, or state it in the task."
        case "AMBIGUOUS_TASK":
            return EVALS, "state in the task what the grader assumes."
        case "KNOWN_GAP":
            return EVALS, (
                "close the known gap, or document the one that was meant."
                if finding.supported is False
                else "close the known gap."
            )
    return _model_fault(finding, findings)


def _model_fault(finding: Finding, findings: Sequence[Finding]) -> tuple[str, str]:
    """Notes a model's fault where it repeats within the run, or where other models pass."""
    own = {one for one in signatures(finding.case.result) if one.kind == "rule"}
    repeated = sorted(
        {
            signature.name
            for other in findings
            if other is not finding and other.classification == finding.classification
            for signature in own.intersection(signatures(other.case.result))
        }
    )
    facts = finding.case.facts
    if repeated:
        return MODEL, f"the same rule is broken elsewhere too: {', '.join(map(code, repeated))}."
    if facts.earlier:
        return MODEL, f"a repeated fault; number of earlier reports with it: {len(facts.earlier)}."
    if facts.others and 2 * len(facts.others_failed) < facts.others:
        others = f"only {len(facts.others_failed)} of {facts.others} other models fail"
        if not facts.others_failed:
            others = f"none of {facts.others} other models fails"
            others = "the one other model does not fail" if facts.others == 1 else others
        return MODEL, f"{others} here."
    return NO_ACTION, "the model's own fault."
