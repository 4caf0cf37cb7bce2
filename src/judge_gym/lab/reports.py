"""The noun `lab.reports`: reports, known answers, power and spending."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field

from judge_gym.axes import CONTESTED
from judge_gym.engine import FINISHED
from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown
from judge_gym.lab.experiment_summaries import summarize_experiments
from judge_gym.lab.imports import load_analysis
from judge_gym.lab.label_frames import label_frame
from judge_gym.lab.power import study_sizes
from judge_gym.lab.sample_frames import is_export, people_of, read_samples, stored_samples
from judge_gym.lab.studies import Studies, Target
from judge_gym.lab.texts import check_folder, new_file
from judge_gym.records import digest
from judge_gym.records.comparison import SetupComparison
from judge_gym.records.coverage import CoverageReport
from judge_gym.records.judge_table import JudgeTable, MeasureName
from judge_gym.records.planning import EndpointPower, NextPurchase, PowerPlan, Purchase
from judge_gym.records.requests import (
    LOCAL,
    Name,
    NewFile,
    Others,
    Sent,
    StudyText,
    TargetName,
    UsageColumn,
)
from judge_gym.records.responses import (
    AnyRow,
    ExperimentSummary,
    ReportDigest,
    UsageRow,
    WrittenFile,
    as_record,
    as_records,
)
from judge_gym.store import USAGE_BY, USAGE_COLUMNS, Store

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.report import Questions, Report
    from judge_gym.analysis.report.page import SectionOf
    from judge_gym.recorded.options import FileOptions, FileReading


MEASURE_NAMES: tuple[MeasureName, ...] = get_args(MeasureName)


class Reports:
    """Computes what studies and experiments show."""

    def __init__(self, store: Store, studies: Studies, folder: Path = Path()) -> None:
        self._store = store
        self._studies = studies
        self._folder = folder
        self._cache: tuple[list[Any], Report] | None = None
        """The last report that was read, with its target and the version of its data."""

    def build(
        self,
        target: Target,
        *,
        gates: Mapping[str, float] | None = None,
        summary_only: bool = False,
        watch: Callable[[str, int, int], None] = lambda step, done, of: None,
    ) -> "Report":
        """Builds the tables and figures on a study or an experiment.

        Args:
            target: the study or tag.
            gates: where validity checks pass, if not at their defaults (`protocols.validity`).
            summary_only: whether only the summary, hypotheses and checks are computed.
            watch: called with each step, how many are done, and of how many.
        """
        import pandas as pd

        from judge_gym.analysis.frames import tidy
        from judge_gym.analysis.report import build_report, quoted_calls, with_quotes

        name, rows = self._studies.find_named(target)
        samples = stored_samples(self._store, rows)
        table = None
        if not samples.empty:  # which the report refuses
            table = self._judge_table(tidy(samples, source=name), rows)
        questions, appendix = _sections(name, samples, gates or {})
        report = build_report(
            name,
            samples,
            pd.DataFrame(self.usage(name)),
            views=self._store.evidence.list_views([row["tag"] for row in rows]),
            people=label_frame(self._store, rows),
            judges=[row["design"]["judge.model"] for row in rows],
            warnings=self._warnings(name, rows),
            questions=questions,
            appendix=appendix,
            table=table,
            declared=self._store.studies.declarations(name),
            label_usd=self._label_usd(name),
            summary_only=summary_only,
            watch=watch,
        )
        return with_quotes(report, self._store.ledger.answers(quoted_calls(report)))

    def judges(
        self,
        target: TargetName,
        *,
        others: Others = (),
        measure: Annotated[
            MeasureName | None, Field(description="The measure that decides which setup is best.")
        ] = None,
        positive: Annotated[
            Name | None, Field(description="The positive one of two labels, such as pass.")
        ] = None,
        loss: Annotated[
            Name | None,
            Field(
                description="What wrong verdicts cost, which then decides: miss=5,false_alarm=1."
            ),
        ] = None,
    ) -> JudgeTable:
        """Compares setups in the judge table: which is best, how good it is, and at what price.

        Args:
            target: the study or tag.
            others: more studies or tags, whose setups stand in the same table.
            measure: which measure decides, in place of the study's `measure` and `loss`.
            positive: the positive one of two labels, in place of the study's.
            loss: what wrong verdicts cost, as `miss=5,false_alarm=1`; expected loss then decides.
        """
        measure, costs = checked_decider(measure, loss)
        load_analysis()
        from judge_gym.analysis.frames import tidy

        rows = self._studies.find(target, *others)
        samples = stored_samples(self._store, rows)
        if samples.empty:
            raise ConflictError(f"{target} has no samples yet; run it first")
        frame = tidy(samples, source=target)
        return self._judge_table(frame, rows, measure=measure, positive=positive, loss=costs)

    def _judge_table(
        self,
        frame: "pd.DataFrame",
        rows: Sequence[Mapping[str, Any]],
        *,
        measure: MeasureName | None = None,
        positive: str | None = None,
        loss: Mapping[str, float] | None = None,
    ) -> JudgeTable:
        """Makes the judge table of tidy samples of experiments, and counts a use of a split.

        What decides is what the study declares, where nothing else is chosen.
        """
        import pandas as pd

        from judge_gym.analysis.judges.table import judge_table
        from judge_gym.analysis.report.page import recorded_note, simulation_banner

        studies = {str(row["study"]) for row in rows}
        # Splits, margins and declared measures are a study's own.
        study = studies.pop() if len(studies) == 1 else ""
        if measure is None and loss is None:
            measure, loss = self._study_key(study, "measure"), self._study_key(study, "loss")
        split = self._store.splits.find(study)
        table = judge_table(
            frame,
            label_frame(self._store, rows),
            preparation=pd.DataFrame(self._store.samples.preparation([row["tag"] for row in rows])),
            margin=self._store.studies.margin(study),
            parts=None if split is None else split.items,
            simulated=simulation_banner({*map(str, frame["judge.model"])}),
            measure=measure,
            loss=loss,
            positive=self._study_key(study, "positive") if positive is None else positive,
            alt_test=self._store.studies.declarations(study).alt_test,
        )
        if note := recorded_note(frame):
            table["sentence"] = f"{table['sentence']} {note}"
            table["notes"] = [note, *table["notes"]]
        if table["split"] is not None:
            truths = [(row["setup"], row["truth"]) for row in table["rows"]]
            estimates = [[setup, truth and [truth["value"], truth["n"]]] for setup, truth in truths]
            table["split"]["uses"] = self._store.splits.record_use(study, digest(estimates))
        return table

    def compare(
        self,
        target: TargetName,
        *,
        others: Others = (),
        a: Annotated[Name | None, Field(description="By default the best.")] = None,
        b: Annotated[Name | None, Field(description="The baseline.")] = None,
    ) -> SetupComparison:
        """Compares two setups, A minus B: quality, price, time, and items on which they differ.

        Args:
            target: the study or tag.
            others: more studies or tags, whose setups can be compared.
            a: the name of a setup in the judge table; the first that is not B by default.
            b: the name of the baseline; the first that is not A by default.
        """
        from judge_gym.analysis.frames import own_rows, tidy
        from judge_gym.analysis.judges import comparison
        from judge_gym.analysis.judges.setups import setups_of
        from judge_gym.analysis.verdicts import of_setups

        table = self.judges(target, others=others)
        rows = {row["setup"]: row for row in table["rows"]}
        for name in (a, b):
            if name is not None and name not in rows:
                raise NotFoundError(unknown("setup", name, rows, target), choices=rows)
        if len(rows) < 2:
            raise ConflictError(f"{target} has one setup, {next(iter(rows))}: add another judge")
        a = a or next(name for name in rows if name != b)
        b = b or next(name for name in rows if name != a)
        if a == b:
            raise DesignError(f"A and B are both {a}; choose two setups", choices=rows)
        sides = (rows[a], rows[b])
        tags = dict.fromkeys(tag for row in sides for tag in row["tags"])
        experiments = self._studies.find(*tags)
        frame = tidy(stored_samples(self._store, experiments), source=target)
        # Its intervals are for two setups, by the measure that decides among all.
        decider = table["measure"]
        measure = None if decider == "loss" else decider
        pair = self._judge_table(frame, experiments, measure=measure)
        in_pair = {tuple(row["tags"]): row["setup"] for row in pair["rows"]}
        names = [in_pair[tuple(row["tags"])] for row in sides]
        frame = own_rows(frame)
        setups = {setup.name: setup for setup in setups_of(frame)}
        people = label_frame(self._store, experiments)
        verdicts = of_setups(frame, [setups[name] for name in names], people)
        stage = comparison.stage_difference(verdicts)
        contrast = comparison.main_contrast(pair, names[0], names[1], stage)
        titles = dict(zip(frame["evidence"], frame["evidence_title"], strict=True))
        both, items = comparison.differing_items(verdicts, titles)
        sentence = comparison.comparison_sentence(
            contrast, a, b, judged_by_both=both, differing=len(items)
        )
        among_all = comparison.table_sentence(contrast, table, a, b)
        return {
            "sentence": f"{sentence} {among_all}".rstrip(),
            "stage_sentence": comparison.stage_sentence(contrast, stage, a, b),
            "endpoint": contrast.endpoint,
            "difference": contrast.difference,
            "stage": stage,
            "a": rows[a],
            "b": rows[b],
            "judged_by_both": both,
            "differing": len(items),
            "items": items[: comparison.ITEMS],
            "setups": table["rows"],
            "measure": table["measure"],
            "columns": table["columns"],
            "simulated": table["simulated"],
            "notes": pair["notes"],
        }

    def _label_usd(self, study: str) -> float:
        """Looks up what a person's label of a new item costs."""
        return float(self._study_key(study, "label_usd") or 0.0)

    def _study_key(self, study: str, key: str) -> Any:
        """Looks up a key of a study's file. None means that it is not given."""
        import yaml

        return (yaml.safe_load(self._store.studies.file(study) or "") or {}).get(key)

    def show(self, target: TargetName) -> ReportDigest:
        """Summarizes the report on a study or an experiment, and names its tables."""
        from judge_gym.analysis.report.digest import digest as in_short

        return as_record(ReportDigest, in_short(self._build_if_changed(target)))

    def table(
        self,
        target: TargetName,
        table: Annotated[Name, Field(description="One of `tables` of reports_show.")],
    ) -> Sequence[AnyRow]:
        """Reads a table of the report on a study or an experiment, by its name.

        A table that is not on the report's page is computed when it is first asked for.
        """
        from judge_gym.analysis.report.digest import records
        from judge_gym.analysis.report.page import slug

        report = self._build_if_changed(target)
        tables = [*map(slug, [each.title for each in report.tables] + [*report.further_tables])]
        if table not in tables:
            raise NotFoundError(unknown("table", table, tables, target), choices=tables)
        return records(report.table(table))

    def write_file(self, target: TargetName, path: NewFile) -> WrittenFile:
        """Writes the report on a study or an experiment to a new file below the lab's folder."""
        file = new_file(path, self._folder, (".html", ".md"))
        report = self._build_if_changed(target)
        save_report(report, file)
        rows = sum(len(table.frame) for table in report.tables)
        return {"path": path, "bytes": file.stat().st_size, "rows": rows}

    def _build_if_changed(self, target: str) -> "Report":
        """Builds the report on a target, again only if its data have changed."""
        source = self._studies.read(target)  # once for the name and for what is built
        name = self._studies.name(source)
        key: list[Any] = [name, self._store.studies.fingerprint(name)]
        if not self._studies.find_study(name):  # an experiment, whose rows are counted here
            runs = self._store.progress.of_tag(name)
            key += [(run.run_id, {**run.done}, {**run.statuses}) for run in runs]
        if self._cache is None or self._cache[0] != key:
            self._cache = (key, self.build(source))
        return self._cache[1]

    def _warnings(self, study: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Says what a reader must know beside the numbers, such as unfinished runs."""
        summaries = summarize_experiments(self._store, rows, reasons=False)
        unfinished = [summary for summary in summaries if summary["status"] not in FINISHED]
        asks = self._store.usage.asks(study)
        warnings = []
        if unfinished:
            warnings.append(
                f"{len(unfinished)} of {len(summaries)} experiments are not complete: "
                + ", ".join(sorted({summary["status"] for summary in unfinished}))
            )
            warnings += _missing(summaries)
        if asks["again"]:
            warnings.append(f"{asks['again']} of {asks['asked']} rubric questions were re-asks")
        return tuple(warnings)

    def plan_next(
        self,
        target: TargetName,
        *,
        quantity: Annotated[
            Name | None, Field(description="A part of its name; else the most telling one.")
        ] = None,
        half_width: Annotated[
            float | None, Field(gt=0, lt=1, description="How narrow it is to become.")
        ] = None,
    ) -> NextPurchase:
        """Plans what to buy next: items, repeats, rubric draws or judges, and the effect.

        Args:
            target: a study or an experiment that has samples.
            quantity: a part of the name of what is to be known better; else the most telling one.
            half_width: how narrow its interval is to become; else as much as doubling items costs.
        """
        from judge_gym.analysis.frames import tidy
        from judge_gym.analysis.planning.purchases import decide
        from judge_gym.analysis.planning.quantities import (
            find_quantities,
            measurements,
            quantities,
            variance_table,
        )
        from judge_gym.analysis.report.digest import records

        name, rows = self._studies.find_named(target)
        samples = stored_samples(self._store, rows)
        if samples.empty:
            raise ConflictError(f"{target} has no samples yet; run a small part of it first")
        frame = tidy(samples, source=target)
        measured = measurements(frame, label_frame(self._store, rows))
        listed = quantities(frame, measured)
        if not listed:
            raise ConflictError(
                f"{target} has neither known answers nor verdicts on ordered stages"
            )
        matches = find_quantities(listed, quantity)
        decision = decide(matches[0], self._label_usd(name))
        task, size = decision.quantity.task, decision.size
        finite = decision.value == decision.value and decision.half == decision.half
        points = decision.points().drop(columns="quantity")
        return {
            "study": name,
            "sentence": decision.sentence(half_width),
            "apart": decision.telling_apart(),
            "quantity": decision.quantity.name,
            "value": decision.value if finite else None,
            "half_width": decision.half if finite else None,
            "items": int(size.items),
            "clusters": int(size.clusters),
            "repeats": size.repeats if finite else None,
            "draws": int(size.draws),
            "purchases": [as_record(Purchase, row) for row in records(points)],
            "variance": records(variance_table([each for each in measured if each.task == task])),
            "quantities": [each.name for each in matches[1:] or listed],
        }

    def power(
        self,
        effect: Annotated[float, Field(gt=0, le=1, description="On the scale from 0 to 1.")],
        target: Annotated[str | None, Sent(TargetName | None)] = None,
        *,
        study: StudyText = None,
        pilot: Annotated[
            TargetName | None,
            Field(description="A study whose samples show how much verdicts vary."),
        ] = None,
    ) -> PowerPlan:
        """Simulates the power of a study's tests, which needs no data.

        Args:
            effect: the size of the effect, on the scale from 0 to 1.
            target: a study file, a study's name or an experiment's tag.
            study: instead of a target, the text of a study file.
            pilot: a study whose samples give the variance components; else the study's own
                samples, else defaults.
        """
        from judge_gym.analysis.frames import tidy
        from judge_gym.analysis.planning.power import (
            ENDPOINTS,
            pilot_components,
            power_sentence,
            power_table,
        )
        from judge_gym.analysis.report.digest import records

        if (target is None) == (study is None):
            raise DesignError("give either target or study")
        prepared = (
            self._studies.prepare_text(study) if study else self._studies.prepare(target or "")
        )
        name = pilot or prepared.study
        rows = self._studies.find(name) if pilot else self._stored_rows(name)
        samples = stored_samples(self._store, rows) if rows else None
        has_samples = samples is not None and len(samples) > 0
        if pilot and not has_samples:
            raise ConflictError(f"{pilot} has no samples yet to plan by; run it first")
        frame = tidy(samples, source=name) if samples is not None and has_samples else None
        assumed = {} if frame is None else pilot_components(frame, label_frame(self._store, rows))
        endpoints = ENDPOINTS
        if prepared.sweep.experiments[0].task.protocol == CONTESTED:
            from judge_gym.protocols import power as hypotheses

            endpoints = {**ENDPOINTS, **hypotheses.ENDPOINTS}
            assumed |= {} if frame is None else hypotheses.hypothesis_components(frame)
        table = power_table(study_sizes(prepared), effect, assumed, endpoints)
        return {
            "study": prepared.study,
            "pilot": name if has_samples else "",
            "sentence": power_sentence(table),
            "endpoints": [as_record(EndpointPower, row) for row in records(table)],
        }

    def _stored_rows(self, study: str) -> Sequence[Mapping[str, Any]]:
        """Finds the stored experiments of a study, none if it was never run."""
        try:
            return self._studies.find(study)
        except NotFoundError:
            return ()

    def suggest_swaps(self, target: str) -> "pd.DataFrame":
        """Lists the pairs of judges that diverge most, for which a swap tells most."""
        from judge_gym.analysis.frames import tidy
        from judge_gym.analysis.measures.polarization import divergent_pairs

        frame = stored_samples(self._store, self._studies.find(target))
        if frame.empty:
            raise ConflictError(f"{target} has no samples yet; score it first")
        return divergent_pairs(tidy(frame, source=target))

    def calibrate(
        self,
        target: TargetName,
        *,
        panels: Annotated[
            int | None,
            Field(ge=10, le=2000, description="By default as many as take about a minute."),
        ] = None,
        seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0,
        watch: Annotated[Callable[[int, int], None], LOCAL] = lambda done, of: None,
    ) -> CoverageReport:
        """Checks whether intervals hold, on simulated studies of a study's size.

        Args:
            target: the study or tag.
            panels: the number of simulated studies; by default as many as take about a minute.
            seed: the seed of the simulation.
            watch: called with how many are done, and of how many.
        """
        load_analysis()
        from judge_gym.analysis.frames import tidy
        from judge_gym.calibrate import check_coverage

        rows = self._studies.find(target)
        samples = stored_samples(self._store, rows)
        if samples.empty:
            raise ConflictError(f"{target} has no samples yet; run a small part of it first")
        frame, people = tidy(samples, source=target), label_frame(self._store, rows)
        return check_coverage(frame, people, panels=panels, seed=seed, watch=watch)

    # --- spending --------------------------------------------------------------------------------

    def usage(
        self,
        target: TargetName | None = None,
        *,
        by: Annotated[
            Sequence[str] | None, Sent(Sequence[UsageColumn] | None), Field(max_length=6)
        ] = None,
    ) -> Sequence[UsageRow]:
        """Sums what a study, a tag or everything paid, imported calls separately.

        Args:
            target: the study or tag.
            by: sums by any of study, tag, stage, model, day and provider; by default by the first
                five.
        """
        columns = [*dict.fromkeys(USAGE_BY if by is None else by)]
        for name in columns:
            if name not in USAGE_COLUMNS:
                raise DesignError(
                    unknown("column", name, USAGE_COLUMNS, "usage"), choices=USAGE_COLUMNS
                )
        usage = self._store.usage
        if target is None:
            return as_records(UsageRow, usage.rows(by=columns))
        name = self._studies.name(target)
        rows = usage.rows(by=columns, study=name) or usage.rows(by=columns, tag=name)
        return as_records(UsageRow, rows)


def parse_loss(text: str) -> dict[str, float]:
    """Reads what wrong verdicts cost.

    >>> parse_loss("miss=5,false_alarm=1")
    {'miss': 5.0, 'false_alarm': 1.0}
    """
    entries = dict(entry.split("=", 1) for entry in text.split(",") if "=" in entry)
    costs = {name.strip(): _cost(value) for name, value in entries.items()}
    if costs.keys() != {"miss", "false_alarm"} or text.count(",") != 1:
        raise DesignError(f"a loss is written as miss=5,false_alarm=1, not as {text!r}")
    return costs


def _cost(text: str) -> float:
    try:
        cost = float(text)
    except ValueError:
        cost = math.nan
    if not 0 <= cost < math.inf:
        raise DesignError(f"a loss is a number that is at least 0, not {text.strip()!r}")
    return cost


def _missing(summaries: Sequence[ExperimentSummary]) -> list[str]:
    """Says how many of each judge's verdicts are recorded, where some are missing."""
    targets: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for summary in summaries:
        for run in summary["runs"]:
            for step in ("score", "swap"):
                targets[summary["judge"]] += run["targets"][step]
                done[summary["judge"]] += run["done"][step]
    return [
        f"only {done[judge]:,} of {count:,} verdicts of {judge} are recorded so far"
        for judge, count in targets.items()
        if done[judge] < count
    ]


def _sections(
    title: str, samples: "pd.DataFrame", gates: Mapping[str, float]
) -> tuple["Questions", "Mapping[str, SectionOf]"]:
    """Chooses what a report asks, and its further tables, by the protocol of its samples."""
    from judge_gym.analysis import report

    if "protocol" in samples and (samples["protocol"] == CONTESTED).any():
        from judge_gym.protocols.report import appendix, questions
        from judge_gym.protocols.validity import Thresholds

        return questions(Thresholds.of(gates)), appendix()
    if gates and not samples.empty:
        raise DesignError(
            f"a gate is the threshold of a validity check, and {title} has none: it is not under "
            f"protocol: {CONTESTED}"
        )
    return report.QUESTIONS, report.APPENDIX


def checked_decider(
    measure: str | None, loss: str | None
) -> tuple[MeasureName | None, Mapping[str, float] | None]:
    """Checks what decides between judges: a measure, or a loss such as `miss=5,false_alarm=1`."""
    if measure is not None and measure not in MEASURE_NAMES:
        raise DesignError(unknown("measure", measure, MEASURE_NAMES), choices=MEASURE_NAMES)
    if measure is not None and loss is not None:
        raise DesignError("either a measure decides which setup is best or a loss; give one")
    return measure, None if loss is None else parse_loss(loss)


def report_file(
    path: str | Path,
    *,
    gates: Mapping[str, float] | None = None,
    summary_only: bool = False,
    read: "Callable[[Path], FileReading] | None" = None,
    options: "FileOptions | None" = None,
) -> "Report":
    """Builds the tables and figures on a file of verdicts or samples, without a database.

    Args:
        path: the file.
        gates: where validity checks pass, of samples that a study under a protocol exported.
        summary_only: whether only the summary, hypotheses and checks are computed.
        read: reads a file; by default what is uncertain about it is refused.
        options: what a user says about the file, which `read` knows as well.
    """
    from judge_gym.analysis.report import build_report
    from judge_gym.analysis.report.page import recorded_note

    name, positive = Path(path).name, options.positive if options else None
    if is_export(path):
        truths = {**options.same, **dict.fromkeys(options.missing, "")} if options else {}
        samples = read_samples(path, truths=truths)
        questions, appendix = _sections(name, samples, gates or {})
        note = recorded_note(samples)
        people = people_of(samples)
        if options is not None and options.about_file and read is not None:
            people = _people_of_reading(samples, read(Path(path)))
        return build_report(
            name,
            samples,
            None,
            people=people,
            table=_table_of_export(samples, people, positive),
            warnings=(note,) if note else (),
            questions=questions,
            appendix=appendix,
            summary_only=summary_only,
        )
    from judge_gym.recorded.check import check_reading, read_certain

    checked = check_reading((read or read_certain)(Path(path)), positive=positive)
    return build_report(
        name,
        checked.samples,
        None,
        people=checked.people,
        table=checked.table,
        warnings=checked.reading.conflicts,
        summary_only=summary_only,
    )


def _people_of_reading(samples: "pd.DataFrame", reading: "FileReading") -> "pd.DataFrame":
    """Collects people's labels of a reading, for the items of samples as they name them."""
    labels, scale = reading.recording.labels, reading.recording.scale.labels
    stages = {label: number for number, label in enumerate(scale, 1)}
    items = samples[["tag", "evidence"]].drop_duplicates()
    people = items.assign(item=items["evidence"].astype(str)).merge(labels, on="item")
    return people.assign(stage=people["label"].map(stages))[["tag", "evidence", "rater", "stage"]]


def _table_of_export(
    samples: "pd.DataFrame", people: "pd.DataFrame", positive: str | None
) -> "JudgeTable":
    """Builds the judge table of an export, with advice that fits a file without a lab."""
    from judge_gym.analysis.judges.table import judge_table
    from judge_gym.analysis.report.page import simulation_banner
    from judge_gym.recorded.check_sentences import answer, no_labels

    models = {*map(str, samples["reported_model"].fillna(samples["judge.model"]).unique())}
    table = judge_table(samples, people, simulated=simulation_banner(models), positive=positive)
    if table["kind"] is None:
        table["sentence"] = f"{' '.join(answer(table))} {no_labels(export=True)}."
    return table


def calibrate_file(
    path: str | Path,
    *,
    panels: int | None = None,
    seed: int = 0,
    watch: Callable[[int, int], None] = lambda done, of: None,
) -> CoverageReport:
    """Says whether intervals hold at the size of the samples of a file, without a database."""
    from judge_gym.calibrate import check_coverage

    return check_coverage(read_samples(path), panels=panels, seed=seed, watch=watch)


def check_report_path(out: Path) -> None:
    """Raises if no report can be written to a path. Called before a report is built."""
    if out.suffix not in ("", ".html", ".htm", ".md"):
        choices = (".html", ".md")
        raise DesignError(unknown("kind of file", out.suffix, choices), choices=choices)
    if out.suffix:
        check_folder(out)


def save_report(report: "Report", out: Path) -> None:
    """Writes a page (.html), its text (.md), or a folder with both, every table and figure."""
    check_report_path(out)
    if out.suffix in (".html", ".htm"):
        out.write_text(report.html(), encoding="utf-8")
    elif out.suffix == ".md":
        out.write_text(report.markdown(), encoding="utf-8")
    else:
        for name, content in report.files():
            file = out / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
