from pathlib import Path

import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.errors import DesignError
from judge_gym.recorded import as_samples
from judge_gym.recorded.importers import find_importer, importers
from recorded_logs import FIXTURES, FORMATS, read_fixture, read_log
from tables import each_row

FILES = [name for name in FORMATS if (FIXTURES / name).is_file()]


def test_every_fixture_is_named() -> None:
    assert {path.name for path in FIXTURES.iterdir()} >= FORMATS.keys()


@each_row(("name", "format"), list(FORMATS.items()))
def test_a_log_is_of_one_format(name: str, format: str) -> None:
    path = FIXTURES / name
    tables = {"file"}  # any table may be one; it is tried last
    readers = {each: reader for each, reader in importers().items() if each not in tables}
    assert [each for each, reader in readers.items() if reader.detect(path)] == [format]
    assert find_importer("auto", path)[0] == format


@each_row("name", list(FORMATS))
def test_a_recording_of_a_log_makes_a_judge_table(name: str) -> None:
    for recording in read_fixture(name):
        samples, labels = as_samples(recording)
        table = judge_table(tidy(samples), labels, positive=recording.scale.positive)
        assert len(table["rows"]) == 1
        unknown = table["sentence"].startswith("Accuracy unknown")
        assert unknown == recording.labels.empty


@each_row("name", FILES)
def test_a_log_that_is_cut_off_is_refused(name: str, tmp_path: Path) -> None:
    data = (FIXTURES / name).read_bytes()
    cut = tmp_path / name
    cut.write_bytes(data[: len(data) * 3 // 5])
    with pytest.raises(DesignError, match=r"cut off|not JSON"):
        read_log(cut, FORMATS[name])


@each_row("format", sorted(set(FORMATS.values())))
def test_a_log_of_another_kind_is_refused(format: str, tmp_path: Path) -> None:
    for name, text in (("x.json", '{"a": 1}'), ("x.jsonl", '{"a": 1}\n'), ("x.eval", "text")):
        (tmp_path / name).write_text(text)
        with pytest.raises(DesignError):
            read_log(tmp_path / name, format)
    with pytest.raises(DesignError):
        read_log(tmp_path / "missing.json", format)


def test_detection_refuses_what_fits_no_format(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("[1, 2]")
    with pytest.raises(DesignError, match="name the format"):
        find_importer("auto", tmp_path / "x.log")
