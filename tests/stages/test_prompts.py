"""What models are asked: pinned to the byte per stage and level, blind, and keyed by content.

`make snapshots` writes tests/snapshots anew; read the diff before you commit it.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines import replace_engine
from judge_gym.axes import CONTESTED, NONE, PROTOCOLS, Design
from judge_gym.engine import Engine
from judge_gym.lab import Lab
from judge_gym.models import Model, Registry
from judge_gym.records import (
    STAGES,
    Completion,
    Draw,
    Evidence,
    Message,
    NominalRubric,
    OrdinalRubric,
    Pool,
    Request,
    RubricStage,
    StageName,
    content_hash,
)
from judge_gym.stages import (
    Critic,
    Neutralizer,
    Prober,
    ProbeTarget,
    Rubricer,
    RubricTarget,
    Scorer,
    ScoreTarget,
)
from judge_gym.studies import Experiment, Task, resolve_design
from tables import each_row

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
WRITE = os.environ.get("WRITE_SNAPSHOTS") == "1"
ASSISTED = {
    "judge.model": "sim:strict",
    "evidence.view": "neutralized",
    "evidence.editor": "google:gemini-2.5-flash",
    "rubric.critic": "google:gemini-2.5-flash",
}
BASE = Design.of({**PROTOCOLS[CONTESTED], **ASSISTED})
NEUTRAL = Design.of(ASSISTED)
"""The words of a study without a protocol, with an editor and a critic."""
SEED = 7
ITEM = Evidence(
    "A title", "In an alarming move, the ministry dismissed two judges on 3 May, the Gazette wrote."
)
VIEW = "Two judges were dismissed by the ministry on 3 May, according to the Gazette."
OWN_PROMPT = """---
read: last line
system: You grade texts. Answer in the last line with one of {labels}.
---
Grade <text>{text}</text> by

{rubric}

as {"grade": ...}, or write ABSTAIN.
"""
LEVELS = [
    (path, level)
    for path, knob in Design.knobs().items()
    for level in knob.levels
    if level != BASE.values()[path]
]


def rubric(scale: int) -> OrdinalRubric:
    stages = tuple(
        RubricStage(f"Label number {n}", (f"first sign of {n}", f"second sign of {n}"))
        for n in range(1, scale + 1)
    )
    return OrdinalRubric(stages, "sim:strict", "fascism", "Valdoria")


def answer(design: Design, labels: tuple[str, ...]) -> Completion:
    """A verdict in the form that a design asks for."""
    subset = design.verdict.method == "subset"
    chosen = labels[:2] if subset else labels[:1]
    text = f"The criteria fit.\nVERDICT: {', '.join(chosen)}"
    if design.verdict.output == "json":
        verdict: Any = list(chosen) if subset else chosen[0]
        text = json.dumps({"reasoning": "The criteria fit.", "verdict": verdict})
    return Completion(text, "stop", design.judge.model, 1, 1, 0.0)


def asked(design: Design) -> dict[StageName, list[Request]]:
    """What each stage asks for one item and one replicate, from evidence to probe."""
    strategy = design.rubric.resolve(design.judge.model)
    editor = design.evidence.resolve().editor
    criteria, text = rubric(design.rubric.scale), VIEW if editor else ITEM.text
    own = OWN_PROMPT if design.prompt.template != NONE else ""
    scorer, prober = Scorer(design, SEED, str(SEED), own), Prober(design, SEED, str(SEED))
    target = ScoreTarget(criteria, ITEM, text, replicate=0)
    reply = answer(design, scorer.display(target).labels)
    if own:
        reply = replace(reply, text="Fits.\n**Label number 2.**")
    sample = scorer.read(target, reply)
    assert sample.status == "scored"
    return {
        "neutralizer": Neutralizer(design).requests([ITEM]) if editor else [],
        "rubricer": Rubricer(design, SEED).requests(
            [
                RubricTarget(strategy.author, "fascism", "Valdoria", draw)
                for draw in range(strategy.draws)
                if strategy.author
            ]
        ),
        "critic": Critic(design).requests([criteria] if strategy.critic else []),
        "scorer": scorer.requests([target]),
        "prober": prober.requests([ProbeTarget(sample, text, reply.text)]),
    }


# --- snapshots -----------------------------------------------------------------------------------


def fields(requests: list[Request]) -> dict[str, str]:
    """Everything of a stage's requests but their messages."""
    first = requests[0]
    return {
        "requests": str(len(requests)),
        "model": first.model,
        "series": first.draw.series,
        "index": ", ".join(str(request.draw.index) for request in requests),
        "temperature": str(first.temperature),
        "max_tokens": str(first.max_tokens),
        "schema": json.dumps(first.schema),
    }


def words(requests: list[Request]) -> str:
    """The messages of a stage; requests that differ in their draw alone count once."""
    conversations = dict.fromkeys(
        "\n".join(f"--- {message.role}\n{message.content}" for message in request.messages)
        for request in requests
    )
    return "\n".join(conversations)


def whole(stage: StageName, requests: list[Request]) -> str:
    head = "\n".join(f"{name}: {value}" for name, value in fields(requests).items())
    return f"=== {stage}\n{head}\n{words(requests)}\n"


def difference(stage: StageName, before: list[Request], after: list[Request]) -> str:
    """What a level changes in what a stage asks; empty where it changes nothing."""
    if before == after:
        return ""
    if not after:
        return f"=== {stage}\nnot asked\n"
    was, now = fields(before), fields(after)
    changed = [f"{name}: {was[name]} -> {now[name]}" for name in was if was[name] != now[name]]
    text = words(after) if words(after) != words(before) else "the messages of the base"
    return "\n".join([f"=== {stage}", *changed, text, ""])


def snapshot_name(path: str, level: Any) -> str:
    name = f"{path}={level}"
    plain = re.sub(r"[^\w.=-]+", "-", name)
    return plain if plain == name and len(name) <= 64 else f"{plain[:56]}~{content_hash(name)[:6]}"


def compare(name: str, text: str) -> None:
    """Check a text against its snapshot, or write it."""
    path = SNAPSHOTS / f"{name}.txt"
    if WRITE:
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; run `make snapshots` and read the diff"
    told = "published wording is a contract; if you mean it, run `make snapshots`, read the diff"
    assert path.read_text(encoding="utf-8") == text, f"{path.name}: {told}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_prompt_matches_its_snapshot(stage: StageName) -> None:
    compare(f"base-{stage}", whole(stage, asked(BASE)[stage]))


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_prompt_without_a_protocol_matches_its_snapshot(stage: StageName) -> None:
    neutral = whole(stage, asked(NEUTRAL)[stage])
    assert "politic" not in neutral.casefold() and "news" not in neutral.casefold()
    compare(f"neutral-{stage}", neutral)


@each_row(("path", "level"), LEVELS)
def test_a_level_prompt_matches_its_snapshot(path: str, level: Any) -> None:
    base, here = asked(BASE), asked(BASE.replace({path: level}))
    changes = "".join(difference(stage, base[stage], here[stage]) for stage in STAGES)
    text = f"{path} = {level!r}\n\n{changes or 'every request is that of the base'}"
    compare(snapshot_name(path, level), f"{text.rstrip()}\n")


PAIR = Evidence("A title", "What is 2 + 2?", responses=("It is four.", "It is five."))
OPTIONS = NominalRubric(
    (
        RubricStage("The first response is better", ("its answer alone is right",)),
        RubricStage("The second response is better", ("its answer alone is right",)),
        RubricStage("Neither is better", ("both are right, or both are wrong",)),
    ),
    "provided",
    "the better response",
    "",
)
PAIR_ORDERS = Design.knobs()["presentation.pair_order"].levels
CONTEXTS = Design.knobs()["probe.context"].levels


def asked_of_a_pair(design: Design) -> dict[StageName, list[Request]]:
    """What is asked of a judge that holds the first of the two for better, for one replicate."""
    task = Task("benchmark", "the better response", "pairs", Pool((PAIR,)), OPTIONS)
    settled, _ = resolve_design(replace(task, protocol=CONTESTED), design.chosen(CONTESTED))
    made = Experiment("tag", task, settled, SEED)
    scorer, prober = Scorer(settled, SEED, str(SEED)), Prober(settled, SEED, str(SEED))
    requests: dict[StageName, list[Request]] = {"scorer": [], "prober": []}
    for flipped in made.orders:
        target = ScoreTarget(OPTIONS, PAIR, PAIR.text, replicate=0, flipped=flipped)
        shown = scorer.display(target)
        label = shown.labels[shown.stages.index(2 if flipped else 1)]
        said = f"The answer is right.\nVERDICT: {label}"
        sample = scorer.read(target, Completion(said, "stop", design.judge.model, 1, 1, 0.0))
        assert sample.stages == (1,)
        requests["scorer"] += scorer.requests([target])
        requests["prober"] += prober.requests([ProbeTarget(sample, PAIR.text, said)])
    return requests


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("order", PAIR_ORDERS)
def test_a_pair_prompt_matches_its_snapshot(order: str, context: str) -> None:
    design = BASE.replace({"presentation.pair_order": order, "probe.context": context})
    asked = asked_of_a_pair(design)
    text = "".join(whole(stage, requests) for stage, requests in asked.items())
    compare(f"pair-{order}-{context}", text)


def test_every_snapshot_belongs_to_a_stage_or_a_level() -> None:
    names = {f"base-{stage}" for stage in STAGES} | {snapshot_name(*level) for level in LEVELS}
    assert len(names) == len(STAGES) + len(LEVELS), "two levels share a file"
    names |= {f"neutral-{stage}" for stage in STAGES}
    names |= {f"pair-{order}-{context}" for order in PAIR_ORDERS for context in CONTEXTS}
    stale = {path for path in SNAPSHOTS.iterdir() if path.stem not in names}
    if WRITE:
        for path in stale:
            path.unlink()
        stale = set()
    assert not stale, "stale snapshots; run `make snapshots`"


LATE = [level for level in LEVELS if level[0].split(".")[0] in ("verdict", "presentation", "probe")]


@each_row(("path", "level"), LATE)
def test_verdict_presentation_and_probe_change_nothing_before_scoring(
    path: str, level: Any
) -> None:
    base, here = asked(BASE), asked(BASE.replace({path: level}))
    for stage in STAGES[:3]:
        assert here[stage] == base[stage]


def test_requests_are_repeatable() -> None:
    assert asked(BASE) == asked(BASE)


# --- blinding ------------------------------------------------------------------------------------


class RecordingModels(Registry):
    """Simulated judges whose requests are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def open(self, id: str, *, web_search: bool = False) -> Model:
        return RecordingModel(super().open(id, web_search=web_search), self.requests)


class RecordingModel:
    """A model that keeps every request."""

    def __init__(self, model: Model, requests: list[Request]) -> None:
        self.id = model.id
        self._model = model
        self._requests = requests

    async def complete(self, request: Request) -> Completion:
        self._requests.append(request)
        return await self._model.complete(request)


@pytest.fixture
def requests_of(
    tmp_path: Path, write_study: Callable[..., Path]
) -> Callable[..., dict[str, Request]]:
    """Runs a study in a new lab; everything that was asked, by key."""

    def run(**changes: Any) -> dict[str, Request]:
        path = write_study(**changes)
        evidence = tmp_path / "evidence.jsonl"
        rows = [json.loads(line) for line in evidence.read_text().splitlines()]
        marks = {
            "title": "zq-title",
            "url": "https://zq.example/item",
            "date": "1999-09-09",
            "source": "zq-source",
            "truth": "zq-truth",
            "metadata": {"zq-key": "zq-value"},
        }
        evidence.write_text("\n".join(json.dumps({**row, **marks}) for row in rows))
        models = RecordingModels()
        with Lab.open(f"sqlite:///{tmp_path / content_hash(str(changes))[:8]}.db") as lab:
            replace_engine(lab, Engine(lab.store, models))
            result = lab.runs.run(path)
        assert result.status == "complete", result.warnings
        assert models.requests
        return {request.key(): request for request in models.requests}

    return run


SECRETS = {
    "dose": 31.41592,
    "truth": {"source": "zq-index", "value": 0.271828, "label": "zq-label", "direction": "down"},
}
TASK = {"concept": "fascism", "evidence": "here"}
TOLD = ("zq", "1999", "31.4159", "0.271828", "ecc", "benchmark", "dose", "ground truth")


def systems(requests: dict[str, Request]) -> set[str]:
    return {request.messages[0].content for request in requests.values()}


def test_prompts_do_not_reveal_the_task_type_nor_annotations(
    requests_of: Callable[..., dict[str, Request]],
) -> None:
    control = requests_of(study="zq", tasks=[{**TASK, **SECRETS, "type": "control"}], swap="all")
    ecc = requests_of(study="plain", tasks=[{**TASK, "type": "ecc"}], swap="all")
    assert len(systems(ecc)) == len(STAGES), "every stage was asked"
    assert ecc == control
    for request in control.values():
        said = "\n".join(message.content for message in request.messages)
        assert not [word for word in TOLD if re.search(rf"\b{word}", said, re.I)], said


def test_a_benchmark_has_the_same_prompt_as_an_ecc_task(
    requests_of: Callable[..., dict[str, Request]], tmp_path: Path
) -> None:
    labels = ("zq-truth", "Level 1", "Level 2")
    stages = [{"label": label, "criteria": [f"sign of {n}"]} for n, label in enumerate(labels)]
    (tmp_path / "rubric.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    asked = [
        requests_of(
            tasks=[{**TASK, "type": kind, "rubric": "rubric.json"}],
            design={"evidence.view": "raw", "probe.context": "same"},
        )
        for kind in ("ecc", "control", "benchmark")
    ]
    assert asked[0] == asked[1] == asked[2]


def test_the_critic_is_blind_to_who_wrote_the_rubric() -> None:
    own, other = rubric(4), replace(rubric(4), author="zq:author", draw=3, reasoning="zq-reasons")
    assert Critic(BASE).requests([own]) == Critic(BASE).requests([other])


def test_a_judge_is_blind_to_who_wrote_the_rubric() -> None:
    other = replace(rubric(4), author="zq:author", draw=3, reasoning="zq-reasons")
    scorer = Scorer(BASE, SEED, "7")
    own, swap = (
        ScoreTarget(criteria, ITEM, VIEW, 0, is_swap=criteria is other)
        for criteria in (rubric(4), other)
    )
    assert scorer.requests([own]) == scorer.requests([swap])


# --- keys ----------------------------------------------------------------------------------------

REQUEST = Request(
    "openai:gpt-5.2",
    (Message("system", ("You judge.",)), Message("user", ("One, ", "two."))),
    Draw("7", 1, 0),
    temperature=0.5,
    max_tokens=100,
    schema={"type": "object", "required": ["verdict"]},
)
ENDPOINT = "https://lab.example:8443/v1"
CHANGED: dict[str, Request] = {
    "provider": replace(REQUEST, model="azure:gpt-5.2"),
    "model": replace(REQUEST, model="openai:gpt-5.3"),
    "words": replace(REQUEST, messages=(REQUEST.messages[0], Message("user", ("One, two!",)))),
    "role": replace(
        REQUEST, messages=(REQUEST.messages[0], Message("assistant", ("One, ", "two.")))
    ),
    "order": replace(REQUEST, messages=REQUEST.messages[::-1]),
    "fewer": replace(REQUEST, messages=REQUEST.messages[1:]),
    "joined": replace(REQUEST, messages=(Message("system", ("You judge.", "One, two.")),)),
    "temperature": replace(REQUEST, temperature=0.6),
    "no temperature": replace(REQUEST, temperature=None),
    "max_tokens": replace(REQUEST, max_tokens=101),
    "schema": replace(REQUEST, schema={"type": "object"}),
    "no schema": replace(REQUEST, schema=None),
    "series": replace(REQUEST, draw=Draw("8", 1, 0)),
    "index": replace(REQUEST, draw=Draw("7", 2, 0)),
    "ask": replace(REQUEST, draw=Draw("7", 1, 1)),
    "series and index": replace(REQUEST, draw=Draw("71", 0, 0)),
}


@each_row("what", CHANGED)
def test_a_key_changes_with_what_is_asked(what: str) -> None:
    assert CHANGED[what].key(ENDPOINT) != REQUEST.key(ENDPOINT)


def test_no_two_changes_share_a_key() -> None:
    assert len({request.key(ENDPOINT) for request in CHANGED.values()}) == len(CHANGED)


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "https://lab.example:8443/v2",
        "https://lab.example/v1",
        "http://lab.example:8443/v1",
        "https://other.example:8443/v1",
    ],
)
def test_a_key_changes_with_the_endpoint(endpoint: str) -> None:
    assert REQUEST.key(endpoint) != REQUEST.key(ENDPOINT)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://user:secret@lab.example:8443/v1",
        "https://a%40b@lab.example:8443/v1",
        "https://lab.example:8443/v1?key=secret",
        "https://lab.example:8443/v1?a=1#part",
    ],
)
def test_a_key_contains_no_userinfo_and_no_query(endpoint: str) -> None:
    assert REQUEST.key(endpoint) == REQUEST.key(ENDPOINT)


def test_a_key_does_not_depend_on_how_a_message_is_cut_nor_on_the_order_of_a_schema() -> None:
    cut = (Message("system", ("You ", "", "judge.")), Message("user", ("One, two.",)))
    schema = {"required": ["verdict"], "type": "object"}
    assert replace(REQUEST, messages=cut, schema=schema).key(ENDPOINT) == REQUEST.key(ENDPOINT)
