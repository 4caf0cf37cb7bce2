"""Loads benchmarks: JudgeBench, or a folder of `benchmark.toml`, `items.jsonl`, `rubric.json`."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError, MissingFileError, unknown
from judge_gym.records import Benchmark, Evidence, NominalRubric, RubricStage, grade_items
from judge_gym.sources.files import errors_in, load_rubric, read_items
from judge_gym.sources.judgebench import read_pairs
from judge_gym.studies import read_knobs

SETTINGS, ITEMS, RUBRIC = "benchmark.toml", "items.jsonl", "rubric.json"
KEYS = ("name", "concept", "description", "design")
WHOLE = f"a benchmark is a folder with {SETTINGS}, {ITEMS} and {RUBRIC}"

# A better response is a correct one: JudgeBench's labels do not rate style.
PAIR_OPTIONS = (
    RubricStage(
        "The first response is better",
        (
            "Its final answer is correct and that of the second is not",
            "Where the final answers are equally right or wrong, its reasoning has fewer errors",
        ),
    ),
    RubricStage(
        "The second response is better",
        (
            "Its final answer is correct and that of the first is not",
            "Where the final answers are equally right or wrong, its reasoning has fewer errors",
        ),
    ),
    RubricStage("Neither is better", ("Both are right, or both are wrong, to the same degree",)),
)
EXAMINER = "an impartial examiner who works a question out before judging answers to it"


def load_benchmark(folder: Path) -> Benchmark:
    """Loads the benchmark in a folder. Every item and known answer must fit the rubric."""
    if not folder.is_dir():
        raise MissingFileError(f"there is no folder {folder}; {WHOLE}")
    for name in (SETTINGS, ITEMS, RUBRIC):
        if not (folder / name).is_file():
            raise MissingFileError(f"there is no file {folder / name}; {WHOLE}")
    settings = _settings(folder / SETTINGS)
    rubric = load_rubric(folder / RUBRIC, settings["concept"], "")
    items = read_items(folder / ITEMS)
    _refuse_repeated(items, folder / ITEMS)
    if all(item.truth is None for item in items):
        raise DesignError(f"{folder / ITEMS}: no item has a truth; a benchmark knows its answers")
    with errors_in(folder / ITEMS):
        items = grade_items(items, rubric)
    with errors_in(folder / SETTINGS):
        design = read_knobs(settings.get("design", {}))
        if "judge.model" in design:
            raise DesignError("judge.model is the study's, not the benchmark's")
    return Benchmark(
        name=settings.get("name", folder.resolve().name),
        concept=settings["concept"],
        items=items,
        rubric=rubric,
        description=settings.get("description", ""),
        design=design,
    )


def judgebench(path: Path) -> Benchmark:
    """Loads JudgeBench's pairs from the published file."""
    concept = "the better response"
    items = read_pairs(path)
    _refuse_repeated(items, path)
    return Benchmark(
        name="judgebench",
        concept=concept,
        items=items,
        rubric=NominalRubric(PAIR_OPTIONS, author="provided", concept=concept, country=""),
        design={
            "prompt.slots.scorer.persona": EXAMINER,
            "prompt.slots.prober.persona": EXAMINER,
            "prompt.slots.prober.panel": "examiners",
        },
    )


def _refuse_repeated(items: Sequence[Evidence], path: Path) -> None:
    """Refuses repeated items, which would be judged once and counted twice."""
    texts: dict[str, str] = {}
    ids: dict[str, str] = {}
    for item in items:
        if texts.setdefault(item.hash, item.title) is not item.title:
            raise DesignError(f"{path}: {item.title!r} has the same text as {texts[item.hash]!r}")
        id = str(item.metadata.get("id", ""))
        if id and ids.setdefault(id, item.title) is not item.title:
            raise DesignError(f"{path}: {item.title!r} has the id {id!r} of {ids[id]!r}")


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DesignError(f"{path} cannot be read: {error}") from error
    for key, value in settings.items():
        if key not in KEYS:
            raise DesignError(f"{path}: {unknown('key', key, KEYS)}", choices=KEYS)
        if not isinstance(value, dict if key == "design" else str):
            kind = "a table of knobs" if key == "design" else "a text"
            raise DesignError(f"{path}: {key} is {kind}")
    if not settings.get("concept", "").strip():
        raise DesignError(f"{path}: concept is not given; it says what is judged")
    return settings
