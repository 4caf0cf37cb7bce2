"""Explains why the evals of a run failed, from typed outcomes to a report that adds up. Pure.

The order of work: `split_results` takes out inconclusive results; `find_facts` collects what is
known without a judge; `make_case` and `failure_study` turn the failures into a study on the
nominal rubric `RUBRIC`, which the engine runs; `make_finding` joins the verdicts on each failure;
`write_report` writes the report, `read_report` reads earlier ones, and `lint_report` checks the
arithmetic of one that was edited.
"""

from judge_gym.triage.facts import Facts, find_facts
from judge_gym.triage.findings import Finding, JudgeVerdict, make_finding
from judge_gym.triage.lint import lint_report
from judge_gym.triage.report import (
    RecordedFix,
    RunInfo,
    proposed_fix,
    recorded_fixes,
    report_path,
    write_report,
)
from judge_gym.triage.report_reader import (
    FailureSection,
    PriorReport,
    ReportedFailure,
    read_failure_sections,
    read_report,
)
from judge_gym.triage.results import (
    CLASSES,
    UNDECIDED,
    ResultsByOutcome,
    result_name,
    split_results,
)
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
    "write_report",
]
