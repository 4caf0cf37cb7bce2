"""Unchanged files are not filtered again."""

import json
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from judge_gym.records import Window
from judge_gym.sources import SearchResult, load_files

JANUARY = Window("Valdoria", date(2026, 1, 1), date(2026, 1, 31))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The folder of results, beside the folder `in` with one text."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").write_text("---\ndate: 2026-01-05\n---\nThe court ruled.")
    return tmp_path / "results"


def load(cache: Path, window: Window | None = None) -> SearchResult:
    return load_files("in", cache.parent, window, cache=cache)


def texts(result: SearchResult) -> list[str]:
    return [item.text for item in result.items]


def mark(cache: Path) -> None:
    """Changes the text in the stored results, so that their use shows."""
    for file in cache.iterdir():
        stored = json.loads(file.read_text())
        stored["items"][0]["text"] = "stored"
        file.write_text(json.dumps(stored))


def test_unchanged_files_are_taken_from_the_cache(cache: Path) -> None:
    first = load(cache)
    assert load(cache) == first == load_files("in", cache.parent)
    mark(cache)
    assert texts(load(cache)) == ["stored"]


def test_changed_content_of_the_same_size_and_time_is_read_again(cache: Path) -> None:
    file = cache.parent / "in" / "a.md"
    load(cache)
    mark(cache)
    before = file.stat()
    file.write_text(file.read_text().replace("court", "mayor"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert texts(load(cache)) == ["The mayor ruled."]


def test_another_file_in_the_folder_is_read(cache: Path) -> None:
    load(cache)
    mark(cache)
    (cache.parent / "in" / "b.txt").write_text("Parliament voted.")
    assert texts(load(cache)) == ["The court ruled.", "Parliament voted."]
    (cache.parent / "in" / "picture.png").touch()
    assert load(cache).dropped == {"other kinds of file": 1}


def test_each_window_has_its_own_result(cache: Path) -> None:
    load(cache)
    mark(cache)
    assert texts(load(cache, JANUARY)) == ["The court ruled."]
    assert load(cache, Window("Valdoria", date(2026, 2, 1))).dropped == {"outside the dates": 1}


def test_a_broken_result_is_replaced(cache: Path) -> None:
    load(cache)
    [file] = cache.iterdir()
    file.write_text("{")
    assert texts(load(cache)) == ["The court ruled."]
    assert json.loads(file.read_text())["items"]


def test_metadata_that_json_would_change_is_not_stored(cache: Path) -> None:
    (cache.parent / "in" / "a.md").write_text("---\nmetadata: {1: one}\n---\nThe court ruled.")
    for _ in range(2):
        numbered: Mapping[Any, Any] = load(cache).items[0].metadata
        assert numbered == {1: "one"}
    assert not cache.exists() or not [*cache.iterdir()]


def test_only_the_owner_can_read_results(cache: Path) -> None:
    load(cache)
    [file] = cache.iterdir()
    assert (cache.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_files_are_read_where_no_result_can_be_written(cache: Path) -> None:
    cache.touch()  # a file in place of the folder
    assert texts(load(cache)) == ["The court ruled."]
