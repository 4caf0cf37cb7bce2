"""Archive: the verbs that read: experiments, samples, benchmarks, spend, reports."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge_gym.axes import Design
from judge_gym.engine import FINISHED
from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown
from judge_gym.library import Library
from judge_gym.preparing import STUDY_SUFFIXES, Prepared, prepare_file, prepare_tags, read_file
from judge_gym.records import TaskType
from judge_gym.samples import file_format, read_samples, stored_samples, write_samples
from judge_gym.store import USAGE_BY, Exported, Page, Progress, export_ledger

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.judges.pairs import JudgedPair
    from judge_gym.analysis.report import Report


class Archive(Library):
    """What was judged and how; nothing here pays or changes anything."""

    def prepare(
        self, target: str | Path, *, overrides: Mapping[str, Any] | None = None
    ) -> Prepared:
        """A study file, a study's name or a tag, with all that it needs; writes nothing."""
        path = Path(target)
        if path.suffix in STUDY_SUFFIXES:
            return prepare_file(path, self.models, self.store, overrides or {})
        if overrides:
            raise DesignError("--set changes a study file's base design; a tag has its design")
        return prepare_tags(str(target), self.store, self.models)

    # --- the blueprint's data --------------------------------------------------------------------

    def get_experiment_summary(self, experiment_tag: str) -> dict[str, Any]:
        """What an experiment is and how far its runs are."""
        [row] = self.store.queries.tags(tags=[experiment_tag])
        return self._summary(row)

    def _summary(self, row: Mapping[str, Any], *, reasons: bool = True) -> dict[str, Any]:
        """An experiment and its runs; why targets failed takes a look at each."""
        runs = [
            {
                **_progress(progress),
                "failures": self.store.progress.failures(progress.run_id)
                if reasons and any(progress.failed.values())
                else [],
            }
            for progress in self.store.progress.of_tag(row["tag"])
        ]
        return {
            **_described(row),
            "status": runs[-1]["status"] if runs else "pending",
            "runs": runs,
        }

    def list_experiments(
        self, *, study: str | None = None, task_type: str | None = None
    ) -> list[dict[str, Any]]:
        """Experiments with the status of their newest run."""
        rows = self.store.queries.tags(study=study, task_type=task_type)
        return [self.get_experiment_summary(row["tag"]) for row in rows]

    def page_experiments(
        self,
        *,
        study: str | None = None,
        task_type: str | None = None,
        judge: str | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int = 100,
        reasons: bool = True,
    ) -> Page:
        """The same, so many at once, after the tag where a page ended or before its first."""
        tags = self.store.queries.tags_page(
            after=after, before=before, limit=limit, study=study, task_type=task_type, judge=judge
        )
        named = [row["tag"] for row in tags.rows]
        rows = self.store.queries.tags(tags=named) if named else []
        found = [self._summary(row, reasons=reasons) for row in rows]
        return Page(found, tags.next, tags.previous)

    def find_study(self, name: str) -> dict[str, Any]:
        """A study as it was last run: its file, empty where it had none, and its budget."""
        if not self.store.queries.tags_page(limit=1, study=name).rows:
            raise NotFoundError(f"there is no study {name!r}; the start lists those that are there")
        file = self.store.logs.study_file(name) or ""
        return {"study": name, "file": file, "budget": self.store.runs.find_budget(name)}

    def page_samples(
        self,
        experiment_tag: str,
        *,
        status: str | None = None,
        evidence: int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> Page:
        """Samples of an experiment, so many at once, after the sample where the last page ended."""
        self.store.queries.tags(tags=[experiment_tag])
        return self.store.queries.samples_page(
            experiment_tag, after=after, limit=limit, status=status, evidence=evidence
        )

    def list_experiments_by_task_type(self, task_type: TaskType) -> list[dict[str, Any]]:
        """All experiments of a type."""
        return self.list_experiments(task_type=task_type)

    def list_experiment_rubrics(self, experiment_tag: str) -> list[dict[str, Any]]:
        """Rubrics with the critic's scores."""
        self.store.queries.tags(tags=[experiment_tag])
        return self.store.queries.rubrics(experiment_tag)

    def list_experiment_samples(self, experiment_tag: str) -> list[dict[str, Any]]:
        """Samples with decoded stages."""
        self.store.queries.tags(tags=[experiment_tag])
        return list(self.store.queries.samples([experiment_tag]))

    def list_experiment_probes(self, experiment_tag: str) -> list[dict[str, Any]]:
        """Probes with the probability of expert agreement; null where it could not be read."""
        kept = ("sample", "evidence", "replicate", "is_swap", "stages", "probe", "probe_status")
        rows = self.list_experiment_samples(experiment_tag)
        return [{name: row[name] for name in kept} for row in rows if row["probe_status"]]

    def export_experiment_csv(self, experiment_tag: str) -> str:
        """Tidy rows of one experiment."""
        return str(self.samples(experiment_tag).to_csv(index=False))

    def export_design_space_csv(self, experiment_tags: Sequence[str]) -> str:
        """Tidy rows of several experiments."""
        return str(self.samples(*experiment_tags).to_csv(index=False))

    def samples(self, *targets: str) -> "pd.DataFrame":
        """One tidy row per sample and a column per knob, of tags, studies, or everything."""
        return stored_samples(self.store, self._rows(targets))

    def sample_parts(self, *targets: str) -> Iterator["pd.DataFrame"]:
        """The same rows, an experiment at a time; one part at least."""
        rows = {row["digest"]: row for row in reversed(self._rows(targets))}
        if not rows:
            yield stored_samples(self.store, [])
        for row in reversed(rows.values()):
            yield stored_samples(self.store, [row])

    def _rows(self, targets: Sequence[str]) -> list[dict[str, Any]]:
        """Experiments by tag, study, or study file as it stands now; all where none is named."""
        if not targets:
            return self.store.queries.tags()
        rows: dict[str, dict[str, Any]] = {}
        for target in targets:
            name = self.study_name(target)
            found = self.store.queries.tags(study=name)
            if name != target:
                current = {made.tag for made in self.prepare(target).sweep.experiments}
                found = [row for row in found if row["tag"] in current]
            found = found or self.store.queries.tags(tags=[name])
            rows |= {row["tag"]: row for row in found}
        return list(rows.values())

    def study_name(self, target: str) -> str:
        """The name in a study file, or the target itself."""
        path = Path(target)
        if path.suffix not in STUDY_SUFFIXES:
            return target
        return read_file(path, self.models).study

    def export(self, targets: Sequence[str], out: Path, *, format: str | None = None) -> int:
        """Write tidy rows to a file; how many.

        Args:
            targets: tags or studies; everything if none.
            out: the file, whose name says the format.
            format: `csv` or `parquet`, for a name without an ending.
        """
        chosen = file_format(out, format)
        frame = self.samples(*targets)
        if frame.empty:
            raise ConflictError("there are no samples to export yet; run a study first")
        write_samples(frame, out, chosen)
        return len(frame)

    def export_ledger(self, path: str | Path, target: str | None = None) -> Exported:
        """Write the calls behind a study or an experiment, or all, for another lab to import."""
        tags = [row["tag"] for row in self._rows([target])] if target is not None else None
        return export_ledger(self.store.database, Path(path), tags)

    # --- reports, spend --------------------------------------------------------------------------

    def report(self, target: str, *, gates: Mapping[str, float] | None = None) -> "Report":
        """Tables and figures on a study or an experiment.

        Args:
            target: the study or tag.
            gates: where validity checks pass, if not at their defaults (`analysis.validity`).
        """
        import pandas as pd

        from judge_gym.analysis.report import build_report
        from judge_gym.analysis.validity import Thresholds

        name, rows = self.study_name(target), self._rows([target])
        return build_report(
            name,
            stored_samples(self.store, rows),
            pd.DataFrame(self.usage(name)),
            views=self.store.queries.views([row["tag"] for row in rows]),
            people=self._people(rows),
            warnings=self._report_warnings(name, rows),
            thresholds=Thresholds.of(gates or {}),
        )

    def power(self, target: str, effect: float) -> "pd.DataFrame":
        """How many items and replicates an effect needs, with what was judged as the pilot.

        Args:
            target: a study that has samples.
            effect: a difference of expected stages, on the scale from 0 to 1.
        """
        from judge_gym.analysis.frames import tidy
        from judge_gym.analysis.stats.power import components, needed

        if not 0 < effect <= 1:
            raise DesignError(f"an effect of {effect}; choose a difference above 0, up to 1")
        frame = self.samples(target)
        if frame.empty:
            raise ConflictError(
                f"{target} has no samples yet to plan by; run a small part of it first"
            )
        return needed(components(tidy(frame, source=target)), effect)

    def people(self, target: str) -> "pd.DataFrame":
        """Raters' stages of the items that experiments judge: tag, evidence, rater, stage."""
        return self._people(self._rows([target]))

    def _people(self, rows: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
        import pandas as pd

        labels = self.store.evidence.labels()
        found = []
        for row in rows if labels else []:
            task = self.store.runs.find_experiment(row["tag"])[0].task
            items = {item.id for item in task.pool.items}
            stages = task.rubric.stages if task.rubric else ()
            scale = len(stages) or Design.of(row["design"]).rubric.scale
            numbers = {str(number): number for number in range(1, scale + 1)}
            numbers |= {stage.label: number for number, stage in enumerate(stages, 1)}
            found += [
                {"tag": row["tag"], "evidence": label["evidence"], "rater": label["rater"]}
                | {"stage": numbers[label["stage"]]}
                for label in labels
                if label["evidence"] in items
                and label["concept"] in ("", task.concept)
                and label["stage"] in numbers
            ]
        return pd.DataFrame(found, columns=["tag", "evidence", "rater", "stage"])

    def _report_warnings(self, study: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """What a reader must know beside the numbers: what is unfinished, what was asked again."""
        summaries = [self.get_experiment_summary(row["tag"]) for row in rows]
        open_ = [summary for summary in summaries if summary["status"] not in FINISHED]
        asks = self.store.queries.asks(study)
        warnings = []
        if open_:
            warnings.append(
                f"{len(open_)} of {len(summaries)} experiments are not complete: "
                + ", ".join(sorted({summary["status"] for summary in open_}))
            )
        if asks["again"]:
            warnings.append(f"{asks['again']} of {asks['asked']} rubric questions were re-asks")
        return tuple(warnings)

    def usage(
        self, target: str | None = None, *, by: Sequence[str] = USAGE_BY
    ) -> list[dict[str, Any]]:
        """What was paid, of a study, a tag, or everything.

        Args:
            target: the study or tag.
            by: sums by any of study, tag, stage, model and day.
        """
        for name in by:
            if name not in USAGE_BY:
                raise DesignError(unknown("column", name, USAGE_BY, "usage"), choices=USAGE_BY)
        if target is None:
            return self.store.queries.usage(by=by)
        name = self.study_name(target)
        return self.store.queries.usage(by=by, study=name) or self.store.queries.usage(
            by=by, tag=name
        )

    def suggest_swaps(self, target: str) -> "pd.DataFrame":
        """The pairs of judges that diverge most: where a swap of rubrics tells most."""
        from judge_gym.analysis.frames import with_variant
        from judge_gym.analysis.metrics.polarization import divergent_pairs, mean_divergence

        frame = self.samples(target)
        if frame.empty:
            raise ConflictError(f"{target} has no samples yet; score it first")
        own = with_variant(frame[~frame["is_swap"]].assign(task=frame["concept"] + frame["pool"]))
        return mean_divergence(divergent_pairs(own, ["concept", "pool", "variant"]))

    # --- known answers ---------------------------------------------------------------------------

    def judged_pairs(self, target: str | Path | Prepared) -> dict[str, tuple["JudgedPair", ...]]:
        """What judges decided on a benchmark's pairs, by judge; items by their published id."""
        from judge_gym.analysis.judges.pair_frames import pairs_of

        prepared = target if isinstance(target, Prepared) else self.prepare(target)
        tags = [made.tag for made in prepared.sweep.experiments]
        frame = self.samples(*tags)
        made = prepared.sweep.experiments[0]
        given = {item.hash: item.metadata for item in made.task.pool.items}
        stored = self.store.runs.find_experiment(made.tag)[0].task.pool.items
        about = {item.id: given.get(item.hash, item.metadata) for item in stored}
        frame = frame.assign(
            category=[str(about[id].get("category", "")) for id in frame["evidence"]],
            evidence=[str(about[id].get("id", id)) for id in frame["evidence"]],
        )
        return {
            str(judge): pairs_of(part[part["series"] == part["series"].iloc[-1]])
            for judge, part in frame.groupby("judge.model", sort=False)
        }

    def known_answers(self, target: str | Path | Prepared) -> "pd.DataFrame":
        """The share of verdicts on the right stage, by judge, with how many carry none."""
        from judge_gym.analysis.endpoints import known_answers
        from judge_gym.analysis.frames import JUDGE

        prepared = target if isinstance(target, Prepared) else self.prepare(target)
        frame = self.samples(*(made.tag for made in prepared.sweep.experiments))
        return known_answers(frame, [JUDGE])


def report_file(path: str | Path, *, gates: Mapping[str, float] | None = None) -> "Report":
    """Tables and figures on the samples of a file, without a database."""
    from judge_gym.analysis.report import build_report
    from judge_gym.analysis.validity import Thresholds

    samples, thresholds = read_samples(path), Thresholds.of(gates or {})
    return build_report(Path(path).name, samples, None, thresholds=thresholds)


def save_report(report: "Report", out: Path) -> None:
    """Write a page (.html), its text (.md), or a folder with both, every table and figure."""
    if out.suffix in (".html", ".htm"):
        out.write_text(report.html(), encoding="utf-8")
    elif out.suffix == ".md":
        out.write_text(report.markdown(), encoding="utf-8")
    elif out.suffix:
        choices = (".html", ".md")
        raise DesignError(unknown("kind of file", out.suffix, choices), choices=choices)
    else:
        for name, content in report.files():
            place = out / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


def _progress(progress: Progress) -> dict[str, Any]:
    fields = ("run_id", "series", "status", "wanted", "done", "failed", "statuses")
    event = progress.event
    said = event.said if event is not None and progress.status not in FINISHED else ""
    return {**{name: getattr(progress, name) for name in fields}, "said": said}


def _described(row: Mapping[str, Any]) -> dict[str, Any]:
    design = Design.of(row["design"])
    kept = ("tag", "study", "task_type", "concept", "country", "dose", "truth", "digest")
    return {
        **{name: row[name] for name in kept},
        "judge": design.judge.model,
        "design": design.chosen(),
    }
