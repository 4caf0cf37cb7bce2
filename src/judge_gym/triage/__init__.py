"""Why the evals of a run failed: from typed outcomes to a report that adds up. Pure.

In this order: `gate` takes out what is inconclusive; `find_facts` gathers what is known without a
judge; `case` and `judging_study` make an ordinary study of the failures on the nominal rubric
`RUBRIC`; the engine runs it; `finding` joins the verdicts on each failure; `write_report` sets the
report, `read_report` reads earlier ones, and `lint_report` checks the arithmetic of any.
"""

from judge_gym.triage.facts import Earlier, Facts, Gap, find_facts, gap_entries
from judge_gym.triage.findings import Finding, Opinion, Quote, Tally, Voice, finding
from judge_gym.triage.gate import Gated, gate, result_name
from judge_gym.triage.judging import RUBRIC, Case, Judging, case, judging_study
from judge_gym.triage.lint import Complaint, lint_report
from judge_gym.triage.reading import CLASSES, UNDECIDED, PriorReport, Told, read_report
from judge_gym.triage.replies import Remarks, read_remarks
from judge_gym.triage.report import RunHead, report_path, write_report

__all__ = [
    "CLASSES",
    "RUBRIC",
    "UNDECIDED",
    "Case",
    "Complaint",
    "Earlier",
    "Facts",
    "Finding",
    "Gap",
    "Gated",
    "Judging",
    "Opinion",
    "PriorReport",
    "Quote",
    "Remarks",
    "RunHead",
    "Tally",
    "Told",
    "Voice",
    "case",
    "find_facts",
    "finding",
    "gap_entries",
    "gate",
    "judging_study",
    "lint_report",
    "read_remarks",
    "read_report",
    "report_path",
    "result_name",
    "write_report",
]
