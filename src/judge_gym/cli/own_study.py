"""Writes a study for a user's own file of texts, pairs and people's labels."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from judge_gym.errors import DesignError
from judge_gym.recorded.options import FileReading
from judge_gym.recorded.recording import Recording
from judge_gym.recorded.study_items import PAIR_STAGES, StudyItems, study_items

JUDGES = ("sim:balanced", "sim:strict", "sim:hasty")
"""The judges of a study for which none is named; they cost nothing."""
STUDY = """\
# {aim} Every key is explained in docs/studies.md.
# Next: judge-gym run {name}.yaml, then judge-gym judges {name}.yaml
study: {name}
repeats: 3                 # per judge and item, which show how consistent a judge is

items:
  {name}: {{files: {file}{labels}}}   # from {source}

tasks:
  - question: {about}
    items: {name}
    rubric:{rubric}

judges: {judges}{simulated}

vary:                      # what else may matter; leave it out to compare models only
  verdict.method: [single, subset]
probe: false
"""


class OwnStudy(NamedTuple):
    """A study for a user's own file."""

    name: str
    text: str
    """The study file."""
    items: str
    """Its items, as JSON Lines."""
    notes: tuple[str, ...]
    """What was left out."""

    @property
    def items_file(self) -> str:
        """The name of the file with the items."""
        return f"{self.name}-items.jsonl"

    def write(self, folder: Path) -> Path:
        """Writes the study and its items, and returns the path of the study."""
        path = folder / f"{self.name}.yaml"
        (folder / self.items_file).write_text(self.items, encoding="utf-8")
        path.write_text(self.text, encoding="utf-8")
        return path


def own_study(
    reading: FileReading, about: str, rubric: Path | None, judges: Sequence[str]
) -> OwnStudy:
    """Writes a study on the texts of a file.

    Args:
        reading: the file; verdicts in it are not used.
        about: what is judged.
        rubric: the rubric; by default its stages are the labels of people and known answers.
        judges: model ids; by default simulated ones.

    Raises:
        DesignError: if the file has no texts, an empty one, or neither labels nor known answers to
            take stages from.
    """
    recording = reading.recording
    items = study_items(recording, rubric=rubric is not None)
    if rubric is None and len(items.stages) < 2:
        labels = f"only the label {items.stages[0]!r}" if items.stages else "no labels"
        raise DesignError(
            f"{recording.source} has {labels} to make a rubric of; name a rubric with --rubric "
            "FILE, or columns of people's labels with --human, or of known answers with --truth"
        )
    name = re.sub(r"[^a-z0-9]+", "-", Path(recording.source).stem.lower()).strip("-") or "study"
    raters = json.dumps(items.raters, ensure_ascii=False)
    text = STUDY.format(
        name=name,
        aim=_aim(recording),
        file=json.dumps(f"{name}-items.jsonl"),
        source=" ".join(recording.source.split()),
        labels=f", labels: {raters}" if items.raters else "",
        about=json.dumps(about, ensure_ascii=False),
        rubric=f" {json.dumps(str(rubric))}" if rubric else _rubric(recording, items),
        judges=json.dumps(list(judges or JUDGES)),
        simulated="" if judges else "   # simulated; name yours: openai:gpt-5.2, ...",
    )
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in items.rows)
    return OwnStudy(name, text, lines, items.notes)


def _aim(recording: Recording) -> str:
    if not recording.labels.empty:
        return "Which judge agrees best with people?"
    if (recording.items["truth"] != "").any():
        return "Which judge agrees best with the known answers?"
    return "How consistent are judges?"


def _rubric(recording: Recording, items: StudyItems) -> str:
    """Writes the rubric as it stands in a study file after its key."""
    if recording.paired:
        return _rubric_object("nominal", PAIR_STAGES)
    criteria = {stage: stage for stage in items.stages}
    if not items.ordered:
        return _rubric_object("nominal", criteria)
    if any(":" in stage for stage in items.stages):
        return _rubric_object("ordinal", criteria)
    remark = "   # from lowest to highest; say what each means: 'label: criterion'"
    return f" {json.dumps(items.stages, ensure_ascii=False)}{remark}"


def _rubric_object(kind: str, criteria: Mapping[str, str]) -> str:
    lines = [
        f"        - {{label: {json.dumps(label, ensure_ascii=False)}, "
        f"criteria: [{json.dumps(criterion, ensure_ascii=False)}]}}"
        for label, criterion in criteria.items()
    ]
    remark = "" if kind == "ordinal" else "            # options without an order"
    return "\n".join([f"\n      kind: {kind}{remark}", "      stages:", *lines])
