"""Writes a study file for a user's own CSV file of texts."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

from judge_gym.errors import DesignError, unknown

JUDGES = ("sim:balanced", "sim:strict", "sim:hasty")
"""The judges of a study for which none is named; they cost nothing."""
MOST_STAGES = 26
STUDY = """\
# Which judge agrees best with {people}? Every key is explained in docs/studies.md.
# Next: judge-gym run {name}.yaml, then judge-gym judges {name}.yaml
study: {name}
samples: 3                 # repeats per judge and item, which show how consistent a judge is

evidence:
  {name}: {{files: {file}{labels}}}

tasks:
  - concept: {about}
    evidence: {name}
    rubric: {rubric}

judges: {judges}{simulated}

vary:                      # what else may matter; leave it out to compare models only
  verdict.method: [single, subset]
probe: false
"""


def own_study(
    file: Path, labels: Sequence[str], about: str, rubric: Path | None, judges: Sequence[str]
) -> tuple[str, str]:
    """Returns the name of a study on the texts of a CSV file, and the text of its file.

    Args:
        file: its column `text` is judged; `truth` has known answers.
        labels: columns with the stage that a person gave, one per rater.
        about: what is judged.
        rubric: the rubric; by default its stages are the values of the answers and labels.
        judges: model ids; by default simulated ones.

    Raises:
        DesignError: if the file has no column `text`, lacks a column of labels, or has neither
            answers nor labels to take stages from.
    """
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    columns = [name for name in (rows[0] if rows else {}) if name]
    if "text" not in columns:
        found = ", ".join(columns) or "no rows"
        raise DesignError(f"{file} needs a column 'text' with what is judged; it has {found}")
    for name in labels:
        if name not in columns:
            raise DesignError(unknown("column", name, columns, file.name), choices=columns)
    known = [*labels, *(["truth"] if "truth" in columns else [])]
    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-") or "study"
    stages = json.dumps(str(rubric)) if rubric else _stages(file, rows, known)
    text = STUDY.format(
        name=name,
        people="people" if labels else "the known answers",
        file=json.dumps(file.name),
        labels=f", labels: {json.dumps(list(labels))}" if labels else "",
        about=json.dumps(about),
        rubric=stages,
        judges=json.dumps(list(judges or JUDGES)),
        simulated="" if judges else "   # simulated; name yours: openai:gpt-5.2, ...",
    )
    return name, text


def _stages(file: Path, rows: Sequence[dict[str, str]], known: Sequence[str]) -> str:
    """Returns the stages of a rubric, which are the values that people or answers have."""
    values = {row[name].strip() for row in rows for name in known if (row[name] or "").strip()}
    numbered = all(value.isdecimal() for value in values)
    stages = sorted(values, key=int) if numbered else sorted(values)
    if numbered and stages:  # a number is the place of a stage, so none may be missing
        stages = [str(number) for number in range(1, int(stages[-1]) + 1)]
    if not 2 <= len(stages) <= MOST_STAGES:
        raise DesignError(
            f"a rubric has 2 to {MOST_STAGES} stages, and {file} has {len(stages)} values of "
            "answers or labels; name a rubric with --rubric FILE, or columns with --labels"
        )
    remark = "   # from lowest to highest; say what each means: 'label: criterion'"
    return json.dumps(stages, ensure_ascii=False) + remark
