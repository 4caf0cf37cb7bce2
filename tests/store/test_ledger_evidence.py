"""Evidence travels with the calls that judged it, and changes nothing that another lab has."""

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.lab import Lab
from judge_gym.records import Evidence, Pool, Window

WriteStudy = Callable[..., Path]
FEED = "https://news.example/feed"
SEARCH = Window("Norvessa", date(2026, 1, 1), date(2026, 1, 31), f"feeds {FEED}")
WINDOW = {"country": "Norvessa", "start": "2026-01-01", "end": "2026-01-31"}
FOUND = (
    Evidence("Court", "Judges were dismissed by decree.", "https://news.example/1", "2026-01-02",
             "news.example", metadata={"language": "en"}),
    Evidence("Budget", "The budget was adopted as scheduled.", truth=2),
    Evidence("Strike", "A strike ended after talks between both sides."),
)  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Lab]:
    with Lab.open(f"sqlite:///{tmp_path / 'elsewhere' / 'lab.db'}") as opened:
        yield opened


def collect(lab: Lab, *items: Evidence) -> int:
    """A window as a search leaves it."""
    id = lab.store.evidence.save_window(SEARCH)
    lab.store.evidence.add_to_window(id, items)
    lab.store.evidence.record_collection(id, "feeds", len(items), {}, "")
    return id


def searched(write_study: WriteStudy, **more: Any) -> Path:
    return write_study(evidence={"here": {"feeds": FEED, "window": WINDOW}}, **more)


def bare(items: tuple[Evidence, ...]) -> list[dict[str, Any]]:
    return [vars(item) | {"id": 0} for item in items]


def test_imported_evidence_replaces_a_search(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    id = collect(lab, *FOUND)
    lab.store.evidence.drop(id, [lab.store.evidence.window_items(id)[2].id])
    study = searched(write_study)
    assert lab.runs.run(study).status == "complete"
    made = lab.admin.export_ledger(tmp_path / "small.jsonl.gz", "small")
    assert made.evidence == 2, "what was dropped stays behind"
    elsewhere.admin.import_ledger(tmp_path / "small.jsonl.gz")
    result = elsewhere.runs.run(study, offline=True)
    assert (result.status, sum(run.calls for run in result.runs)) == ("complete", 0)
    there = elsewhere.store.evidence.window_id(SEARCH)
    assert there is not None
    mine, theirs = lab.store.evidence, elsewhere.store.evidence
    assert bare(theirs.window_items(there)) == bare(mine.window_items(id))
    elsewhere.admin.import_ledger(tmp_path / "small.jsonl.gz")
    assert len(theirs.window_items(there)) == 2, "a second import is nothing"


def test_an_import_keeps_the_results_of_a_local_search(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    collect(lab, *FOUND)
    lab.runs.run(searched(write_study, samples=1))
    lab.admin.export_ledger(tmp_path / "all.jsonl.gz")
    own = Evidence("Own", "What the search found here.")
    there = collect(elsewhere, own)
    elsewhere.admin.import_ledger(tmp_path / "all.jsonl.gz")
    assert [item.title for item in elsewhere.store.evidence.window_items(there)] == ["Own"]


@pytest.mark.parametrize("taken", [False, True])
def test_frozen_pools_are_imported_and_existing_names_kept(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path, taken: bool
) -> None:
    records = lab.store.evidence
    records.name_pool("winter", records.save_pool(Pool(FOUND, SEARCH)))
    study = write_study(evidence={"here": {"pool": "winter"}}, samples=1)
    assert lab.runs.run(study).status == "complete"
    assert lab.admin.export_ledger(tmp_path / "small.jsonl.gz", "small").evidence == 3
    if taken:
        theirs = elsewhere.store.evidence
        theirs.name_pool("winter", theirs.save_pool(Pool(FOUND[:1])))
    elsewhere.admin.import_ledger(tmp_path / "small.jsonl.gz")
    pool = elsewhere.store.evidence.find_named_pool("winter")
    assert len(pool.items) == (1 if taken else 3)
    if not taken:
        assert pool.hash == records.find_named_pool("winter").hash
        assert pool.window == SEARCH
        assert elsewhere.runs.run(study, offline=True).status == "complete"


def test_evidence_without_its_text_is_refused_and_nothing_is_imported(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    collect(lab, *FOUND)
    lab.runs.run(searched(write_study, samples=1))
    file = tmp_path / "all.jsonl.gz"
    lab.admin.export_ledger(file)
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    lines[-1]["text"] = "0" * 64
    file.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    with pytest.raises(DesignError, match=f"line {len(lines)}: no earlier line has the text"):
        elsewhere.admin.import_ledger(file)
    assert elsewhere.store.evidence.list_windows() == []
