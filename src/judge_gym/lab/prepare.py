"""Prepares a study file or stored experiments: reads evidence and rubrics, and sets targets."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from judge_gym.axes import (
    NONE,
    RECORDED,
    TEMPLATE,
    Design,
    expand,
    template_file,
    template_level,
)
from judge_gym.errors import (
    ConflictError,
    DesignError,
    MissingFileError,
    NotFoundError,
    unknown,
)
from judge_gym.lab.collection import collected_window, redacted, window_of
from judge_gym.models import Registry
from judge_gym.records import (
    Benchmark,
    Evidence,
    Pool,
    Rubric,
    Window,
    provided_rubric,
    storable,
)
from judge_gym.sources import (
    judgebench,
    load_benchmark,
    load_files,
    load_items,
    load_rubric,
    read_text,
    vdem_truth,
)
from judge_gym.store import Store, Targets
from judge_gym.studies import (
    BudgetSpec,
    Experiment,
    PoolSpec,
    Study,
    Sweep,
    TaskSpec,
    TruthSpec,
    errors_at,
    experiments,
    read_knobs,
    read_study,
    study_tags,
)

FIRST_ITEMS = 100
"""Items of a pool of which it is checked whether simulated judges can read them."""
MAX_NOTES = 5
"""Notes on single items of a pool that are passed on."""
DEFAULT_TARGETS = Targets(samples=5, rivals=(), probe=True, tolerance=0.05)
"""The targets of an experiment that belongs to no study."""


class PoolLabel(NamedTuple):
    """The stage that a person gave to an item of a pool."""

    text_hash: str
    concept: str
    rater: str
    stage: str


@dataclass(frozen=True, slots=True)
class PreparedStudy:
    """A study or experiments, ready to be planned or run."""

    study: str
    sweep: Sweep
    targets: Mapping[str, Targets]
    budget: BudgetSpec
    file: str | None
    """The text of the study file; None if experiments were named by tag."""
    warnings: tuple[str, ...]
    labels: tuple[PoolLabel, ...] = ()
    """The stages that people gave, from columns of the study's files."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """What the study declares about its analysis: contrasts, hypotheses and margin."""


def prepare_file(
    path: Path, models: Registry, store: Store, overrides: Mapping[str, Any]
) -> PreparedStudy:
    """Prepares a study file; stores nothing."""
    study = read_file(path, models, overrides)
    text = path.read_text(encoding="utf-8")
    return prepare_study(study, text, path.parent, models, store, overrides)


def prepare_study(
    study: Study,
    text: str,
    folder: Path,
    models: Registry,
    store: Store,
    overrides: Mapping[str, Any],
) -> PreparedStudy:
    """Prepares a study: reads its evidence and rubrics, with paths relative to the folder."""
    warnings: list[str] = []
    for address in (url for spec in study.evidence.values() for url in spec.addresses):
        if address not in text and redacted(address) != address:
            text = "# not kept: an address in it may hold a secret\n"
        text = text.replace(address, redacted(address))  # the text is stored, without secrets
    benchmarks = {}
    for name, spec in study.evidence.items():
        if spec.is_benchmark:
            with _missing_files_at(study, ("evidence", name, str(spec.origin))):
                benchmarks[name] = _benchmark(spec, folder, models)
    pools = {
        name: _numbered(Pool(benchmarks[name].items))
        if name in benchmarks
        else _pool(name, study, folder, store, warnings)
        for name, spec in study.evidence.items()
    }
    rubrics: dict[str, Rubric] = {}
    tasks = []
    for number, task in enumerate(study.tasks):
        if isinstance(task.rubric, str):
            with _missing_files_at(study, ("tasks", number, "rubric")):
                rubrics[task.rubric] = load_rubric(folder / task.rubric, task.concept, "")
        elif task.rubric is not None:
            name = f"the rubric of task {number + 1}"
            with study.locate_errors(), errors_at(("tasks", number, "rubric")):
                rubrics[name] = provided_rubric(task.rubric, task.concept, "")
            task = task.model_copy(update={"rubric": name})
        with study.locate_errors(), errors_at(("tasks", number, "truth")):
            tasks.append(_with_truth(task, pools[task.evidence], folder))
        truth = tasks[-1].truth
        if truth is not None and task.truth is not None and task.truth.vdem is not None:
            warnings.append(f"{task.concept}: {truth.source} is {truth.value} ({truth.direction})")
    study = study.model_copy(update={"tasks": tasks})
    study, templates = _with_templates(study, folder)
    shown = [knob for name, value in overrides.items() for knob in expand(name, value)]
    sweep = experiments(
        study,
        pools=pools,
        rubrics=rubrics,
        benchmarks=benchmarks,
        templates=templates,
        shown=shown,
    )
    warnings += _template_doubts(study, sweep)
    warnings += _same_family(study, sweep, models)
    warnings += _unknown_to_simulated(study, pools, models)
    labels = _pool_labels(study, sweep)
    if labels:
        raters = ", ".join(dict.fromkeys(label.rater for label in labels))
        warnings.append(f"{len(labels):,} labels of people: {raters}")
    prepared = prepare_sweep(study, text, sweep, models, warnings)
    return replace(prepared, labels=labels)


def _with_templates(study: Study, folder: Path) -> tuple[Study, dict[str, str]]:
    """Returns the study with the level of each prompt of its own, and their texts by level.

    A level names the digest of the text, so that it says what was asked after the file has changed.
    """
    named = [*study.vary.get(TEMPLATE, []), study.design.get(TEMPLATE, NONE)]
    if {*named} == {NONE}:
        return study, {}
    from judge_gym.stages.templates import read_template

    section = "vary" if TEMPLATE in study.vary else "design"
    levels: dict[str, str] = {NONE: NONE}
    texts: dict[str, str] = {}
    for file in named:
        if file in levels:
            continue
        with _missing_files_at(study, (section, TEMPLATE)):
            text = storable(read_text(folder / file))
        with study.locate_errors(), errors_at((section, TEMPLATE)):
            read_template(text, file)
        levels[file] = template_level(Path(file).name, text)
        texts[levels[file]] = text
    design = {name: levels[v] if name == TEMPLATE else v for name, v in study.design.items()}
    vary = {
        name: [levels[v] for v in values] if name == TEMPLATE else values
        for name, values in study.vary.items()
    }
    contrasts = [
        contrast.model_copy(
            update={"level": levels[str(contrast.level)], "base": levels[str(contrast.base)]}
        )
        if contrast.knob == TEMPLATE
        else contrast
        for contrast in study.contrasts
    ]
    update = {"design": design, "vary": vary, "contrasts": contrasts}
    return study.model_copy(update=update), texts


def _template_doubts(study: Study, sweep: Sweep) -> list[str]:
    """Returns what own prompts of the study lack; refuses those that cannot be filled."""
    from judge_gym.stages.templates import read_template

    doubts: dict[str, None] = {}
    for experiment in (one for one in sweep.experiments if one.template):
        task, design = experiment.task, experiment.design
        level = design.prompt.template
        template = read_template(experiment.template, template_file(level))
        section = "vary" if TEMPLATE in study.vary else "design"
        with study.locate_errors(), errors_at((section, TEMPLATE)):
            template.check(task.pool, task.rubric, neutralized=design.evidence.view != "raw")
        for doubt in template.doubts(task.pool, task.rubric):
            doubts[f"{template.name} {doubt}"] = None
    return [*doubts]


def _pool_labels(study: Study, sweep: Sweep) -> tuple[PoolLabel, ...]:
    """Returns the labels in columns of pools; refuses unknown columns and stages."""
    labels: dict[PoolLabel, None] = {}
    for name, spec in study.evidence.items():
        judged = [one for one in sweep.experiments if one.task.pool_name == name]
        if not spec.labels or not judged:
            continue
        with study.locate_errors(), errors_at(("evidence", name, "labels")):
            concepts = {one.task.concept for one in judged}
            if len(concepts) > 1:
                raise DesignError(
                    f"the labels of evidence {name!r} are about one concept, and it is judged for "
                    f"{' and '.join(sorted(concepts))}; name a pool for each"
                )
            stages = stage_names(judged)
            items = judged[0].task.pool.items
            known = dict.fromkeys(column for item in items for column in item.metadata)
            for rater in spec.labels:
                if rater not in known:
                    raise DesignError(unknown("column", rater, known, name), choices=known)
            for item, rater in itertools.product(items, spec.labels):
                given = item.metadata.get(rater)
                stage = "" if given is None else str(given).strip()
                if stage and stage not in stages:
                    raise DesignError(
                        f"{rater} gives {item.title!r} the stage {stage!r}; choose "
                        f"{', '.join(stages)}",
                        choices=stages,
                    )
                if stage:
                    labels[PoolLabel(item.hash, judged[0].task.concept, rater, stage)] = None
    return tuple(labels)


def stage_names(experiments: Iterable[Experiment]) -> list[str]:
    """Returns what a label may call a stage: its number and, under a given rubric, its name."""
    names: dict[str, None] = {}
    for experiment in experiments:
        rubric = experiment.task.rubric
        scale = rubric.scale if rubric else experiment.design.rubric.scale
        names |= dict.fromkeys(str(number) for number in range(1, scale + 1))
        names |= dict.fromkeys(stage.label for stage in rubric.stages) if rubric else {}
    return [*names]


def prepare_sweep(
    study: Study, text: str, sweep: Sweep, models: Registry, warnings: Iterable[str] = ()
) -> PreparedStudy:
    """Prepares a study whose experiments are given: sets targets and notes on its judges."""
    designs = {experiment.tag: experiment.design for experiment in sweep.experiments}
    targets = {
        tag: Targets(study.samples, study.rivals(design), study.probe, study.tolerance)
        for tag, design in designs.items()
    }
    notes = (*warnings, *_simulated(study.judges, models), *_hosted(designs.values(), models))
    return PreparedStudy(
        study.study, sweep, targets, study.budget, text, notes, declared=study.declared
    )


def read_file(path: Path, models: Registry, overrides: Mapping[str, Any] | None = None) -> Study:
    """Returns the study of a file, after a check."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"the study file {path} cannot be read: {error}") from error
    return read_study(text, str(path), resolve=models.resolve, overrides=overrides or {})


@contextmanager
def _missing_files_at(study: Study, path: tuple[str | int, ...]) -> Iterator[None]:
    """Names the study's file, line and key where the file that the key names is missing."""
    try:
        yield
    except MissingFileError as error:
        with study.locate_errors():
            message = f"{'.'.join(map(str, path))}: {error.message}"
            raise DesignError(message, path=path) from error


def rows_of_file(path: Path, models: Registry, store: Store) -> list[dict[str, Any]]:
    """Returns the stored experiments that a study file names; its evidence may be gone.

    What its tasks on a benchmark vary is written in the benchmark's folder: without the folder,
    all that the study has of its judges on this benchmark are returned.
    """
    study = read_file(path, models)
    benchmarks, unread = {}, set()
    for name, spec in study.evidence.items():
        if spec.is_benchmark:
            try:
                benchmarks[name] = _benchmark(spec, path.parent, models)
            except DesignError:
                unread.add(name)
    lost = False
    try:
        study, _ = _with_templates(study, path.parent)
    except DesignError:
        lost = True  # the tags of a prompt of its own name its text
    named = study_tags(study, benchmarks)
    return [
        row
        for row in store.experiments.rows(study=study.study)
        if row["tag"] in named
        or (row["pool_name"] in unread and row["design"]["judge.model"] in study.judges)
        or (lost and row["design"][TEMPLATE] != NONE)
    ]


def prepare_tags(target: str, store: Store, models: Registry) -> PreparedStudy:
    """Prepares stored experiments, by study or by tag; each once even if it has several tags."""
    rows = store.experiments.rows(study=target) or store.experiments.rows(tags=[target])
    return prepare_rows(rows, store, models)


def prepare_rows(
    rows: Sequence[Mapping[str, Any]], store: Store, models: Registry
) -> PreparedStudy:
    """Prepares the stored experiments of one study, given as rows of `store.experiments`."""
    named: dict[str, Experiment] = {}
    asked = [row for row in rows if RECORDED not in row["design"]]
    if not asked:
        refuse_recorded(rows[0]["study"] or rows[0]["tag"], rows[0]["design"])
    for row in asked:
        experiment, _ = store.experiments.find(row["tag"])
        refuse_draft(experiment)
        if experiment.task.rubric is None and experiment.design.rubric.author == "provided":
            raise ConflictError(f"{experiment.tag} has no rubric yet; load its file first")
        named.setdefault(experiment.digest, experiment)
    found = named.values()
    study = str(rows[0]["study"])
    targets = {each.tag: store.runs.targets(each, study) or DEFAULT_TARGETS for each in found}
    designs = [experiment.design for experiment in found]
    judges = dict.fromkeys(design.judge.model for design in designs)
    notes = (*_simulated(judges, models), *_hosted(designs, models))
    budget = BudgetSpec.model_validate(store.studies.budget(study))
    return PreparedStudy(study, Sweep(tuple(found)), targets, budget, None, notes)


def refuse_recorded(name: str, design: Mapping[str, Any]) -> None:
    """Refuses to ask a judge whose verdicts others recorded; its settings are not all known."""
    if RECORDED in design:
        raise ConflictError(
            f"{name} was recorded {design[RECORDED]}: its judges cannot be asked here; name other "
            "judges in a study file on its pool, such as the one that 'judge-gym import' writes"
        )


def refuse_draft(experiment: Experiment) -> None:
    """Refuses an experiment without evidence, and says where its evidence comes from."""
    if not experiment.draft:
        return
    if experiment.task.type == "benchmark":
        how = "load the benchmark's items into its window first (load_benchmark_evidence)"
    else:
        how = f"run its evidence step first with 'judge-gym evidence make {experiment.tag}'"
    raise ConflictError(f"{experiment.tag} is a draft without evidence; {how}")


def targets_of(
    prepared: PreparedStudy,
    models: Registry,
    *,
    samples: int | None = None,
    rivals: Sequence[str] = (),
) -> tuple[dict[str, Targets], list[str]]:
    """Returns the targets of every experiment with what a command adds, and notes."""
    named = [models.resolve(rival) for rival in rivals]
    raised, notes = {}, []
    for experiment in prepared.sweep.experiments:
        targets, design = prepared.targets[experiment.tag], experiment.design
        others = [rival for rival in named if rival != design.judge.model]
        if others and design.rubric.author != "own":
            others = []
            notes.append(f"no swap for {experiment.tag}: its judge writes no rubric of its own")
        raised[experiment.tag] = targets._replace(
            samples=samples or targets.samples,
            rivals=tuple(dict.fromkeys([*targets.rivals, *others])),
        )
    if named and not any(set(asked.rivals) & set(named) for asked in raised.values()):
        raise DesignError(
            f"{' and '.join(named)} cannot be a rival here: a judge is no rival of itself, and "
            "a swap needs a judge that writes its own rubric"
        )
    return raised, notes


def _benchmark(spec: PoolSpec, folder: Path, models: Registry) -> Benchmark:
    """Returns a benchmark whose knobs name models by their full id."""
    if spec.judgebench is not None:
        return judgebench(folder / spec.judgebench)
    found = load_benchmark(folder / str(spec.benchmark))
    return replace(found, design=read_knobs(found.design, resolve=models.resolve))


def _pool(name: str, study: Study, folder: Path, store: Store, warnings: list[str]) -> Pool:
    """Returns the evidence of a study's pool, from its files or from the lab."""
    spec = study.evidence[name]
    if spec.pool is not None:
        return store.evidence.find_named_pool(spec.pool)
    window = window_of(spec)
    if spec.files is not None or spec.items is not None:
        if spec.files is not None:
            cache = _cache(store)
            with _missing_files_at(study, ("evidence", name, "files")):
                found = load_files(spec.files, folder, window, columns=spec.labels, cache=cache)
        else:
            with study.locate_errors(), errors_at(("evidence", name, "items")):
                found = load_items(spec.items or (), window, columns=spec.labels)
        left_out = [f"{count} {reason}" for reason, count in found.dropped.items()]
        if not found.items:
            raise DesignError(f"evidence {name!r}: no item is left: {', '.join(left_out)}")
        if left_out:
            warnings.append(f"evidence {name!r}: left out {', '.join(left_out)}")
        found = replace(found, items=_without_dropped(found.items, window, store, name, warnings))
        shown = found.notes[:MAX_NOTES]
        warnings += [f"evidence {name!r}: {note}" for note in shown]
        if len(found.notes) > MAX_NOTES:
            warnings.append(
                f"evidence {name!r}: {len(found.notes) - MAX_NOTES} more of these notes"
            )
        return _numbered(Pool(found.items, window))
    assert window is not None, "checked with the study"
    searched = spec.searched
    id = collected_window(store, window) if searched else store.evidence.window_id(window)
    items = store.evidence.window_items(id) if id else ()
    if not items:
        what = "was found" if id else "has been collected yet"
        how = f"{study.file} --again" if id else study.file
        if not searched:
            how = f"FILES --country {window.country!r} --start ... --end ..."
        raise ConflictError(
            f"evidence {name!r}: nothing {what} for {_words(window)}; collect it with: "
            f"judge-gym evidence add {how}"
        )
    return Pool(items, window)


def _cache(store: Store) -> Path | None:
    """Returns the folder of filtered evidence, beside a database in a file."""
    file = store.database.file
    return file.with_suffix(".evidence") if file and file.name else None


def _without_dropped(
    items: tuple[Evidence, ...],
    window: Window | None,
    store: Store,
    name: str,
    warnings: list[str],
) -> tuple[Evidence, ...]:
    """Returns items of files without those that a user dropped from their window."""
    id = store.evidence.window_id(window) if window else None
    if id is None:
        return items
    held = {item.hash for item in store.evidence.window_items(id)}
    dropped = {item.hash for item in store.evidence.window_items(id, dropped=True)} - held
    kept = tuple(item for item in items if item.hash not in dropped)
    if len(kept) < len(items):
        count = len(items) - len(kept)
        warnings.append(f"evidence {name!r}: {count} were dropped from window {id}")
    return kept


def _words(window: Window) -> str:
    dates = f" from {window.start}" * bool(window.start) + f" to {window.end}" * bool(window.end)
    return f"{window.country}{dates}" + f" ({window.search})" * bool(window.search)


def _numbered(pool: Pool) -> Pool:
    """Returns a pool with negative ids, so that a plan can tell unsaved items apart."""
    numbered = enumerate(pool.items, 1)
    return replace(pool, items=tuple(replace(item, id=-number) for number, item in numbered))


def _with_truth(task: TaskSpec, pool: Pool, folder: Path) -> TaskSpec:
    """Returns the task with its reference value from V-Dem's table, if it names one."""
    if task.truth is None or task.truth.vdem is None:
        return task
    window, truth = pool.window, task.truth
    country = truth.country or (window.country if window else "")
    year = truth.year or (window.start.year if window and window.start else None)
    if year is None:
        raise DesignError(f"the truth of {task.concept!r} needs a year: truth: {{year: 2024}}")
    found = vdem_truth(folder / str(truth.vdem), country, year, truth.index, truth.direction)
    return task.model_copy(update={"truth": TruthSpec(**found)})


def _unknown_to_simulated(
    study: Study, pools: Mapping[str, Pool], models: Registry
) -> Iterator[str]:
    """Yields a warning on pools whose texts simulated judges cannot read."""
    if not any(models.card(judge).simulated for judge in study.judges):
        return
    from judge_gym.models.simulated.lexicon import strains

    for name, pool in pools.items():
        texts = [item.text for item in pool.items[:FIRST_ITEMS] if not pool.paired]
        unread = sum(not strains(text) for text in texts)
        if unread > len(texts) / 2:
            yield (
                f"simulated judges know few words: they can read nothing in {unread} of "
                f"{len(texts)} items of {name!r}, and will abstain on most; a real model, such "
                "as local:smollm2, reads any text"
            )


def _simulated(judges: Iterable[str], models: Registry) -> list[str]:
    """Returns a note that names the simulated judges."""
    names = [judge for judge in judges if models.card(judge).simulated]
    return [f"simulated, not real models: {', '.join(names)}"] if names else []


def _hosted(designs: Iterable[Design], models: Registry) -> list[str]:
    """Returns warnings about models without a fixed version, and knobs without an effect."""
    notes: dict[str, None] = {}
    today = datetime.now(UTC).date()
    for design in designs:
        rubric = design.rubric.resolve(design.judge.model)
        asked = (design.judge.model, design.evidence.resolve().editor, rubric.author, rubric.critic)
        cards = [models.card(model) for model in asked if model is not None]
        if coders := [card.id for card in cards if card.simulated and card.searches]:
            raise DesignError(
                f"{coders[0]} is a simulated coder: it writes code and judges nothing"
            )
        notes |= {card.unpinned: None for card in cards if card.unpinned}
        notes |= {note: None for card in cards if (note := card.retirement(today))}
        if design.judge.temperature is not None and not cards[0].takes_temperature:
            notes[f"judge.temperature is not sent to {cards[0].id}, which takes none"] = None
    return list(notes)


def _same_family(study: Study, sweep: Sweep, models: Registry) -> list[str]:
    """Returns warnings about editors and critics of a judge's family."""
    judges = {models.card(judge).family: judge for judge in study.judges}
    roles = {
        (role, model)
        for design in (experiment.design for experiment in sweep.experiments)
        for role, model in (
            ("evidence.editor", design.evidence.resolve().editor),
            ("rubric.critic", design.rubric.resolve(design.judge.model).critic),
        )
        if model is not None
    }
    families = [(role, model, models.card(model).family) for role, model in sorted(roles)]
    return [
        f"{role} {model} is of the family of the judge {judges[family]}"
        for role, model, family in families
        if family in judges
    ]
