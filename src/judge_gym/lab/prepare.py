"""Prepares a study file or stored experiments: reads evidence and rubrics, and sets targets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge_gym.axes import RECORDED, expand
from judge_gym.errors import ConflictError, DesignError, Remedy
from judge_gym.lab.collection import redact_address
from judge_gym.lab.study_errors import missing_files_at
from judge_gym.lab.study_evidence import read_benchmark, read_pool, with_draft_ids, with_truth
from judge_gym.lab.study_files import StudySource
from judge_gym.lab.study_labels import PoolLabel, other_rubric_warning, pool_labels
from judge_gym.lab.study_notes import (
    model_warnings,
    same_family,
    simulated_judges,
    unreadable_to_simulated,
)
from judge_gym.lab.study_prompts import prompt_warnings, with_prompts
from judge_gym.models import Registry
from judge_gym.records import Benchmark, Pool, Rubric, provided_rubric
from judge_gym.sources import load_rubric
from judge_gym.store import Store, Targets
from judge_gym.studies import (
    BudgetSpec,
    Experiment,
    Study,
    Sweep,
    TaskSpec,
    errors_at,
    experiments,
)

DEFAULT_TARGETS = Targets(samples=5, rivals=(), probe=True, tolerance=0.05)
"""The targets of an experiment that belongs to no study."""


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


def prepare_study(file: StudySource, models: Registry, store: Store) -> PreparedStudy:
    """Builds the experiments of a study from its evidence, tasks and prompts."""
    study, folder = file.study, file.folder
    warnings: list[str] = []
    benchmarks = _read_benchmarks(study, folder, models)
    pools = {
        name: with_draft_ids(Pool(benchmarks[name].items))
        if name in benchmarks
        else read_pool(name, study, folder, store, warnings)
        for name in study.evidence
    }
    study, rubrics = _with_tasks(study, pools, folder, warnings)
    study, prompts = with_prompts(study, folder)
    overridden = [knob for name, value in file.overrides.items() for knob in expand(name, value)]
    sweep = experiments(
        study,
        pools=pools,
        rubrics=rubrics,
        benchmarks=benchmarks,
        templates=prompts,
        shown=overridden,
    )
    warnings += prompt_warnings(study, sweep)
    warnings += same_family(study, sweep, models)
    warnings += unreadable_to_simulated(study, pools, models)
    labels = pool_labels(study, sweep)
    if labels:
        raters = ", ".join(dict.fromkeys(label.rater for label in labels))
        warnings.append(f"{len(labels):,} labels of people: {raters}")
    labelled = {label["evidence"] for label in store.labels.all()}
    warnings += other_rubric_warning(labels, labelled, sweep.experiments)
    prepared = prepare_sweep(study, _without_secrets(file), sweep, models, warnings)
    return replace(prepared, labels=labels)


def _read_benchmarks(study: Study, folder: Path, models: Registry) -> dict[str, Benchmark]:
    benchmarks = {}
    for name, spec in study.evidence.items():
        if spec.is_benchmark:
            with missing_files_at(study, ("evidence", name, str(spec.origin))):
                benchmarks[name] = read_benchmark(spec, folder, models)
    return benchmarks


def _with_tasks(
    study: Study, pools: Mapping[str, Pool], folder: Path, warnings: list[str]
) -> tuple[Study, dict[str, Rubric]]:
    """Reads the rubrics and known answers that tasks name. Rubrics are returned by name."""
    rubrics: dict[str, Rubric] = {}
    tasks: list[TaskSpec] = []
    for number, task in enumerate(study.tasks):
        if isinstance(task.rubric, str):
            with missing_files_at(study, ("tasks", number, "rubric")):
                rubrics[task.rubric] = load_rubric(folder / task.rubric, task.concept, "")
        elif task.rubric is not None:
            name = f"the rubric of task {number + 1}"
            with study.locate_errors(), errors_at(("tasks", number, "rubric")):
                rubrics[name] = provided_rubric(task.rubric, task.concept, "")
            task = task.model_copy(update={"rubric": name})
        with study.locate_errors(), errors_at(("tasks", number, "truth")):
            tasks.append(with_truth(task, pools[task.evidence], folder))
        truth = tasks[-1].truth
        if truth is not None and task.truth is not None and task.truth.vdem is not None:
            warnings.append(f"{task.concept}: {truth.source} is {truth.value} ({truth.direction})")
    return study.model_copy(update={"tasks": tasks}), rubrics


def _without_secrets(file: StudySource) -> str:
    """The text of a study as it is stored, where addresses must not show keys or passwords."""
    text = file.text
    for address in (url for spec in file.study.evidence.values() for url in spec.addresses):
        if address not in text and redact_address(address) != address:
            text = "# not kept: an address in it may hold a secret\n"
        text = text.replace(address, redact_address(address))
    return text


def prepare_sweep(
    study: Study, text: str, sweep: Sweep, models: Registry, warnings: Iterable[str] = ()
) -> PreparedStudy:
    """Prepares a study whose experiments are given: sets targets and notes on its judges."""
    designs = {experiment.tag: experiment.design for experiment in sweep.experiments}
    targets = {
        tag: Targets(study.samples, study.rivals(design), study.probe, study.tolerance)
        for tag, design in designs.items()
    }
    notes = (
        *warnings,
        *simulated_judges(study.judges, models),
        *model_warnings(designs.values(), models),
    )
    return PreparedStudy(
        study.study, sweep, targets, study.budget, text, notes, declared=study.declared
    )


def prepare_rows(
    rows: Sequence[Mapping[str, Any]], store: Store, models: Registry
) -> PreparedStudy:
    """Prepares the stored experiments of one study, given as rows of `store.experiments`.

    Each experiment is prepared once, even if it has several tags.
    """
    by_digest: dict[str, Experiment] = {}
    askable = [row for row in rows if RECORDED not in row["design"]]
    if not askable:
        refuse_recorded(rows[0]["study"] or rows[0]["tag"], rows[0]["design"])
    for row in askable:
        experiment, _ = store.experiments.find(row["tag"])
        refuse_draft(experiment)
        if experiment.task.rubric is None and experiment.design.rubric.author == "provided":
            raise ConflictError(f"{experiment.tag} has no rubric yet; load its file first")
        by_digest.setdefault(experiment.digest, experiment)
    experiments = by_digest.values()
    study = str(rows[0]["study"])
    targets = {each.tag: store.runs.targets(each, study) or DEFAULT_TARGETS for each in experiments}
    designs = [experiment.design for experiment in experiments]
    judges = dict.fromkeys(design.judge.model for design in designs)
    notes = (*simulated_judges(judges, models), *model_warnings(designs, models))
    budget = BudgetSpec.model_validate(store.studies.budget(study))
    return PreparedStudy(study, Sweep(tuple(experiments)), targets, budget, None, notes)


def refuse_recorded(name: str, design: Mapping[str, Any]) -> None:
    """Refuses to ask a judge of recorded verdicts, some of whose settings are unknown."""
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
        raise ConflictError(
            f"{experiment.tag} is a draft without evidence; load the benchmark's items into its "
            "window first (load_benchmark_evidence)"
        )
    raise ConflictError(
        f"{experiment.tag} is a draft without evidence; run its evidence step first",
        remedy=Remedy("runs.start_evidence", {"tag": experiment.tag}),
    )


def targets_of(
    prepared: PreparedStudy,
    models: Registry,
    *,
    samples: int | None = None,
    rivals: Sequence[str] = (),
) -> tuple[dict[str, Targets], list[str]]:
    """Collects the targets of every experiment with what a command adds, and notes."""
    rival_ids = [models.resolve(rival) for rival in rivals]
    raised, notes = {}, []
    for experiment in prepared.sweep.experiments:
        targets, design = prepared.targets[experiment.tag], experiment.design
        other_judges = [rival for rival in rival_ids if rival != design.judge.model]
        if other_judges and design.rubric.author != "own":
            other_judges = []
            notes.append(f"no swap for {experiment.tag}: its judge writes no rubric of its own")
        raised[experiment.tag] = targets._replace(
            samples=samples or targets.samples,
            rivals=tuple(dict.fromkeys([*targets.rivals, *other_judges])),
        )
    if rival_ids and not any(set(each.rivals) & set(rival_ids) for each in raised.values()):
        raise DesignError(
            f"{' and '.join(rival_ids)} cannot be a rival here: a judge is no rival of itself, and "
            "a swap needs a judge that writes its own rubric"
        )
    return raised, notes
