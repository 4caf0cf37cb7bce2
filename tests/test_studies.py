"""Study files: what they mean, where they are refused, and which experiments they become."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.axes import Design
from judge_gym.errors import DesignError
from judge_gym.models import Registry
from judge_gym.preparing import prepare_file
from judge_gym.store import Store
from judge_gym.records import Evidence, NominalRubric, OrdinalRubric, Pool, RubricStage, Window
from judge_gym.studies import Experiment, Study, Sweep, Task, experiments, points, read_study

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


def pool(*texts: str, country: str | None = "Valdoria") -> Pool:
    items = tuple(Evidence(f"title of {text}", text) for text in texts or ("a", "b"))
    return Pool(items, Window(country) if country else None)


def sweep(study: Study) -> Sweep:
    rubrics = {task.rubric: RUBRIC for task in study.tasks if task.rubric}
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
    assert study.budget.model_dump() == {
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


def test_what_is_left_out_has_the_documented_default() -> None:
    study = read()
    assert (study.seed, study.samples, study.sweep, study.swap) == (0, 5, "grid", "none")
    assert (study.probe, study.tolerance) == (True, 0.05)
    assert set(study.budget.model_dump().values()) == {None}
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


@pytest.mark.parametrize("name", ALIASED)
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


def test_bare_model_names_are_looked_up_wherever_a_model_stands() -> None:
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


def test_knobs_from_outside_stand_over_the_base_and_show_in_the_tag() -> None:
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
    "unknown task type": ("type: ecc", "type: eec", "eec", ["'eec'", "'ecc'", "'benchmark'"]),
    "unknown knob": (
        EDITOR,
        "evidence.edtor: x",
        "edtor",
        ["'evidence.edtor'", "'evidence.view' or 'evidence.editor'"],
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
    "broken YAML": ("seed: 3", "seed: [3", "samples", ["broken YAML"]),
    "a tab": ("seed: 3", "\tseed: 3", "seed", ["broken YAML"]),
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
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_fault_is_answered_with_file_line_and_choices(case: str) -> None:
    old, new, needle, words = REFUSED[case]
    assert old in BASE
    text = BASE.replace(old, new, 1)
    last = max(n for n, line in enumerate(text.splitlines(), 1) if needle in line)
    with pytest.raises(DesignError) as refused:
        sweep(read_study(text, "my/study.yaml"))
    message = refused.value.message
    assert message.startswith(f"my/study.yaml:{last}: "), message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("text", ["", "# nothing\n", "just words\n", "- a\n- b\n"])
def test_a_file_without_a_mapping_is_told_the_keys(text: str) -> None:
    with pytest.raises(DesignError, match=r"^s\.yaml:1: .*study, seed, samples, evidence, tasks"):
        read_study(text, "s.yaml")


@pytest.mark.parametrize("key", ["study", "evidence", "tasks", "judges"])
def test_a_required_key_is_missed(key: str) -> None:
    data = {name: value for name, value in MINIMAL.items() if name != key}
    with pytest.raises(DesignError, match=rf"^s\.yaml:1: .*{key} is not given"):
        read_study(yaml.safe_dump(data), "s.yaml")


def test_the_default_editor_is_refused_too_where_it_is_a_judge() -> None:
    with pytest.raises(DesignError, match="outside the panel"):
        sweep(read(judges=["openai:gpt-4.1-mini"]))


def test_a_judge_may_be_the_default_editor_where_nothing_is_edited() -> None:
    made = sweep(read(judges=["openai:gpt-4.1-mini"], tasks=[BENCHMARK]))
    assert [one.design.judge.model for one in made.experiments] == ["openai:gpt-4.1-mini"]


def test_two_tasks_of_one_concept_on_one_pool_are_refused() -> None:
    with pytest.raises(DesignError, match="small/fascism/here/sim:balanced"):
        sweep(read(tasks=[ECC, {**ECC, "type": "control"}]))


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
def test_a_grid_holds_every_combination_once(vary: dict[str, list[Any]]) -> None:
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
def test_a_sampled_point_comes_with_all_its_neighbours(
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
    tags = [*(one.tag for one in made.experiments), *made.folded]
    assert len(set(tags)) == len(tags) == len(points(study)) * 4


def test_long_levels_are_cut_in_a_tag_and_stay_apart() -> None:
    personas = ["a very patient " * 8 + "nurse", "a very patient " * 8 + "surgeon"]
    study = read(vary={"prompt.slots.scorer.persona": personas}, judges=["sim:balanced"])
    tags = [one.tag for one in sweep(study).experiments]
    assert len(set(tags)) == 2
    assert all(len(tag) < 140 and " " not in tag for tag in tags)


# --- knobs that cannot act -----------------------------------------------------------------------


def test_the_editor_is_idle_where_evidence_is_raw() -> None:
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
    assert [one.design.evidence.editor for one in raw] == ["openai:gpt-4.1-mini"]
    [(folded, kept)] = made.folded.items()
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
def test_rubric_knobs_are_idle_under_a_provided_rubric(knob: str, levels: list[Any]) -> None:
    made = sweep(read(judges=["sim:balanced"], tasks=[ECC, GIVEN], vary={knob: levels}))
    own = [one for one in made.experiments if one.task.rubric is None]
    given = [one for one in made.experiments if one.task.rubric]
    assert [one.design.values()[knob] for one in own] == levels
    assert len(given) == 1 and list(made.folded.values()) == [given[0].tag]
    design = given[0].design.chosen()
    assert design == {"judge.model": "sim:balanced", "rubric.author": "provided"}


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
    with pytest.raises(DesignError, match=rf"{knob} acts on no task"):
        sweep(read(**changes))


@pytest.mark.parametrize("section", ["design", "vary"])
def test_the_refusal_of_an_idle_knob_names_file_and_line(
    section: str, write_study: Callable[..., Path], store: Store
) -> None:
    levels: Any = {"design": "given", "vary": ["given", "both"]}[section]
    path = write_study(**{section: {"presentation.pair_order": levels}})
    lines = path.read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "pair_order" in text)
    with pytest.raises(DesignError) as refused:
        prepare_file(path, Registry(), store, {})
    assert refused.value.message.startswith(f"{path}:{line}: "), refused.value.message


def test_a_benchmark_shows_its_texts_as_they_are() -> None:
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
    assert not made.folded


def test_a_benchmark_takes_the_view_that_the_design_names() -> None:
    study = read(
        judges=["sim:balanced"], tasks=[BENCHMARK], design={"evidence.view": "neutralized"}
    )
    assert [one.design.evidence.view for one in sweep(study).experiments] == ["neutralized"]


# --- swaps ---------------------------------------------------------------------------------------

PANEL = ["sim:a", "sim:b", "sim:c"]


@pytest.mark.parametrize(
    ("swap", "rivals"),
    [
        ("none", ([], [], [])),
        ("all", (["sim:b", "sim:c"], ["sim:a", "sim:c"], ["sim:a", "sim:b"])),
        ([["sim:a", "sim:b"]], (["sim:b"], [], [])),
        ([["sim:a", "sim:b"], ["sim:a", "sim:third"]], (["sim:b", "sim:third"], [], [])),
        ([["*", "sim:third"]], (["sim:third"], ["sim:third"], ["sim:third"])),
        ([["*", "sim:a"], ["sim:c", "sim:a"]], ([], ["sim:a"], ["sim:a"])),
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
def test_annotations_leave_the_digest_alone(change: dict[str, Any]) -> None:
    other = replace(EXPERIMENT, tag="else", task=replace(EXPERIMENT.task, **change))
    assert other.digest == EXPERIMENT.digest


@pytest.mark.parametrize("knob", [path for path in Design.knobs() if path != "judge.model"])
def test_naming_a_default_leaves_the_digest_alone(knob: str) -> None:
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
