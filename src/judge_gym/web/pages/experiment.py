"""One experiment: what it is, how far it is, what its judge chose, and every sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.axes import Design
from judge_gym.lab import Lab
from judge_gym.records import STATUSES
from judge_gym.web.api.answers import Name, OpenLab
from judge_gym.web.findings import MOST, OpenFindings, count_samples, tidy_samples
from judge_gym.web.pages.filters import PAGE, Filtered, Number, Text
from judge_gym.web.rendering import shown

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.report import Section

router = APIRouter()
NEIGHBOURS = 40
"""Experiments that are offered to be compared with, the most alike first."""
PEERS = 12
"""Judges beside whom a judge's calibration is told."""
TORN = 30
"""Conflicting cells that are listed; the samples' filter finds all."""
TASK = ("task_type", "concept", "country", "pool_name")


@router.get("/experiments/{tag:path}")
def experiment(
    request: Request,
    lab: OpenLab,
    tag: Name,
    asked: Filtered,
    against: Text = None,
    after: Number = None,
    before: Number = None,
) -> Response:
    """What it is, how far it is, and a page of its samples."""
    [row] = lab.store.queries.tags(tags=[tag])
    rubrics = lab.list_experiment_rubrics(tag)
    found = lab.store.queries.browse(
        tag, asked.which(), after=None if before else after, before=before, limit=PAGE
    )
    return shown(
        request,
        "experiment.html.j2",
        row=row,
        about=lab.get_experiment_summary(tag),
        knobs=knobs(row["design"]),
        neighbours=neighbours(lab, row),
        against=against,
        difference=difference(lab, row, against) if against else [],
        rubrics=rubrics,
        scale=max((rubric["scale"] for rubric in rubrics), default=4),
        samples=found,
        asked=asked,
        statuses=STATUSES,
        paged=after is not None or before is not None,
    )


def knobs(design: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every knob with its level, its default, and the question that it asks."""
    chosen = Design.of(design).chosen()
    return [
        {"path": path, "level": design[path], "set": path in chosen, "question": knob.question}
        for path, knob in Design.knobs().items()
    ]


def neighbours(lab: Lab, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Other experiments of the study, those first that differ from it in least."""
    rows = [one for one in lab.store.queries.tags(study=row["study"]) if one["tag"] != row["tag"]]
    found = [{"tag": one["tag"], "differs": len(_differing(row, one))} for one in rows]
    return sorted(found, key=lambda one: (one["differs"], one["tag"]))[:NEIGHBOURS]


def difference(lab: Lab, row: Mapping[str, Any], tag: str) -> list[dict[str, Any]]:
    """What sets an experiment apart from another: task and knobs, the levels of both."""
    [other] = lab.store.queries.tags(tags=[tag])
    return compared([row, other])


def compared(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What differs among experiments, a row each, with the level of every one of them."""
    designs = [Design.of(row["design"]).values() for row in rows]
    names = dict.fromkeys(name for row in rows[1:] for name in _differing(rows[0], row))
    return [
        {
            "name": name,
            "levels": [
                row[name] if name in TASK else design[name]
                for row, design in zip(rows, designs, strict=True)
            ],
        }
        for name in names
    ]


def _differing(row: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Returns the names of the task's facts and of the knobs in which experiments differ."""
    ours, theirs = row["design"], other["design"]
    task = [name for name in TASK if row[name] != other[name]]
    return task + [name for name in ours if ours[name] != theirs[name]]


# --- what it takes time to say -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What the samples of an experiment say."""

    sections: "tuple[Section, ...]"
    stages: list[dict[str, Any]]
    """By variant and stage: how many verdicts name it, its share, belief and plausibility."""
    torn: list[dict[str, Any]]
    """Items whose replicates conflict."""
    torn_in_all: int = 0
    judges: int = 1
    """How many judges calibration is told of."""


def found(lab: Lab, tags: tuple[str, ...]) -> Found:
    """What the samples of one experiment say; probes beside those of judges of the same design."""
    from judge_gym.analysis.consistency import conflicting_cells
    from judge_gym.analysis.report import disagreement, experts, verdicts
    from judge_gym.analysis.report.material import Material

    [tag] = tags
    frame = tidy_samples(lab, tags)
    if frame is None:
        return Found((), [], [])
    own = frame[~frame["is_swap"]]
    peers = _peers(lab, tag)
    beside = frame if len(peers) == 1 else tidy_samples(lab, peers)
    assert beside is not None
    made = Material(frame)
    believed = disagreement.what_is_believed(made)
    parts = [
        verdicts.how_answers_ended(frame),
        verdicts.where_judges_place_it(made),
        believed,
        verdicts.how_steady(made),
        experts.what_judges_say_of_experts(made if beside is frame else Material(beside)),
        experts.whose_rubric(made),
    ]
    single = own[~own["pair"]]
    torn = conflicting_cells(single)
    titles = dict(zip(own["evidence"], own["evidence_title"], strict=True))
    told = torn[["evidence", "conflict", "effective_n"]].head(TORN)
    listed = told.itertuples(index=False, name=None)
    return Found(
        sections=tuple(part for part in parts if part is not None),
        stages=_stages(own, believed),
        torn=[
            {"evidence": item, "title": titles[item], "conflict": conflict, "verdicts": n}
            for item, conflict, n in listed
        ],
        torn_in_all=len(torn),
        judges=len(peers),
    )


def _peers(lab: Lab, tag: str) -> list[str]:
    """Experiments of the study that differ in their judge alone, itself first."""
    [row] = lab.store.queries.tags(tags=[tag])
    peers, held = [tag], count_samples(lab, tag)
    for one in lab.store.queries.tags(study=row["study"]):
        if len(peers) < PEERS and _differing(row, one) == ["judge.model"]:
            held += count_samples(lab, one["tag"])
            if held <= MOST:
                peers.append(one["tag"])
    return peers


def _stages(own: "pd.DataFrame", said: "Section | None") -> list[dict[str, Any]]:
    from judge_gym.analysis.endpoints import distributions
    from judge_gym.analysis.frames import CELL

    scored = own[own["status"] == "scored"]
    if scored.empty:
        return []
    shares = distributions(own, CELL).set_index(["variant", "stage"])["share"].to_dict()
    believed = {
        (row["variant"], row["stage"]): row
        for table in (said.tables if said else ())
        if table.title == "Belief and plausibility"
        for row in table.frame.to_dict("records")
    }
    rows = []
    for variant, part in scored.groupby("variant", sort=False):
        masks = part["mask"].to_numpy()
        for stage in range(1, int(part["n_stages"].max()) + 1):
            bit, held = 1 << (stage - 1), believed.get((variant, stage), {})
            rows.append(
                {
                    "variant": variant,
                    "stage": stage,
                    "named": int(((masks & bit) > 0).sum()),
                    "alone": int((masks == bit).sum()),
                    "share": shares.get((variant, stage), 0.0),
                    **{name: held.get(name) for name in ("belief", "pignistic", "plausibility")},
                }
            )
    return rows


@router.get("/parts/experiment")
def parts(request: Request, findings: OpenFindings, tag: Name) -> Response:
    """What the samples say, for the page of their experiment."""
    return shown(request, "_experiment.html.j2", tag=tag, found=findings.of(found, [tag]))


@router.get("/parts/experiment/usage")
def usage(request: Request, lab: OpenLab, tag: Name) -> Response:
    """What an experiment cost, by stage and model."""
    rows = lab.store.queries.usage(by=("stage", "model"), tag=tag)
    return shown(request, "_usage.html.j2", rows=rows)
