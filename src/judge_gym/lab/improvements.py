"""Better rubrics and prompts from labels: proposals, their runs on dev, and one look at test."""

import difflib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import yaml

from judge_gym.analysis.judges.splits import Part
from judge_gym.axes import FOREIGN, TEMPLATE, template_file, template_level
from judge_gym.engine import Engine, RunProgress
from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown
from judge_gym.lab.label_frames import label_frame
from judge_gym.lab.prepare import DEFAULT_TARGETS, PreparedStudy, refuse_recorded
from judge_gym.lab.runs import Runs
from judge_gym.lab.sample_frames import stored_samples
from judge_gym.lab.studies import Studies, Target
from judge_gym.lab.study_files import StudySource
from judge_gym.models import Registry
from judge_gym.records import Evidence, Rubric, digest
from judge_gym.records.evidence import render_fields
from judge_gym.records.improvement import (
    Improvement,
    ProposalRow,
    ProposalStatus,
    TestedProposal,
)
from judge_gym.records.judge_table import Quantity
from judge_gym.records.numbers import plural
from judge_gym.store import Store
from judge_gym.studies import SIMULATED_ASSISTANT, BudgetSpec, Experiment, Sweep, experiment_tag

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.judges.table import QualityGain
    from judge_gym.stages import ImprovementTarget, ItemDisagreement, Proposal

LEAST_ITEMS = 30
"""Labelled items that dev and test have each (methods-2)."""
SHOWN = 20
"""Disagreements that one proposal is made from."""
RISK = 0.05
"""Chance that any of several proposals is accepted that is not better."""
RUBRIC_KNOB = f"{FOREIGN}rubric"
"""Tells the revised rubrics of a study apart; no prompt shows it."""
GIVEN, PROPOSAL = "given", "proposal"
STAGE = "improver"
Watch = Callable[[Sequence[RunProgress]], None]


class _Setup(NamedTuple):
    """The setup whose rubric or prompt is revised."""

    name: str
    knobs: Mapping[str, Any]
    experiment: Experiment


@dataclass(frozen=True, slots=True)
class _Labelled:
    """What a study knows of labels: its rows, samples, and the labelled items of each part."""

    study: str
    rows: Sequence[Mapping[str, Any]]
    frame: "pd.DataFrame"
    people: "pd.DataFrame"
    items: Mapping[Part, Collection[int]]
    """Items with a label or a known answer, by part of the split."""
    declared: Mapping[str, Any]
    """The keys of the study's file."""


@dataclass(frozen=True, slots=True)
class _Variant:
    """The rubric or prompt of the parent, or of a proposal, as an experiment."""

    number: int
    """0 is the parent."""
    level: str
    rubric: Rubric
    template: str


class Improvements:
    """Revises the given rubric, or the own prompt, of a setup from its disagreements with people.

    Args:
        store: the lab's database.
        models: by which names of models are resolved.
        engine: asks the assistant.
        studies: finds studies.
        runs: judges items under proposals.
    """

    def __init__(
        self, store: Store, models: Registry, engine: Engine, studies: Studies, runs: Runs
    ) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._studies = studies
        self._runs = runs

    def improve(
        self,
        target: Target,
        *,
        proposals: int = 3,
        setup: str | None = None,
        budget: Mapping[str, Any] | None = None,
        watch: Watch = lambda progress: None,
    ) -> Improvement:
        """Has proposals made, judges dev under them, and the best accepted one on test, once.

        Called again, it asks only what the ledger does not hold yet.

        Args:
            target: a study or its file.
            proposals: how many are made, which decides how sure a gain has to be.
            setup: the name of a setup, or of a judge with one setup; by default the best on dev.
            budget: limits of the study of proposals, as `judge-gym run` takes them.
            watch: called with the progress counters of each run before it starts.
        """
        source = self._studies.read(target)
        labelled = self._labelled(source)
        chosen = self._choose(labelled, setup)
        assistant = self._assistant(source, labelled, chosen)
        study = f"{labelled.study}-improve"
        limits = self._save_study(study, labelled, budget or {})
        disagreements = self._disagreements(labelled, chosen)
        if not disagreements:
            return _result(labelled, chosen, assistant, proposals)
        targets = _targets(chosen, disagreements, proposals)
        progress = RunProgress()
        made = self._propose(targets, assistant, study, chosen, progress)
        base, variants = _variants(chosen, made)
        compared = proposals + self._tried_before(study, chosen, variants)
        alpha = RISK / compared
        on_dev = self._run(study, "dev", labelled, chosen, [base, *variants], limits, watch)
        gains = {
            each.number: self._gain(labelled, on_dev, base, each, level=1 - 2 * alpha)
            for each in variants
        }
        rows = [
            _row(each, chosen, base, variants, gains, on_dev, alpha)
            for each in sorted(made, key=lambda proposal: proposal.number)
        ]
        result = _result(labelled, chosen, assistant, proposals)
        result |= {
            "measure": next((gain.measure for gain in gains.values() if gain), None),
            "disagreements": len(disagreements),
            "compared": compared,
            "alpha": alpha,
            "rows": rows,
            "notes": [*progress.warnings],
        }
        best = _best(rows)
        if best is None:
            return {**result, "sentence": _sentence(result, None)}
        winner = next(each for each in variants if each.number == best)
        decider = result["measure"]
        on_test = self._run(
            f"{study}-test", "test", labelled, chosen, [base, winner], limits, watch
        )
        tested = self._tested(labelled, on_test, base, winner, decider)
        accepted = winner.template or _rubric_json(winner.rubric)
        result |= {"tested": tested, "accepted": accepted}
        return {**result, "sentence": _sentence(result, tested)}

    # --- before anything is asked ----------------------------------------------------------------

    def _labelled(self, source: str | StudySource) -> _Labelled:
        """Reads samples and labels of a study, and refuses one with too few labelled items."""
        from judge_gym.analysis.frames import tidy

        name, rows = self._studies.find_named(source)
        if not rows:
            names = [row["study"] for row in self._store.studies.rows()]
            raise NotFoundError(unknown("study", name, names), choices=names)
        split = self._store.splits.find(name)
        if split is None:
            raise ConflictError(
                f"{name} has no split, so that no items are left to test on; make one with: "
                f"judge-gym labels split {name}"
            )
        samples = stored_samples(self._store, rows)
        if samples.empty:
            raise ConflictError(f"{name} has no samples yet; run it first")
        frame, people = tidy(samples, source=name), label_frame(self._store, rows)
        known = {int(id) for id in people["evidence"]}
        known |= {int(id) for id in frame.loc[frame["truth"].notna(), "evidence"]}
        items: dict[Part, set[int]] = {"train": set(), "dev": set(), "test": set()}
        for id, part in split.items.items():
            if id in known:
                items[part].add(id)  # type: ignore[index]
        if min(len(items["dev"]), len(items["test"])) < LEAST_ITEMS:
            raise ConflictError(
                f"{name} has {len(items['dev'])} labelled items in dev and {len(items['test'])} in "
                f"test, and {LEAST_ITEMS} are needed in each; label more with: "
                f"judge-gym label {name}"
            )
        declared = yaml.safe_load(self._store.studies.file(name) or "") or {}
        return _Labelled(name, rows, frame, people, items, declared)

    def _choose(self, labelled: _Labelled, setup: str | None) -> _Setup:
        """Finds the setup to improve, by default the best on dev; no item of test is read."""
        from judge_gym.analysis.judges.table import judge_table

        table = judge_table(
            labelled.frame[labelled.frame["evidence"].isin(labelled.items["dev"])],
            labelled.people,
            margin=self._store.studies.margin(labelled.study),
            **_decider_keys(labelled),
        )
        rows = {row["setup"]: row for row in table["rows"]}
        wanted = table["chosen"] if setup is None else setup
        names = [name for name, row in rows.items() if wanted in (name, row["judge"])]
        if len(names) != 1:
            raise NotFoundError(unknown("setup", str(wanted), rows, labelled.study), choices=rows)
        row = rows[names[0]]
        if len(row["tags"]) != 1:
            raise DesignError(
                f"{names[0]} judges {len(row['tags'])} tasks of {labelled.study}; a rubric is "
                "improved in a study with one task"
            )
        experiment, _ = self._store.experiments.find(row["tags"][0])
        refuse_recorded(experiment.tag, experiment.design.values())
        if experiment.task.rubric is None:
            raise DesignError(
                f"{names[0]} wrote its own rubric, which people did not label by; give the task "
                "one to improve: rubric: FILE.json"
            )
        return _Setup(names[0], row["knobs"], experiment)

    def _assistant(self, source: str | StudySource, labelled: _Labelled, chosen: _Setup) -> str:
        """Finds the model that proposes."""
        name = labelled.declared.get("assistant")
        if isinstance(source, StudySource):
            name = source.study.assistant
        if name:
            return self._models.resolve(str(name))
        if self._models.card(chosen.experiment.design.judge.model).simulated:
            return SIMULATED_ASSISTANT
        raise DesignError(
            f"{labelled.study} names no model that could propose; add it to the study file, and "
            f"give that file: assistant: provider:name"
        )

    def _save_study(self, study: str, labelled: _Labelled, budget: Mapping[str, Any]) -> BudgetSpec:
        """Saves the study of proposals with its budget, and what decides in the parent's."""
        before = BudgetSpec.model_validate(self._store.studies.budget(study))
        limits = before.changed(budget)
        for name in (study, f"{study}-test"):
            file = yaml.safe_dump(
                {**labelled.declared, "study": name}, sort_keys=False, allow_unicode=True
            )
            text = f"# Made by: judge-gym improve {labelled.study}\n{file}"
            self._store.studies.save(name, limits.model_dump(exclude_none=True), text)
        return limits

    # --- proposals -------------------------------------------------------------------------------

    def _disagreements(self, labelled: _Labelled, chosen: _Setup) -> "list[ItemDisagreement]":
        """Collects disagreements on items of train and dev; nothing else reaches the assistant."""
        from judge_gym.analysis.judges.disagreements import setup_disagreements
        from judge_gym.stages import ItemDisagreement

        experiment = chosen.experiment
        rubric = experiment.task.rubric
        assert rubric is not None, "it was checked when the setup was chosen"
        seen = {*labelled.items["train"], *labelled.items["dev"]}
        names = [stage.label for stage in rubric.stages]
        own = labelled.frame[labelled.frame["tag"] == experiment.tag]
        disagreements = setup_disagreements(own, labelled.people, names, seen, experiment.seed)
        calls = [each.call_id for each in disagreements if each.call_id is not None]
        quotes = self._store.samples.answer_texts(calls)
        texts = self._texts(experiment)
        return [
            ItemDisagreement(
                texts[each.evidence], each.people, each.verdict, quotes.get(each.call_id or 0, "")
            )
            for each in disagreements
            if each.evidence in texts
        ]

    def _texts(self, experiment: Experiment) -> dict[int, str]:
        """Collects each item as the judge saw it."""
        from judge_gym.engine.steps import shown_texts
        from judge_gym.store import Run

        run = Run(0, experiment, "", "", *DEFAULT_TARGETS)
        views = shown_texts(self._store, run)
        return {
            item.id: _shown(experiment, item, views[item.id])
            for item in experiment.task.pool.items
            if item.id in views
        }

    def _propose(
        self,
        targets: "Sequence[ImprovementTarget]",
        assistant: str,
        study: str,
        chosen: _Setup,
        progress: RunProgress,
    ) -> "list[Proposal]":
        """Asks the assistant for all proposals, and reads them."""
        from judge_gym.stages import Improver

        stage = Improver(assistant, chosen.experiment.seed)
        requests, tag = stage.requests(targets), chosen.experiment.tag
        answers = self._engine.ask(requests, progress, study=study, tag=tag, stage=STAGE)
        return [
            stage.read(target, answer.completion)
            for target, answer in zip(targets, answers, strict=True)
        ]

    def _tried_before(self, study: str, chosen: _Setup, variants: Sequence[_Variant]) -> int:
        """Counts proposals that were judged on dev before, and are not among today's."""
        knob = _knob(chosen)
        today = {each.level for each in variants}
        levels = [row["design"].get(knob) for row in self._store.experiments.rows(study=study)]
        earlier = {level for level in levels if level and PROPOSAL in level}
        return len(earlier - today)

    # --- verdicts under proposals ----------------------------------------------------------------

    def _run(
        self,
        study: str,
        part: Part,
        labelled: _Labelled,
        chosen: _Setup,
        variants: Sequence[_Variant],
        limits: BudgetSpec,
        watch: Watch,
    ) -> dict[int, Experiment]:
        """Judges the items of one part under rubrics or prompts, and returns the experiments."""
        parent = chosen.experiment
        items = tuple(item for item in parent.task.pool.items if item.id in labelled.items[part])
        pool = replace(parent.task.pool, items=items, id=0)
        experiments = {}
        for each in variants:
            task = replace(
                parent.task, pool=pool, pool_name=part, rubric=each.rubric, rubric_file=""
            )
            knob = _knob(chosen)
            design = parent.design.replace({knob: each.level})
            shown = {**chosen.knobs, knob.rpartition(".")[2]: each.level}
            shown.pop(TEMPLATE, None)
            tag = experiment_tag(study, task.concept, part, parent.design.judge.model, shown)
            experiments[each.number] = Experiment(tag, task, design, parent.seed, each.template)
        targets = self._store.runs.targets(parent, labelled.study) or DEFAULT_TARGETS
        prepared = PreparedStudy(
            study,
            Sweep(tuple(experiments.values())),
            dict.fromkeys(
                (experiment.tag for experiment in experiments.values()),
                targets._replace(rivals=(), probe=False),
            ),
            limits,
            None,
            (),
        )
        result = self._runs.run(prepared, watch=watch)
        if result.stopped is not None:
            raise result.stopped
        if failed := [run.tag for run in result.runs if run.status == "failed"]:
            raise ConflictError(
                f"too many calls failed in {' and '.join(failed)}; ask them again with: "
                f"judge-gym retry {study}, then give this command again"
            )
        return experiments

    def _gain(
        self,
        labelled: _Labelled,
        experiments: Mapping[int, Experiment],
        base: _Variant,
        variant: _Variant,
        *,
        level: float,
        measure: str | None = None,
    ) -> "QualityGain | None":
        """Compares a proposal with its parent on the items of one part."""
        from judge_gym.analysis.frames import tidy
        from judge_gym.analysis.judges.table import quality_gain

        tags = [experiments[number].tag for number in (base.number, variant.number)]
        rows = self._studies.find_tags(tags)
        frame = tidy(stored_samples(self._store, rows), source=labelled.study)
        # Chances with which items were drawn for labels are those of the parent's queues.
        people = label_frame(self._store, [{**row, "study": labelled.study} for row in rows])
        keys = _decider_keys(labelled)
        if measure is not None and measure != "loss":
            keys["measure"] = measure
        knob = TEMPLATE if variant.template else RUBRIC_KNOB
        return quality_gain(frame, people, knob=knob, base=base.level, level=level, **keys)

    def _tested(
        self,
        labelled: _Labelled,
        experiments: Mapping[int, Experiment],
        base: _Variant,
        winner: _Variant,
        measure: str | None,
    ) -> TestedProposal | None:
        """Reads the test part for the accepted proposal and its parent, which is counted."""
        gain = self._gain(labelled, experiments, base, winner, level=0.95, measure=measure)
        if gain is None:
            return None
        estimates = [[winner.level, gain.other["value"], gain.other["n"]]]
        estimates += [[base.level, gain.base["value"], gain.base["n"]]]
        return {
            "number": winner.number,
            "parent": gain.base,
            "proposal": gain.other,
            "difference": gain.gain,
            "uses": self._store.splits.record_use(labelled.study, digest(estimates)),
        }


# --- what is shown to the assistant --------------------------------------------------------------


def _shown(experiment: Experiment, item: Evidence, text: str) -> str:
    """Writes an item as plain text with the parts that the judge saw."""
    if item.responses:
        first, second = item.responses
        return render_fields({"prompt": text, "first response": first, "second response": second})
    fields = experiment.design.evidence.resolve().shown(item.fields)
    return render_fields(fields) if fields else text


def _targets(
    chosen: _Setup, disagreements: "Sequence[ItemDisagreement]", proposals: int
) -> "list[ImprovementTarget]":
    """Gives each proposal its disagreements.

    Each begins with other ones, so that proposals differ even where a model always answers alike.
    """
    from judge_gym.stages import ImprovementTarget

    experiment, count = chosen.experiment, len(disagreements)
    assert experiment.task.rubric is not None, "it was checked when the setup was chosen"
    return [
        ImprovementTarget(
            number + 1,
            experiment.task.rubric,
            tuple(
                disagreements[(number * SHOWN + place) % count]
                for place in range(min(SHOWN, count))
            ),
            experiment.template,
        )
        for number in range(proposals)
    ]


# --- proposals as experiments --------------------------------------------------------------------


def _knob(chosen: _Setup) -> str:
    """The knob by whose levels proposals differ."""
    return TEMPLATE if chosen.experiment.template else RUBRIC_KNOB


def _variants(chosen: _Setup, made: "Sequence[Proposal]") -> tuple[_Variant, list[_Variant]]:
    """Makes the parent and the proposals that differ from it comparable."""
    experiment = chosen.experiment
    rubric = experiment.task.rubric
    assert rubric is not None, "it was checked when the setup was chosen"
    if experiment.template:
        base = _Variant(0, experiment.design.prompt.template, rubric, experiment.template)
        stem, dot, ending = template_file(base.level).rpartition(".")
        prompts = [
            _Variant(
                each.number,
                template_level(f"{stem}-{PROPOSAL}-{each.number}{dot}{ending}", each.prompt),
                rubric,
                each.prompt,
            )
            for each in made
            if each.prompt and each.prompt.strip() != experiment.template.strip()
        ]
        return base, prompts
    base = _Variant(0, f"{GIVEN}~{rubric.hash[:8]}", rubric, "")
    return base, [
        _Variant(
            each.number,
            f"{PROPOSAL}-{each.number}~{each.rubric.hash[:8]}",
            replace(each.rubric, reasoning=_history(base.level, each.rubric, rubric)),
            "",
        )
        for each in made
        if each.rubric is not None and each.rubric.hash != rubric.hash
    ]


def _history(parent: str, rubric: Rubric, before: Rubric) -> str:
    """Says what a rubric was revised from, which is stored with it."""
    changes = _diff(_rubric_lines(before), _rubric_lines(rubric))
    return "\n\n".join(filter(None, [f"Revised from {parent}.", changes, rubric.reasoning]))


def _row(
    proposal: "Proposal",
    chosen: _Setup,
    base: _Variant,
    variants: Sequence[_Variant],
    gains: "Mapping[int, QualityGain | None]",
    experiments: Mapping[int, Experiment],
    alpha: float,
) -> ProposalRow:
    variant = next((each for each in variants if each.number == proposal.number), None)
    if variant is None:
        status: ProposalStatus = proposal.status
        if proposal.status == "scored":
            status = "unchanged"
        return {
            "number": proposal.number, "status": status, "tag": None, "diff": "", "difference": None
        }  # fmt: skip
    gain = gains[variant.number]
    low = gain.gain["low"] if gain else None
    lines = [
        each.template.splitlines() if each.template else _rubric_lines(each.rubric)
        for each in (base, variant)
    ]
    return {
        "number": proposal.number,
        "status": "accepted" if low is not None and low > 0 else "not better",
        "tag": experiments[variant.number].tag,
        "diff": _diff(*lines),
        "difference": gain.gain if gain else None,
    }


def _rubric_lines(rubric: Rubric) -> list[str]:
    return [
        line
        for number, stage in enumerate(rubric.stages, 1)
        for line in (f"STAGE {number}: {stage.label}", *(f"- {each}" for each in stage.criteria))
    ]


def _diff(before: Sequence[str], after: Sequence[str]) -> str:
    """Writes a unified diff without names of files; a line of context is the label of a stage."""
    lines = [*difflib.unified_diff(before, after, lineterm="", n=1)]
    return "\n".join(lines[2:])


def _rubric_json(rubric: Rubric) -> str:
    stages = [{"label": stage.label, "criteria": [*stage.criteria]} for stage in rubric.stages]
    return json.dumps({"kind": rubric.kind, "stages": stages}, indent=2, ensure_ascii=False) + "\n"


# --- results -------------------------------------------------------------------------------------


def _decider_keys(labelled: _Labelled) -> dict[str, Any]:
    """The keys of a study that say what decides."""
    names = ("measure", "loss", "positive")
    return {name: labelled.declared[name] for name in names if labelled.declared.get(name)}


def _result(labelled: _Labelled, chosen: _Setup, assistant: str, proposals: int) -> Improvement:
    """The result of a setup that agrees with people on every item of train and dev."""
    revised: Literal["rubric", "prompt"] = "prompt" if chosen.experiment.template else "rubric"
    return {
        "sentence": f"{chosen.name} agrees with people on every labelled item of train and dev; "
        f"there is nothing to revise its {revised} from.",
        "study": labelled.study,
        "setup": chosen.name,
        "revised": revised,
        "assistant": assistant,
        "measure": None,
        "dev": len(labelled.items["dev"]),
        "test": len(labelled.items["test"]),
        "disagreements": 0,
        "proposals": proposals,
        "compared": proposals,
        "alpha": RISK / proposals,
        "rows": [],
        "notes": [],
        "tested": None,
        "accepted": None,
    }


def _best(rows: Sequence[ProposalRow]) -> int | None:
    """The accepted proposal with the largest difference on dev."""
    accepted = [
        (_value(row["difference"]), -row["number"]) for row in rows if row["status"] == "accepted"
    ]
    return -max(accepted)[1] if accepted else None


def _value(quantity: Quantity | None) -> float:
    return quantity["value"] if quantity else float("-inf")


def _sentence(result: Improvement, tested: TestedProposal | None) -> str:
    """Says what came out, in one or two sentences."""
    count = plural(result["proposals"], "proposal")
    revised, setup = result["revised"], result["setup"]
    unread = sum(row["tag"] is None and row["status"] != "unchanged" for row in result["rows"])
    lost = f" {unread} of the answers could not be used." if unread else ""
    if result["accepted"] is None:
        return f"No proposal was better: of {count}, none is sure to improve {setup}.{lost}"
    if tested is None:
        return f"A revised {revised} is better on dev, and could not be compared on test.{lost}"
    low, high = tested["difference"]["low"], tested["difference"]["high"]
    ends = "" if low is None or high is None else f" [{low:+.3f}, {high:+.3f}]"
    before, after = tested["parent"]["value"], tested["proposal"]["value"]
    confirmed = low is not None and low > 0
    verb = "improves" if confirmed else "improved on dev, and is not sure to improve on test,"
    return (
        f"Proposal {tested['number']} {verb} {setup}: {result['measure']} on test is {after:.3f} "
        f"instead of {before:.3f}, a difference of {after - before:+.3f}{ends} "
        f"({tested['difference']['n']} items).{lost}"
    )
