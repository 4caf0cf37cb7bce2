"""Items of a study: a grid of items and setups, and a drawer with the answers on one of them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.lab import Lab
from judge_gym.records import STATUSES, Status
from judge_gym.records.palette import judge_colours
from judge_gym.records.responses import ItemChoices
from judge_gym.web.answers import in_words, label_names, without_verdict
from judge_gym.web.api.parameters import LARGEST, Name, OpenLab
from judge_gym.web.pages.evidence import word_differences
from judge_gym.web.pages.filters import EMPTY_IS_NONE, Number, QueryFilter, Text
from judge_gym.web.rendering import render

router = APIRouter()
PAGE = 50
"""Items per page."""
HEIGHT, WIDTH = 16, 7
"""The size of the bar of a stage, in pixels."""
LONGEST = 20_000
"""Characters of a text that the drawer shows."""
FEW_RATERS = 5
"""People whose labels of an item are listed one by one; those of more are counted."""


class ItemFilter(QueryFilter):
    """Which items are shown, in which order, with which columns."""

    search: Text = None
    task: Text = None
    status: Annotated[Status | None, EMPTY_IS_NONE] = None
    wrong: Annotated[Literal["1"] | None, EMPTY_IS_NONE] = None
    differs: Annotated[Literal["1"] | None, EMPTY_IS_NONE] = None
    verdict: Text = None
    label: Text = None
    truth: Text = None
    setup: Annotated[list[Name], Field(max_length=100)] = []
    after: Annotated[Annotated[int, Field(ge=0, le=LARGEST)] | None, EMPTY_IS_NONE] = None
    sort: Literal["disagreement", "people", "position"] = "disagreement"

    def asked(self) -> dict[str, Any]:
        """Returns the filter as the lab takes it."""
        taken = {"search", "task", "status", "sort", "verdict", "label", "truth"}
        return {
            **self.model_dump(include=taken),
            "wrong": self.wrong is not None,
            "differs": self.differs is not None,
            "setups": self.setup,
        }


def _filters(filters: Annotated[ItemFilter, Query()]) -> ItemFilter:
    """Reads the model in a function of its own, as FastAPI needs beside other parameters."""
    return filters


Filters = Annotated[ItemFilter, Depends(_filters)]


class Bar(NamedTuple):
    """A stage in the picture of a cell: how many verdicts fell on it."""

    x: float
    y: float
    width: float
    height: float


class CellView(NamedTuple):
    """What a setup said about an item, as it is shown."""

    setup: str
    verdict: str
    unlike: str
    """What the usual verdict is not, though it should be: the known answer, what people said."""
    bars: Sequence[Bar]
    width: float
    other: str
    """Answers without a verdict: `1 abstained`."""
    unscored: int
    """The number of these."""
    spoken: str
    """The verdicts in words."""
    text: str
    """The mean stage on an ordered scale of more than two, else the usual verdict."""
    kind: str
    """`stage` if shaded by its stage, `right`, `wrong`, `plain`, or `none` without a verdict."""
    shade: int
    """From 0, the first stage, to 10, the last."""


@router.get("/studies/{name}/items")
def items(
    request: Request,
    lab: OpenLab,
    name: Name,
    filters: Filters,
    of: Text = None,
    item: Number = None,
    a: Text = None,
    b: Text = None,
) -> Response:
    """Shows a page of items, and the drawer of one of them if the address names it."""
    lab.studies.check_study(name)
    criteria = filters.asked()
    cursor = str(filters.after) if filters.after else None
    page = lab.experiments.page_items(name, after=cursor, limit=PAGE, **criteria)
    setups = lab.experiments.list_setups(name)
    visible = [one for one in setups if not filters.setup or one["setup"] in filters.setup]
    choices = lab.pages.item_choices(name)
    start = filters.after or 0
    opened = of is not None and item is not None
    return render(
        request,
        "study_items.html.j2",
        **study_page(name, "items", [one["judge"] for one in setups]),
        rows=[item_view(row) for row in page.rows],
        setups=[setup_view(one) for one in setups],
        recorded=lab.recordings.note(name),
        shown=[setup_view(one) for one in visible],
        narrowed=_narrowed(filters),
        judges={one["setup"]: one["judge"] for one in setups},
        tasks=lab.pages.list_tasks(name),
        statuses=STATUSES,
        filters=filters,
        found=lab.pages.count_items(name, **criteria),
        choices=choices,
        shortcuts=_shortcuts(lab, name, filters, choices),
        start=start,
        next=page.next,
        previous=None if not start else max(0, start - PAGE),
        drawer=drawer(lab, name, filters, of or "", item or 0, a, b) if opened else None,
    )


def _narrowed(filters: ItemFilter) -> list[dict[str, str]]:
    """Returns the filters that are on, each in words with the query without it."""
    words = {
        "search": "contains “{}”",
        "task": "{}",
        "status": "has an answer that is {}",
        "verdict": "verdict {}",
        "label": "most people said {}",
        "truth": "known answer {}",
    }
    chosen = filters.model_dump(include={*words}, exclude_none=True)
    return [
        {
            "words": words[name].format(str(value).replace("_", " ")),
            "query": filters.query(**{name: None, "after": None}),
        }
        for name, value in chosen.items()
    ]


def _shortcuts(
    lab: Lab, study: str, filters: ItemFilter, choices: ItemChoices
) -> list[dict[str, Any]]:
    """Returns the lists that a link leads to: all items, disagreements with people, wrong ones."""
    lists: list[tuple[str, dict[str, str]]] = [("All items", {})]
    if choices["labels"]:
        lists.append(("Disagreements with people", {"differs": "1", "sort": "people"}))
    if choices["truths"]:
        lists.append(("Wrong verdicts", {"wrong": "1"}))
    columns = {"setup": filters.setup} if filters.setup else {}
    narrowed = filters.model_dump(exclude={"setup", "after", "sort"}, exclude_none=True)
    return [
        {
            "title": title,
            "query": urlencode({**columns, **query}, doseq=True),
            "items": lab.pages.count_items(
                study,
                setups=filters.setup,
                differs="differs" in query,
                wrong="wrong" in query,
            ),
            "current": {**narrowed, "sort": "people"} == {**query, "sort": "people"},
        }
        for title, query in lists
    ]


@router.get("/parts/item")
def part(
    request: Request,
    lab: OpenLab,
    study: Annotated[Name, Query()],
    filters: Filters,
    of: Annotated[Name, Query()],
    item: Annotated[int, Query(ge=1, le=LARGEST)],
    a: Text = None,
    b: Text = None,
) -> Response:
    """Returns a part of the page: the drawer of an item."""
    setups = lab.experiments.list_setups(study)
    return render(
        request,
        "_item.html.j2",
        **study_page(study, "items", [row["judge"] for row in setups]),
        filters=filters,
        drawer=drawer(lab, study, filters, of, item, a, b),
    )


def study_page(name: str, tab: str, judges: Sequence[str] = ()) -> dict[str, Any]:
    """Returns what every tab of a study needs: its name, the open tab, and colours of judges."""
    return {"study": name, "tab": tab, "colours": judge_colours(judges)}


def all_judges(lab: Lab, study: str) -> list[str]:
    """Returns the judges of all setups of a study, so that each has one colour on every page."""
    return [row["judge"] for row in lab.experiments.list_setups(study)]


def setup_view(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a setup with the parts of its name: the judge, and what differs."""
    name, *differing = row["setup"].split(", ")
    return {**row, "name": name, "differing": differing}


def drawer(
    lab: Lab,
    study: str,
    filters: ItemFilter,
    of: str,
    item: int,
    a: str | None,
    b: str | None,
) -> dict[str, Any]:
    """Returns an item with all answers, and two of them side by side with their difference."""
    criteria = {key: value for key, value in filters.asked().items() if key != "task"}
    detail = lab.experiments.show_item(item, study, of, **criteria)
    text = lab.evidence.show(item)
    answers = [answer for answer in detail["answers"] if answer["samples"]]
    pair = _pair(answers, a, b)
    usual = {cell["setup"]: cell["verdict"] for cell in detail["cells"]}
    return {
        **detail,
        "cells": {cell["setup"]: cell_view(detail, cell) for cell in detail["cells"]},
        "text": text["text"][:LONGEST],
        "responses": [response[:LONGEST] for response in text["responses"]],
        "answers": [
            {
                **setup_view(answer),
                "typical": _answer_view(_typical(answer["samples"], usual[answer["setup"]])),
                "samples": [_answer_view(row) for row in answer["samples"]],
                "reruns": [_answer_view(row) for row in answer["reruns"]],
            }
            for answer in answers
        ],
        "by_stage": detail["ordinal"] and detail["n_stages"] > 2,
        "pair": _compared(pair, detail["cells"]) if pair else [],
        "known": stage_words(str(detail["truth"] or ""), detail["stages"]),
    }


def _pair(answers: Sequence[Mapping[str, Any]], a: str | None, b: str | None) -> Any:
    """Returns the setups to compare: those chosen, else the two whose verdicts lie furthest."""
    if len(answers) < 2:
        return None
    named = {one["setup"]: one for one in answers}
    ordered = sorted(answers, key=lambda one: _mean_stage(one["samples"]))
    first = named.get(a or "", ordered[0])
    second = named.get(b or "", ordered[-1])
    if first is second:
        second = next(one for one in (*reversed(ordered), *ordered) if one is not first)
    return first, second


def _mean_stage(samples: Sequence[Mapping[str, Any]]) -> float:
    stages = [int(stage) for row in samples for stage in row["stages"].split()]
    return sum(stages) / len(stages) if stages else 0.0


def _compared(
    setups: Sequence[Mapping[str, Any]], cells: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns two setups with a typical answer each, in which the words that differ are marked."""
    usual = {cell["setup"]: cell["verdict"] for cell in cells}
    texts = [_typical(setup["samples"], usual[setup["setup"]]) for setup in setups]
    written = [_in_words(row) for row in texts]
    words = word_differences(*written)
    marked = words[::-1] if words else [[(text, False)] for text in written]
    return [
        {
            "setup": setup["setup"],
            "judge": setup["judge"],
            "sample": row,
            "verdict": _answer_view(row)["verdict"],
            "pieces": pieces,
        }
        for setup, row, pieces in zip(setups, texts, marked, strict=True)
    ]


def _in_words(row: Mapping[str, Any]) -> str:
    """Returns an answer with the names of stages in place of their labels, or its error."""
    if row["text"] is None:
        return str(row["error"] or "")
    names = label_names(row["display"], [stage[0] for stage in row["rubric_stages"]])
    return in_words(row["text"][:LONGEST], names)


def _answer_view(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an answer as the drawer shows it: its verdict, and the rest in words."""
    names = [stage[0] for stage in row["rubric_stages"]]
    verdict = stage_words(row["stages"], names) if row["stages"] else row["status"]
    return {**row, "verdict": verdict.replace("_", " "), "body": without_verdict(_in_words(row))}


def _typical(samples: Sequence[Mapping[str, Any]], usual: str) -> Mapping[str, Any]:
    """Returns the first sample with the usual verdict; the first of all if there is none."""
    return next((row for row in samples if row["stages"] == usual), samples[0])


def stage_words(stages: str, names: Sequence[str]) -> str:
    """Writes stages by their names where these are known, else by their numbers.

    >>> stage_words("1 2", ["fail", "pass"]), stage_words("2", []), stage_words("refused", [])
    ('fail or pass', '2', 'refused')
    """
    numbers = [int(stage) for stage in stages.split() if stage.isdigit()]
    if not numbers or max(numbers) > len(names):
        return stages.replace("_", " ")
    return " or ".join(names[number - 1] for number in numbers)


def item_view(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an item as its row shows it, with the words of the labels."""
    return {
        **row,
        "known": stage_words(str(row["truth"] or ""), row["stages"]),
        "cells": [cell_view(row, cell) for cell in row["cells"]],
        "raters": _raters(row),
        "people_shade": shade(row["people_mean"], row["n_stages"]),
        "by_stage": row["ordinal"] and row["n_stages"] > 2,
    }


def _raters(row: Mapping[str, Any]) -> str:
    """Returns the stages that people gave, each as often as it was given: `2 2 1`.

    >>> _raters({"stages": ["no", "so", "yes"], "people": {"no": 1, "yes": 2}})
    '3 3 1'
    """
    numbers = {name: str(number) for number, name in enumerate(row["stages"], 1)}
    given = {numbers.get(label, label): count for label, count in row["people"].items()}
    if sum(given.values()) > FEW_RATERS:
        return " ".join(f"{label}×{count}" for label, count in sorted(given.items(), reverse=True))
    return " ".join(label for label in sorted(given, reverse=True) for _ in range(given[label]))


def cell_view(row: Mapping[str, Any], cell: Mapping[str, Any]) -> CellView:
    """Returns what a cell shows: the usual verdict, and a bar for each stage."""
    scored = {verdict: n for verdict, n in cell["verdicts"].items() if verdict[:1].isdigit()}
    unscored = {verdict: n for verdict, n in cell["verdicts"].items() if verdict not in scored}
    total, names = sum(cell["verdicts"].values()), row["stages"]
    width = min(WIDTH, 90 / max(row["n_stages"], 1))
    bars = []
    for stage in range(1, row["n_stages"] + 1):
        share = sum(
            n / len(verdict.split())
            for verdict, n in scored.items()
            if str(stage) in verdict.split()
        )
        height = HEIGHT * share / total if total else 0.0
        bars.append(Bar((stage - 1) * (width + 1), HEIGHT - height, width, height))
    words = [f"{stage_words(name, names)} ×{n}" for name, n in (scored | unscored).items()]
    references = {"the known answer": row["truth"], "what most people said": row["majority"]}
    unlike = [
        what
        for what, stage in references.items()
        if cell["verdict"] and stage and str(stage) not in cell["verdict"].split()
    ]
    by_stage = row["ordinal"] and row["n_stages"] > 2 and cell["mean"] is not None
    verdict = stage_words(cell["verdict"], names)
    reference = row["truth"] or row["majority"]
    judged = "plain" if not reference else "wrong" if unlike else "right"
    return CellView(
        cell["setup"],
        verdict,
        f"not {' and not '.join(unlike)}" if unlike else "",
        bars if scored else (),
        row["n_stages"] * (width + 1),
        ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in unscored.items()),
        sum(unscored.values()),
        ", ".join(words) or "not judged",
        f"{cell['mean']:.1f}" if by_stage else stage_words(cell["verdict"], short_names(names)),
        "stage" if by_stage else judged if cell["verdict"] else "none",
        shade(cell["mean"], row["n_stages"]) if by_stage else 0,
    )


def short_names(names: Sequence[str]) -> list[str]:
    """Returns names without the last words that all share, and without an article before them.

    >>> short_names(["The first is better", "Neither is better"]), short_names(["fail", "pass"])
    (['first', 'Neither'], ['fail', 'pass'])
    """
    words = [name.split() for name in names]
    while len(words) > 1 and all(len(row) > 1 for row in words) and len({r[-1] for r in words}) < 2:
        words = [row[:-1] for row in words]
    return [" ".join(row[1:] if len(row) > 1 and row[0] == "The" else row) for row in words]


def shade(mean: float | None, stages: int) -> int:
    """Returns how dark a stage is shown, from 0 for the first to 10 for the last.

    >>> shade(1, 4), shade(2.5, 4), shade(4, 4), shade(None, 4)
    (0, 5, 10, 0)
    """
    return 0 if mean is None or stages < 2 else round(10 * (mean - 1) / (stages - 1))
