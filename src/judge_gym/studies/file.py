"""Reads and checks a study file; errors name file, line and choices."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from judge_gym.axes import Design, ProtocolName, aliases, defaults, expand, find_knob
from judge_gym.errors import DesignError, unknown
from judge_gym.records import TaskType
from judge_gym.records.judge_table import MeasureName
from judge_gym.studies.declarations import (
    ALT_TEST,
    JUDGE,
    MARGIN,
    AltTestSpec,
    Annotators,
    ContrastSpec,
    HypothesisName,
    check_contrasts,
)
from judge_gym.studies.origins import (
    PoolSpec,
    Spec,
    TruthSpec,
    WindowSpec,
    check_pool,
    check_truth,
)
from judge_gym.studies.yaml_lines import Path, errors_at, load_yaml, locate_errors

Resolve = Callable[[str], str]
KEY_ALIASES = {"items": "evidence", "repeats": "samples"}
"""Other words for keys of a study."""
TASK_ALIASES = {"question": "concept", "items": "evidence"}
"""Other words for keys of a task."""
SIMULATED_ASSISTANT = "sim:assistant"
"""Edits and criticises in a study whose judges are all simulated and that names no assistant."""


def _with_aliases(aliases: Mapping[str, str]) -> Callable[[dict[str, Any]], None]:
    """Adds keys that may be written in other words to a JSON Schema."""

    def extend(schema: dict[str, Any]) -> None:
        required = schema["required"]
        schema["required"] = [key for key in required if key not in aliases.values()]
        schema["allOf"] = [
            {"anyOf": [{"required": [key]}, {"required": [alias]}]}
            for alias, key in aliases.items()
            if key in required
        ]
        schema["properties"] |= {alias: schema["properties"][key] for alias, key in aliases.items()}

    return extend


class TaskSpec(Spec):
    """A task: a concept to be judged on a pool."""

    model_config = ConfigDict(json_schema_extra=_with_aliases(TASK_ALIASES))

    type: TaskType | None = None
    """Needed under a protocol."""
    concept: str = ""
    """Empty if the benchmark names it."""
    evidence: str
    dose: float | None = None
    truth: TruthSpec | None = None
    rubric: str | list[str] | dict[str, Any] | None = None
    """A file, its content, or stages from the lowest: `label` or `label: criterion`."""


class SampleSweep(Spec):
    """Random points of the grid, each with the points that differ in one knob."""

    sample: int = Field(ge=1)


class Caps(Spec):
    """Limits on spending; None means no limit."""

    usd: float | None = Field(None, gt=0)
    calls: int | None = Field(None, gt=0)
    tokens: int | None = Field(None, gt=0)
    minutes: float | None = Field(None, gt=0)


class BudgetSpec(Caps):
    """Limits on a study, and on each of its runs; results so far are kept."""

    run: Caps = Caps()

    def changed(self, given: Mapping[str, Any]) -> "BudgetSpec":
        """Returns the budget with some limits replaced; `run.usd` is the limit of each run."""
        choices = [*Caps.model_fields, *(f"run.{name}" for name in Caps.model_fields)]
        limits = self.model_dump()
        for name, limit in given.items():
            if name not in choices:
                raise DesignError(unknown("limit", name, choices, "the budget"), choices=choices)
            part = limits["run"] if name.startswith("run.") else limits
            part[name.removeprefix("run.")] = limit
        try:
            return BudgetSpec.model_validate(limits)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            raise DesignError(f"budget.{name}: {first['msg']}, not {first['input']!r}") from None


class LossSpec(Spec):
    """What a wrong verdict costs."""

    miss: float = Field(ge=0)
    """The cost where people's label is positive and the verdict is not."""
    false_alarm: float = Field(ge=0)


class Study(Spec):
    """A study file, checked in everything that does not need its evidence."""

    model_config = ConfigDict(json_schema_extra=_with_aliases(KEY_ALIASES))

    study: str = Field(pattern=r"^[\w.-]+$")
    seed: int = Field(0, ge=0, lt=2**63)
    samples: int = Field(5, ge=1)
    evidence: dict[str, PoolSpec] = Field(min_length=1)
    tasks: list[TaskSpec] = Field(min_length=1)
    protocol: ProtocolName | None = None
    """The research protocol, whose words, views, hypotheses and checks are used; None for none."""
    judges: list[str] = Field(min_length=1)
    assistant: str | None = None
    """The model that edits evidence and criticises rubrics."""
    design: dict[str, Any] = {}
    vary: dict[str, list[Any]] = {}
    sweep: Literal["grid", "ablate"] | SampleSweep = "grid"
    swap: Literal["none", "all"] | list[Annotated[list[str], Field(min_length=2, max_length=2)]] = (
        "none"
    )
    probe: bool = True
    budget: BudgetSpec = BudgetSpec()
    tolerance: float = Field(0.05, ge=0, le=1)
    margin: float | None = Field(None, gt=0, lt=1)
    """The size below which an effect is negligible, on the scale from 0 to 1."""
    measure: MeasureName | None = None
    """The measure that decides which judge is best; None for the one that fits the labels."""
    positive: str | None = None
    """The positive one of two labels, such as pass; None if its name says so."""
    loss: LossSpec | None = None
    """What wrong verdicts cost, where the expected loss decides which judge is best."""
    alt_test: Annotators | AltTestSpec | None = None
    """How far a judge may be behind a rater whom it replaces; None for the default, an expert."""
    label_usd: float = Field(0.0, ge=0)
    """What a person's label of a new item costs, for what to buy next."""
    contrasts: list[ContrastSpec] = []
    """The comparisons that the report's first table tests; all others are exploratory."""
    hypotheses: list[HypothesisName] | None = None
    """The hypotheses of the protocol that are tested; None for all of them."""

    _file: str = PrivateAttr("study")
    _lines: Mapping[Path, int] = PrivateAttr({})

    @property
    def file(self) -> str:
        """The name of the file."""
        return self._file

    @property
    def declared(self) -> dict[str, Any]:
        """What the study declares about its analysis, complete with defaults, as JSON."""
        every = list(get_args(HypothesisName)) if self.protocol else []
        choice = self.alt_test
        epsilon = choice.epsilon if isinstance(choice, AltTestSpec) else choice
        return {
            **({} if epsilon is None else {ALT_TEST: epsilon}),
            MARGIN: self.margin,
            "hypotheses": self.hypotheses or every,
            "contrasts": [contrast.model_dump() for contrast in self.contrasts],
        }

    def locate_errors(self) -> AbstractContextManager[None]:
        """Returns a context in which errors about a key of the study name file and line."""
        return locate_errors(self._file, self._lines)

    def rivals(self, design: Design) -> tuple[str, ...]:
        """Returns the other authors whose rubrics a judge uses, if it writes its own."""
        judge = design.judge.model
        if self.swap == "none" or design.rubric.author != "own":
            return ()
        pairs = [["*", "*"]] if self.swap == "all" else self.swap
        named = [author for user, author in pairs if user in (judge, "*")]
        authors = [
            name for author in named for name in (self.judges if author == "*" else [author])
        ]
        return tuple(dict.fromkeys(author for author in authors if author != judge))


def read_truth(given: Mapping[str, Any], task_type: TaskType) -> dict[str, Any]:
    """Returns a reference answer that is given outside of a study file, checked."""
    try:
        spec = TruthSpec.model_validate(given)
    except ValidationError as error:
        raise _refusal(error) from error
    check_truth(spec, (), task_type)
    if spec.vdem is not None:
        raise DesignError("a truth can be looked up in V-Dem's table by a study file only")
    return spec.reference()


def read_study(
    text: str, file: str, *, resolve: Resolve = str, overrides: Mapping[str, Any] = {}
) -> Study:
    """Returns the study in a YAML text; errors name file, line and choices.

    `resolve` turns a bare model name into a model id; `overrides` replace knobs of the base design.
    """
    try:
        data, lines = load_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        last = len(text.splitlines())
        where = f"{file}:{min(mark.line + 1, last)}" if mark else file
        problem = getattr(error, "problem", None) or "not readable"
        raise DesignError(f"{where}: invalid YAML: {problem}") from error
    outside = read_knobs(overrides, (), resolve)  # not in the file, so without a line
    lines |= {_key_path(path): line for path, line in lines.items()}
    with locate_errors(file, lines):
        study = _check(_with_key_names(data), resolve, outside)
    study._file, study._lines = file, lines
    return study


def _with_key_names(data: Any) -> Any:
    """Renames the keys that may be written in other words; both words for one key are refused."""
    if not isinstance(data, dict):
        return data
    renamed = _renamed(data, KEY_ALIASES, ())
    tasks = renamed.get("tasks")
    if isinstance(tasks, list):
        renamed["tasks"] = [
            _renamed(task, TASK_ALIASES, ("tasks", number)) if isinstance(task, dict) else task
            for number, task in enumerate(tasks)
        ]
    return renamed


def _renamed(data: Mapping[Any, Any], aliases: Mapping[str, str], path: Path) -> dict[Any, Any]:
    for alias, key in aliases.items():
        if alias in data and key in data:
            raise DesignError(f"{alias!r} and {key!r} mean the same; keep one", path=(*path, alias))
    return {aliases.get(key, key): value for key, value in data.items()}


def _key_path(path: Path) -> Path:
    """Names an entry by the study's own keys, as errors do."""
    if path[:1] == ("tasks",) and len(path) > 2:
        return (*path[:2], TASK_ALIASES.get(str(path[2]), path[2]), *path[3:])
    return (KEY_ALIASES.get(str(path[0]), path[0]), *path[1:]) if path else path


def _check(data: Any, resolve: Resolve, outside: Mapping[str, Any]) -> Study:
    if not isinstance(data, dict):
        raise DesignError(f"a study is a mapping with the keys {', '.join(Study.model_fields)}")
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        raise _refusal(error) from error
    base = read_knobs(study.design, ("design",), resolve)
    base |= outside
    for name in study.vary.keys() & outside.keys():
        raise DesignError(f"{name} varies in this study, so it cannot be overridden")
    vary = _levels(study.vary, base, resolve, defaults(study.protocol or ""))
    judges = [
        _model(judge, ("judges", number), resolve) for number, judge in enumerate(study.judges)
    ]
    if len(set(judges)) < len(judges):
        raise DesignError("a judge is listed twice", path=("judges",))
    _refuse_judge_knob(study, base, vary, judges)
    assistant = study.assistant and _model(study.assistant, ("assistant",), resolve)
    if assistant is None and all(judge.startswith("sim:") for judge in judges):
        assistant = SIMULATED_ASSISTANT
    if "probe.context" in vary and not study.probe:
        raise DesignError(
            "probe.context varies, but probe is false", path=("vary", "probe.context")
        )
    swap = study.swap
    if not isinstance(swap, str):
        swap = [
            [name if name == "*" else _model(name, ("swap", n), resolve) for name in pair]
            for n, pair in enumerate(swap)
        ]
        for number, (judge, _) in enumerate(swap):
            if judge not in (*judges, "*"):
                raise DesignError(
                    unknown("judge", judge, [*judges, "*"], "swap"),
                    choices=judges,
                    path=("swap", number),
                )
    for name, pool in study.evidence.items():
        check_pool(pool, ("evidence", name))
    for number, task in enumerate(study.tasks):
        _check_task(study, task, ("tasks", number))
    if study.hypotheses is not None and study.protocol is None:
        raise DesignError(
            "hypotheses names those of a protocol, such as protocol: contested-concepts; declare "
            "what you expect of a knob or a judge under contrasts",
            path=("hypotheses",),
        )
    levels = {JUDGE: judges, **_levels_run(study, base, vary)}
    checked = {
        "design": base,
        "vary": vary,
        "judges": judges,
        "assistant": assistant,
        "swap": swap,
        "contrasts": check_contrasts(study.contrasts, levels, resolve, probe=study.probe),
    }
    return study.model_copy(update=checked)


def _levels_run(
    study: Study, base: Mapping[str, Any], vary: Mapping[str, list[Any]]
) -> dict[str, list[Any]]:
    """Returns the levels of each varied knob that the sweep runs; an ablation adds the base's."""
    if study.sweep != "ablate":
        return dict(vary)
    usual = {**defaults(study.protocol or ""), **base}
    return {knob: list(dict.fromkeys([usual[knob], *levels])) for knob, levels in vary.items()}


def _refuse_judge_knob(
    study: Study, base: dict[str, Any], vary: Mapping[str, Any], judges: Sequence[str]
) -> None:
    """Refuses `judge.model` in a design, unless it repeats the only judge of the study."""
    named = base.pop("judge.model", None)
    if "judge.model" in vary or (named is not None and [named] != judges):
        section, entries = (
            ("vary", study.vary) if "judge.model" in vary else ("design", study.design)
        )
        name = next((name for name in ("modelId", "judge.model", "judge") if name in entries), "")
        raise DesignError(
            "judge.model is set by `judges`; list the models there", path=(section, name)
        )


def _check_task(study: Study, task: TaskSpec, path: Path) -> None:
    if task.evidence not in study.evidence:
        raise DesignError(
            unknown("evidence", task.evidence, study.evidence, f"the concept {task.concept!r}"),
            choices=study.evidence,
            path=(*path, "evidence"),
        )
    pool = study.evidence[task.evidence]
    has_answers = pool.benchmark is not None or pool.judgebench is not None
    if has_answers and task.type not in ("benchmark", None):
        raise DesignError(
            f"evidence {task.evidence!r} is a benchmark; its task must have the type benchmark",
            path=path,
        )
    if study.protocol is not None:
        _check_typed(study.protocol, task, pool, path)
    if has_answers and task.rubric is not None:
        raise DesignError(
            f"evidence {task.evidence!r} has its own rubric; leave rubric out",
            path=(*path, "rubric"),
        )
    if not has_answers and not task.concept:
        raise DesignError(f"{'.'.join(map(str, path))}.concept is not given", path=path)
    if task.type == "benchmark" and task.rubric is None and not has_answers:
        raise DesignError(
            f"the benchmark {task.concept!r} needs its rubric: rubric: FILE.json", path=path
        )
    if task.truth is not None:
        check_truth(task.truth, (*path, "truth"), task.type)


def _check_typed(protocol: str, task: TaskSpec, pool: PoolSpec, path: Path) -> None:
    """Refuses a task without a type, or without a country, which a protocol needs."""
    choices = get_args(TaskType)
    if task.type is None:
        raise DesignError(
            f"the protocol {protocol} needs the type of each task; choose {', '.join(choices)}",
            choices=choices,
            path=path,
        )
    placed = pool.pool is not None or (pool.window is not None and pool.window.country)
    if task.type != "benchmark" and not placed:
        raise DesignError(
            f"a task of type {task.type} needs a window at evidence {task.evidence!r}, "
            "such as window: {country: NAME}",
            path=("evidence", task.evidence),
        )


def read_knobs(
    entries: Mapping[str, Any], path: Path = (), resolve: Resolve = str
) -> dict[str, Any]:
    """Returns the entries of a design as knobs; an error names the line of its entry."""
    knobs: dict[str, Any] = {}
    for name, value in entries.items():
        with errors_at((*path, name)):
            for knob, level in expand(name, value).items():
                if knob in knobs:
                    raise DesignError(f"{knob} is given twice, once by another name")
                knobs[knob] = _level(knob, level, resolve)
    return knobs


def _levels(
    vary: Mapping[str, Sequence[Any]],
    base: dict[str, Any],
    resolve: Resolve,
    usual: Mapping[str, Any],
) -> dict[str, list[Any]]:
    """Returns the varied levels by knob; other knobs that a blueprint name sets join the base.

    `usual` are the defaults of knobs that the base does not name.
    """
    levels: dict[str, list[Any]] = {}
    for name, values in vary.items():
        points = _points(name, values, resolve)
        knobs = sorted({knob for point in points for knob in point})
        moving = [knob for knob in knobs if len({repr(point.get(knob)) for point in points}) > 1]
        moving = moving or [knob for knob in knobs if {**usual, **base}[knob] != points[0][knob]]
        for knob in knobs:
            if knob not in moving and base.setdefault(knob, points[0][knob]) != points[0][knob]:
                raise DesignError(f"vary: {name} also sets {knob}", path=("vary", name))
        if len(moving) != 1 or moving[0] in levels:
            problem = "changes nothing; list two levels, or one that differs from the base's"
            if moving:
                problem = f"changes {' and '.join(moving)}; vary each knob once, by its own name"
            raise DesignError(f"vary: {name} {problem}", path=("vary", name))
        levels[moving[0]] = list(dict.fromkeys(point[moving[0]] for point in points))
    return levels


def _points(name: str, values: Sequence[Any], resolve: Resolve) -> list[dict[str, Any]]:
    """Returns the knobs that each listed level of one entry of `vary` sets."""
    with errors_at(("vary", name)):
        if name not in aliases():
            find_knob(name)
    points = []
    for number, value in enumerate(values):
        with errors_at(("vary", name, number)):
            points.append({k: _level(k, v, resolve) for k, v in expand(name, value).items()})
    if not points:
        raise DesignError(f"vary: {name} lists no level", path=("vary", name))
    return points


MODEL_KNOBS = ("judge.model", "evidence.editor", "rubric.critic", "rubric.author")


def _level(knob: str, level: Any, resolve: Resolve) -> Any:
    design = Design.of({"judge.model": "any", knob: level})
    if knob == "evidence.fields":  # names in any order, also as a list
        return design.evidence.fields
    if knob in MODEL_KNOBS and level not in ("own", "provided", None):
        return resolve(level)
    return level


def _model(name: str, path: Path, resolve: Resolve) -> str:
    with errors_at(path):
        return resolve(name)


def _refusal(invalid: ValidationError) -> DesignError:
    """Returns pydantic's first error in our form: what, value, choices."""
    error = invalid.errors()[0]
    path = tuple(
        part
        for part in error["loc"]
        if not (isinstance(part, str) and ("[" in part or part in ("SampleSweep", "str")))
    )
    name = ".".join(map(str, path))
    match error["type"]:
        case "extra_forbidden":
            choices = sorted(_fields_at(path[:-1]))
            return DesignError(
                unknown("key", path[-1], choices, ".".join(map(str, path[:-1]))),
                choices=choices,
                path=path,
            )
        case "missing":
            return DesignError(f"{name} is not given", path=path[:-1] or path)
        case "literal_error":
            choices = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
            choices_of = {
                "sweep": ["{sample: K}"],
                "swap": ["[[JUDGE, AUTHOR], ...]"],
                "alt_test": ["{epsilon: 0 to 1}"],
            }
            choices += choices_of.get(name, [])
            return DesignError(
                unknown("value", error["input"], choices, name), choices=choices, path=path
            )
        case _:
            return DesignError(
                f"{name} cannot be {error['input']!r}: {error['msg'].lower()}", path=path
            )


def _fields_at(path: Path) -> set[str]:
    """Returns the keys that a study file may have at a place."""
    models: dict[Any, type[BaseModel]] = {
        "tasks": TaskSpec,
        "evidence": PoolSpec,
        "window": WindowSpec,
        "truth": TruthSpec,
        "budget": BudgetSpec,
        "sweep": SampleSweep,
        "contrasts": ContrastSpec,
        "alt_test": AltTestSpec,
    }
    named = [models[part] for part in path if part in models]
    model = named[-1] if named else Study
    return PoolSpec.keys() if model is PoolSpec else set(model.model_fields)
