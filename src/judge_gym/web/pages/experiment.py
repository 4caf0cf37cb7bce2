"""Experiment: its progress, its results, every sample, its design and its rubrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.axes import CONTESTED, RECORDED, Design, find_knob
from judge_gym.lab import Lab
from judge_gym.records import STATUSES
from judge_gym.web.analysis_cache import MAX_SAMPLES, Analyses, count_samples, tidy_samples
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.pages.filters import PAGE, Filters, Number, Text
from judge_gym.web.rendering import render

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.report import Section

router = APIRouter()
NEIGHBOURS = 40
"""Experiments that are offered for comparison, the most similar first."""
PEERS = 12
"""Judges with which a judge's calibration is compared."""
SHAPES = "Shapes of verdicts by judge"
"""The figure in which one judge alone is a bar of 100 %."""
CONFLICTING = 30
"""Items with conflicting repeats that are listed; the samples' filter finds all."""
TASK = ("task_type", "concept", "country", "pool_name")


@router.get("/experiments/{tag:path}")
def experiment(
    request: Request,
    lab: OpenLab,
    tag: Name,
    filters: Filters,
    against: Text = None,
    after: Number = None,
    before: Number = None,
) -> Response:
    """Shows an experiment with one page of its samples."""
    [row] = lab.studies.find_tags([tag])
    rubrics = lab.experiments.list_rubrics(tag)
    samples = lab.pages.browse_samples(
        tag, filters.selection(), after=None if before else after, before=before, limit=PAGE
    )
    return render(
        request,
        "experiment.html.j2",
        row=row,
        summary=lab.experiments.show(tag),
        knobs=knobs(row["design"], row["protocol"]),
        recorded=row["design"].get(RECORDED),
        neighbours=neighbours(lab, row),
        against=against,
        difference=differences(lab.studies.find_tags([tag, against])) if against else [],
        rubrics=rubrics,
        stages={rubric["id"]: [stage[0] for stage in rubric["stages"]] for rubric in rubrics},
        scale=max((rubric["scale"] for rubric in rubrics), default=4),
        samples=samples,
        filters=filters,
        statuses=STATUSES,
        paged=after is not None or before is not None,
    )


def knobs(design: Mapping[str, Any], protocol: str) -> list[dict[str, Any]]:
    """Returns every knob with its level, whether it was chosen, and its research question."""
    chosen_paths = Design.of(design).chosen(protocol)
    return [
        {
            "path": path,
            "level": level,
            "set": path in chosen_paths,
            "question": find_knob(path).question,
        }
        for path, level in design.items()
    ]


def neighbours(lab: Lab, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns other experiments of the study, the most similar first."""
    rows = [
        {"tag": other["tag"], "differences": len(_differing(row, other))}
        for other in lab.studies.find_study(row["study"])
        if other["tag"] != row["tag"]
    ]
    return sorted(rows, key=lambda other: (other["differences"], other["tag"]))[:NEIGHBOURS]


def differences(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the knobs in which experiments differ, each with the level of every experiment."""
    designs = [Design.of(row["design"]).values() for row in rows]
    names = dict.fromkeys(name for row in rows[1:] for name in _differing(rows[0], row))
    return [
        {
            "name": name,
            "levels": [
                row[name] if name in TASK else design.get(name)
                for row, design in zip(rows, designs, strict=True)
            ],
        }
        for name in names
    ]


def _differing(row: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Returns the names of the task's facts and of the knobs in which experiments differ."""
    first, second = row["design"], other["design"]
    task = [name for name in TASK if row[name] != other[name]]
    return task + [name for name in {**first, **second} if first.get(name) != second.get(name)]


# --- results, which are loaded after the page -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExperimentResults:
    """The analysis of an experiment's samples."""

    sections: "tuple[Section, ...]"
    stages: list[dict[str, Any]]
    """By variant and stage: verdicts that name it, its share and, under the protocol, beliefs."""
    conflicting: list[dict[str, Any]]
    """Items whose repeats conflict, the first of them."""
    conflicting_total: int = 0
    judges: int = 1
    """Judges that the section on calibration compares."""
    calibration_title: str = ""
    beliefs: bool = False
    """Whether belief and plausibility of stages are shown."""


def analyse(lab: Lab, tag: str) -> ExperimentResults:
    """Analyses one experiment; calibration uses the probes of all judges of the same design."""
    from judge_gym.analysis.measures.consistency import conflicting_cells
    from judge_gym.analysis.report import ReportInput, verdicts
    from judge_gym.analysis.verdicts import Dataset

    frame = tidy_samples(lab, [tag])
    if frame is None:
        return ExperimentResults((), [], [])
    without_swaps = frame[~frame["is_swap"]]
    report_input = ReportInput(Dataset(frame))
    parts = [
        verdicts.response_outcomes(report_input),
        verdicts.chosen_stages(report_input),
        verdicts.consistency_across_repeats(report_input),
    ]
    peers = [tag]
    beliefs = calibration = None
    if (frame["protocol"] == CONTESTED).any():
        from judge_gym.protocols import report as protocol

        peers = _peers(lab, tag)
        peer_frame = tidy_samples(lab, peers) if len(peers) > 1 else None
        peers_given = report_input if peer_frame is None else ReportInput(Dataset(peer_frame))
        beliefs = protocol.decisiveness(report_input)
        calibration = protocol.overconfidence(peers_given)
        parts[2:2] = [beliefs]
        parts += [calibration, protocol.rubric_author(report_input)]
    conflicts = conflicting_cells(without_swaps[~without_swaps["pair"]])
    titles = dict(zip(without_swaps["evidence"], without_swaps["evidence_title"], strict=True))
    listed = conflicts[["evidence", "conflict", "effective_n"]].head(CONFLICTING)
    return ExperimentResults(
        sections=tuple(_of_one_judge(part) for part in parts if part is not None),
        stages=_stages(without_swaps, beliefs),
        conflicting=[
            {"evidence": item, "title": titles[item], "conflict": conflict, "verdicts": n}
            for item, conflict, n in listed.itertuples(index=False, name=None)
        ],
        conflicting_total=len(conflicts),
        judges=len(peers),
        calibration_title=calibration.title if calibration else "",
        beliefs=beliefs is not None,
    )


def _of_one_judge(section: "Section") -> "Section":
    """Returns a section without the figure that compares judges, of which there is one here."""
    charts = tuple(chart for chart in section.charts if chart.title != SHAPES)
    return replace(section, charts=charts)


def _peers(lab: Lab, tag: str) -> list[str]:
    """Returns the experiment and those of the study that differ from it in the judge only."""
    [row] = lab.studies.find_tags([tag])
    peers, samples = [tag], count_samples(lab, tag)
    for other in lab.studies.find_study(row["study"]):
        if len(peers) < PEERS and _differing(row, other) == ["judge.model"]:
            samples += count_samples(lab, other["tag"])
            if samples <= MAX_SAMPLES:
                peers.append(other["tag"])
    return peers


def _stages(own: "pd.DataFrame", beliefs: "Section | None") -> list[dict[str, Any]]:
    from judge_gym.analysis.endpoints import distributions
    from judge_gym.analysis.frames import CELL, NAMES_APART

    scored = own[own["status"] == "scored"]
    if scored.empty:
        return []
    shares = distributions(own, CELL).set_index(["variant", "stage"])["share"].to_dict()
    by_stage = {
        (row["variant"], row["stage"]): row
        for table in (beliefs.tables if beliefs else ())
        if table.title == "Belief and plausibility"
        for row in table.frame.to_dict("records")
    }
    rows = []
    for variant, part in scored.groupby("variant", sort=False):
        masks = part["mask"].to_numpy()
        texts = part["stage_names"].unique()
        names = str(texts[0]).split(NAMES_APART) if len(texts) == 1 and texts[0] else []
        for stage in range(1, int(part["n_stages"].max()) + 1):
            bit, belief = 1 << (stage - 1), by_stage.get((variant, stage), {})
            rows.append(
                {
                    "variant": variant,
                    "stage": stage,
                    "name": names[stage - 1] if stage <= len(names) else "",
                    "named": int(((masks & bit) > 0).sum()),
                    "alone": int((masks == bit).sum()),
                    "share": shares.get((variant, stage), 0.0),
                    **{name: belief.get(name) for name in ("belief", "pignistic", "plausibility")},
                }
            )
    return rows


@router.get("/parts/experiment")
def parts(request: Request, analyses: Analyses, tag: Name) -> Response:
    """Returns a part of the page: the results."""
    results = analyses.experiment(analyse, tag)
    return render(request, "_experiment.html.j2", tag=tag, results=results)


@router.get("/figures/experiment/{name}.svg")
def figure(
    analyses: Analyses,
    name: Name,
    tag: Annotated[Name, Query()],
    theme: Literal["light", "dark"] = "light",
) -> Response:
    """Returns a figure of the results as an image of its own, so that no page waits for it."""
    svg = analyses.figure(analyse, tag, name, theme)
    return Response(svg, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})


@router.get("/parts/experiment/usage")
def usage(request: Request, lab: OpenLab, tag: Name) -> Response:
    """Returns a part of the page: the cost by step and model."""
    rows = lab.pages.experiment_usage(tag)
    return render(request, "_experiment_usage.html.j2", rows=rows)
