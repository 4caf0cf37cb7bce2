"""The recorded analysis among the examples is replayed, without the model that judged."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Call, succeed
from judge_gym.triage import lint_report

EXAMPLE = Path(__file__).parent.parent / "examples" / "analysis"


@pytest.mark.slow
def test_the_recorded_analysis_is_replayed_without_the_model(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-models-here"))
    monkeypatch.setenv("JUDGE_GYM_DATABASE_URL", f"sqlite:///{tmp_path / 'lab.db'}")
    subprocess.run([sys.executable, EXAMPLE / "load_run.py"], cwd=tmp_path, check=True)
    succeed(call("ledger", "import", EXAMPLE / "answers.jsonl.gz"))
    [words] = [
        line.split()[1:]
        for line in (EXAMPLE / "README.md").read_text("utf-8").splitlines()
        if line.startswith("judge-gym analyze")
    ]
    said = call(*words, "--json").json
    text = Path(said["report"]).read_text("utf-8")
    recorded = (EXAMPLE / "report.md").read_text("utf-8")

    today = next(line for line in text.splitlines() if line.startswith("| Report of |"))[14:24]
    assert text.replace(today, "2026-11-18") == recorded
    assert lint_report(recorded) == []
    assert sum(run["calls"] for run in said["judging"]["runs"]) == 0
    assert sum(run["reused"] for run in said["judging"]["runs"]) == 4
