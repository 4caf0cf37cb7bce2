"""The parts of a lab by name, and the descriptions of their verbs."""

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


def describe(verb: Verb) -> str:
    """Returns the first line of the docstring of a verb's method."""
    return str(getattr(NOUNS[verb.noun], verb.method).__doc__).partition("\n")[0]
