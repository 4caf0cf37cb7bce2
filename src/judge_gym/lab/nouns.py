"""The parts of a lab by name, the descriptions of their verbs, and what else is public on them."""

from collections.abc import Mapping

from judge_gym.lab.admin import Admin
from judge_gym.lab.evidence import EvidenceLibrary
from judge_gym.lab.experiments import Experiments
from judge_gym.lab.failures import Failures
from judge_gym.lab.labels import Labels
from judge_gym.lab.reports import Reports
from judge_gym.lab.runs import Runs
from judge_gym.lab.suites import Suites
from judge_gym.verbs import Verb

NOUNS: Mapping[str, type] = {
    "evidence": EvidenceLibrary,
    "experiments": Experiments,
    "runs": Runs,
    "labels": Labels,
    "reports": Reports,
    "suites": Suites,
    "failures": Failures,
    "admin": Admin,
}
"""The parts of a lab, by the names under which it has them."""

LOCAL: Mapping[str, str] = {
    # A verb, for those who are where the lab's files and models are.
    "evidence.collect_missing": "evidence.collect of a study file, with progress",
    "evidence.collect_pool": "evidence.collect, with progress",
    "evidence.collect_study": "evidence.collect of a study file, with progress",
    "evidence.load_benchmark_files": "evidence.load_benchmark of files",
    "evidence.load_files": "evidence.load of files",
    "experiments.export": "experiments.export_file to any path",
    "experiments.exported_samples": "experiments.export_csv as a data frame",
    "experiments.load_rubric_file": "experiments.load_rubric of a file",
    "experiments.samples": "experiments.list_samples of several as a data frame",
    "failures.analyze": "failures.start in this process",
    "labels.import_file": "labels.add of a file",
    "reports.build": "reports.show with its figures, to be written anywhere",
    "runs.estimate": "runs.plan with its calls, to be shown beside other numbers",
    "runs.run": "runs.start in this process",
    "runs.run_evidence": "runs.start_evidence in this process",
    "runs.run_resumed": "runs.resume in this process",
    "suites.estimate": "suites.plan with its calls",
    "suites.resume": "runs.resume of a suite run in this process",
    "suites.run": "suites.start in this process",
    "suites.run_each": "suites.start of several models in this process",
    # What the command line alone offers.
    "admin.export_ledger": "writes a file of calls",
    "admin.import_ledger": "reads a file of calls",
    "reports.suggest_swaps": "ranks pairs of judges for swaps",
    "suites.ablate": "runs a suite with parts of its guidelines left out",
    "suites.check": "checks the answers of a suite's files",
    "suites.check_model": "tries a model on a few evals",
    "suites.find": "loads the files of a suite",
    "suites.limited": "holds a budget during scheduled runs",
    "suites.list": "loads the files of all suites",
    "suites.schedule": "lists what is due, of models that a file names",
    # What pages, other nouns and a client that posts runs read of suites.
    "failures.perform": "the work of a queued analysis",
    "suites.budget": "the budget of a suite",
    "suites.files": "the files of a run, to be downloaded",
    "suites.find_result": "one result of a run",
    "suites.find_run": "a run by its number or the beginning of its key",
    "suites.find_task": "the files behind an eval",
    "suites.report": "the report behind suites.show_run",
    "suites.reports": "the reports behind suites.list_runs",
    "suites.results": "the results of a run",
}
"""Every public method of a noun that is no verb and no page of one, and what it is for.

A method that is neither is private, or stands in a part of the lab that is no noun: `studies`,
`workers`, `pages`, `benchmarks`, `serving`, `tokens`.
"""


def describe(verb: Verb) -> str:
    """Returns the first line of the docstring of a verb's method."""
    return str(getattr(NOUNS[verb.noun], verb.method).__doc__).partition("\n")[0]
