"""What reports under `reports/` say of the failures of a suite run."""

from dataclasses import dataclass
from pathlib import Path

from judge_gym.store import SuiteRun
from judge_gym.triage import RunInfo, read_failure_sections, read_report, report_path

LONGEST = 4_000_000
"""Bytes of a report that is read."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a report says of one failure."""

    source: str
    """The report, from the folder that is served."""
    classification: str
    text: str
    """Its own words, as Markdown."""


def analyses(folder: Path, run: SuiteRun) -> dict[str, Analysis]:
    """What the newest report on a run says of each failure, by the name it has there.

    Args:
        folder: where `reports/` is.
        run: which a report names by the beginning of its key, since numbers are those of a lab.
    """
    head = RunInfo(run.key, run.model, run.experiment, run.suite, run.version, "")
    place = (folder / report_path(head, "day")).parent
    newest = ""
    found: dict[str, Analysis] = {}
    for path in sorted(place.glob("*.md")):
        if not path.is_file() or path.stat().st_size > LONGEST:
            continue
        text = path.read_text("utf-8", "replace")
        source = path.relative_to(folder).as_posix()
        told = read_report(text, source)
        mine = bool(told.run) and run.key.startswith(told.run) and told.version == run.version
        if mine and told.date >= newest:
            newest, found = told.date, _failures(text, source)
    return found


def _failures(text: str, source: str) -> dict[str, Analysis]:
    return {
        part.eval.removesuffix("#0"): Analysis(source, part.classification, part.text)
        for part in read_failure_sections(text)
    }
