"""Facts about a failure that are known before any judge is paid."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judge_gym.records.outcomes import EvalResult, EvalSource, Failed, Inconclusive, Outcome, Passed
from judge_gym.triage.results import error_text, failed_steps, signatures

COMMON_WORDS = frozenset(
    "about also answer because been before being both cannot code could does each error eval "
    "every expected fail failed fails failing from have here into known line model must never "
    "none only other passed return returns says should some such task test tests that their them "
    "then there these they this those value values were what when where which will with would "
    "assert assertionerror false true".split()
)
"""Words that any gap and any error may share, so that they prove nothing."""
SHARED_WORDS = 2
"""The number of other shared words that makes a gap entry match."""
_NO_GAPS = re.compile(r"(?:none|no (?:known )?gaps?)\b[^\n]{0,40}\Z", re.I)
_ENTRY = re.compile(r"\n\s*\n|\n(?=\s{0,3}(?:[-*+]|\d+[.)])\s)")


class ReportedFailure(NamedTuple):
    """A failure as an earlier report lists it."""

    path: str
    step: str
    classification: str


@dataclass(frozen=True, slots=True)
class PriorReport:
    """What an earlier report found."""

    source: str
    """Where the report is."""
    run: str
    date: str
    version: str
    pass_rate: str
    failures: tuple[ReportedFailure, ...]
    actions: tuple[str, ...]
    """The actions that people recorded in it; none where it reads None."""
    model: str = ""

    @property
    def evals(self) -> frozenset[str]:
        """The evals that failed, whichever the replicate."""
        return frozenset(failure.path for failure in self.failures)

    def failures_of(self, path: str) -> tuple[ReportedFailure, ...]:
        """The failures of an eval, one per replicate, none where it did not fail."""
        return tuple(failure for failure in self.failures if failure.path == path)


@dataclass(frozen=True, slots=True)
class Gap:
    """An entry of an eval's known gaps that matches a failure, and the words they share."""

    entry: str
    shared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EarlierFailure:
    """An earlier report in which the same eval failed."""

    report: str
    date: str
    classification: str
    """The classes of the eval's failures in that report."""
    steps: tuple[str, ...]
    """The steps at which it failed in that report."""
    fix: str | None
    """The action recorded in that report that names the eval or the rule, if any."""
    version_changed: bool
    """Whether the benchmark version has changed since, as a fix would change it."""
    changed_files: tuple[str, ...] | None = None
    """The files of the eval that have changed since; None where those of then are unknown."""

    @property
    def since(self) -> str:
        """What has become of the recorded fix: whether the benchmark has changed since."""
        if not self.version_changed:
            return "but the benchmark has not changed since"
        if self.changed_files is None:
            return "and the eval still fails"
        if not self.changed_files:
            return "but no file of this eval has changed since, and it still fails"
        return f"{', '.join(self.changed_files)} changed since, and the eval still fails"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a failure without a judge."""

    reference_failed: tuple[str, ...] | None
    """The steps that the reference answer fails at; None where it was not tried."""
    own_steps: tuple[str, ...]
    """Steps that the candidate fails at and the reference answer passes."""
    gap: Gap | None
    gap_entries: int
    others_failed: tuple[str, ...]
    """Other models that fail this eval in one replicate or more."""
    others: int
    """Other models with a conclusive result on it."""
    other_failures: int
    """How many of their conclusive results are failures."""
    other_results: int
    earlier: tuple[EarlierFailure, ...]
    shared_steps: tuple[str, ...] = ()
    """Steps that candidate and reference answer both fail at."""

    def sentences(self) -> list[str]:
        """Writes the facts as sentences, which judges and readers see."""
        gaps = f"Known gaps listed for this eval: {self.gap_entries}."
        if self.gap:
            shared = ", ".join(self.gap.shared)
            gaps += f" One is documented that shares words with this error: {shared}."
        elif self.gap_entries:
            gaps += " None shares words with this error."
        text = "No other model has a conclusive result on this eval."
        if self.others:
            text = f"Other models that fail this eval: {len(self.others_failed)} of {self.others}."
        if self.other_results > self.others:
            text += (
                " One failing replicate is enough; of all their replicates "
                f"{self.other_failures} of {self.other_results} fail."
            )
        return [self._reference(), gaps, text, *map(_earlier_sentence, self.earlier)]

    def _reference(self) -> str:
        if self.reference_failed is None:
            return "Whether the reference answer passes this grader is not known."
        if not self.reference_failed:
            return "The reference answer passes this grader."
        at = ", ".join(self.reference_failed)
        if not self.own_steps:
            return f"The reference answer fails this grader too, at {at}."
        sentence = (
            f"The reference answer fails at {at}, but passes {', '.join(self.own_steps)}, where "
            "the candidate fails"
        )
        if self.shared_steps:
            return f"{sentence}; at {', '.join(self.shared_steps)} both fail."
        return f"{sentence}: that is not the same failure."


def _earlier_sentence(earlier: EarlierFailure) -> str:
    sentence = f"It failed in the report of {earlier.date or 'an unknown date'} already"
    sentence += f", at {', '.join(earlier.steps)}" if earlier.steps else ""
    sentence += f" ({earlier.classification})" if earlier.classification else ""
    if earlier.fix is None:
        return f"{sentence}; no fix is recorded there."
    return f"{sentence}; a fix is recorded there, {earlier.since}."


def find_facts(
    result: EvalResult,
    source: EvalSource,
    *,
    reference: EvalResult | None = None,
    others: Mapping[str, Sequence[Outcome]] | None = None,
    prior: Sequence[PriorReport] = (),
    version: str = "",
    before: Mapping[str, EvalSource] | None = None,
) -> Facts:
    """Collects the facts about one failure.

    Args:
        result: the failure.
        source: the files behind its eval.
        reference: the result of the reference answer under the same steps, where it was tried.
        others: by other model, the outcomes of its replicates under the same benchmark.
        prior: earlier reports on this model.
        version: the run's benchmark version.
        before: by earlier report, the files behind the eval at that time, where they are known.
    """
    by_model = {
        model: conclusive
        for model, outcomes in (others or {}).items()
        if (
            conclusive := [outcome for outcome in outcomes if not isinstance(outcome, Inconclusive)]
        )
    }
    failures = {
        model: sum(isinstance(outcome, Failed) for outcome in conclusive)
        for model, conclusive in by_model.items()
    }
    broken, steps = _compare(result, reference)
    shared = [step.name for step in failed_steps(result) if step.name in (broken or ())]
    return Facts(
        reference_failed=broken,
        own_steps=steps,
        shared_steps=tuple(shared),
        gap=match_gap(result, source.gaps),
        gap_entries=len(gap_entries(source.gaps)),
        others_failed=tuple(sorted(model for model, count in failures.items() if count)),
        others=len(by_model),
        other_failures=sum(failures.values()),
        other_results=sum(map(len, by_model.values())),
        earlier=tuple(
            failure
            for report in prior
            if (failure := _earlier(result, report, version, source, (before or {}))) is not None
        ),
    )


def _compare(
    result: EvalResult, reference: EvalResult | None
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Finds the steps that the reference answer fails at, and the candidate's alone."""
    if reference is None or isinstance(reference.outcome, Inconclusive):
        return None, ()
    if isinstance(reference.outcome, Passed):
        return (), tuple(step.name for step in failed_steps(result))
    broken = tuple(step.name for step in failed_steps(reference))
    passes = {step.name for step in reference.steps if step.status == "passed"} - {*broken}
    return broken, tuple(step.name for step in failed_steps(result) if step.name in passes)


# --- gaps ----------------------------------------------------------------------------------------


def gap_entries(text: str) -> tuple[str, ...]:
    """Lists the entries of a file of known gaps: list items and paragraphs, no headings."""
    body = "\n".join(
        line for line in text.splitlines() if not re.match(r"\s{0,3}#|\s*[-=]+$", line)
    )
    parts = (re.sub(r"\A\s*(?:[-*+]|\d+[.)])\s+", "", part).strip() for part in _ENTRY.split(body))
    return tuple(part for part in parts if part and not _NO_GAPS.match(part))


def match_gap(result: EvalResult, gaps: str) -> Gap | None:
    """Finds the gap entry that shares most with a failure's error, if any shares enough.

    One rule, test or exception that an entry names is enough, or several other words.
    """
    names = {signature.name.casefold() for signature in signatures(result)} - COMMON_WORDS
    words = _words(error_text(result))
    best: tuple[int, int, Gap] | None = None
    for number, entry in enumerate(gap_entries(gaps)):
        named = {
            name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", entry, re.I)
        }
        shared = sorted(named | (words & _words(entry)))
        enough = bool(named) or len(shared) >= SHARED_WORDS
        rank = (10 * len(named) + len(shared), -number)
        if enough and (best is None or rank > best[:2]):
            best = (*rank, Gap(entry, tuple(shared)))
    return best[2] if best else None


def _words(text: str) -> set[str]:
    """Collects the distinctive words of a text, without common endings."""
    words = set(re.findall(r"[^\W\d_]{4,}", text.casefold())) - COMMON_WORDS
    return {re.sub(r"(?<=\w{4})(?:ing|ed|s)\Z", "", word) for word in words}


# --- earlier reports -----------------------------------------------------------------------------


def _earlier(
    result: EvalResult,
    report: PriorReport,
    version: str,
    source: EvalSource,
    before: Mapping[str, EvalSource],
) -> EarlierFailure | None:
    """Finds the failure of the same eval in an earlier report, if it failed there."""
    failures = report.failures_of(result.path)
    if not failures:
        return None
    rules = [signature.name for signature in signatures(result) if signature.kind == "rule"]
    then = before.get(report.source)
    return EarlierFailure(
        report=report.source,
        date=report.date,
        classification=", ".join(dict.fromkeys(failure.classification for failure in failures)),
        steps=tuple(dict.fromkeys(failure.step for failure in failures)),
        fix=next((action for action in report.actions if names_eval(action, result, *rules)), None),
        version_changed=report.version != version,
        changed_files=_changed_files(then, source) if then is not None else None,
    )


def names_eval(text: str, result: EvalResult, *others: str) -> bool:
    """Whether a text names an eval by its path or by a name that is no other's."""
    names = (result.path, result.name, *others)
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for name in names)


def _changed_files(before: EvalSource, after: EvalSource) -> tuple[str, ...]:
    """Names the files of an eval that differ."""
    old, new = _files(before), _files(after)
    return tuple(name for name in sorted({*old, *new}) if old.get(name) != new.get(name))


def _files(source: EvalSource) -> dict[str, str]:
    files = {"TASK": source.task, "GAPS": source.gaps}
    files |= {f"answer/{name}": text for name, text in source.answer.items()}
    return files | {f"grader/{name}": text for name, text in source.grader.items()}
