"""Writes a study for a user's own file of texts, pairs and people's labels."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge_gym.errors import DesignError
from judge_gym.recorded.options import FileReading
from judge_gym.recorded.recording import LabelScale, Recording
from judge_gym.recorded.scales import pair_place

JUDGES = ("sim:balanced", "sim:strict", "sim:hasty")
"""The judges of a study for which none is named; they cost nothing."""
PAIR_STAGES = {
    "first": "The first response is better.",
    "second": "The second response is better.",
    "tie": "Both are equally good.",
}
"""The rubric of pairs; the place of a label is that of the response."""
LISTED = 8
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
    """Returns a study on the texts of a file.

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
    _refuse_without_texts(recording)
    stages = {} if rubric else _stages(recording)
    items, notes = _items(recording, stages)
    raters = sorted(recording.labels["rater"].unique())
    name = re.sub(r"[^a-z0-9]+", "-", Path(recording.source).stem.lower()).strip("-") or "study"
    if not recording.verdicts.empty:
        given = ", ".join(sorted(recording.verdicts["judge"].unique()))
        notes += (f"Verdicts of {given} are no part of the study; judge-gym check shows them.",)
    if any(label != stage for label, stage in stages.items()) and not recording.paired:
        listed = ", ".join(stages.values())
        notes += (f"The stages are called {listed}: a study reads the number 1 as the first one.",)
    text = STUDY.format(
        name=name,
        aim=_aim(recording),
        file=json.dumps(f"{name}-items.jsonl"),
        source=" ".join(recording.source.split()),
        labels=f", labels: {json.dumps(raters, ensure_ascii=False)}" if raters else "",
        about=json.dumps(about, ensure_ascii=False),
        rubric=f" {json.dumps(str(rubric))}" if rubric else _rubric(recording, stages),
        judges=json.dumps(list(judges or JUDGES)),
        simulated="" if judges else "   # simulated; name yours: openai:gpt-5.2, ...",
    )
    lines = "".join(f"{json.dumps(item, ensure_ascii=False)}\n" for item in items)
    return OwnStudy(name, text, lines, notes)


def _aim(recording: Recording) -> str:
    if not recording.labels.empty:
        return "Which judge agrees best with people?"
    if (recording.items["truth"] != "").any():
        return "Which judge agrees best with the known answers?"
    return "How consistent are judges?"


def _refuse_without_texts(recording: Recording) -> None:
    items = recording.items
    parts = ["response_a", "response_b"] if recording.paired else ["text"]
    if (items[parts] == "").all(axis=None):
        raise DesignError(
            f"{recording.source} needs a column with the texts that are judged; name it with "
            "--text, or the two of a pair with --responses"
        )
    empty = list(items.loc[(items[parts] == "").any(axis=1), "item"])
    if empty:
        more = f" and {len(empty) - LISTED} more" if len(empty) > LISTED else ""
        raise DesignError(
            f"{recording.source}: the text is empty in {', '.join(empty[:LISTED])}{more}; fill or "
            "delete these rows"
        )


def _stages(recording: Recording) -> Mapping[str, str]:
    """Returns the stage of the rubric for each label."""
    scale = recording.scale
    if recording.paired:
        places = {label: pair_place(label) for label in scale.labels}
        strange = [label for label, place in places.items() if place is None]
        if strange:
            raise DesignError(
                f"{recording.source}: {', '.join(map(repr, strange))} names no response of a pair; "
                "say which with --same LABEL=first, second or tie, or name a rubric with --rubric"
            )
        names = list(PAIR_STAGES)
        stages = {label: names[place] for label, place in places.items() if place is not None}
        return stages | {name: name for name in names if name not in stages.values()}
    if len(scale.labels) < 2:
        given = f"only the label {scale.labels[0]!r}" if scale.labels else "no labels"
        raise DesignError(
            f"{recording.source} has {given} to make a rubric of; name a rubric with --rubric "
            "FILE, or columns of people's labels with --human, or of known answers with --truth"
        )
    return dict(zip(scale.labels, _stage_names(scale), strict=True))


def _stage_names(scale: LabelScale) -> list[str]:
    """Returns the labels, where a number is that of its stage or says that it is a score.

    A study reads the label 1 as the first stage, which on a scale from 0 is another one.
    """
    numbered = [str(number) for number in range(1, len(scale.labels) + 1)]
    if list(scale.labels) == numbered or not any(label in numbered for label in scale.labels):
        return list(scale.labels)
    return [f"score {label}" for label in scale.labels]


def _rubric(recording: Recording, stages_of_labels: Mapping[str, str]) -> str:
    """Returns the rubric as it stands in a study file after its key."""
    stages = list(stages_of_labels.values())
    if recording.paired:
        return _rubric_object("nominal", PAIR_STAGES)
    if not recording.scale.ordered:
        return _rubric_object("nominal", {stage: stage for stage in stages})
    if any(":" in stage for stage in stages):
        return _rubric_object("ordinal", {stage: stage for stage in stages})
    remark = "   # from lowest to highest; say what each means: 'label: criterion'"
    return f" {json.dumps(stages, ensure_ascii=False)}{remark}"


def _rubric_object(kind: str, criteria: Mapping[str, str]) -> str:
    lines = [
        f"        - {{label: {json.dumps(label, ensure_ascii=False)}, "
        f"criteria: [{json.dumps(criterion, ensure_ascii=False)}]}}"
        for label, criterion in criteria.items()
    ]
    remark = "" if kind == "ordinal" else "            # options without an order"
    return "\n".join([f"\n      kind: {kind}{remark}", "      stages:", *lines])


def _items(
    recording: Recording, stages: Mapping[str, str]
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Returns the items with people's labels; the same text is one item."""
    items = recording.items
    key = items.groupby(["text", "response_a", "response_b"], sort=False)["item"].transform("first")
    same = dict(zip(items["item"], key, strict=True))
    labels = recording.labels.assign(item=recording.labels["item"].map(same))
    cells = labels.groupby(["item", "rater"], sort=False)["label"].agg(["first", "nunique"])
    truths = items.assign(item=key)[items["truth"] != ""].groupby("item")["truth"]
    truth = truths.agg(["first", "nunique"])
    notes = []
    if len(set(same.values())) < len(items):
        number = len(items) - len(set(same.values()))
        notes.append(f"{number:,} items repeat the text of another, and are one item with it.")
    for values in (cells, truth):
        several = values[values["nunique"] > 1]
        for place in several.index[:LISTED]:
            item = place[0] if isinstance(place, tuple) else place
            notes.append(f"The text of {item} has different labels: none of them is used.")
    agreed = cells.loc[cells["nunique"] == 1, "first"].unstack()
    known = truth.loc[truth["nunique"] == 1, "first"]
    rows = []
    for item in items.drop_duplicates(["text", "response_a", "response_b"]).to_dict("records"):
        name = item["item"]
        row: dict[str, Any] = {"title": name, "text": item["text"] or "Which response is better?"}
        if recording.paired:
            row["responses"] = [item["response_a"], item["response_b"]]
        if item["cluster"]:
            row["cluster"] = item["cluster"]
        if name in known.index:
            row["truth"] = stages.get(known[name], known[name])
        if name in agreed.index:
            given = agreed.loc[name].dropna()
            row |= {rater: stages.get(label, label) for rater, label in given.items()}
        rows.append(row)
    return rows, tuple(notes)
