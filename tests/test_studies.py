"""Study files: what they mean, where they are refused, and which experiments they become."""

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from judge_gym.axes import CONTESTED, Design, complete, defaults
from judge_gym.errors import DesignError
from judge_gym.lab import Lab
from judge_gym.lab.prepare import PreparedStudy, prepare_study
from judge_gym.lab.study_files import read_study_file
from judge_gym.models import Registry
from judge_gym.records import (
    Evidence,
    NominalRubric,
    OrdinalRubric,
    Pool,
    Rubric,
    RubricStage,
    Window,
    search_origins,
)
from judge_gym.store import Store
from judge_gym.studies import (
    Experiment,
    Study,
    StudyVersion,
    Sweep,
    Task,
    declarations,
    experiments,
    points,
    read_study,
    resolve_design,
)
from tables import each_row

# The study of the specification, on simulated judges.
WHOLE = """\
study: contested-pilot
seed: 7
samples: 5                         # replicates per cell
evidence:                          # named pools
  usa:
    files: evidence/usa/*.md
    window: {country: USA, start: 2026-01-01, end: 2026-01-31}
  norway:
    files: evidence/norway.jsonl
    window: {country: Norway, start: 2026-01-01, end: 2026-01-31}
  reviews: {files: reviews.jsonl}  # a benchmark needs no window
protocol: contested-concepts
tasks:
  - {type: ecc, concept: fascism, evidence: usa, dose: 2}
  - {type: ecc, concept: democratic backsliding, evidence: usa, dose: 1}
  - {type: control, concept: democracy quality, evidence: norway, dose: 0,
     truth: {source: v-dem-liberal-democracy-index, value: 0.95, direction: up}}
  - {type: benchmark, concept: review severity, evidence: reviews, rubric: rubric.json}
judges: [sim:balanced, sim:strict]
design:                            # the base; every other knob at its default
  evidence.editor: sim:editor
  rubric.critic: sim:critic
vary:
  verdict.method: [single, subset]
  presentation.first: [rubric, evidence]
sweep: ablate                      # grid | ablate | {sample: 20}
swap: all                          # none | all | [[judge, rubric author], ["*", third party], ...]
probe: true
budget: {usd: 20, calls: 50000, tokens: 40000000, minutes: 120}
tolerance: 0.05
"""
STAGES = (RubricStage("Minor", ("a typo",)), RubricStage("Severe", ("a crash",)))
RUBRIC = OrdinalRubric(STAGES, "provided", "", "")
MINIMAL: dict[str, Any] = {
    "study": "small",
    "protocol": "contested-concepts",
    "evidence": {"here": {"files": "e.jsonl", "window": {"country": "Valdoria"}}},
    "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "here"}],
    "judges": ["sim:balanced", "sim:strict"],
}
ECC = {"type": "ecc", "concept": "fascism", "evidence": "here"}
GIVEN = {"type": "ecc", "concept": "severity", "evidence": "here", "rubric": "r.json"}
BENCHMARK = {"type": "benchmark", "concept": "severity", "evidence": "here", "rubric": "r.json"}


def read(**changes: Any) -> Study:
    """The minimal study with other keys."""
    return read_study(yaml.safe_dump({**MINIMAL, **changes}, sort_keys=False), "study.yaml")


def prepare_file(
    path: Path, store: Store, overrides: Mapping[str, Any] | None = None
) -> PreparedStudy:
    models = Registry()
    return prepare_study(read_study_file(path, models, overrides), models, store)


def pool(*texts: str, country: str | None = "Valdoria") -> Pool:
    items = tuple(Evidence(f"title of {text}", text) for text in texts or ("a", "b"))
    return Pool(items, Window(country) if country else None)


def sweep(study: Study) -> Sweep:
    rubrics = {str(task.rubric): RUBRIC for task in study.tasks if task.rubric}
    return experiments(study, {name: pool() for name in study.evidence}, rubrics)


# --- reading -------------------------------------------------------------------------------------


def test_the_study_of_the_specification_reads() -> None:
    study = read_study(WHOLE, "study.yaml")
    assert (study.study, study.seed, study.samples) == ("contested-pilot", 7, 5)
    window = study.evidence["usa"].window
    assert window and (window.start, window.end) == (date(2026, 1, 1), date(2026, 1, 31))
    assert study.evidence["reviews"].window is None
    assert [task.type for task in study.tasks] == ["ecc", "ecc", "control", "benchmark"]
    assert [task.dose for task in study.tasks] == [2, 1, 0, None]
    truth = study.tasks[2].truth
    assert truth and (truth.value, truth.direction) == (0.95, "up")
    assert study.design == {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"}
    assert study.vary["presentation.first"] == ["rubric", "evidence"]
    assert (study.sweep, study.swap, study.probe) == ("ablate", "all", True)
    assert study.budget.model_dump(exclude_none=True) == {
        "run": {},
        "usd": 20,
        "calls": 50000,
        "tokens": 40000000,
        "minutes": 120,
    }


def test_the_study_of_the_specification_becomes_experiments() -> None:
    made = sweep(read_study(WHOLE, "study.yaml"))
    # Four tasks, two judges, and the base with two ablations.
    assert len(made.experiments) == 4 * 2 * 3
    benchmarks = [one for one in made.experiments if one.task.type == "benchmark"]
    assert all(one.design.evidence.view == "raw" for one in benchmarks)
    assert all(one.design.rubric.author == "provided" for one in benchmarks)
    assert set(made.skipped_swaps) == {one.tag for one in benchmarks}
    assert all(
        one.design.evidence.view == "neutralized" and one.design.evidence.editor == "sim:editor"
        for one in made.experiments
        if one not in benchmarks
    )


WORDS = """
study: small
repeats: 2
items: {replies: {files: replies.csv}}
tasks:
  - {question: helpfulness, items: replies}
judges: ["sim:strict"]
"""


def test_everyday_words_stand_for_keys_of_a_study() -> None:
    study = read_study(WORDS, "s.yaml")
    assert (study.samples, [*study.evidence]) == (2, ["replies"])
    assert (study.tasks[0].concept, study.tasks[0].evidence) == ("helpfulness", "replies")


def test_the_schema_takes_everyday_words_and_asks_for_one_word_of_each() -> None:
    schema = Draft202012Validator(Study.model_json_schema())
    assert schema.is_valid(yaml.safe_load(WORDS))
    assert schema.is_valid(yaml.safe_load(WORDS.replace("items", "evidence")))
    without_items = yaml.safe_load(WORDS)
    del without_items["items"]
    assert not schema.is_valid(without_items)


@each_row(
    ("old", "new", "error"),
    [
        ("repeats: 2", "repeats: 2\nsamples: 3", "s.yaml:3: 'repeats' and 'samples' mean the same"),
        ("question: h", "concept: x, question: h", "s.yaml:6: 'question' and 'concept' mean"),
        ("items: replies}", "items: others}", "s.yaml:6: unknown evidence 'others'"),
        ("repeats: 2", "repeats: none", "s.yaml:3: samples cannot be 'none'"),
    ],
)
def test_errors_about_everyday_words_name_their_line(old: str, new: str, error: str) -> None:
    with pytest.raises(DesignError, match=error):
        read_study(WORDS.replace(old, new), "s.yaml")


def test_what_is_left_out_has_the_documented_default() -> None:
    study = read()
    assert (study.seed, study.samples, study.sweep, study.swap) == (0, 5, "grid", "none")
    assert (study.probe, study.tolerance) == (True, 0.05)
    assert study.budget.model_dump(exclude_none=True) == {"run": {}}
    [one, _] = sweep(study).experiments
    assert (one.design.judge.temperature, one.design.judge.max_tokens) == (None, 2048)


ALIASED: dict[str, tuple[Any, dict[str, Any]]] = {
    "scaleSize": (5, {"rubric.scale": 5}),
    "rubricOwner": ("sim:third", {"rubric.author": "sim:third"}),
    "randomizeLabels": (
        False,
        {"presentation.labels": "fixed", "presentation.order": "fixed"},
    ),
    "neutralizeEvidence": (False, {"evidence.view": "raw"}),
    "scoringMethod": (
        "freeform-suffix-subset",
        {"verdict.method": "subset", "verdict.output": "suffix"},
    ),
    "promptOrdering": ("evidence-first", {"presentation.first": "evidence"}),
    "abstainEnabled": (False, {"verdict.abstain": False}),
    "freshWindowProbe": (False, {"probe.context": "same"}),
}


@each_row("name", ALIASED)
def test_a_blueprint_name_is_accepted_in_a_study_file(name: str) -> None:
    value, knobs = ALIASED[name]
    assert read(design={name: value}).design == knobs


def test_the_blueprints_whole_config_is_a_design() -> None:
    config = {name: value for name, (value, _) in ALIASED.items()}
    expected = {knob: level for _, knobs in ALIASED.values() for knob, level in knobs.items()}
    assert read(design=config).design == expected


def test_the_blueprints_model_id_may_name_the_judge() -> None:
    assert read(judges=["sim:strict"], design={"modelId": "sim:strict"}).judges == ["sim:strict"]


def test_blueprint_names_vary_where_they_move_one_knob() -> None:
    study = read(
        vary={
            "scaleSize": [4, 5],
            "scoringMethod": ["freeform-suffix-single", "freeform-suffix-subset"],
        }
    )
    assert study.vary == {"rubric.scale": [4, 5], "verdict.method": ["single", "subset"]}


@pytest.mark.parametrize(
    "design",
    [
        {"prompt.slots.scorer.persona": "a nurse"},
        {"prompt.slots": {"scorer.persona": "a nurse"}},
        {"prompt": {"slots": {"scorer": {"persona": "a nurse"}}}},
    ],
)
def test_slots_are_given_by_path_or_as_a_mapping(design: dict[str, Any]) -> None:
    assert read(design=design).design == {"prompt.slots.scorer.persona": "a nurse"}


def test_bare_model_names_are_looked_up_in_every_key() -> None:
    data = {
        **MINIMAL,
        "judges": ["one", "two"],
        "design": {"evidence.editor": "edits", "rubric.critic": "finds", "rubric.author": "own"},
        "vary": {"rubric.author": ["own", "third"]},
        "swap": [["one", "third"], ["*", "two"]],
    }
    study = read_study(yaml.safe_dump(data), "s.yaml", resolve=lambda name: f"openai:{name}")
    assert study.judges == ["openai:one", "openai:two"]
    assert study.design["evidence.editor"] == "openai:edits"
    assert study.design["rubric.critic"] == "openai:finds"
    assert study.design["rubric.author"] == "own"
    assert study.vary["rubric.author"] == ["own", "openai:third"]
    assert study.swap == [["openai:one", "openai:third"], ["*", "openai:two"]]


def test_overridden_knobs_replace_the_base_and_show_in_the_tag() -> None:
    text = yaml.safe_dump({**MINIMAL, "design": {"verdict.method": "single", "rubric.scale": 5}})
    study = read_study(text, "s.yaml", overrides={"scoringMethod": "freeform-suffix-subset"})
    assert study.design["verdict.method"] == "subset" and study.design["rubric.scale"] == 5
    made = experiments(study, {"here": pool()}, {}, shown=["verdict.method"])
    assert made.experiments[0].tag == "small/fascism/here/sim:balanced/verdict.method=subset"


# --- refusals ------------------------------------------------------------------------------------

BASE = """\
study: small
seed: 3
samples: 2
protocol: contested-concepts
evidence:
  here:
    files: evidence.jsonl
    window: {country: Valdoria}
  bare: {files: bare.jsonl}
tasks:
  - {type: ecc, concept: fascism, evidence: here}
judges:
  - sim:balanced
  - sim:strict
design:
  evidence.editor: sim:editor
  rubric.critic: sim:critic
vary:
  verdict.method: [single, subset]
swap: none
budget: {usd: 2}
"""
TASK = "{type: ecc, concept: fascism, evidence: here}"
EDITOR = "evidence.editor: sim:editor"
VARIED = "verdict.method: [single, subset]"
BARE = "{files: bare.jsonl}"
POOL_AND_TASK = f"bare: {BARE}\ntasks:\n  - {TASK}"
CONTROL = "{{type: control, concept: c, evidence: here, truth: {}}}"
# What is replaced, by what, on which line the error stands, and what it must say.
REFUSED: dict[str, tuple[str, str, str, list[str]]] = {
    "unknown key": ("seed: 3", "sed: 3", "sed:", ["'sed'", "'seed'", "'tolerance'"]),
    "unknown key of a task": (
        TASK,
        "{type: ecc, concept: c, evidence: here, doze: 2}",
        "doze",
        ["'doze'", "'dose'"],
    ),
    "unknown key of a pool": ("files: bare.jsonl", "file: b", "bare:", ["files"]),
    "unknown key of a budget": ("{usd: 2}", "{eur: 2}", "eur", ["'eur'", "'usd'", "'minutes'"]),
    "unknown protocol": (
        "protocol: contested-concepts",
        "protocol: contested",
        "protocol:",
        ["'contested'", "'contested-concepts'"],
    ),
    "a protocol and a task without a type": (
        TASK,
        "{concept: fascism, evidence: here}",
        "fascism",
        ["the type of each task", "ecc, control, benchmark"],
    ),
    "a protocol and a window without a country": (
        "{country: Valdoria}",
        "{start: 2026-01-01}",
        "here:",
        ["country: NAME"],
    ),
    "unknown task type": ("type: ecc", "type: eec", "eec", ["'eec'", "'ecc'", "'benchmark'"]),
    "unknown knob": (
        EDITOR,
        "evidence.edtor: x",
        "edtor",
        ["'evidence.edtor'", "'evidence.editor' or 'evidence.fields'"],
    ),
    "unknown group": (EDITOR, "evidnce.editor: x", "evidnce", ["'evidence.*'", "'verdict.*'"]),
    "unknown knob in a group": (
        EDITOR,
        "verdict: {metod: single}",
        "metod",
        ["'verdict.metod'", "'verdict.method'"],
    ),
    "unknown level": (
        EDITOR,
        "verdict.method: singel",
        "singel",
        ["unknown level 'singel' for verdict.method; choose 'single' or 'subset'"],
    ),
    "text for a flag": (EDITOR, "verdict.abstain: 'true'", "'true'", ["'true' or 'false'"]),
    "scale 1": (EDITOR, "rubric.scale: 1", "scale", ["rubric.scale cannot be 1", "2 to 26"]),
    "scale 27": (EDITOR, "scaleSize: 27", "scale", ["rubric.scale cannot be 27", "2 to 26"]),
    "unknown knob varies": (
        VARIED,
        "verdict.metod: [single, subset]",
        "metod",
        ["'verdict.metod'", "'verdict.method'"],
    ),
    "unknown knob varies, in lines": (
        VARIED,
        "verdict.metod:\n    - single\n    - subset",
        "metod",
        ["'verdict.metod'"],
    ),
    "unknown level varies": (
        VARIED,
        "verdict.method: [single, subst]",
        "subst",
        ["unknown level 'subst' for verdict.method; choose 'single' or 'subset'"],
    ),
    "unknown level varies, in lines": (
        VARIED,
        "verdict.method:\n    - single\n    - subst",
        "subst",
        ["'subst'"],
    ),
    "a varying knob without levels": (VARIED, "verdict.method: single", "single", ["list"]),
    "a varying knob of one level": (VARIED, "verdict.method: [single]", "[single]", ["two levels"]),
    "a blueprint name that moves two knobs": (
        VARIED,
        "randomizeLabels: [true, false]",
        "randomize",
        ["presentation.labels", "presentation.order"],
    ),
    "unknown evidence": (
        "evidence: here}",
        "evidence: heer}",
        "heer",
        ["'heer'", "'here' or 'bare'", "'fascism'"],
    ),
    "no window": ("evidence: here}", "evidence: bare}", "bare:", ["ecc", "window", "'bare'"]),
    "control without a window": (
        TASK,
        "{type: control, concept: c, evidence: bare}",
        "bare: {",
        ["control", "window"],
    ),
    "a benchmark without a rubric": (
        TASK,
        "{type: benchmark, concept: severity, evidence: bare}",
        "benchmark",
        ["'severity'", "rubric: FILE.json"],
    ),
    "a provided rubric that is not given": (
        EDITOR,
        "rubric.author: provided",
        "concept",
        ["'fascism'", "rubric: FILE.json"],
    ),
    "a key given twice": ("seed: 3", "seed: 3\nseed: 4", "seed: 4", ["'seed' is given twice"]),
    "an inner key given twice": (
        EDITOR,
        "rubric.critic: sim:editor",
        "rubric.critic: sim:critic",
        ["'rubric.critic' is given twice"],
    ),
    "invalid YAML": ("seed: 3", "seed: [3", "samples", ["invalid YAML"]),
    "a tab": ("seed: 3", "\tseed: 3", "seed", ["invalid YAML"]),
    "a list as a key": ("seed: 3", "? [seed]\n: 3", "[seed]", []),
    "an alias within itself": ("seed: 3", "seed: &again [*again]", "again", []),
    "a date that is none": (
        "{country: Valdoria}",
        "{country: Valdoria, start: 2026-02-30}",
        "2026-02-30",
        [],
    ),
    "a judge listed twice": ("- sim:strict", "- sim:balanced", "judges", ["twice"]),
    "no judge": ("  - sim:balanced\n  - sim:strict\n", "  []\n", "judges", ["judges"]),
    "a judge in vary": (
        VARIED,
        "judge.model: [sim:a, sim:b]",
        "judge.model",
        ["judge.model", "`judges`"],
    ),
    "a judge in the design": (EDITOR, "judge.model: sim:a", "judge.model", ["`judges`"]),
    "a judge as editor": (
        EDITOR,
        "evidence.editor: sim:strict",
        "sim:strict",
        ["evidence.editor 'sim:strict'", "outside the panel"],
    ),
    "a judge as critic": (
        "rubric.critic: sim:critic",
        "rubric.critic: sim:strict",
        "rubric.critic",
        ["rubric.critic 'sim:strict'", "outside the panel"],
    ),
    "a judge as varying editor": (
        VARIED,
        "evidence.editor: [sim:editor, sim:strict]",
        "[sim:editor",
        ["evidence.editor 'sim:strict'", "outside the panel"],
    ),
    "swap of an unknown judge": (
        "swap: none",
        "swap: [[sim:strict, sim:third], [sim:strikt, sim:strict]]",
        "strikt",
        ["'sim:strikt'", "'sim:balanced', 'sim:strict' or '*'"],
    ),
    "unknown swap": ("swap: none", "swap: some", "some", ["'some'", "'none'", "'all'"]),
    "no samples": ("samples: 2", "samples: 0", "samples", ["samples", "0", "greater"]),
    "negative samples": ("samples: 2", "samples: -1", "samples", ["samples", "-1", "greater"]),
    "half a sample": ("samples: 2", "samples: 2.5", "samples", ["samples", "2.5", "integer"]),
    "samples in words": ("samples: 2", "samples: many", "samples", ["'many'", "integer"]),
    "an empty budget": ("{usd: 2}", "{usd: 0}", "usd", ["budget.usd", "0", "greater"]),
    "a negative budget": ("{usd: 2}", "{calls: -5}", "calls", ["budget.calls", "-5", "greater"]),
    "a budget in words": ("{usd: 2}", "{tokens: lots}", "lots", ["budget.tokens", "'lots'"]),
    "a budget that is a number": ("{usd: 2}", "20", "budget", ["budget", "20"]),
    "unknown sweep": (
        "swap: none",
        "sweep: gird",
        "gird",
        ["'gird'", "'grid'", "'ablate'", "sample"],
    ),
    "an empty sample": (
        "swap: none",
        "sweep: {sample: 0}",
        "sample:",
        ["'sample': 0", "sample: K"],
    ),
    "a probe that is not made": (
        VARIED,
        "probe.context: [fresh, same]\nprobe: false",
        "probe.context",
        ["probe is false"],
    ),
    "two origins": (
        BARE,
        "{files: b.jsonl, gdelt: press}",
        "bare:",
        ["one origin", "files and gdelt"],
    ),
    "no origin": (
        BARE,
        "{}",
        "bare:",
        [f"files, items, {', '.join(search_origins())}, pool, benchmark, judgebench", "window"],
    ),
    "feeds without a window": (
        BARE,
        "{feeds: 'https://x.example/f'}",
        "bare:",
        ["feeds", "window"],
    ),
    "gdelt without a window": (BARE, "{gdelt: press}", "bare:", ["gdelt", "window"]),
    "firecrawl without a window": (BARE, "{firecrawl: press}", "bare:", ["firecrawl", "window"]),
    "a pool with a window": (
        BARE,
        "\n    pool: p\n    window: {country: X}",
        "{country: X}",
        ["pool", "leave window out"],
    ),
    "a benchmark with a window": (
        BARE,
        "\n    benchmark: b\n    window: {country: X}",
        "{country: X}",
        ["benchmark", "leave window out"],
    ),
    "judgebench with a window": (
        BARE,
        "\n    judgebench: j\n    window: {country: X}",
        "{country: X}",
        ["judgebench", "leave window out"],
    ),
    "a query of files": (BARE, "{files: b.jsonl, query: press}", "bare:", ["query", "feeds"]),
    "a query beside gdelt's": (
        BARE,
        "{gdelt: press, query: x, window: {country: X}}",
        "bare:",
        ["query", "feeds"],
    ),
    "no query": (BARE, "{window: {country: X}, gdelt: ''}", "gdelt", ["gdelt is empty"]),
    "no feeds": (BARE, "{window: {country: X}, feeds: []}", "feeds", ["feeds is empty"]),
    "a list of queries": (
        BARE,
        "{window: {country: X}, firecrawl: [a]}",
        "firecrawl",
        ["bare.firecrawl", "['a']"],
    ),
    "files that are a number": (BARE, "{files: 3}", "files: 3", ["bare.files", "3"]),
    "no limit": (BARE, "{files: b, limit: 0}", "limit", ["bare.limit", "0", "greater"]),
    "a limit beyond all": (BARE, "{files: b, limit: 10001}", "limit", ["10001", "10000"]),
    "a limit in words": (BARE, "{files: b, limit: all}", "limit", ["bare.limit", "'all'"]),
    "unknown origin": (
        BARE,
        "{folder: b}",
        "folder",
        ["'folder'", "'files'", "'judgebench'", "'window'"],
    ),
    "unknown key of a window": (
        BARE,
        "{files: b, window: {country: X, begin: 2}}",
        "begin",
        ["'begin'", "'country'", "'start'"],
    ),
    "a window that ends before it starts": (
        BARE,
        "{files: b, window: {country: X, start: 2026-02-01, end: 2026-01-01}}",
        "bare:",
        ["ends after it starts"],
    ),
    "a benchmark with a rubric of the task": (
        POOL_AND_TASK,
        "bare: {benchmark: b}\ntasks:\n  - {type: benchmark, evidence: bare, rubric: r.json}",
        "r.json",
        ["'bare'", "own rubric", "leave rubric out"],
    ),
    "judgebench with a rubric of the task": (
        POOL_AND_TASK,
        "bare: {judgebench: b}\ntasks:\n  - {type: benchmark, evidence: bare, rubric: r.json}",
        "r.json",
        ["own rubric"],
    ),
    "no concept": (TASK, "{type: ecc, evidence: here}", "type: ecc", ["tasks.0.concept"]),
    "a benchmark of files without a concept": (
        TASK,
        "{type: benchmark, evidence: bare, rubric: r.json}",
        "r.json",
        ["tasks.0.concept"],
    ),
    "a contrast of what does not vary": (
        "swap: none",
        "contrasts: [{knob: verdict.output, level: json, base: suffix}]",
        "contrasts",
        ["'verdict.output'", "'judge.model' or 'verdict.method'"],
    ),
    "a contrast with a level that is not run": (
        "swap: none",
        "contrasts: [{knob: verdict.method, level: subset, base: both}]",
        "contrasts",
        ["unknown base of verdict.method 'both'", "'single' or 'subset'"],
    ),
    "a contrast of an unknown judge": (
        "swap: none",
        "contrasts: [{knob: judge.model, level: sim:strict, base: sim:other}]",
        "contrasts",
        ["base of judge.model 'sim:other'", "'sim:balanced' or 'sim:strict'"],
    ),
    "a contrast of a level with itself": (
        "swap: none",
        "contrasts: [{knob: verdict.method, level: subset, base: subset}]",
        "contrasts",
        ["two levels", "'subset'"],
    ),
    "a contrast of an unknown endpoint": (
        "swap: none",
        "contrasts: [{knob: verdict.method, level: subset, base: single, endpoint: score}]",
        "contrasts",
        ["'score'", "'stage', 'abstention'", "'agreement'"],
    ),
    "an unknown expectation": (
        "swap: none",
        "contrasts: [{knob: verdict.method, level: subset, base: single, expect: up}]",
        "contrasts",
        ["'up'", "'higher' or 'lower'"],
    ),
    "a contrast without a base": (
        "swap: none",
        "contrasts: [{knob: verdict.method, level: subset}]",
        "contrasts",
        ["contrasts.0.base is not given"],
    ),
    "an unknown key of a contrast": (
        "swap: none",
        "contrasts: [{knob: verdict.method, level: subset, base: single, direction: up}]",
        "contrasts",
        ["'direction'", "'expect'"],
    ),
    "a contrast of probabilities that nobody states": (
        "swap: none",
        "probe: false\ncontrasts:\n"
        "  - {knob: verdict.method, level: subset, base: single, endpoint: probability}",
        "probability",
        ["probe is false"],
    ),
    "a contrast that is declared twice": (
        "swap: none",
        "contrasts:\n  - {knob: verdict.method, level: subset, base: single}\n"
        "  - {endpoint: stage, knob: verdict.method, level: subset, base: single}",
        "endpoint",
        ["declared twice"],
    ),
    "an unknown hypothesis": (
        "swap: none",
        "hypotheses: [H1, H5]",
        "H5",
        ["'H5'", "'H1', 'H2', 'H3' or 'H4'"],
    ),
    "an unknown kind of raters": (
        "swap: none",
        "alt_test: wizards",
        "wizards",
        ["'wizards'", "'expert', 'skilled', 'crowd' or '{epsilon: 0 to 1}'"],
    ),
    "an epsilon beyond 1": (
        "swap: none",
        "alt_test: {epsilon: 2}",
        "epsilon: 2",
        ["'epsilon': 2", "{epsilon: 0 to 1}"],
    ),
    "a truth that says nothing": (TASK, CONTROL.format("{}"), "truth", ["truth.source"]),
    "a truth without a source": (TASK, CONTROL.format("{value: 1}"), "truth", ["truth.source"]),
    "a truth that is given and looked up": (
        TASK,
        CONTROL.format("{vdem: v.csv, value: 0.5}"),
        "truth",
        ["not both"],
    ),
    "a truth of two sources": (
        TASK,
        CONTROL.format("{vdem: v.csv, source: s}"),
        "truth",
        ["not both"],
    ),
    "an unknown direction": (
        TASK,
        CONTROL.format("{source: s, direction: left}"),
        "truth",
        ["'left'", "'up' or 'down'"],
    ),
    "an unknown key of a truth": (
        TASK,
        CONTROL.format("{source: s, vale: 1}"),
        "truth",
        ["'vale'", "'value'", "'vdem'", "'year'"],
    ),
    "a value in words": (TASK, CONTROL.format("{source: s, value: x}"), "truth", ["'x'", "number"]),
    "a year in words": (TASK, CONTROL.format("{vdem: v, year: '9'}"), "truth", ["'9'", "integer"]),
}


@each_row("case", REFUSED)
def test_an_error_names_file_line_and_choices(case: str) -> None:
    old, new, needle, words = REFUSED[case]
    assert old in BASE
    text = BASE.replace(old, new, 1)
    last = max(n for n, line in enumerate(text.splitlines(), 1) if needle in line)
    with pytest.raises(DesignError) as refused:
        sweep(read_study(text, "my/study.yaml"))
    message = refused.value.message
    assert message.startswith(f"my/study.yaml:{last}: "), message
    assert all(word in message for word in words), message


def test_hypotheses_belong_to_a_protocol() -> None:
    assert read(hypotheses=["H2"]).declared["hypotheses"] == ["H2"]
    with pytest.raises(DesignError, match=r"protocol: contested-concepts; declare .* contrasts"):
        read(hypotheses=["H1"], protocol=None)


def test_an_ablation_can_be_contrasted_with_its_base() -> None:
    contrast = {"knob": "rubric.scale", "level": 6, "base": 4, "expect": "lower"}
    study = read(vary={"rubric.scale": [6]}, sweep="ablate", contrasts=[contrast], margin=0.1)
    assert study.declared == {
        "margin": 0.1,
        "hypotheses": ["H1", "H2", "H3", "H4"],
        "contrasts": [{**contrast, "endpoint": "stage"}],
    }
    with pytest.raises(DesignError, match=r"unknown base of rubric.scale '4'.*choose .*'6'"):
        read(vary={"rubric.scale": [6]}, contrasts=[contrast])


@pytest.mark.parametrize(
    ("choice", "declared", "name"),
    [
        ("crowd", "crowd", "at most .1 behind the rater (crowd)"),
        ({"epsilon": 0.05}, 0.05, "at most .05 behind the rater"),
        ({"epsilon": "skilled"}, "skilled", "at most .15 behind the rater (skilled)"),
    ],
)
def test_epsilon_of_the_alternative_annotator_test_is_declared(
    choice: Any, declared: Any, name: str
) -> None:
    version = StudyVersion(read(alt_test=choice).declared, datetime.now(UTC))
    declares = declarations([version], lambda times: (0, [0]))
    assert declares.alt_test == declared
    assert f"alternative annotator test: {name}" in [part.what for part in declares.declared]
    assert "alt_test" not in read().declared


@pytest.mark.parametrize("text", ["", "# nothing\n", "just words\n", "- a\n- b\n"])
def test_a_file_without_a_mapping_is_refused_with_the_keys(text: str) -> None:
    with pytest.raises(DesignError, match=r"^s\.yaml:1: .*study, seed, samples, evidence, tasks"):
        read_study(text, "s.yaml")


@pytest.mark.parametrize("key", ["study", "evidence", "tasks", "judges"])
def test_a_missing_required_key_is_refused(key: str) -> None:
    data = {name: value for name, value in MINIMAL.items() if name != key}
    with pytest.raises(DesignError, match=rf"^s\.yaml:1: .*{key} is not given"):
        read_study(yaml.safe_dump(data), "s.yaml")


def test_an_assistant_is_refused_where_it_is_a_judge() -> None:
    with pytest.raises(DesignError, match=r"assistant 'lab:one' .* outside the panel"):
        sweep(read(judges=["lab:one"], assistant="lab:one"))


def test_a_judge_may_be_the_assistant_where_nothing_is_edited_or_criticised() -> None:
    made = sweep(read(judges=["lab:one"], assistant="lab:one", tasks=[BENCHMARK]))
    assert [one.design.judge.model for one in made.experiments] == ["lab:one"]


def test_two_tasks_of_one_concept_on_one_pool_are_refused() -> None:
    with pytest.raises(DesignError, match="small/fascism/here/sim:balanced"):
        sweep(read(tasks=[ECC, {**ECC, "type": "control"}]))


# --- protocol and assistant ----------------------------------------------------------------------

PLAIN = {"concept": "politeness", "evidence": "here"}


def neutral(**changes: Any) -> Study:
    """A study without a protocol, whose pool has no window."""
    evidence = {"here": {"files": "e.jsonl"}}
    return read(**{"protocol": None, "evidence": evidence, "tasks": [PLAIN], **changes})


def neutral_designs(**changes: Any) -> list[Design]:
    made = experiments(neutral(**changes), {"here": pool(country=None)}, {})
    return [one.design for one in made.experiments]


def test_a_study_without_a_protocol_needs_no_type_country_editor_or_critic() -> None:
    [design] = neutral_designs(judges=["lab:one"])
    assert design.values() == {**defaults(), "judge.model": "lab:one"}
    [made] = experiments(neutral(judges=["lab:one"]), {"here": pool(country=None)}, {}).experiments
    assert (made.task.type, made.task.country, made.task.protocol) == ("", "", "")


@pytest.mark.parametrize(
    ("judges", "assistant", "asked"),
    [
        (["lab:one", "lab:two"], "lab:third", "lab:third"),
        (["sim:balanced", "sim:strict"], "lab:third", "lab:third"),
        (["sim:balanced", "sim:strict"], None, "sim:assistant"),
    ],
)
def test_the_assistant_edits_and_criticises_where_no_other_model_is_named(
    judges: list[str], assistant: str | None, asked: str
) -> None:
    [design, _] = [
        one.design for one in sweep(read(judges=judges, assistant=assistant)).experiments
    ]
    assert (design.evidence.editor, design.rubric.critic) == (asked, asked)
    named = {"evidence.editor": "lab:editor"}
    [design, _] = [
        one.design
        for one in sweep(read(judges=judges, assistant=assistant, design=named)).experiments
    ]
    assert (design.evidence.editor, design.rubric.critic) == ("lab:editor", asked)
    [edited, _] = neutral_designs(
        judges=judges, assistant=assistant, design={"evidence.view": "neutralized"}
    )
    assert (edited.evidence.editor, edited.rubric.critic) == (asked, None)


@pytest.mark.parametrize("judges", [["lab:one"], ["sim:balanced", "lab:one"]])
def test_a_study_that_needs_an_assistant_and_names_none_is_refused(judges: list[str]) -> None:
    key = "name it with assistant: provider:name"
    with pytest.raises(DesignError, match=f"edits evidence and criticises rubrics, .*{key}"):
        sweep(read(judges=judges))
    with pytest.raises(DesignError, match=f"criticises rubrics, .*{key}"):
        sweep(read(judges=judges, design={"evidence.view": "raw"}))
    with pytest.raises(DesignError, match=f"edits evidence, .*{key}"):
        neutral_designs(judges=judges, design={"evidence.view": "neutralized"})
    assert sweep(read(judges=judges, tasks=[BENCHMARK])).experiments


def test_an_editor_or_critic_who_is_not_asked_is_refused() -> None:
    named = {"evidence.editor": "sim:editor"}
    for design in (named, {"prompt.slots.critic.persona": "a stern auditor"}):
        with pytest.raises(DesignError, match="has no effect on any task"):
            experiments(neutral(design=design), {"here": pool(country=None)}, {})
    with pytest.raises(DesignError, match="no effect"):
        sweep(read(design={**named, "evidence.view": "raw"}))


# --- sweeps --------------------------------------------------------------------------------------

VARY: dict[str, list[Any]] = {
    "verdict.method": ["single", "subset"],
    "presentation.labels": ["shuffled", "fixed", "opaque"],
    "rubric.scale": [3, 4, 5, 7],
    "verdict.abstain": [True, False],
}
varying = st.sets(st.sampled_from(sorted(VARY)), min_size=1).map(
    lambda knobs: {knob: VARY[knob] for knob in sorted(knobs)}
)


def full(study: Study) -> list[dict[str, Any]]:
    """The points with every varied knob."""
    base = Design.of({"judge.model": "any", **study.design}).values()
    return [{knob: point.get(knob, base[knob]) for knob in study.vary} for point in points(study)]


def distance(one: dict[str, Any], two: dict[str, Any]) -> int:
    return sum(one[knob] != two[knob] for knob in one)


def test_without_vary_there_is_the_base_alone() -> None:
    for mode in ("grid", "ablate", {"sample": 3}):
        assert points(read(sweep=mode)) == [{}]


@given(varying)
def test_a_grid_contains_every_combination_once(vary: dict[str, list[Any]]) -> None:
    made = full(read(vary=vary))
    expected = [
        dict(zip(vary, levels, strict=True)) for levels in itertools.product(*vary.values())
    ]
    assert sorted(made, key=str) == sorted(expected, key=str)


@given(varying, st.sampled_from(["single", "subset"]))
def test_ablate_is_the_base_and_one_point_per_other_level(
    vary: dict[str, list[Any]], method: str
) -> None:
    study = read(vary=vary, sweep="ablate", design={"verdict.method": method})
    base, *others = full(study)
    assert base.get("verdict.method", method) == method
    assert all(distance(base, other) == 1 for other in others)
    assert len({str(other) for other in others}) == len(others)
    assert len(others) == sum(len(levels) - 1 for levels in vary.values())


def test_ablate_takes_a_base_that_is_not_among_the_levels() -> None:
    study = read(vary={"rubric.scale": [3, 5]}, sweep="ablate")
    assert [point["rubric.scale"] for point in full(study)] == [4, 3, 5]


@given(varying, st.integers(1, 6), st.integers(0, 99))
def test_a_sampled_point_includes_all_its_neighbours(
    vary: dict[str, list[Any]], k: int, seed: int
) -> None:
    study = read(vary=vary, sweep={"sample": k}, seed=seed)
    made, grid = full(study), full(read(vary=vary))
    assert full(study) == made, "a seed draws the same points again"
    assert all(point in grid for point in made)
    assert len({str(point) for point in made}) == len(made)
    neighbours = sum(len(levels) - 1 for levels in vary.values())
    drawn = [point for point in made if sum(distance(point, p) == 1 for p in made) == neighbours]
    assert len(drawn) >= min(k, len(grid))
    assert all(min(distance(point, centre) for centre in drawn) <= 1 for point in made)
    assert len(made) <= min(k, len(grid)) * (1 + neighbours)


def test_another_seed_draws_other_points() -> None:
    draws = {str(full(read(vary=VARY, sweep={"sample": 1}, seed=seed))) for seed in range(20)}
    assert len(draws) > 5


def test_tasks_and_judges_are_crossed_with_the_sweep() -> None:
    tasks = [ECC, {**ECC, "concept": "order"}, {**ECC, "type": "control", "concept": "calm"}]
    made = sweep(read(tasks=tasks, vary={"verdict.method": ["single", "subset"]})).experiments
    seen = {(e.task.concept, e.design.judge.model, e.design.verdict.method) for e in made}
    assert len(made) == len(seen) == 3 * 2 * 2


# --- tags ----------------------------------------------------------------------------------------


def test_a_tag_names_study_concept_pool_judge_and_what_differs_from_the_base() -> None:
    study = read(
        tasks=[{**ECC, "concept": "democratic backsliding"}],
        judges=["sim:balanced"],
        vary={"verdict.method": ["single", "subset"], "verdict.abstain": [True, False]},
    )
    base = "small/democratic-backsliding/here/sim:balanced"
    assert [one.tag for one in sweep(study).experiments] == [
        base,
        f"{base}/verdict.abstain=false",
        f"{base}/verdict.method=subset",
        f"{base}/verdict.method=subset/verdict.abstain=false",
    ]


@given(varying, st.sampled_from(["grid", "ablate", {"sample": 2}]))
def test_tags_are_unique(vary: dict[str, list[Any]], mode: Any) -> None:
    study = read(vary=vary, sweep=mode, tasks=[ECC, GIVEN])
    made = sweep(study)
    tags = [*(one.tag for one in made.experiments), *made.duplicates]
    assert len(set(tags)) == len(tags) == len(points(study)) * 4


def test_long_levels_are_cut_in_a_tag_and_stay_distinct() -> None:
    personas = ["a very patient " * 8 + "nurse", "a very patient " * 8 + "surgeon"]
    study = read(vary={"prompt.slots.scorer.persona": personas}, judges=["sim:balanced"])
    tags = [one.tag for one in sweep(study).experiments]
    assert len(set(tags)) == 2
    assert all(len(tag) < 140 and " " not in tag for tag in tags)


# --- knobs that cannot act -----------------------------------------------------------------------


def test_the_editor_is_inactive_where_evidence_is_raw() -> None:
    study = read(
        judges=["sim:balanced"],
        vary={
            "evidence.view": ["neutralized", "raw"],
            "evidence.editor": ["sim:editor", "sim:other"],
        },
    )
    made = sweep(study)
    assert len(points(study)) == 4 and len(made.experiments) == 3
    raw = [one for one in made.experiments if one.design.evidence.view == "raw"]
    assert [one.design.evidence.editor for one in raw] == [None]
    [(folded, kept)] = made.duplicates.items()
    assert kept == raw[0].tag and "evidence.view=raw" in folded


@pytest.mark.parametrize(
    ("knob", "levels"),
    [
        ("rubric.scale", [4, 5]),
        ("rubric.draws", [1, 3]),
        ("rubric.critic", ["sim:critic", "sim:other"]),
        ("rubric.author", ["own", "sim:third"]),
        ("prompt.slots.rubricer.persona", ["a nurse", "a surgeon"]),
    ],
)
def test_rubric_knobs_are_inactive_under_a_provided_rubric(knob: str, levels: list[Any]) -> None:
    made = sweep(read(judges=["sim:balanced"], tasks=[ECC, GIVEN], vary={knob: levels}))
    own = [one for one in made.experiments if one.task.rubric is None]
    given = [one for one in made.experiments if one.task.rubric]
    assert [one.design.values()[knob] for one in own] == levels
    assert len(given) == 1 and list(made.duplicates.values()) == [given[0].tag]
    design = given[0].design.chosen(CONTESTED)
    assert design == {
        "judge.model": "sim:balanced",
        "evidence.editor": "sim:assistant",
        "rubric.author": "provided",
    }


@pytest.mark.parametrize(
    ("changes", "knob"),
    [
        ({"design": {"evidence.view": "raw", "evidence.editor": "sim:editor"}}, "evidence.editor"),
        ({"tasks": [GIVEN], "design": {"rubric.scale": 5}}, "rubric.scale"),
        ({"tasks": [GIVEN], "vary": {"rubric.draws": [1, 2]}}, "rubric.draws"),
        (
            {"tasks": [BENCHMARK], "vary": {"evidence.editor": ["sim:a", "sim:b"]}},
            "evidence.editor",
        ),
        ({"design": {"presentation.pair_order": "given"}}, "presentation.pair_order"),
        ({"vary": {"presentation.pair_order": ["given", "both"]}}, "presentation.pair_order"),
    ],
)
def test_a_knob_that_no_task_can_use_is_refused(changes: dict[str, Any], knob: str) -> None:
    with pytest.raises(DesignError, match=rf"{knob} has no effect on any task"):
        sweep(read(**changes))


@pytest.mark.parametrize("section", ["design", "vary"])
def test_the_refusal_of_an_inactive_knob_names_file_and_line(
    section: str, write_study: Callable[..., Path], store: Store
) -> None:
    levels: Any = {"design": "given", "vary": ["given", "both"]}[section]
    path = write_study(**{section: {"presentation.pair_order": levels}})
    lines = path.read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "pair_order" in text)
    with pytest.raises(DesignError) as refused:
        prepare_file(path, store)
    assert refused.value.message.startswith(f"{path}:{line}: "), refused.value.message


def test_a_benchmark_shows_its_texts_unedited() -> None:
    made = sweep(read(judges=["sim:balanced"], tasks=[ECC, BENCHMARK])).experiments
    assert [one.design.evidence.view for one in made] == ["neutralized", "raw"]


@pytest.mark.parametrize("mode", ["grid", "ablate"])
@pytest.mark.parametrize("levels", [["neutralized", "raw"], ["raw", "neutralized"]])
def test_the_view_of_a_benchmark_can_be_varied(levels: list[str], mode: str) -> None:
    study = read(
        judges=["sim:balanced"], tasks=[BENCHMARK], vary={"evidence.view": levels}, sweep=mode
    )
    made = sweep(study)
    assert {one.design.evidence.view for one in made.experiments} == {"neutralized", "raw"}
    assert not made.duplicates


def test_a_benchmark_takes_the_view_that_the_design_names() -> None:
    study = read(
        judges=["sim:balanced"], tasks=[BENCHMARK], design={"evidence.view": "neutralized"}
    )
    assert [one.design.evidence.view for one in sweep(study).experiments] == ["neutralized"]


# --- swaps ---------------------------------------------------------------------------------------

PANEL = ["sim:a", "sim:b", "sim:c"]


@each_row(
    ("swap", "rivals"),
    [
        ("none", ([], [], [])),
        ("all", (["sim:b", "sim:c"], ["sim:a", "sim:c"], ["sim:a", "sim:b"])),
        ([["sim:a", "sim:b"]], (["sim:b"], [], [])),
        ([["sim:a", "sim:b"], ["sim:a", "sim:third"]], (["sim:b", "sim:third"], [], [])),
        ([["*", "sim:third"]], (["sim:third"], ["sim:third"], ["sim:third"])),
        ([["*", "sim:a"], ["sim:c", "sim:a"]], ([], ["sim:a"], ["sim:a"])),
        ([["sim:a", "*"]], (["sim:b", "sim:c"], [], [])),
        (
            [["*", "*"], ["*", "sim:third"]],
            (
                ["sim:b", "sim:c", "sim:third"],
                ["sim:a", "sim:c", "sim:third"],
                ["sim:a", "sim:b", "sim:third"],
            ),
        ),
    ],
)
def test_rivals_are_those_that_swap_names(swap: Any, rivals: tuple[list[str], ...]) -> None:
    study = read(judges=PANEL, swap=swap)
    designs = [Design.of({"judge.model": judge}) for judge in PANEL]
    assert tuple(list(study.rivals(design)) for design in designs) == rivals


@pytest.mark.parametrize("author", ["provided", "sim:third", "sim:a"])
def test_a_judge_that_does_not_write_its_own_rubric_has_no_rivals(author: str) -> None:
    study = read(judges=PANEL, swap="all")
    assert study.rivals(Design.of({"judge.model": "sim:a", "rubric.author": author})) == ()


def test_experiments_without_an_own_rubric_are_listed_as_skipped() -> None:
    changes: dict[str, Any] = {
        "judges": ["sim:a", "sim:b"],
        "vary": {"rubric.author": ["own", "sim:third"]},
    }
    made = sweep(read(**changes, swap="all"))
    assert set(made.skipped_swaps) == {
        f"small/fascism/here/{judge}/rubric.author=sim:third" for judge in ("sim:a", "sim:b")
    }
    assert sweep(read(**changes)).skipped_swaps == ()


# --- identity ------------------------------------------------------------------------------------

EXPERIMENT = Experiment(
    "tag",
    Task("ecc", "fascism", "here", pool("a", "b")),
    Design.of({"judge.model": "sim:balanced"}),
    3,
)
TASK_CHANGES: dict[str, dict[str, Any]] = {
    "type": {"type": "control"},
    "concept": {"concept": "order"},
    "country": {"pool": pool("a", "b", country="Norvessa")},
    "no country": {"pool": pool("a", "b", country=None)},
    "another text": {"pool": pool("a", "c")},
    "another order": {"pool": pool("b", "a")},
    "a given rubric": {"rubric": RUBRIC},
}


def test_a_digest_tells_experiments_apart() -> None:
    variants = [replace(EXPERIMENT.task, **change) for change in TASK_CHANGES.values()]
    others = [replace(EXPERIMENT, task=task) for task in variants]
    others += [
        replace(EXPERIMENT, seed=4),
        replace(EXPERIMENT, design=EXPERIMENT.design.replace({"verdict.method": "subset"})),
        replace(EXPERIMENT, design=EXPERIMENT.design.replace({"judge.model": "sim:strict"})),
    ]
    assert len({one.digest for one in [EXPERIMENT, *others]}) == len(others) + 1


def test_a_digest_covers_what_can_be_read_of_a_given_rubric() -> None:
    renamed = (RubricStage("Trivial", ("a typo",)), STAGES[1])
    other = (RubricStage("Minor", ("two typos",)), STAGES[1])
    rubrics = [
        RUBRIC,
        replace(RUBRIC, stages=renamed),
        replace(RUBRIC, stages=other),
        replace(RUBRIC, stages=STAGES[::-1]),
        NominalRubric(STAGES, "provided", "", ""),
    ]
    made = [replace(EXPERIMENT, task=replace(EXPERIMENT.task, rubric=one)) for one in rubrics]
    assert len({one.digest for one in made}) == len(rubrics)


@pytest.mark.parametrize(
    "change",
    [
        {"dose": 2.0},
        {"truth": {"source": "v-dem", "value": 0.95}},
        {"pool_name": "there"},
        {
            "pool": Pool(
                (Evidence("other", "a", truth=3, id=5), Evidence("", "b")), Window("Valdoria")
            )
        },
        {"pool": replace(pool("a", "b"), window=Window("Valdoria", date(2026, 1, 1)), id=4)},
    ],
)
def test_annotations_do_not_change_the_digest(change: dict[str, Any]) -> None:
    other = replace(EXPERIMENT, tag="else", task=replace(EXPERIMENT.task, **change))
    assert other.digest == EXPERIMENT.digest


@each_row("knob", [path for path in Design.knobs() if path != "judge.model"])
def test_naming_a_default_does_not_change_the_digest(knob: str) -> None:
    default = Design.knobs()[knob].default
    named = Design.of({"judge.model": "sim:balanced", knob: default})
    assert replace(EXPERIMENT, design=named).digest == EXPERIMENT.digest


def test_naming_a_default_in_a_study_makes_the_same_experiments() -> None:
    tasks = [ECC, GIVEN]
    named = {"verdict.method": "single", "rubric.scale": 4, "evidence.view": "neutralized"}
    plain, explicit = sweep(read(tasks=tasks)), sweep(read(tasks=tasks, design=named))
    assert [one.digest for one in plain.experiments] == [one.digest for one in explicit.experiments]


def test_a_given_rubric_belongs_to_its_task() -> None:
    [one] = sweep(read(judges=["sim:balanced"], tasks=[GIVEN])).experiments
    assert one.task.rubric is not None
    assert (one.task.rubric.concept, one.task.rubric.country) == ("severity", "Valdoria")
    assert one.task.rubric.stages == STAGES


def sha(value: Any) -> str:
    """The hash of a text, or of canonical JSON."""
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, sort_keys=True, separators=(",", ":"))
    )
    return hashlib.sha256(text.encode()).hexdigest()


LEVELS = st.fixed_dictionaries(
    {"judge.model": st.just("sim:balanced")},
    optional={
        path: st.sampled_from(knob.levels)
        for path, knob in Design.knobs().items()
        if path != "judge.model"
    },
)
SETTLED_TASKS = st.sampled_from(
    [
        EXPERIMENT.task,
        replace(EXPERIMENT.task, rubric=RUBRIC),
        replace(EXPERIMENT.task, type="benchmark", rubric=RUBRIC),
        replace(
            EXPERIMENT.task,
            type="benchmark",
            rubric=NominalRubric(STAGES, "provided", "", ""),
            pool=Pool((Evidence("q", "why?", responses=("a", "b")),), None),
        ),
    ]
)


@given(SETTLED_TASKS, LEVELS)
def test_a_digest_hashes_the_task_and_the_knobs_that_are_not_at_their_default(
    task: Task, chosen: dict[str, Any]
) -> None:
    design, _ = resolve_design(task, chosen, assistant="sim:editor")
    facts = {
        "type": task.type,
        "concept": task.concept,
        "country": task.country,
        "pool": task.pool.hash,
        "rubric": task.rubric.hash if task.rubric else None,
        "seed": 3,
        "design": {
            path: level for path, level in design.values().items() if level != defaults()[path]
        },
    }
    assert Experiment("tag", task, design, 3).digest == sha(facts)


@given(SETTLED_TASKS, LEVELS, LEVELS)
def test_a_knob_without_an_effect_does_not_change_the_digest(
    task: Task, chosen: dict[str, Any], others: dict[str, Any]
) -> None:
    """So that a changed default of such a knob renames no experiment."""
    design, active = resolve_design(task, {**complete({}), **chosen}, assistant="sim:editor")
    inactive = {
        path: level
        for path, level in others.items()
        if path not in {*active, "judge.model", "rubric.author", "evidence.view", "probe.context"}
    }
    experiment = Experiment("tag", task, design, 3)
    assert replace(experiment, design=design.replace(inactive)).digest == experiment.digest


def test_a_digest_is_the_hash_of_these_facts_and_no_others() -> None:
    facts = {
        "type": "ecc",
        "concept": "fascism",
        "country": "Valdoria",
        "pool": sha([sha("a"), sha("b")]),
        "rubric": None,
        "seed": 3,
        "design": {"judge.model": "sim:balanced"},
    }
    assert EXPERIMENT.digest == sha(facts)


# --- pairs ---------------------------------------------------------------------------------------

OPTIONS = NominalRubric(
    tuple(RubricStage(name, (f"it is {name}",)) for name in ("first", "second", "neither")),
    "provided",
    "",
    "",
)
PAIRS = {"type": "benchmark", "concept": "winner", "evidence": "here", "rubric": "o.json"}
ON_BOTH: dict[str, Any] = {
    "judges": ["sim:balanced"],
    "evidence": {**MINIMAL["evidence"], "cases": {"files": "pairs.jsonl"}},
    "tasks": [ECC, {**PAIRS, "evidence": "cases"}],
}


def pair_pool(*truths: int | str | None) -> Pool:
    items = (
        Evidence(f"pair {n}", f"q{n}", truth=truth, responses=("a", "b"))
        for n, truth in enumerate(truths or (1, 2))
    )
    return Pool(tuple(items))


def pair_sweep(study: Study, rubric: Rubric = OPTIONS, pairs: Pool | None = None) -> Sweep:
    """The sweep of a study in which every pool but that of an ecc task holds pairs."""
    single = {task.evidence for task in study.tasks if task.type == "ecc"}
    pools = {name: pool() if name in single else pairs or pair_pool() for name in study.evidence}
    return experiments(
        study, pools, {str(task.rubric): rubric for task in study.tasks if task.rubric}
    )


@pytest.mark.parametrize(
    ("level", "orders"),
    [(None, (False, True)), ("both", (False, True)), ("given", (False,)), ("swapped", (True,))],
)
def test_a_pair_is_shown_in_the_orders_that_the_design_names(
    level: str | None, orders: tuple[bool, ...]
) -> None:
    design = {"presentation.pair_order": level} if level else {}
    [one] = pair_sweep(read(judges=["sim:a"], tasks=[PAIRS], design=design)).experiments
    assert one.orders == orders


def test_a_single_text_is_shown_once_whatever_pairs_are() -> None:
    study = read(**ON_BOTH, design={"presentation.pair_order": "swapped"})
    single, pairs = pair_sweep(study).experiments
    assert (single.orders, pairs.orders) == ((False,), (True,))
    assert single.design.presentation.pair_order == "both"


def test_each_order_of_pairs_is_an_experiment_of_its_own() -> None:
    levels = ["both", "given", "swapped"]
    study = read(judges=["sim:a"], tasks=[PAIRS], vary={"presentation.pair_order": levels})
    made = pair_sweep(study)
    assert [one.design.presentation.pair_order for one in made.experiments] == levels
    assert len({one.digest for one in made.experiments}) == 3 and not made.duplicates
    [plain] = pair_sweep(read(judges=["sim:a"], tasks=[PAIRS])).experiments
    assert plain.digest == made.experiments[0].digest


def test_a_pair_is_another_text_than_its_question() -> None:
    question = Evidence("x", "q0")
    pair = replace(question, responses=("a", "b"))
    others = [question, replace(pair, responses=("b", "a")), replace(pair, responses=("a", "c"))]
    assert len({one.hash for one in [pair, *others]}) == 4
    assert replace(pair, truth=2, title="y", metadata={"k": 1}).hash == pair.hash


@pytest.mark.parametrize(
    ("knob", "levels"),
    [
        ("evidence.view", ["neutralized", "raw"]),
        ("evidence.editor", ["sim:editor", "sim:other"]),
        ("prompt.slots.neutralizer.persona", ["a clerk", "a poet"]),
        ("rubric.scale", [4, 5]),
        ("rubric.draws", [1, 2]),
        ("rubric.critic", ["sim:critic", "sim:other"]),
        ("prompt.slots.rubricer.persona", ["a clerk", "a poet"]),
    ],
)
def test_a_knob_that_acts_on_single_texts_alone_is_inactive_on_pairs(
    knob: str, levels: list[Any]
) -> None:
    made = pair_sweep(read(**ON_BOTH, vary={knob: levels}))
    single = [one for one in made.experiments if not one.task.pool.paired]
    [pairs] = [one for one in made.experiments if one.task.pool.paired]
    assert [one.design.values()[knob] for one in single] == levels
    assert list(made.duplicates.values()) == [pairs.tag]
    assert pairs.design.chosen(CONTESTED) == {
        "judge.model": "sim:balanced", "evidence.view": "raw", "rubric.author": "provided",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("section", "levels"),
    [("design", 4), ("design", 5), ("vary", [4, 5])],
)
@pytest.mark.parametrize("name", ["rubric.scale", "scaleSize"])
def test_a_scale_for_pairs_is_refused_with_the_reason_even_at_its_default(
    section: str, levels: Any, name: str
) -> None:
    study = read(judges=["sim:a"], tasks=[PAIRS], **{section: {name: levels}})
    with pytest.raises(DesignError, match=r"on pairs: two responses are compared, which no scale"):
        pair_sweep(study)


def test_an_overridden_scale_for_pairs_is_refused_too() -> None:
    text = yaml.safe_dump({**MINIMAL, "tasks": [PAIRS]})
    study = read_study(text, "s.yaml", overrides={"rubric.scale": 4})
    pools, rubrics = {"here": pair_pool()}, {"o.json": OPTIONS}
    with pytest.raises(DesignError, match=r"rubric\.scale has no effect on pairs"):
        experiments(study, pools, rubrics, shown=["rubric.scale"])


@pytest.mark.parametrize(
    "changes",
    [
        {"vary": {"evidence.view": ["neutralized", "raw"]}},
        {"design": {"evidence.editor": "sim:editor"}},
        {"design": {"rubric.draws": 3}},
    ],
)
def test_a_knob_without_an_effect_on_pairs_is_refused(changes: dict[str, Any]) -> None:
    [section] = changes.values()
    knob = next(iter(section))
    with pytest.raises(DesignError, match=rf"{knob} has no effect on (any task|pairs)"):
        pair_sweep(read(judges=["sim:a"], tasks=[PAIRS], **changes))


@pytest.mark.parametrize("count", [2, 3])
def test_options_for_a_pair_are_two_or_three(count: int) -> None:
    rubric = replace(OPTIONS, stages=OPTIONS.stages[:count])
    [one] = pair_sweep(read(judges=["sim:a"], tasks=[PAIRS]), rubric).experiments
    assert one.task.rubric is not None and one.task.rubric.scale == count


MORE = NominalRubric((*OPTIONS.stages, RubricStage("both", ("so",))), "provided", "", "")
MIXED = Pool((*pair_pool().items, Evidence("alone", "text")))


@pytest.mark.parametrize(
    ("rubric", "pairs", "words"),
    [
        (OPTIONS, MIXED, ["'here'", "mixes pairs and single texts", "'alone'"]),
        (RUBRIC, None, ["'here'", "no scale can express", "nominal", "first, second"]),
        (MORE, None, ["first, second", "has first, second, neither, both"]),
    ],
)
def test_a_rubric_that_does_not_fit_pairs_is_refused(
    rubric: Rubric, pairs: Pool | None, words: list[str]
) -> None:
    with pytest.raises(DesignError) as refused:
        pair_sweep(read(tasks=[PAIRS]), rubric, pairs)
    assert all(word in refused.value.message for word in words), refused.value.message


@pytest.mark.parametrize("kind", ["ecc", "control"])
def test_a_judge_writes_no_rubric_for_pairs(kind: str) -> None:
    study = read(tasks=[{**ECC, "type": kind}])
    paired = replace(pair_pool(), window=Window("Valdoria"))
    with pytest.raises(DesignError, match=r"contains pairs.*give a nominal rubric"):
        experiments(study, {"here": paired}, {})


def test_the_truth_of_a_pair_may_be_the_label_of_an_option() -> None:
    study = read(judges=["sim:a"], tasks=[PAIRS])
    [one] = pair_sweep(study, pairs=pair_pool("second", 1, "neither", None)).experiments
    assert [item.truth for item in one.task.pool.items] == [2, 1, 3, None]
    with pytest.raises(DesignError, match=r"unknown truth 4 for pair 0; choose '1', '2', '3', 'fi"):
        pair_sweep(study, pairs=pair_pool(4))


def test_a_swap_skips_pairs() -> None:
    changes = {**ON_BOTH, "judges": ["sim:a", "sim:b"]}
    made = pair_sweep(read(**changes, swap="all"))
    assert set(made.skipped_swaps) == {
        f"small/winner/cases/{judge}" for judge in ("sim:a", "sim:b")
    }


# --- where evidence and truths come from ---------------------------------------------------------


@each_row(
    ("origin", "given"),
    [
        ("files", ["a.jsonl", "b.md"]),
        ("items", ["a text", {"text": "another", "truth": 1}]),
        ("feeds", ["https://x.example/feed"]),
        ("feeds", "https://x.example/feed"),
        ("gdelt", "press freedom"),
        ("firecrawl", "press freedom"),
        ("pool", "frozen"),
        ("benchmark", "folder"),
        ("judgebench", "pairs.jsonl"),
    ],
)
def test_a_pool_knows_its_origin(origin: str, given: Any) -> None:
    window = {} if origin in ("pool", "benchmark", "judgebench") else {"window": {"country": "X"}}
    there: dict[str, Any] = {origin: given, **window}
    spec = read(evidence={**MINIMAL["evidence"], "there": there}).evidence["there"]
    assert spec.origin == origin
    assert spec.addresses == (["https://x.example/feed"] if origin == "feeds" else [])
    assert spec.search_query == ("press freedom" if origin in ("gdelt", "firecrawl") else "")
    assert spec.limit == 100


def test_a_window_alone_selects_the_evidence_of_the_lab() -> None:
    spec = read(evidence={"here": {"window": {"country": "X"}}}).evidence["here"]
    assert spec.origin is None and spec.window is not None


def test_the_refusal_of_a_pool_without_an_origin_lists_the_origins() -> None:
    with pytest.raises(DesignError) as refused:
        read(evidence={**MINIMAL["evidence"], "there": {}})
    stored = {"files", "items", "pool", "benchmark", "judgebench"}
    assert set(refused.value.choices) == {*stored, *search_origins()}


INLINE = """\
study: inline
evidence:
  texts:
    items:
      - thank you, that was quick
      - {text: "no idea: read the manual", title: manual, truth: rude, ann: 1, bo: polite}
    labels: [ann, bo]
tasks:
  - {concept: politeness, evidence: texts, rubric: [rude, "polite: thanks or apologises"]}
judges: [sim:strict]
"""


def test_texts_labels_and_a_rubric_may_be_written_in_the_study_file(
    tmp_path: Path, store: Store
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(INLINE)
    prepared = prepare_file(path, store)
    [one] = prepared.sweep.experiments
    first, second = one.task.pool.items
    assert (first.title, first.text, first.truth) == ("text 1", "thank you, that was quick", None)
    assert (second.title, second.text, second.truth) == ("manual", "no idea: read the manual", 1)
    assert one.task.rubric is not None
    assert [(stage.label, stage.criteria) for stage in one.task.rubric.stages] == [
        ("rude", ("rude",)),
        ("polite", ("thanks or apologises",)),
    ]
    assert [(label.text_hash, label.rater, label.stage) for label in prepared.labels] == [
        (second.hash, "ann", "1"),
        (second.hash, "bo", "polite"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: manual", "titel: manual", "study.yaml:4: item 2: unknown field 'titel'"),
        ("quick\n", 'quick\n      - ""\n', "study.yaml:4: item 2: the text is empty"),
        ('[rude, "polite: thanks or apologises"]', "[rude]", "a rubric has 2 to 26 stages"),
        ("[ann, bo]", "[ann, bo, cy]", "unknown column 'cy'"),
    ],
)
def test_an_error_in_a_written_item_or_rubric_names_its_line(
    tmp_path: Path, store: Store, old: str, new: str, message: str
) -> None:
    path = tmp_path / "study.yaml"
    assert old in INLINE
    path.write_text(INLINE.replace(old, new))
    with pytest.raises(DesignError, match=r"study\.yaml:\d+: ") as refused:
        prepare_file(path, store)
    assert message in refused.value.message


VDEM = """\
country_name,country_text_id,year,v2x_libdem,v2x_corr
Valdoria,VAL,2025,0.31,0.62
Valdoria,VAL,2026,0.29,0.66
Norvessa,NOV,2026,0.84,0.05
Norvessa,NOV,2025,,0.04
"""


@pytest.fixture
def control(write_study: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Writes a study of one control task with this truth, and V-Dem's table."""
    (tmp_path / "vdem.csv").write_text(VDEM)

    def write(truth: dict[str, Any], window: dict[str, Any] | None = None, **changes: Any) -> Path:
        dated = {"country": "Valdoria", "start": date(2026, 1, 1), "end": date(2026, 2, 1)}
        pool = {"files": "evidence.jsonl", "window": window or dated}
        task = {"type": "control", "concept": "democracy", "evidence": "here", "truth": truth}
        changes = {"judges": ["sim:strict"], "evidence": {"here": pool}, "tasks": [task], **changes}
        return write_study(**changes)

    return write


@pytest.mark.parametrize(
    ("truth", "found"),
    [
        ({}, ("v-dem v2x_libdem Valdoria 2026", 0.29, "up")),
        ({"year": 2025}, ("v-dem v2x_libdem Valdoria 2025", 0.31, "up")),
        ({"country": "NOV"}, ("v-dem v2x_libdem Norvessa 2026", 0.84, "up")),
        ({"index": "v2x_corr"}, ("v-dem v2x_corr Valdoria 2026", 0.66, "down")),
        ({"index": "v2x_corr", "direction": "up"}, ("v-dem v2x_corr Valdoria 2026", 0.66, "up")),
        ({"direction": "down"}, ("v-dem v2x_libdem Valdoria 2026", 0.29, "down")),
    ],
)
def test_a_truth_is_looked_up_by_the_windows_country_and_year_by_default(
    control: Callable[..., Path], store: Store, truth: dict[str, Any], found: tuple[Any, ...]
) -> None:
    prepared = prepare_file(control({"vdem": "vdem.csv", **truth}), store)
    [one] = prepared.sweep.experiments
    assert one.task.truth == dict(zip(("source", "value", "direction"), found, strict=True))


def test_a_truth_from_the_table_is_an_annotation_that_a_run_keeps(
    control: Callable[..., Path], lab: Lab
) -> None:
    given = control({"source": "mine", "value": 0.5})
    [mine] = lab.studies.prepare(given).sweep.experiments
    path = control({"vdem": "vdem.csv"})
    [looked_up] = lab.studies.prepare(path).sweep.experiments
    assert looked_up.digest == mine.digest and looked_up.tag == mine.tag
    lab.runs.run(path, workflows=["rubric"])
    kept = lab.get_experiment_summary(looked_up.tag)["truth"]
    assert kept == {"source": "v-dem v2x_libdem Valdoria 2026", "value": 0.29, "direction": "up"}


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ({"vdem": "none.csv"}, ["no file", "none.csv"]),
        ({"vdem": "vdem.csv", "year": 1990}, ["1990", "Valdoria", "2025 to 2026"]),
        ({"vdem": "vdem.csv", "country": "Valdora"}, ["'Valdora'", "'Valdoria'"]),
        ({"vdem": "vdem.csv", "index": "v2x_libdm"}, ["'v2x_libdm'", "'v2x_libdem'"]),
        ({"vdem": "vdem.csv", "country": "NOV", "year": 2025}, ["missing", "Norvessa 2025"]),
    ],
)
def test_a_truth_that_is_not_in_the_table_is_refused_with_the_choices(
    control: Callable[..., Path], store: Store, truth: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(DesignError) as refused:
        prepare_file(control(truth), store)
    assert all(word in refused.value.message for word in words), refused.value.message


def test_a_truth_from_the_table_needs_a_year(control: Callable[..., Path], store: Store) -> None:
    path = control({"vdem": "vdem.csv"}, window={"country": "Valdoria"})
    with pytest.raises(DesignError, match=r"the truth of 'democracy' needs a year"):
        prepare_file(path, store)


# --- benchmarks in a study -----------------------------------------------------------------------

TOML = """\
concept = "review severity"
[design]
"prompt.slots.scorer.persona" = "an engineer"
"verdict.method" = "subset"
"""


@pytest.fixture
def benchmark(tmp_path: Path, write_study: Callable[..., Path]) -> Callable[..., Path]:
    """Writes a benchmark's folder and a study of one judge on it."""

    def write(toml: str = TOML, items: Sequence[Any] = (), **changes: Any) -> Path:
        folder = tmp_path / "bench"
        folder.mkdir(exist_ok=True)
        (folder / "benchmark.toml").write_text(toml)
        rows = items or [
            {"title": "one", "text": "A typo.", "truth": "Minor"},
            {"title": "two", "text": "A crash.", "truth": 2},
            {"title": "three", "text": "A question."},
        ]
        (folder / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
        stages = [{"label": stage.label, "criteria": [*stage.criteria]} for stage in STAGES]
        (folder / "rubric.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
        usual = {
            "evidence": {"reviews": {"benchmark": "bench"}},
            "tasks": [{"type": "benchmark", "evidence": "reviews"}],
            "judges": ["sim:strict"],
            "design": None,
        }
        return write_study(**{**usual, **changes})

    return write


def made_of(path: Path, store: Store, **overrides: Any) -> list[Experiment]:
    named = {name.replace("__", "."): level for name, level in overrides.items()}
    return list(prepare_file(path, store, named).sweep.experiments)


def test_a_benchmark_provides_items_rubric_concept_and_design(
    benchmark: Callable[..., Path], store: Store
) -> None:
    [one] = made_of(benchmark(), store)
    assert one.tag == "small/review-severity/reviews/sim:strict"
    assert [item.truth for item in one.task.pool.items] == [1, 2, None]
    assert one.task.rubric is not None and one.task.rubric.stages == STAGES
    assert (one.task.rubric.concept, one.task.country) == ("review severity", "")
    assert one.design.chosen(CONTESTED) == {
        "judge.model": "sim:strict",
        "evidence.view": "raw",
        "rubric.author": "provided",
        "verdict.method": "subset",
        "prompt.slots.scorer.persona": "an engineer",
    }


def test_a_task_may_name_the_concept_of_a_benchmark_itself(
    benchmark: Callable[..., Path], store: Store
) -> None:
    task = {"type": "benchmark", "evidence": "reviews", "concept": "harm"}
    [one] = made_of(benchmark(tasks=[task]), store)
    assert one.tag == "small/harm/reviews/sim:strict"
    assert one.task.rubric is not None and one.task.rubric.concept == "harm"


def test_a_study_overrides_the_design_of_a_benchmark_even_with_a_default(
    benchmark: Callable[..., Path], store: Store
) -> None:
    path = benchmark(design={"verdict.method": "single"})
    [one] = made_of(path, store)
    assert one.design.verdict.method == "single"
    assert one.design.prompt.slots.scorer.persona == "an engineer"
    [other] = made_of(path, store, prompt__slots__scorer__persona="a nurse")
    assert other.design.prompt.slots.scorer.persona == "a nurse"


@pytest.mark.parametrize("mode", ["grid", "ablate"])
def test_the_base_of_a_sweep_over_a_benchmark_is_the_benchmarks_own_design(
    benchmark: Callable[..., Path], store: Store, mode: str
) -> None:
    path = benchmark(vary={"verdict.method": ["single", "subset"]}, sweep=mode)
    made = {one.tag.rpartition("sim:strict")[2]: one for one in made_of(path, store)}
    assert {tag: one.design.verdict.method for tag, one in made.items()} == {
        "": "subset", "/verdict.method=single": "single",
    }  # fmt: skip


def test_the_design_of_a_benchmark_stays_with_its_own_task(
    benchmark: Callable[..., Path], store: Store
) -> None:
    path = benchmark(
        evidence={"reviews": {"benchmark": "bench"}, **MINIMAL["evidence"]},
        tasks=[{"type": "benchmark", "evidence": "reviews"}, ECC],
        design={"rubric.critic": "sim:critic", "evidence.editor": "sim:editor"},
    )
    (path.parent / "e.jsonl").write_text('{"text": "a"}')
    theirs, other = made_of(path, store)
    assert theirs.design.verdict.method == "subset" and other.design.verdict.method == "single"


def test_what_a_benchmark_says_in_its_design_makes_another_experiment(
    benchmark: Callable[..., Path], store: Store
) -> None:
    [plain] = made_of(benchmark('concept = "review severity"'), store)
    [designed] = made_of(benchmark(), store)
    [described] = made_of(benchmark('concept = "review severity"\ndescription = "x"'), store)
    assert plain.digest != designed.digest and plain.digest == described.digest


@pytest.mark.parametrize("truth", [3, "Severe!", 0, [1]])
def test_a_truth_that_is_no_stage_of_the_benchmark_is_refused_with_the_stages(
    benchmark: Callable[..., Path], store: Store, truth: Any
) -> None:
    path = benchmark(items=[{"title": "odd", "text": "x", "truth": truth}])
    with pytest.raises(DesignError) as refused:
        made_of(path, store)
    words = [repr(truth), "odd", "'1', '2', 'Minor' or 'Severe'"]
    assert all(word in refused.value.message for word in words), refused.value.message


def test_a_benchmark_of_published_pairs_is_asked_by_an_examiner(
    write_study: Callable[..., Path], tmp_path: Path, store: Store
) -> None:
    row = {"pair_id": "p1", "source": "livecodebench", "label": "B>A", "question": "q?"}
    (tmp_path / "jb.jsonl").write_text(
        json.dumps({**row, "response_A": "a", "response_B": "b", "original_id": "1"})
    )
    path = write_study(
        evidence={"jb": {"judgebench": "jb.jsonl"}},
        tasks=[{"type": "benchmark", "evidence": "jb"}],
        judges=["sim:strict"],
        design=None,
    )
    [one] = made_of(path, store)
    [item] = one.task.pool.items
    assert (item.responses, item.truth, one.orders) == (("a", "b"), 2, (False, True))
    assert one.tag == "small/the-better-response/jb/sim:strict"
    assert "examiner" in one.design.prompt.slots.scorer.persona
    [nurse] = made_of(path, store, prompt__slots__scorer__persona="a nurse")
    assert nurse.design.prompt.slots.scorer.persona == "a nurse"


# --- what is refused with its place and reason ---------------------------------------------------


@pytest.mark.parametrize("origin", ["benchmark", "judgebench"])
@pytest.mark.parametrize("kind", ["ecc", "control"])
def test_a_benchmark_under_another_type_of_task_is_refused(origin: str, kind: str) -> None:
    """It asks for a window, which it then refuses."""
    with pytest.raises(DesignError, match=r"is a benchmark; its task must have the type benchmark"):
        read(evidence={"here": {origin: "x"}}, tasks=[{**ECC, "type": kind}])


@pytest.mark.parametrize("feeds", ["", [""], ["https://x.example/feed", ""]])
def test_an_empty_address_is_no_feed(feeds: Any) -> None:
    with pytest.raises(DesignError, match="feeds"):
        read(evidence={"here": {"feeds": feeds, "window": {"country": "X"}}})


@pytest.mark.parametrize("origin", [{"files": "e.jsonl"}, {"pool": "p"}, {}])
def test_a_limit_without_an_effect_is_refused(origin: dict[str, Any]) -> None:
    """It would be taken for a limit of what is judged and paid for."""
    window = {} if "pool" in origin else {"window": {"country": "X"}}
    with pytest.raises(DesignError, match="limit"):
        read(evidence={"here": {**origin, **window, "limit": 1}})


@pytest.mark.parametrize(
    "truth",
    [
        {"source": "s", "country": "Norvessa"},
        {"source": "s", "year": 2024},
        {"source": "s", "index": "v2x_corr"},
        {"vdem": "v.csv", "label": "high"},
        {"vdem": "v.csv", "year": 0},
    ],
)
def test_a_key_of_a_truth_without_an_effect_is_refused(truth: dict[str, Any]) -> None:
    with pytest.raises(DesignError, match="truth"):
        read(tasks=[{**ECC, "type": "control", "truth": truth}])


@pytest.mark.parametrize(
    "truth",
    [
        {"vdem": "none.csv"},
        {"vdem": "vdem.csv", "year": 1990},
        {"vdem": "vdem.csv", "country": "Valdora"},
        {"vdem": "vdem.csv", "index": "v2x_libdm"},
    ],
)
def test_a_truth_that_is_not_in_the_table_is_refused_with_file_and_line(
    control: Callable[..., Path], store: Store, truth: dict[str, Any]
) -> None:
    path = control(truth)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "truth:" in text)
    with pytest.raises(DesignError) as refused:
        prepare_file(path, store)
    assert refused.value.message.startswith(f"{path}:{line}: "), refused.value.message


@pytest.mark.parametrize(("rubric", "pairs"), [(OPTIONS, MIXED), (RUBRIC, None), (MORE, None)])
def test_the_refusal_of_pairs_names_the_line_of_their_task(
    rubric: Rubric, pairs: Pool | None
) -> None:
    text = yaml.safe_dump({**MINIMAL, "tasks": [PAIRS]}, sort_keys=False)
    lines = dict(enumerate(text.splitlines(), 1))
    with pytest.raises(DesignError) as refused:
        pair_sweep(read_study(text, "s.yaml"), rubric, pairs)
    named = int(refused.value.message.split(":")[1])
    assert "benchmark" in lines[named] or "here" in lines[named], refused.value.message


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
def test_options_that_name_first_and_second_in_other_places_are_refused(
    order: tuple[int, ...],
) -> None:
    """They would be decoded as if they stood in order: a sound judge comes out as biased."""
    rubric = replace(OPTIONS, stages=tuple(OPTIONS.stages[place] for place in order))
    with pytest.raises(DesignError, match="first"):
        pair_sweep(read(tasks=[PAIRS]), rubric)


def test_the_refusal_of_a_truth_lists_the_stages_as_choices() -> None:
    with pytest.raises(DesignError) as refused:
        pair_sweep(read(tasks=[PAIRS]), pairs=pair_pool(4))
    assert set(refused.value.choices) == {"1", "2", "3", "first", "second", "neither"}


def test_a_truth_is_a_number_or_a_label_and_nothing_that_is_equal_to_one() -> None:
    with pytest.raises(DesignError, match="unknown truth True"):
        pair_sweep(read(tasks=[PAIRS]), pairs=pair_pool(True))


def test_a_choice_that_an_error_offers_is_taken() -> None:
    """`unknown truth '1' for pair 0; choose '1', '2', ...`."""
    [one] = pair_sweep(read(judges=["sim:a"], tasks=[PAIRS]), pairs=pair_pool("1", "2")).experiments
    assert [item.truth for item in one.task.pool.items] == [1, 2]


def test_pairs_accept_the_raw_view_and_refuse_another() -> None:
    changes: dict[str, Any] = {"judges": ["sim:a"], "tasks": [PAIRS]}
    [plain] = pair_sweep(read(**changes)).experiments
    with pytest.raises(DesignError, match=r"evidence\.view"):
        pair_sweep(read(**changes, design={"evidence.view": "neutralized"}))
    [named] = pair_sweep(read(**changes, design={"evidence.view": "raw"})).experiments
    assert named.digest == plain.digest


@pytest.mark.parametrize(
    "design",
    [
        'verdict.method = "subset"',
        '[design.verdict]\nmethod = "subset"',
        'verdict = {method = "subset"}',
        'scoringMethod = "freeform-suffix-subset"',
    ],
)
def test_the_design_of_a_benchmark_may_be_written_as_that_of_a_study(
    benchmark: Callable[..., Path], store: Store, design: str
) -> None:
    """TOML reads a dotted key as tables within tables."""
    head = "" if design.startswith("[") else "[design]\n"
    [one] = made_of(benchmark(f'concept = "c"\n{head}{design}\n'), store)
    assert one.design.verdict.method == "subset"


def test_a_study_on_a_benchmark_is_found_with_and_without_its_folder(
    benchmark: Callable[..., Path], lab: Lab
) -> None:
    vary = {"verdict.method": ["single", "subset"], "presentation.first": ["rubric", "evidence"]}
    two, one = vary, {"verdict.method": vary["verdict.method"]}
    lab.runs.run(benchmark(vary=two), samples=1)

    def tags() -> set[str]:
        return {row["tag"] for row in lab.studies.find(str(path))}

    path = benchmark(vary=one)
    base = "small/review-severity/reviews/sim:strict"
    assert tags() == {base, f"{base}/verdict.method=single"}, "those of the file as it is now"
    (path.parent / "bench").rename(path.parent / "away")
    every = {row["tag"] for row in lab.studies.find("small")}
    assert tags() == every, "what the tags are depends on the benchmark's own design"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('"verdict.metod" = "subset"', ["'verdict.metod'", "'verdict.method'"]),
        ('"verdict.method" = "subst"', ["'subst'", "'single' or 'subset'"]),
        ('"judge.model" = "sim:other"', ["judge.model"]),
    ],
)
def test_an_error_in_the_design_of_a_benchmark_names_its_file(
    benchmark: Callable[..., Path], store: Store, line: str, words: list[str]
) -> None:
    with pytest.raises(DesignError) as refused:
        made_of(benchmark(f'concept = "c"\n[design]\n{line}\n'), store)
    message = refused.value.message
    assert all(word in message for word in ["benchmark.toml", *words]), message
    assert "study.yaml" not in message
