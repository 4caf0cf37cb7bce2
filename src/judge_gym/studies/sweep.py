"""Builds the experiments of a study: tasks x judges x the points of a sweep."""

import itertools
import math
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judge_gym.axes import Design, TaskTrait, defaults, inactive_knobs
from judge_gym.axes.evidence import ALL_FIELDS
from judge_gym.errors import DesignError, unknown
from judge_gym.records import (
    Benchmark,
    Pool,
    Rubric,
    TaskType,
    content_hash,
    digest,
    grade_items,
)
from judge_gym.studies.file import Study, TaskSpec
from judge_gym.studies.yaml_lines import errors_at

FIELDS = "evidence.fields"


@dataclass(frozen=True, slots=True)
class Task:
    """A concept on a pool. A judge never sees type, truth or dose."""

    type: TaskType | Literal[""]
    """Empty where a study without a protocol gives none."""
    concept: str
    pool_name: str
    pool: Pool
    rubric: Rubric | None = None
    dose: float | None = None
    truth: Mapping[str, Any] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of knobs that a benchmark replaces."""
    rubric_file: str = ""
    """The file of its rubric, as the study names it; empty where no study does."""
    protocol: str = ""
    """The research protocol, whose defaults its designs start from; empty for none."""

    @property
    def country(self) -> str:
        """The country of the pool's window; empty without one."""
        return self.pool.window.country if self.pool.window else ""

    @property
    def traits(self) -> tuple[TaskTrait, ...]:
        """What it is; whether the evidence of a draft will be pairs is not known yet."""
        items: TaskTrait = "pairs" if self.pool.paired else "single texts"
        traits: tuple[TaskTrait, ...] = (items,) if self.pool.items else ()
        if traits and not self.pool.field_names:
            traits = (*traits, "no named parts")
        return (*traits, "given rubric") if self.rubric else traits


@dataclass(frozen=True, slots=True)
class Experiment:
    """A task under a design."""

    tag: str
    task: Task
    design: Design
    seed: int
    template: str = ""
    """The text of the judge's own prompt, if the design names one."""

    @property
    def digest(self) -> str:
        """The hash that identifies the experiment.

        Truth, dose, tag, protocol and knobs without an effect are left out.
        """
        inactive = _inactive(self.task, self.design) - _forced(self.task).keys()
        return digest(
            {
                "type": self.task.type,
                "concept": self.task.concept,
                "country": self.task.country,
                "pool": self.task.pool.hash,
                "rubric": self.task.rubric.hash if self.task.rubric else None,
                "seed": self.seed,
                "design": {
                    knob: level
                    for knob, level in self.design.identity().items()
                    if knob not in inactive
                },
            }
        )

    @property
    def draft(self) -> bool:
        """Whether it still has no evidence, so that its digest identifies nothing."""
        return not self.task.pool.items

    @property
    def orders(self) -> tuple[bool, ...]:
        """For each time an item is shown, whether in reverse; only pairs are shown twice."""
        return self.design.presentation.resolve().flips if self.task.pool.paired else (False,)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The experiments of a study, and the points that are none of their own."""

    experiments: tuple[Experiment, ...]
    duplicates: Mapping[str, str] = field(default_factory=dict)
    """The tags of points that are the same experiment as another, with that other's tag."""
    skipped_swaps: tuple[str, ...] = ()
    """The tags of experiments without a swap, because their judge writes no rubric of its own."""


def points(study: Study, replaced: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Returns the points of the sweep, each as the knobs in which it differs from the base.

    `replaced` are the defaults of knobs that a type of task replaces.
    """
    usual = defaults(study.protocol or "")
    base = {knob: {**usual, **(replaced or {}), **study.design}[knob] for knob in study.vary}
    if study.sweep == "grid":
        selected = [_point(study.vary, number) for number in range(_size(study.vary))]
    elif study.sweep == "ablate":
        selected = [base, *_neighbours(base, study.vary)]
    else:
        rng, size = random.Random(digest(["sweep", study.seed])), _size(study.vary)
        numbers = rng.sample(range(size), min(study.sweep.sample, size))
        random_points = [_point(study.vary, number) for number in numbers]
        selected = [
            near for point in random_points for near in (point, *_neighbours(point, study.vary))
        ]
    distinct = {digest(point): point for point in selected}
    return [
        {knob: level for knob, level in point.items() if level != base[knob]}
        for point in distinct.values()
    ]


def _size(vary: Mapping[str, Sequence[Any]]) -> int:
    return math.prod(map(len, vary.values()))


def _point(vary: Mapping[str, Sequence[Any]], number: int) -> dict[str, Any]:
    """Returns a point of the grid by its number, so that a sample need not list the grid."""
    point = {}
    for knob, levels in reversed(list(vary.items())):
        number, level = divmod(number, len(levels))
        point[knob] = levels[level]
    return dict(reversed(list(point.items())))


def _neighbours(
    point: Mapping[str, Any], vary: Mapping[str, Sequence[Any]]
) -> Iterator[dict[str, Any]]:
    """Yields every point that differs in exactly one knob."""
    for knob, levels in vary.items():
        yield from ({**point, knob: level} for level in levels if level != point[knob])


def experiments(
    study: Study,
    pools: Mapping[str, Pool],
    rubrics: Mapping[str, Rubric],
    *,
    benchmarks: Mapping[str, Benchmark] | None = None,
    templates: Mapping[str, str] | None = None,
    shown: Sequence[str] = (),
) -> Sweep:
    """Returns the experiments of a study: tasks x judges x points.

    Pools, benchmarks and rubrics are given by name, loaded, and `templates` are the texts of the
    judges' own prompts by level; tags show the overridden knobs in `shown`.
    """
    with study.locate_errors():
        tasks = []
        for number, spec in enumerate(study.tasks):
            with errors_at(("tasks", number)):
                task = _task(spec, study.protocol or "", pools, rubrics, benchmarks or {})
                tasks.append(task)
        return _experiments(study, tasks, shown, templates or {})


def study_tags(study: Study, benchmarks: Mapping[str, Benchmark]) -> set[str]:
    """Returns the tags that a study names; no evidence and no rubric is read for them.

    Tasks on a benchmark that is not among those given are left out: its design belongs to a tag.
    """
    names: set[str] = set()
    for spec in study.tasks:
        benchmark = benchmarks.get(spec.evidence)
        if benchmark is None and study.evidence[spec.evidence].is_benchmark:
            continue
        concept = spec.concept or (benchmark.concept if benchmark else "")
        type = spec.type or ("benchmark" if benchmark else "")
        replaced = _task_defaults(type, benchmark.design if benchmark else {})
        names |= {
            experiment_tag(study.study, concept, spec.evidence, judge, point)
            for judge, point in itertools.product(study.judges, points(study, replaced))
        }
    return names


def _experiments(
    study: Study, tasks: Sequence[Task], shown: Sequence[str], templates: Mapping[str, str]
) -> Sweep:
    by_digest: dict[str, Experiment] = {}
    tags: set[str] = set()
    duplicates: dict[str, str] = {}
    skipped: list[str] = []
    used: set[str] = set()
    outside = {knob: study.design[knob] for knob in shown if knob in study.design}
    for number, task in enumerate(tasks):
        replaced = _task_defaults(task.type, task.defaults)
        for judge, point in itertools.product(study.judges, points(study, replaced)):
            levels = {**study.design, **point, "judge.model": judge}
            design, active = resolve_design(task, levels, assistant=study.assistant)
            used |= active
            check_roles(study.judges, task, design, number, chosen=levels, varied=study.vary)
            with errors_at(("vary" if FIELDS in study.vary else "design", FIELDS)):
                check_fields(task.pool, design)
            tag = experiment_tag(
                study.study, task.concept, task.pool_name, judge, {**outside, **point}
            )
            if tag in tags:
                raise DesignError(
                    f"two experiments would have the tag {tag!r}; list a concept once per pool, "
                    "and use names that differ by more than spaces",
                    path=("tasks", number),
                )
            tags.add(tag)
            own_prompt = templates.get(design.prompt.template, "")
            experiment = Experiment(tag, task, design, study.seed, own_prompt)
            first = by_digest.setdefault(experiment.digest, experiment)
            if first is not experiment:
                duplicates[tag] = first.tag
            elif study.swap != "none" and design.rubric.author != "own":
                skipped.append(tag)
    _refuse_unused(study, used, outside, tasks)
    return Sweep(tuple(by_digest.values()), duplicates, tuple(skipped))


def _task(
    spec: TaskSpec,
    protocol: str,
    pools: Mapping[str, Pool],
    rubrics: Mapping[str, Rubric],
    benchmarks: Mapping[str, Benchmark],
) -> Task:
    benchmark = benchmarks.get(spec.evidence)
    task = Task(
        spec.type or ("benchmark" if benchmark else ""),
        spec.concept or (benchmark.concept if benchmark else ""),
        spec.evidence,
        pools[spec.evidence],
        dose=spec.dose,
        truth=spec.truth.reference() if spec.truth else None,
        defaults=benchmark.design if benchmark else {},
        rubric_file=spec.rubric if isinstance(spec.rubric, str) else "",
        protocol=protocol,
    )
    if protocol and task.type != "benchmark" and not task.country:
        raise DesignError(f"the pool of evidence {task.pool_name!r} has no window, so no country")
    rubric = benchmark.rubric if benchmark else rubrics.get(task.rubric_file)
    return with_rubric(task, rubric)


def with_rubric(task: Task, rubric: Rubric | None) -> Task:
    """Returns the task with a given rubric; the truths of its items become stages of it."""
    _refuse_unpaired(task, rubric)
    if rubric is None:
        return task
    task_rubric = replace(rubric, concept=task.concept, country=task.country)
    pool = replace(task.pool, items=grade_items(task.pool.items, task_rubric))
    return replace(task, rubric=task_rubric, pool=pool)


def _refuse_unpaired(task: Task, rubric: Rubric | None) -> None:
    """Refuses pairs without a nominal rubric whose options are the two responses."""
    if not task.pool.paired:
        return
    single = next((item.title for item in task.pool.items if not item.responses), None)
    if single is not None:
        raise DesignError(f"evidence {task.pool_name!r} mixes pairs and single texts: {single!r}")
    if rubric is None or rubric.kind == "ordinal":
        raise DesignError(
            f"evidence {task.pool_name!r} contains pairs: two responses are compared, which no "
            "scale can express; give a nominal rubric with the options first, second and, "
            "optionally, neither"
        )
    positions = {"first": 0, "second": 1}
    labels = [stage.label.casefold() for stage in rubric.stages]
    moved = any(
        word in label and position != number
        for number, label in enumerate(labels)
        for word, position in positions.items()
    )
    if rubric.scale not in (2, 3) or moved:
        raise DesignError(
            "a pair has the options first, second and, optionally, neither, in this order; this "
            f"rubric has {', '.join(stage.label for stage in rubric.stages)}"
        )


def check_roles(
    judges: Sequence[str],
    task: Task,
    design: Design,
    number: int = 0,
    *,
    chosen: Collection[str] = (),
    varied: Collection[str] = (),
) -> None:
    """Refuses an editor or critic who is a judge, and a task without a source of its rubric."""
    rubric = design.rubric.resolve(design.judge.model)
    if task.rubric is None and rubric.author is None:
        raise DesignError(
            f"the task {task.concept!r} needs its rubric: rubric: FILE.json", path=("tasks", number)
        )
    roles = {"evidence.editor": design.evidence.resolve().editor, "rubric.critic": rubric.critic}
    for knob, model in roles.items():
        if model in judges:
            named = knob if knob in chosen else "assistant"
            raise DesignError(
                f"{named} {model!r} is a judge of this study; choose a model outside the panel",
                path=("vary" if knob in varied else "design", knob) if named == knob else (named,),
            )


def check_fields(pool: Pool, design: Design) -> None:
    """Refuses to show named parts that items of the pool lack."""
    if design.evidence.fields == ALL_FIELDS:
        return
    for name in design.evidence.fields.split("+"):
        if name not in pool.field_names:
            raise DesignError(
                unknown("named part", name, pool.field_names, FIELDS), choices=pool.field_names
            )
    view = design.evidence.resolve()
    bare = next((item.title for item in pool.items if not view.shown(item.fields)), None)
    if bare is not None:
        raise DesignError(f"{FIELDS} {design.evidence.fields}: {bare!r} has none of these parts")


def resolve_design(
    task: Task,
    chosen: Mapping[str, Any],
    *,
    assistant: str | None = None,
    remedy: str = "assistant: provider:name",
) -> tuple[Design, set[str]]:
    """Returns the design that a task is judged under, and which of the chosen knobs have an effect.

    A knob without an effect returns to its default, so that such points are one experiment. The
    assistant edits and criticises where no other model is chosen; where one is needed and none is
    known, the error names the `remedy`.
    """
    usual = defaults(task.protocol)
    wanted = {**usual, **_task_defaults(task.type, task.defaults), **chosen}
    if task.protocol and wanted["rubric.author"] != "provided":
        wanted["rubric.critic"] = wanted["rubric.critic"] or assistant
    if wanted["evidence.view"] == "neutralized":
        wanted["evidence.editor"] = wanted["evidence.editor"] or assistant
    forced = _forced(task)
    settled: dict[str, Any] = {}
    levels = wanted
    while settled != levels:  # a knob may be inactive under a level that is itself inactive
        settled = levels
        inactive = _inactive(task, Design.of(settled)) | forced.keys()
        levels = {**wanted, **{knob: usual[knob] for knob in inactive}}
    active = {knob: level for knob, level in wanted.items() if knob not in inactive}
    design = Design.of(usual | active | forced)
    if needs := _unassisted(task, design):
        raise DesignError(
            f"a model is needed that {' and '.join(needs)}, other than the judges; name it with "
            f"{remedy}",
            path=("assistant",),
        )
    return design, active.keys() & chosen.keys()


def _unassisted(task: Task, design: Design) -> list[str]:
    """Returns what an assistant would have to do that no model is chosen for."""
    edited = design.evidence.view == "neutralized" and design.evidence.editor is None
    written = task.rubric is None and design.rubric.author != "provided"
    criticised = bool(task.protocol) and written and design.rubric.critic is None
    return ["edits evidence"] * edited + ["criticises rubrics"] * criticised


def _task_defaults(type: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of a benchmark, whose texts are controlled and shown unedited."""
    return {"evidence.view": "raw", **own} if type == "benchmark" else {}


def _forced(task: Task) -> dict[str, Any]:
    """Returns the levels that a task gives, whatever was chosen."""
    forced = {"rubric.author": "provided"} if task.rubric else {}
    return forced | ({"evidence.view": "raw"} if task.pool.paired else {})


def _inactive(task: Task, design: Design) -> set[str]:
    """Returns the knobs that have no effect on a task."""
    return inactive_knobs(design.values() | _forced(task), task.traits)


def _refuse_unused(
    study: Study, used: set[str], outside: Mapping[str, Any], tasks: Sequence[Task]
) -> None:
    """Refuses a knob without an effect on any task; an override may disable others of the file."""
    usual = defaults(study.protocol or "")
    paired = all(task.pool.paired for task in tasks)
    sections = (("vary", study.vary), ("design", outside or study.design))
    for section, knobs in sections:
        for knob, level in knobs.items():
            if paired and knob == "rubric.scale":  # even the default would be misunderstood
                raise DesignError(
                    "rubric.scale has no effect on pairs: two responses are compared, which no "
                    "scale can express; leave it out",
                    path=(section, knob),
                )
            if paired and knob == "evidence.view":
                levels = level if section == "vary" else [level]
                if set(levels) == {"raw"}:  # which is what happens
                    continue
                raise DesignError(
                    "evidence.view has no effect on pairs, which are shown unedited: a summary of "
                    "two responses would be a third one; leave it out",
                    path=(section, knob),
                )
            if knob in used or level == usual[knob]:
                continue
            raise DesignError(
                f"{knob} has no effect on any task of this study; leave it out",
                path=(section, knob),
            )


def experiment_tag(
    study: str, concept: str, pool_name: str, judge: str, shown: Mapping[str, Any]
) -> str:
    """Returns the name of an experiment, with the levels in which it differs from others."""
    parts = [study, _slug(concept), pool_name, judge]
    return "/".join([*parts, *(f"{knob}={_slug(level)}" for knob, level in shown.items())])


def _slug(value: Any) -> str:
    text = (
        str(value).lower() if isinstance(value, bool) else re.sub(r"\s+", "-", str(value).strip())
    )
    return text if len(text) <= 48 else f"{text[:39]}~{content_hash(text)[:8]}"
