"""Lab: the verbs that every face calls. It joins the rooms."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import yaml

from judge_gym.archive import Archive
from judge_gym.axes import Design
from judge_gym.engine import (
    FINISHED,
    WORKFLOWS,
    Engine,
    Plan,
    Reparsed,
    Result,
    StagePlan,
    Tally,
    Workflow,
    makers,
    reparse,
)
from judge_gym.errors import BudgetError, ConflictError, DesignError, unknown
from judge_gym.gathering import Gathered
from judge_gym.models.cards import Limits
from judge_gym.preparing import (
    STUDY_SUFFIXES,
    Prepared,
    prepare_study,
    read_file,
    wanted_of,
)
from judge_gym.records import Pool, TaskType
from judge_gym.sources import Watch, load_benchmark, load_rubric
from judge_gym.store import Imported, Kind, Run, Store, import_ledger
from judge_gym.studies import (
    BudgetSpec,
    Experiment,
    Task,
    read_knobs,
    read_study,
    read_truth,
    refuse_roles,
    settle,
    with_rubric,
)

WatchTallies = Callable[[Sequence[Tally]], None]


class Lab(Archive):
    """A laboratory: a library, its archive, and the verbs that put evidence before judges."""

    def __init__(self, store: Store, *, limits: Limits | None = None) -> None:
        super().__init__(store)
        self.engine = Engine(store, self.models, limits=limits)

    @classmethod
    def open(cls, url: str | None = None, *, limits: Limits | None = None) -> "Lab":
        """The lab of a database URL, of `JUDGE_GYM_DATABASE_URL`, or of the working folder.

        Args:
            url: the database.
            limits: each that is given stands in the place of what the registry states.
        """
        return cls(Store.open(url), limits=limits)

    def close(self) -> None:
        """Release the database."""
        self.store.close()

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- studies ---------------------------------------------------------------------------------

    def plan(
        self,
        target: str | Path,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        samples: int | None = None,
    ) -> tuple[Plan, Prepared]:
        """What a study would ask, what it would cost, and what is in the ledger; writes nothing."""
        prepared = self.prepare(target, overrides=overrides)
        wanted, notes = wanted_of(prepared, self.models, samples=samples)
        planner = self.engine.planner()
        for experiment in prepared.sweep.experiments:
            drawn = series or str(experiment.seed)
            asked = wanted[experiment.tag]
            active = self.store.runs.targets(experiment, drawn)  # the run that would go on
            if active is not None:
                asked = active.raised(asked, exact=samples is not None)
            planner.walk(Run(0, experiment, prepared.study, drawn, *asked))
            try:
                self.engine.refuse_uncallable(experiment.design, asked.rivals, WORKFLOWS)
            except DesignError as fault:
                notes.append(fault.message)
        noted = tuple(dict.fromkeys([*prepared.warnings, *notes]))
        return planner.plan, replace(prepared, warnings=noted)

    def run(
        self,
        target: str | Path | Prepared,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        new_run: bool = False,
        workflows: Collection[Workflow] = WORKFLOWS,
        samples: int | None = None,
        rivals: Sequence[str] = (),
        watch: WatchTallies = lambda tallies: None,
        budget: Mapping[str, Any] | None = None,
        allow_private: bool = False,
        offline: bool = False,
        pause_after: Workflow | None = None,
        only_failed: bool = False,
    ) -> Result:
        """Carry out a study or experiments; what is there already is neither paid nor made again.

        Args:
            target: a study file, a study's name or an experiment's tag, or what was prepared.
            overrides: knobs over those of the study file's base design.
            series: draw scores and probes afresh under this name; by default the study's seed.
            new_run: supersede the active runs; the ledger still answers what was asked before.
            workflows: what may be made.
            samples: replicates per cell, in the place of the study's.
            rivals: authors whose rubrics are to be used beside the study's.
            watch: called with the tallies before the work begins.
            budget: limits in the place of the study's: usd, calls, tokens, minutes, run.usd, ...
            allow_private: evidence may be fetched from the user's own network.
            offline: fetch nothing and open no model; every answer must be in the ledger.
            pause_after: stop when this workflow is done.
            only_failed: ask again for what no attempt brought an answer to, and for nothing else.
        """
        prepared, runs, notes = self._ordered(
            target,
            overrides=overrides,
            series=series,
            new_run=new_run,
            workflows=workflows,
            samples=samples,
            rivals=rivals,
            budget=budget,
            allow_private=allow_private,
            offline=offline,
        )
        execution = self.engine.execute(
            runs,
            workflows,
            budget=prepared.budget,
            watch=watch,
            offline=offline,
            pause_after=pause_after,
            only_failed=only_failed,
        )
        left = self._left(runs) if isinstance(execution.stopped, BudgetError) else None
        return execution.result(prepared.study, [*prepared.warnings, *notes], left)

    def start(
        self,
        target: str | Path | Prepared,
        *,
        overrides: Mapping[str, Any] | None = None,
        budget: Mapping[str, Any] | None = None,
        pause_after: Workflow | None = None,
    ) -> list[str]:
        """Order a study and return at once: its tags. A worker carries it out."""
        prepared, runs, _ = self._ordered(target, overrides=overrides, budget=budget)
        self.engine.begin(runs, budget=prepared.budget, pause_after=pause_after)
        return [run.experiment.tag for run in runs]

    def pause(self, target: str) -> list[str]:
        """Begin no further call of unfinished runs, wherever they go on; the tags of these."""
        return self._say(target, "paused", "paused by hand")

    def cancel(self, target: str) -> list[str]:
        """The same, for good: only `run` goes on with what was cancelled."""
        return self._say(target, "cancelled", "cancelled by hand")

    def retune(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> BudgetSpec:
        """Change the budget of a study, or limits, while its runs go on; the budget as it is now.

        Args:
            target: a study file, a study's name or an experiment's tag.
            budget: limits in the place of the study's.
            limits: rpm, tpm and concurrency, in every process that is at work on it.
        """
        study = str(self._rows([target])[0]["study"])
        changed = BudgetSpec.model_validate(self.store.runs.find_budget(study)).changed(
            budget or {}
        )
        self.store.runs.save_budget(study, changed.model_dump(exclude_none=True))
        self._say(target, "retuned", "", {"limits": dict(limits or {})})
        return changed

    def _say(
        self, target: str, kind: Kind, said: str, detail: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Something happens to the unfinished runs of a target."""
        unfinished = [
            progress
            for row in self._rows([target])
            for progress in self.store.progress.of_tag(row["tag"])
            if progress.status not in FINISHED
        ]
        self.store.events.record([one.run_id for one in unfinished], kind, said, detail)
        return [one.tag for one in unfinished]

    def _ordered(
        self,
        target: str | Path | Prepared,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        new_run: bool = False,
        workflows: Collection[Workflow] = WORKFLOWS,
        samples: int | None = None,
        rivals: Sequence[str] = (),
        budget: Mapping[str, Any] | None = None,
        allow_private: bool = False,
        offline: bool = False,
    ) -> tuple[Prepared, list[Run], list[str]]:
        """Runs with their rows and targets, refused here if they cannot be carried out."""
        if not isinstance(target, Prepared):
            missing = {} if offline else self.collect_missing(target, allow_private=allow_private)
            for gathered in missing.values():
                gathered.refuse_fault()
                if gathered.found.interrupted:
                    raise KeyboardInterrupt
            target = self.prepare(target, overrides=overrides)
        prepared = replace(target, budget=target.budget.changed(budget or {}))
        wanted, notes = wanted_of(prepared, self.models, samples=samples, rivals=rivals)
        if set(workflows) == {"swap"} and not any(asked.rivals for asked in wanted.values()):
            raise DesignError("no swap is asked for; set swap: all, or name an author with --from")
        for experiment in prepared.sweep.experiments if not offline else ():
            self.engine.refuse_uncallable(
                experiment.design, wanted[experiment.tag].rivals, workflows
            )
        limits = prepared.budget.model_dump(exclude_none=True)
        if prepared.file is not None:
            self.store.runs.save_study(prepared.study, prepared.file, limits)
        elif budget:
            self.store.runs.save_budget(prepared.study, limits)
        runs = [
            self.store.runs.save_run(
                saved,
                prepared.study,
                series or str(saved.seed),
                wanted[saved.tag],
                makers=makers(saved),
                exact=samples is not None,
                new=new_run,
            )
            for saved in self._saved(prepared)
        ]
        return prepared, runs, notes

    def _left(self, runs: Sequence[Run]) -> StagePlan:
        """What is still to be paid of runs that were begun."""
        planner = self.engine.planner()
        for run in runs:
            planner.walk(run)
        return planner.plan.total()

    def collect_missing(
        self,
        target: str | Path,
        *,
        allow_private: bool = False,
        watch: Watch = lambda done, wanted: None,
    ) -> dict[str, Gathered]:
        """Search for the evidence of a study that was never collected; once, so that it stays.

        What cannot be called is refused before a search is paid for.
        """
        path = Path(target)
        if path.suffix not in STUDY_SUFFIXES or not self.uncollected(path):
            return {}
        study = read_file(path, self.models)
        for judge in study.judges:
            design = Design.of({**study.design, "judge.model": judge})
            self.engine.refuse_uncallable(design, study.rivals(design), WORKFLOWS)
        with self.engine.lock():  # two at once would find different evidence
            return self.collect_study(path, allow_private=allow_private, watch=watch)

    def _saved(self, prepared: Prepared) -> Iterator[Experiment]:
        """Experiments with their rows; a pool that many share is written once."""
        pools: dict[int, Pool] = {}
        for made in prepared.sweep.experiments:
            pool = made.task.pool
            if id(pool) not in pools:
                pools[id(pool)] = self.store.evidence.save_pool(pool)
            task = replace(made.task, pool=pools[id(pool)])
            yield self._save(prepared.study, replace(made, task=task))

    def _save(self, study: str, experiment: Experiment) -> Experiment:
        """Give an experiment and what it stands on their rows."""
        task = experiment.task
        pool = task.pool if task.pool.id else self.store.evidence.save_pool(task.pool)
        rubric = self.store.materials.save_given_rubric(task.rubric) if task.rubric else None
        saved = replace(experiment, task=replace(task, pool=pool, rubric=rubric))
        self.store.runs.save_experiment(saved, study)
        return saved

    # --- the blueprint's main --------------------------------------------------------------------

    def create_experiment(
        self,
        experiment_tag: str,
        window_id: int,
        model_id: str,
        task_type: TaskType,
        concept: str,
        config: Mapping[str, Any],
        ground_truth: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
    ) -> str:
        """One point of the design space, on the evidence that its window holds now."""
        window = self.store.evidence.find_window(window_id)
        pool = Pool(self.store.evidence.window_items(window_id), window)
        if not pool.items:
            raise ConflictError(
                f"the window {window_id} holds no evidence for {concept!r}; load it first"
            )
        knobs = read_knobs(config, resolve=self.models.resolve)
        if task_type not in get_args(TaskType):
            raise DesignError(unknown("task type", task_type, get_args(TaskType)))
        truth = read_truth(ground_truth) if ground_truth else None
        task = Task(task_type, concept, f"window-{window_id}", pool, truth=truth)
        if task_type != "benchmark":
            with_rubric(task, None)  # pairs need one
        chosen = {**knobs, "judge.model": self.models.resolve(model_id)}
        if task_type == "benchmark":  # its rubric is loaded next
            chosen["rubric.author"] = "provided"
        design, _ = settle(task, chosen)
        if task_type != "benchmark":
            refuse_roles([design.judge.model], task, design)
        if any(row["tag"] == experiment_tag for row in self.store.queries.tags()):
            raise ConflictError(f"there is an experiment {experiment_tag!r} already")
        return self._save("", Experiment(experiment_tag, task, design, seed)).digest

    def load_benchmark_rubric(self, experiment_tag: str, rubric_path: str | Path) -> str:
        """Give a benchmark its rubric, and its known answers their stages; its new digest.

        Nobody criticises a given rubric: its quality is null.
        """
        experiment, study = self.store.runs.find_experiment(experiment_tag)
        if experiment.task.type != "benchmark":
            raise DesignError(f"{experiment_tag} is no benchmark: its judge writes the rubric")
        path = Path(rubric_path)
        rubric = load_rubric(path, experiment.task.concept, experiment.task.country)
        task = with_rubric(experiment.task, rubric)
        if (path.parent / "benchmark.toml").exists():  # it says how to ask
            task = replace(task, defaults=load_benchmark(path.parent).design)
        # The view was settled when the experiment was made: here the default means a choice.
        chosen = {"evidence.view": experiment.design.evidence.view, **experiment.design.chosen()}
        design, _ = settle(task, chosen)
        refuse_roles([design.judge.model], task, design)
        saved = self._save(study, replace(experiment, task=task, design=design))
        if experiment.task.rubric is None and saved.digest != experiment.digest:
            # The experiment without a rubric was never run; its name now means this one.
            old = f"{experiment_tag}@{experiment.digest[:8]}"
            self.store.runs.delete_experiment(old, ledger=False)
        return saved.digest

    def start_evidence_pipeline(self, experiment_tag: str) -> Result:
        """W1: make the views that an experiment's judge reads."""
        return self.run(experiment_tag, workflows=["evidence"])

    def start_rubric_generation(self, experiment_tag: str) -> Result:
        """W2: have the rubric written and criticised."""
        return self.run(experiment_tag, workflows=["rubric"])

    def start_scoring_trial(self, experiment_tag: str, samples: int | None = None) -> Result:
        """W3: score."""
        return self.run(experiment_tag, workflows=["score"], samples=samples)

    def start_swap_trial(self, experiment_tag: str, swap_rubric_from: str) -> Result:
        """W4: score under a rival's rubric, with as many samples and the same displays."""
        return self.run(experiment_tag, workflows=["swap"], rivals=[swap_rubric_from])

    def start_probing_trial(self, experiment_tag: str) -> Result:
        """W5: probe every scored sample."""
        return self.run(experiment_tag, workflows=["probe"])

    # --- benchmarks ------------------------------------------------------------------------------

    def prepare_benchmark(
        self, path: Path, judges: Sequence[str], *, overrides: Mapping[str, Any] | None = None
    ) -> Prepared:
        """A study of judges on a benchmark: a folder, or JudgeBench's pairs as published."""
        kind = "benchmark" if path.is_dir() else "judgebench"
        name = re.sub(r"[^\w.-]+", "-", path.resolve().stem)
        study: dict[str, Any] = {
            "study": f"{kind}-{name}",
            "samples": 1,
            "evidence": {name: {kind: str(path.resolve())}},
            "tasks": [{"type": "benchmark", "evidence": name}],
            "judges": list(judges),
            "probe": False,
        }
        text = yaml.safe_dump(study, sort_keys=False)
        given = overrides or {}
        checked = read_study(text, "", resolve=self.models.resolve, overrides=given)
        return prepare_study(checked, text, Path(), self.models, self.store, given)

    # --- replay ----------------------------------------------------------------------------------

    def import_ledger(self, path: str | Path) -> Imported:
        """Add another lab's calls to the ledger, all of a file or nothing; no answer gives way."""
        with self.engine.lock():
            return import_ledger(self.store.database, Path(path))

    def reparse(self, target: str, *, write: bool = False) -> Reparsed:
        """Read the stored answers of experiments with today's parsers; what changes.

        Args:
            target: a study file, a study's name or an experiment's tag.
            write: change the records; without it they are only looked at.
        """
        tags = [row["tag"] for row in self._rows([target])]
        with self.engine.lock() if write else nullcontext():
            return reparse(self.store, tags, write=write)

    # --- housekeeping ----------------------------------------------------------------------------

    def cleanup(self, tag: str, *, ledger: bool = False, force: bool = False) -> dict[str, int]:
        """Forget an experiment's runs. The ledger keeps every answer unless `ledger` is given."""
        unfinished = [p for p in self.store.progress.of_tag(tag) if p.status not in FINISHED]
        try:
            with self.engine.lock():
                return self.store.runs.delete_experiment(tag, ledger=ledger)
        except ConflictError:
            if unfinished and not force:
                raise ConflictError(
                    f"{tag} may be running now ({unfinished[0].status}); stop it, or use --force"
                ) from None
        return self.store.runs.delete_experiment(tag, ledger=ledger)
