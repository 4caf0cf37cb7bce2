"""What happened lately: failed attempts beside events, newest first, page by page."""

from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import NotFoundError
from judge_gym.lab import Lab
from judge_gym.store import Store
from lab_server import create, fill

pytestmark = pytest.mark.postgres
FAILING = "sim:balanced?fail=0.6"


@pytest.fixture
def lab(store: Store, tmp_path: Path) -> Lab:
    """A lab with a run of which much failed, and one that did well."""
    lab = Lab(store)
    window = fill(lab, tmp_path)
    create(lab, window, "shaky", FAILING, **{"rubric.author": "sim:strict"})
    create(lab, window, "fine")
    for tag in ("shaky", "fine"):
        lab.runs.run(tag, samples=3)
    return lab


def pages(lab: Lab, target: str | None, limit: int) -> list[dict[str, Any]]:
    """The log, a page at a time, to its end."""
    seen: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        page = lab.runs.page_logs(target, after=after, limit=limit)
        assert len(page.rows) <= limit
        seen += map(dict, page.rows)
        if (after := page.next) is None:
            return seen


def test_the_log_has_every_failed_attempt_once_with_its_reason(lab: Lab) -> None:
    summary = lab.get_experiment_summary("shaky")["runs"][0]
    assert summary["failed"]["score"] >= 2, "there is something to tell"
    whole = pages(lab, "shaky", 1000)
    failed = [row for row in whole if row["type"] == "failed attempt"]
    told = {row["call_id"] for row in failed if row["stage"] == "scorer"}
    assert len(told) == summary["failed"]["score"]
    assert all(row["error"] and row["model"] == FAILING for row in failed)
    kinds = [row["kind"] for row in whole if row["type"] == "event"]
    assert kinds[-1] == "started" and len(kinds) == len(set(map(str, kinds)))
    assert [row["at"] for row in whole] == sorted((row["at"] for row in whole), reverse=True)
    assert all(row["at"].endswith("+00:00") for row in whole)
    for limit in (1, 2, 5):
        assert pages(lab, "shaky", limit) == whole, limit
    assert {row["tag"] for row in pages(lab, "fine", 3)} == {"fine"}
    assert len(pages(lab, None, 7)) == len(whole) + len(pages(lab, "fine", 9))
    with pytest.raises(NotFoundError):
        lab.runs.logs("nothing")


def test_status_shows_progress_and_failures(lab: Lab) -> None:
    found = lab.runs.status()
    assert {run["tag"]: run["status"] for run in found["runs"]} == {
        "shaky": "failed",
        "fine": "complete",
    }
    assert (found["experiments"], found["in_progress"]) == (2, False)
    assert [run["tag"] for run in lab.runs.status(limit=1)["runs"]] == ["fine"], "the newest"
    lab.runs.start("shaky", series="again")
    going = lab.runs.status(limit=1)
    assert going["in_progress"] and {run["tag"] for run in going["runs"]} == {"shaky"}, (
        "comes first"
    )
    assert lab.runs.status("fine")["in_progress"] is False
    lab.runs.cancel("shaky")
    assert lab.runs.status()["in_progress"] is False
    assert lab.experiments.list_studies() == []
    with pytest.raises(NotFoundError, match="unknown study 'shaky'"):
        lab.experiments.show_study("shaky")
