"""Recommends what to do about a failure, and the change of the benchmark that would resolve it."""

from collections.abc import Sequence
from typing import NamedTuple

from judge_gym.triage.findings import Finding
from judge_gym.triage.markdown import code
from judge_gym.triage.results import UNDECIDED, failed_steps, signatures

QUOTE_WIDTH = 120
EVALS, CONFIG, MODEL, NO_ACTION = ADVICE = (
    "Eval improvements",
    "Lint and configuration",
    "Model-specific notes",
    "No action needed",
)
"""The groups of recommendations, in the order of a report."""
CHECKING_STEPS = frozenset({"lint", "types", "ruff", "mypy", "pyright", "eslint", "tsc"})
"""Steps that check code against rules, where strictness is a matter of configuration."""


class Fix(NamedTuple):
    """A change of the benchmark that would resolve a failure, as Markdown."""

    file: str
    change: str


def proposed_fix(finding: Finding) -> Fix | None:
    """Proposes the fix for a failure that is the benchmark's fault."""
    fault = _benchmark_fault(finding)
    return fault[2] if fault else None


def recommend(finding: Finding, findings: Sequence[Finding]) -> tuple[str, str] | None:
    """Recommends what to do about a failure, unless it is undecided whose fault it is."""
    if finding.classification == UNDECIDED:
        return None
    fault = _benchmark_fault(finding)
    return fault[:2] if fault else _model_fault(finding, findings)


def _benchmark_fault(finding: Finding) -> tuple[str, str, Fix] | None:
    """Words the recommendation and the fix where the benchmark is at fault."""
    facts, result = finding.case.facts, finding.case.result
    if facts.reference_failed:
        where = " and ".join(map(code, facts.reference_failed))
        text = f"the reference answer fails this grader at {where}; repair the eval first."
        fix = Fix("`answer/` or the grader", f"make the reference answer pass {where}.")
        return EVALS, text, fix
    steps = [step.name for step in failed_steps(result)]
    at = " and ".join(map(code, steps))
    rules = [entry.name for entry in signatures(result) if entry.kind == "rule"]
    tests = [entry.name for entry in signatures(result) if entry.kind == "test"]
    checks = f"state what {', '.join(map(code, tests)) or at} requires"
    quote = next(
        (
            f", as in {code(entry.expected_code.text, QUOTE_WIDTH)}"
            for entry in finding.explanations
            if finding.classification in entry.classes
            and entry.expected_code is not None
            and entry.expected_code.part in ("grader", "task")
        ),
        "",
    )
    match finding.classification:
        case "OVERLY_STRICT" if CHECKING_STEPS.issuperset(steps):
            named = f" ({', '.join(map(code, sorted(rules)))})" if rules else ""
            text = f"relax what is required at {at}{named}, or state it in the task."
            dropped = ", ".join(map(code, rules)) or "the requirement"
            fix = Fix(
                f"the configuration of {at}, or `TASK.md`",
                f"drop {dropped}, or state it in the task.",
            )
            return CONFIG, text, fix
        case "OVERLY_STRICT":
            text = f"relax {at} to what the task says, or state it in the task."
            fix = Fix(
                "`grader/`, or `TASK.md`", f"accept what the task allows, or {checks}{quote}."
            )
            return EVALS, text, fix
        case "AMBIGUOUS_TASK":
            fix = Fix("`TASK.md`", f"{checks}{quote}.")
            return EVALS, "state in the task what the grader assumes.", fix
        case "KNOWN_GAP":
            fix = Fix("`GAPS.md`", "document the gap that the judges mean, or reject the class.")
            if facts.gap is not None:
                entry = code(facts.gap.entry, QUOTE_WIDTH)
                fix = Fix("`TASK.md` or `grader/`", f"close the known gap {entry}, then remove it.")
            other = ", or document the one that was meant" * (finding.supported is False)
            return EVALS, f"close the known gap{other}.", fix
    return None


def _model_fault(finding: Finding, findings: Sequence[Finding]) -> tuple[str, str]:
    """Notes a model's fault where it repeats within the run, or where other models pass."""
    rules = {signature for signature in signatures(finding.case.result) if signature.kind == "rule"}
    repeated = sorted(
        {
            signature.name
            for other in findings
            if other is not finding and other.classification == finding.classification
            for signature in rules.intersection(signatures(other.case.result))
        }
    )
    facts = finding.case.facts
    if repeated:
        return MODEL, f"the same rule is broken elsewhere too: {', '.join(map(code, repeated))}."
    if facts.earlier:
        return MODEL, f"a repeated fault; number of earlier reports with it: {len(facts.earlier)}."
    if facts.others and 2 * len(facts.others_failed) < facts.others:
        text = f"only {len(facts.others_failed)} of {facts.others} other models fail"
        if not facts.others_failed:
            text = f"none of {facts.others} other models fails"
            text = "the one other model does not fail" if facts.others == 1 else text
        return MODEL, f"{text} here."
    return NO_ACTION, "the model's own fault."
