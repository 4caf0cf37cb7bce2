"""Setups: a judge as it would be used, that is a model with a design and a source of its rubric."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.frames import (
    JUDGE,
    first_rows,
    is_foreign,
    level_name,
    usual_levels,
    varied_knobs,
)
from judge_gym.axes import NONE, TEMPLATE, TaskTrait, find_knob, template_file

NOT_ASKED = ("probe.", "rubric.critic", "prompt.slots.prober.", "prompt.slots.critic.")
"""Knobs that act after the verdict, or beside it: they make no other setup."""
LONGEST = 32
"""The number of characters of a level in a name."""
Levels = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Setup:
    """A judge as it would be used."""

    name: str
    judge: str
    knobs: Mapping[str, Any]
    """The level of each knob that varies between setups."""
    rubric: str
    index: npt.NDArray[np.int64]
    """The positions of its samples in the frame that it was made of."""


def setups_of(own: pd.DataFrame) -> list[Setup]:
    """Returns the setups in tidy samples without swaps, by name.

    A knob counts if it varies within some task. Where it cannot act, as the author of a rubric that
    the task provides, samples belong to every setup that agrees with them in the other knobs.
    """
    knobs = _varied(own)
    columns = [JUDGE, *knobs]
    codes = own.groupby(columns, sort=False, dropna=False, observed=True).ngroup().to_numpy()
    inactive = np.column_stack([_inactive(own, knob) for knob in knobs]) if knobs else None
    parts: dict[Levels, npt.NDArray[np.bool_]] = {}
    for code in np.unique(codes):
        rows = codes == code
        first = own[columns].iloc[int(rows.argmax())]
        patterns = np.unique(inactive[rows], axis=0) if inactive is not None else [()]
        for pattern in patterns:
            same = rows if inactive is None else rows & (inactive == pattern).all(axis=1)
            levels = [None if off else first[k] for k, off in zip(knobs, pattern, strict=True)]
            key = (first[JUDGE], *levels)
            parts[key] = parts.get(key, False) | same
    complete_keys = [key for key in parts if not any(_covers(key, other) for other in parts)]
    usual = {knob: usual_level(own, knob) for knob in knobs}
    names = _names(complete_keys, knobs, usual)
    setups = []
    for key, name in zip(complete_keys, names, strict=True):
        masks = [mask for part, mask in parts.items() if part == key or _covers(part, key)]
        index = np.flatnonzero(np.logical_or.reduce(masks))
        named = dict(zip(knobs, key[1:], strict=True))
        authors = [str(author) for author in own["rubric.author"].iloc[index].unique()]
        setups.append(Setup(name, str(key[0]), named, ", ".join(sorted(authors)), index))
    return sorted(setups, key=lambda setup: setup.name)


def groups_as_setups(frame: pd.DataFrame, by: Sequence[str]) -> list[tuple[Levels, Setup]]:
    """Returns each group of a frame as a setup, with the values of its columns."""
    code = frame.groupby(list(by), observed=True, dropna=False).ngroup().to_numpy()
    groups = []
    for number in range(int(code.max(initial=-1)) + 1):
        index = np.flatnonzero(code == number)
        key = tuple(frame[list(by)].iloc[index[0]])
        groups.append((key, Setup(" ".join(map(str, key)), "", {}, "", index)))
    return groups


def _varied(own: pd.DataFrame) -> list[str]:
    """Returns the knobs that change a verdict and vary within some task."""
    knobs_by_task = [varied_knobs(part) for _, part in own.groupby("task", observed=True)]
    knobs = dict.fromkeys(knob for part in knobs_by_task for knob in part)
    return [knob for knob in knobs if not knob.startswith(NOT_ASKED)]


def _inactive(own: pd.DataFrame, knob: str) -> npt.NDArray[np.bool_]:
    """Returns on which samples a knob cannot act (`studies.sweep` sets it to its default there)."""
    declared = find_knob(knob)
    if not declared.inactive:
        return np.zeros(len(own), dtype=bool)
    names = dict.fromkeys([*declared.inactive, "pair", "rubric.author"])
    columns = [name for name in names if name in own]
    groups = own.groupby(columns, sort=False, dropna=False, observed=True)
    code = np.asarray(groups.ngroup(), dtype=np.intp)
    rows = own[columns].iloc[first_rows(code)].itertuples(index=False, name=None)
    cells = [dict(zip(columns, row, strict=True)) for row in rows]
    return np.array([declared.is_inactive(cell, _traits(cell)) for cell in cells])[code]


def _traits(sample: Mapping[str, Any]) -> list[TaskTrait]:
    """Returns what the task of a sample is."""
    rubric_traits: list[TaskTrait] = (
        ["given rubric"] if sample["rubric.author"] == "provided" else []
    )
    return [*rubric_traits, "pairs" if sample["pair"] else "single texts"]


def _covers(part: Levels, whole: Levels) -> bool:
    """Whether samples of one combination belong to another, in which some knobs are inactive."""
    pairs = [*zip(part, whole, strict=True)]
    return part != whole and all(mine is None or mine == other for mine, other in pairs)


def usual_level(own: pd.DataFrame, knob: str) -> Any:
    """Returns the level that names leave out: the default if it occurs, else the most frequent."""
    counts = own[knob].value_counts(dropna=False, sort=True)
    default = usual_levels(own).get(knob)
    if any(level_name(level) == level_name(default) for level in counts.index):
        return default
    return counts.index[0]


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Names models without their provider where that is enough to tell them apart.

    >>> short_names(["openai:o1", "lab:o1", "lab:o2"])
    {'openai:o1': 'openai:o1', 'lab:o1': 'lab:o1', 'lab:o2': 'o2'}
    """
    bare = {model: model.partition(":")[2] or model for model in dict.fromkeys(models)}
    count = Counter(bare.values())
    return {model: name if count[name] == 1 else model for model, name in bare.items()}


def _prompt_names(levels: Collection[Any]) -> dict[Any, str]:
    """Returns the name of each own prompt: its file, with the digest where files share a name."""
    names = {level: template_file(str(level)) for level in levels}
    files = Counter(names.values())
    return {level: name if files[name] == 1 else str(level) for level, name in names.items()}


def _names(keys: Sequence[Levels], knobs: Sequence[str], usual: Mapping[str, Any]) -> list[str]:
    """Returns a name for each setup: its model, and the levels that are not the usual ones.

    What others recorded has no usual level, and a user's own prompts neither, so that they are
    always named.
    """
    models = short_names(str(key[0]) for key in keys)
    ends = Counter(knob.rpartition(".")[2] for knob in knobs)
    template_column = 1 + knobs.index(TEMPLATE) if TEMPLATE in knobs else 0
    prompts = _prompt_names({key[template_column] for key in keys}) if template_column else {}
    names = []
    for model, *levels in keys:
        parts = [models[str(model)]]
        for knob, level in zip(knobs, levels, strict=True):
            is_usual = level_name(level) == level_name(usual[knob]) and not is_foreign(knob)
            if level is None or (is_usual and (knob != TEMPLATE or level == NONE)):
                continue
            end = knob.rpartition(".")[2]
            text = prompts[level] if knob == TEMPLATE else level_name(level)
            text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
            parts.append(f"{end if ends[end] == 1 else knob} {text}")
        names.append(", ".join(parts))
    taken = Counter(names)
    return [
        name if taken[name] == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)
    ]
