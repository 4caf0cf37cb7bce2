"""Imports the analysis when it is first needed, as that takes seconds."""

import threading

_LOCK = threading.Lock()


def load_analysis() -> None:
    """Imports all of the analysis, in one thread at a time.

    Its packages import their own modules: two threads that import a package and one of its modules
    at once would wait for each other.
    """
    with _LOCK:
        import judge_gym.analysis.report  # noqa: F401
