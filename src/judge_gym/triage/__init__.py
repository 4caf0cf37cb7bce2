"""Explains why the evals of a run failed, from typed outcomes to a report that adds up. Pure.

The order of work: `split_results` takes out inconclusive results; `find_facts` collects what is
known without a judge; `make_case` and `failure_study` turn the failures into a study on the
nominal rubric `RUBRIC`, which the engine runs; `make_finding` joins the verdicts on each failure;
`write_report` prints a report from rows, which it carries; `read_report` reads earlier ones by
them, and `lint_report` compares one that was edited with its rows.
"""

from judge_gym.triage.advice import proposed_fix
from judge_gym.triage.facts import Facts, PriorReport, ReportedFailure, find_facts
from judge_gym.triage.findings import Finding, JudgeVerdict, make_finding
from judge_gym.triage.report import report_path, write_report
from judge_gym.triage.report_reader import (
    FailureSection,
    lint_report,
    read_failure_sections,
    read_report,
    without_rows,
)
from judge_gym.triage.results import (
    CLASSES,
    UNDECIDED,
    ResultsByOutcome,
    result_name,
    split_results,
)
from judge_gym.triage.rows import RecordedFix, RunInfo, recorded_fixes
from judge_gym.triage.study import RUBRIC, SAMPLES, Case, FailureStudy, failure_study, make_case

__all__ = [
    "CLASSES",
    "RUBRIC",
    "SAMPLES",
    "UNDECIDED",
    "Case",
    "Facts",
    "FailureSection",
    "FailureStudy",
    "Finding",
    "JudgeVerdict",
    "PriorReport",
    "RecordedFix",
    "ReportedFailure",
    "ResultsByOutcome",
    "RunInfo",
    "failure_study",
    "find_facts",
    "lint_report",
    "make_case",
    "make_finding",
    "proposed_fix",
    "read_failure_sections",
    "read_report",
    "recorded_fixes",
    "report_path",
    "result_name",
    "split_results",
    "without_rows",
    "write_report",
]
