"""What pages and commands show of a study: computed once, and stored until its data change."""

from collections.abc import Callable
from typing import cast

from judge_gym.lab.reports import Reports
from judge_gym.records import digest
from judge_gym.records.build import build, version
from judge_gym.records.comparison import SetupComparison
from judge_gym.records.judge_table import JudgeTable
from judge_gym.records.planning import NextPurchase
from judge_gym.store import Store


class StudyResults:
    """Reads the stored results of a study, and computes and stores those that are missing.

    A result is found by the data and the build that it rests on, so that any process may store it.
    """

    def __init__(self, store: Store, reports: Reports) -> None:
        self._store = store
        self._reports = reports

    def judges(self, study: str) -> JudgeTable:
        """Returns the judge table of a study, with the sentence that answers which judge to use."""
        return cast("JudgeTable", self._result(study, "judges", self._reports.judges))

    def stored_judges(self, study: str) -> JudgeTable | None:
        """Returns the judge table of a study if it is stored; computes nothing."""
        key = self._key(study)
        return cast("JudgeTable | None", self._store.study_results.find(study, "judges", key))

    def next_purchase(self, study: str) -> NextPurchase:
        """Returns what to buy next."""
        return cast("NextPurchase", self._result(study, "next", self._reports.plan_next))

    def comparison(self, study: str, a: str | None, b: str | None) -> SetupComparison:
        """Compares two setups of a study, A minus B."""
        name = f"comparison {digest([a, b])}"
        computed = self._result(study, name, lambda name: self._reports.compare(name, a=a, b=b))
        return cast("SetupComparison", computed)

    def _result(self, study: str, name: str, compute: Callable[[str], object]) -> object:
        key = self._key(study)
        stored = self._store.study_results.find(study, name, key)
        if stored is not None:
            return stored
        result = compute(study)
        self._store.study_results.save(study, name, key, result)
        return result

    def _key(self, study: str) -> str:
        return digest([self._store.studies.fingerprint(study), version(), build()])
