"""Sample: one verdict with its prompt, its answer, how the verdict was read, and its cost."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.axes import NONE, RECORDED, Design
from judge_gym.lab import Lab
from judge_gym.records import Display, Message
from judge_gym.records.palette import judge_colours
from judge_gym.stages.verdicts import deciding_lines
from judge_gym.web.answers import in_words, without_verdict
from judge_gym.web.api.parameters import Id, OpenLab
from judge_gym.web.pages.filters import Filters, Text
from judge_gym.web.pages.items import stage_words
from judge_gym.web.rendering import render

router = APIRouter()
LONGEST = 150_000
"""Characters of a text that a page shows; the API has all of it."""


class Line(NamedTuple):
    """A line of an answer, and whether the verdict was read from it."""

    text: str
    decides: bool


class Call(NamedTuple):
    """A call with its messages and attempts."""

    id: int
    messages: Sequence[Message]
    attempts: Sequence[Mapping[str, Any]]

    @property
    def answer(self) -> str | None:
        """The newest answer, or None if no attempt brought one."""
        answers = [attempt["body"] for attempt in self.attempts if attempt["completed"]]
        return answers[-1] if answers else None


@router.get("/samples/{id}")
def sample(
    request: Request,
    lab: OpenLab,
    id: Id,
    filters: Filters,
    tag: Text = None,
) -> Response:
    """Shows a sample, with links to its neighbours among those that match the filters."""
    row = lab.pages.show_sample(id, tag)
    labels = lab.pages.item_labels(row["tag"], row["evidence"])
    selection = filters.selection()
    after = lab.pages.browse_samples(row["tag"], selection, after=id, limit=1).rows
    before = lab.pages.browse_samples(row["tag"], selection, before=id, limit=1).rows
    [about] = lab.studies.find_tags([row["tag"]])
    design = Design.of(about["design"])
    rubrics = lab.experiments.list_rubrics(row["tag"])
    rubric = next(candidate for candidate in rubrics if candidate["id"] == row["rubric"])
    display = displayed(row, rubric)
    scored = _call(lab, row["call_id"])
    probe = _call(lab, row["probe_call_id"]) if row["probe_call_id"] else None
    judges = [other["design"]["judge.model"] for other in _study_rows(lab, about)]
    names = {stage["label"]: stage["name"] for stage in display}
    return render(
        request,
        "sample.html.j2",
        row=row,
        study=about["study"],
        colour=judge_colours(judges)[about["design"]["judge.model"]],
        item=lab.evidence.show(row["evidence"]),
        in_words=without_verdict(in_words((scored.answer or "")[:LONGEST], names)),
        design=design,
        recorded=about["design"].get(RECORDED),
        rubric=rubric,
        display=display,
        labels=labels,
        known=_known_answer(row, rubric),
        presentation=presentation(design),
        call=scored,
        answer=read(scored.answer, row, display, design),
        probe=probe,
        probe_messages=_new_messages(probe, scored) if probe else [],
        before=before[0]["sample"] if before else None,
        after=after[0]["sample"] if after else None,
        filters=filters,
        longest=LONGEST,
    )


def _study_rows(lab: Lab, row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the experiments of a row's study; the row alone without one."""
    return lab.studies.find_study(row["study"]) if row["study"] else [row]


def _call(lab: Lab, id: int) -> Call:
    return Call(id, *lab.pages.transcript(id))


def _new_messages(probe: Call, scored: Call) -> Sequence[Message]:
    """Returns the messages of a probe that are not part of the conversation that it continues."""
    same = probe.messages[: len(scored.messages)] == scored.messages
    return probe.messages[len(scored.messages) :] if same else probe.messages


def displayed(row: Mapping[str, Any], rubric: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the rubric's stages in the order shown, each with its label and whether chosen."""
    verdict_stages = {int(stage) for stage in row["stages"].split()}
    # A prompt of its own shows no labels of ours.
    numbers = tuple(range(1, len(rubric["stages"]) + 1))
    in_order = Display(tuple(map(str, numbers)), numbers)
    display = Display.parse(row["display"]) if row["display"] else in_order
    return [
        {
            "label": label,
            "stage": stage,
            "name": rubric["stages"][stage - 1][0],
            "criteria": rubric["stages"][stage - 1][1:],
            "chosen": stage in verdict_stages,
        }
        for label, stage in zip(display.labels, display.stages, strict=True)
    ]


def _known_answer(row: Mapping[str, Any], rubric: Mapping[str, Any]) -> str:
    """Returns the known answer by the name of its stage, where the task gives the rubric."""
    names = [stage[0] for stage in rubric["stages"]] if rubric["author"] == "provided" else []
    return stage_words("" if row["truth"] is None else str(row["truth"]), names)


def presentation(design: Design) -> str:
    """Says which of labels and order are shuffled, as the design of the sample has it."""
    if design.prompt.template != NONE:
        return f"it was asked in words of its own, {design.prompt.template}, which stand below."
    shuffles = design.presentation.resolve()
    labels, order = shuffles.shuffle_labels, shuffles.shuffle_order
    if labels and order:
        return "labels and order are shuffled for each item and repeat."
    if labels:
        return "labels are shuffled for each item and repeat; the stages stand in order."
    if order:
        return "the order is shuffled for each item and repeat; each stage keeps its label."
    return "labels and order are the same for every item and repeat."


def read(
    answer: str | None,
    row: Mapping[str, Any],
    display: Sequence[Mapping[str, Any]],
    design: Design,
) -> list[Line]:
    """Returns an answer's lines, and whether the verdict was read from each."""
    if answer is None:
        return []
    if design.prompt.template != NONE:
        return _own_lines(answer, row["verdict_line"])
    verdict = design.verdict.resolve()
    # Of a pair shown in reverse the row has the stages of the responses, not those shown.
    names = {stage["label"]: stage["name"] for stage in display}
    lines = answer.splitlines()
    if verdict.json:
        named = [number for number, line in enumerate(lines) if '"verdict"' in line.lower()]
        marked: Sequence[int] = named[-1:]
    else:
        marked = deciding_lines(
            answer,
            list(names),
            method=verdict.method,
            abstain=verdict.abstain,
            names=None if row["flipped"] else names,
        )
    return [Line(line, number in marked) for number, line in enumerate(lines)]


def _own_lines(answer: str, verdict: str | None) -> list[Line]:
    """Returns an answer's lines; of a prompt of its own, the last one with the verdict decides."""
    lines = answer.splitlines()
    named = [number for number, line in enumerate(lines) if verdict and verdict in line]
    return [Line(line, number in named[-1:]) for number, line in enumerate(lines)]
