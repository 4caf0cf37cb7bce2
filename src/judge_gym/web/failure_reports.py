"""Finds what the reports under `reports/` say about a suite run and its failures."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from judge_gym.errors import DesignError
from judge_gym.store import SuiteRun
from judge_gym.triage import (
    FailureSection,
    RunInfo,
    read_failure_sections,
    read_report,
    report_path,
    without_rows,
)

MAX_BYTES = 4_000_000
"""Longer reports are not read."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """A report on a run."""

    source: str
    """Its path in the folder that is served."""
    text: str
    """The whole report, as Markdown for people."""
    failures: Mapping[str, FailureSection]
    """By the failure's name."""

    def classes(self) -> list[tuple[str, int]]:
        """Returns how many failures each class has, the most frequent first."""
        return Counter(failure.classification for failure in self.failures.values()).most_common()


def find_report(folder: Path, run: SuiteRun) -> RunReport | None:
    """Returns the newest report on a run, or None.

    Args:
        folder: the folder that holds `reports/`.
        run: a run; reports name it by the beginning of its key, since its number differs by lab.
    """
    head = RunInfo(run.key, run.model, run.condition, run.suite, run.version, "")
    reports = (folder / report_path(head, "day")).parent
    newest, found = "", None
    for path in sorted(reports.glob("*.md")):
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            continue
        text = path.read_text("utf-8", "replace")
        source = path.relative_to(folder).as_posix()
        try:
            report = read_report(text, source)
        except DesignError:  # some other text
            continue
        matches = run.key.startswith(report.run) and report.version == run.version
        if matches and report.date >= newest:
            newest = report.date
            sections = read_failure_sections(text)
            failures = {part.eval.removesuffix("#0"): part for part in sections}
            found = RunReport(source, without_rows(text), failures)
    return found
