"""Finds what the reports under `reports/` say about the failures of a suite run."""

from dataclasses import dataclass
from pathlib import Path

from judge_gym.store import SuiteRun
from judge_gym.triage import RunInfo, read_failure_sections, read_report, report_path

MAX_BYTES = 4_000_000
"""Longer reports are not read."""


@dataclass(frozen=True, slots=True)
class FailureAnalysis:
    """What a report says about one failure."""

    source: str
    """The report's path in the folder that is served."""
    classification: str
    text: str
    """The report's section, as Markdown."""


def failure_analyses(folder: Path, run: SuiteRun) -> dict[str, FailureAnalysis]:
    """Returns what the newest report on a run says about each failure, by the failure's name.

    Args:
        folder: the folder that holds `reports/`.
        run: a run; reports name it by the beginning of its key, since its number differs by lab.
    """
    head = RunInfo(run.key, run.model, run.condition, run.suite, run.version, "")
    reports = (folder / report_path(head, "day")).parent
    newest = ""
    found: dict[str, FailureAnalysis] = {}
    for path in sorted(reports.glob("*.md")):
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            continue
        text = path.read_text("utf-8", "replace")
        source = path.relative_to(folder).as_posix()
        report = read_report(text, source)
        matches = report.run and run.key.startswith(report.run) and report.version == run.version
        if matches and report.date >= newest:
            newest = report.date
            found = {
                part.eval.removesuffix("#0"): FailureAnalysis(
                    source, part.classification, part.text
                )
                for part in read_failure_sections(text)
            }
    return found
