"""Rubrics and prompts that are revised from labels, with simulated judges of a known fault."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from conftest import Call, succeed
from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.store import tables as t

GOOD = ("exact steps", "is fixed now", "refunded", "here is how")
BAD = ("cannot help", "read the manual", "not our problem", "your own fault")
CLEAR = {"good": [f'The reply says "{cue}"' for cue in GOOD], "bad": [f'It says "{c}"' for c in BAD]}
# Without a word that simulated judges can read, they place a stage at random.
VAGUE = {"good": ["It is as it should be"], "bad": ["It is not as it should be"]}
ITEMS = 160


def write_study(
    folder: Path, criteria: dict[str, list[str]], *, items: int = ITEMS, **changes: Any
) -> Path:
    """Writes a study with replies that a person labelled by the cues in them."""
    folder.mkdir(exist_ok=True)
    rng, rows = random.Random(5), []
    for number in range(items):
        label = ("good", "bad")[number % 2]
        cues = rng.sample(GOOD if label == "good" else BAD, 3)
        text = f"Reply {number}: " + ". ".join(f"It is {cue}" for cue in cues) + "."
        rows.append({"title": f"reply {number}", "text": text, "ada": label})
    (folder / "replies.jsonl").write_text("\n".join(map(json.dumps, rows)))
    study: dict[str, Any] = {
        "study": "support",
        "samples": 1,
        "evidence": {"replies": {"files": "replies.jsonl", "labels": ["ada"]}},
        "tasks": [
            {
                "concept": "helpful replies",
                "evidence": "replies",
                "rubric": {
                    "kind": "nominal",
                    "stages": [{"label": k, "criteria": v} for k, v in criteria.items()],
                },
            }
        ],
        "judges": ["sim:judge?noise=0.5"],
        "probe": False,
        **changes,
    }
    path = folder / "support.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    return path


def run_and_split(lab: Lab, path: Path, shares: Sequence[float] = (0.2, 0.4, 0.4)) -> None:
    """Runs a study and splits its labelled items."""
    assert lab.runs.run(path).status == "complete"
    lab.labels.split("support", shares=shares)


def paid(lab: Lab) -> int:
    """Counts attempts at calls."""
    return int(lab.store.database.scalar(sa.select(sa.func.count()).select_from(t.attempts)))


def test_a_rubric_that_lacks_what_people_go_by_is_improved(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE))
    result = lab.improvements.improve("support")
    print(json.dumps(result, indent=1))
    assert [row["status"] for row in result["rows"]] == ["accepted"] * 3
