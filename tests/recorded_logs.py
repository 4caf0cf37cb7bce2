"""The fixtures that other tools wrote, and the cases that their scripts told them to write."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge_gym.recorded import Recording
from judge_gym.recorded.importers import find_importer

FIXTURES = Path(__file__).parent / "recorded" / "fixtures"
SCRIPTS = Path(__file__).parents[1] / "scripts" / "importer_fixtures"
CASES: list[dict[str, Any]] = json.loads((SCRIPTS / "cases.json").read_text("utf-8"))
FORMATS = {
    "deepeval.json": "deepeval",
    "inspect.eval": "inspect",
    "inspect.json": "inspect",
    "langfuse": "langfuse",
    "langfuse.json": "langfuse",
    "mlflow.json": "mlflow",
    "phoenix": "phoenix",
    "promptfoo.json": "promptfoo",
    "samples_capitals.jsonl": "lm-eval",
}
"""Fixtures by the format that they are in."""


def read_log(path: Path, format: str = "auto") -> Sequence[Recording]:
    """Reads a log with the importer of a format."""
    return find_importer(format, path)[1].read(path)


def read_fixture(name: str) -> Sequence[Recording]:
    """Reads a fixture."""
    return read_log(FIXTURES / name)


def load(name: str) -> Any:
    """Returns a fixture in JSON, to be changed."""
    return json.loads((FIXTURES / name).read_text("utf-8"))


def write(path: Path, document: Any) -> Path:
    """Writes a changed fixture."""
    path.write_text(json.dumps(document), "utf-8")
    return path


def by_item(recording: Recording, column: str) -> dict[str, Any]:
    """Returns a column of verdicts by the item."""
    return dict(zip(recording.verdicts["item"], recording.verdicts[column], strict=True))


def people(recording: Recording) -> dict[str, str]:
    """Returns people's labels by the item."""
    return dict(zip(recording.labels["item"], recording.labels["label"], strict=True))
