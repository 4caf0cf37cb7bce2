"""Rubrics and prompts that are revised from labels, with simulated judges of a known fault."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from conftest import Call, succeed
from judge_gym.errors import BudgetError, ConflictError, DesignError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request, provided_rubric
from judge_gym.store import tables as t

GOOD = ("exact steps", "is fixed now", "refunded", "here is how")
BAD = ("cannot help", "read the manual", "not our problem", "your own fault")
CLEAR = {
    "good": [f'The reply says "{cue}"' for cue in GOOD],
    "bad": [f'The reply says "{cue}"' for cue in BAD],
}
# Without a word that simulated judges can read, they place a stage at random.
VAGUE = {"good": ["It is as it should be"], "bad": ["It is not as it should be"]}
PROMPT = "---\nread: last line\n---\nReply: {output}\n\n{rubric}\n\nThe last line is good or bad.\n"


def write_study(
    folder: Path, criteria: dict[str, list[str]], *, items: int = 160, **changes: Any
) -> Path:
    """Writes a study of replies, which a person labelled by the cues in them."""
    rng, rows = random.Random(5), []
    for number in range(items):
        label = ("good", "bad")[number % 2]
        cues = rng.sample(GOOD if label == "good" else BAD, 3)
        text = f"Reply {number}: " + ". ".join(f"It is {cue}" for cue in cues) + "."
        rows.append({"title": f"reply {number}", "text": text, "ada": label})
    (folder / "replies.jsonl").write_text("\n".join(map(json.dumps, rows)))
    stages = [{"label": label, "criteria": lines} for label, lines in criteria.items()]
    study: dict[str, Any] = {
        "study": "support",
        "samples": 1,
        "evidence": {"replies": {"files": "replies.jsonl", "labels": ["ada"]}},
        "tasks": [
            {
                "concept": "helpful replies",
                "evidence": "replies",
                "rubric": {"kind": "nominal", "stages": stages},
            }
        ],
        "judges": ["sim:judge?noise=0.5"],
        "probe": False,
        **changes,
    }
    path = folder / "support.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    return path


def run_and_split(lab: Lab, path: Path, shares: Sequence[float] = (0.2, 0.4, 0.4)) -> None:
    """Runs a study and splits its labelled items."""
    assert lab.runs.run(path).status == "complete"
    lab.labels.split("support", shares=shares)


def paid(lab: Lab) -> int:
    """Counts attempts at calls."""
    return int(lab.store.database.scalar(sa.select(sa.func.count()).select_from(t.attempts)))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Every request that a simulated model gets."""
    requests: list[Request] = []
    complete = SimulatedModel.complete

    async def noted(self: SimulatedModel, request: Request) -> Completion:
        requests.append(request)
        return await complete(self, request)

    monkeypatch.setattr(SimulatedModel, "complete", noted)
    return requests


# --- what comes out ------------------------------------------------------------------------------


def test_a_rubric_that_lacks_what_people_go_by_is_improved(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE))
    result = lab.improvements.improve("support")
    assert [row["status"] for row in result["rows"]] == ["accepted"] * 3
    assert all("is fixed now" in row["diff"] for row in result["rows"])
    assert all("-- It is as it should be" in row["diff"] for row in result["rows"])
    assert result["alpha"] == pytest.approx(0.05 / 3)
    tested = result["tested"]
    assert tested is not None
    best = max(result["rows"], key=lambda row: row["difference"]["value"])  # type: ignore[index]
    assert tested["number"] == best["number"]
    assert tested["difference"]["low"] > 0  # type: ignore[operator]
    assert tested["difference"]["n"] == result["test"] == 64
    assert result["accepted"] is not None
    rubric = provided_rubric(json.loads(result["accepted"]), "helpful replies", "")
    assert [stage.label for stage in rubric.stages] == ["good", "bad"]


def test_a_rubric_that_says_what_people_go_by_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, CLEAR))
    result = lab.improvements.improve("support")
    assert result["disagreements"] > 0  # the judge is noisy
    assert {row["status"] for row in result["rows"]} == {"not better"}
    assert (result["tested"], result["accepted"]) == (None, None)
    assert result["sentence"].startswith("No proposal was better")


def test_a_judge_that_agrees_everywhere_is_left_alone_without_a_call(
    lab: Lab, tmp_path: Path
) -> None:
    run_and_split(lab, write_study(tmp_path, CLEAR, judges=["sim:judge?noise=0.01"]))
    before = paid(lab)
    result = lab.improvements.improve("support")
    assert (result["disagreements"], result["rows"]) == (0, [])
    assert paid(lab) == before


def test_a_prompt_of_ones_own_is_improved(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "judge.md").write_text(PROMPT)
    run_and_split(lab, write_study(tmp_path, VAGUE, design={"prompt.template": "judge.md"}))
    result = lab.improvements.improve("support", proposals=2)
    assert result["revised"] == "prompt"
    for row in result["rows"]:
        assert row["tag"] is not None
        assert "+  - The text says something like" in row["diff"]
        experiment, _ = lab.store.experiments.find(row["tag"])
        assert experiment.template.startswith("---\nread: last line\n---\nReply: {output}")
    assert "accepted" in {row["status"] for row in result["rows"]}
    assert result["accepted"] is not None
    assert "{rubric}" in result["accepted"]
    assert len(lab.reports.judges("support-improve")["rows"]) == 3


# --- what is asked -------------------------------------------------------------------------------


def test_no_item_of_test_reaches_a_prompt_of_the_assistant(
    lab: Lab, tmp_path: Path, asked: list[Request]
) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE))
    lab.improvements.improve("support")
    prompts = [
        message.content
        for request in asked
        if request.model == "sim:assistant"
        for message in request.messages
    ]
    split = lab.store.splits.find("support")
    assert split is not None
    items = {item.id: item.text for item in lab.store.evidence.all_evidence()}
    shown = {
        part: sum(any(items[id] in text for text in prompts) for id in items if parts[id] == part)
        for parts in [split.items]
        for part in ("train", "dev", "test")
    }
    assert shown["test"] == 0
    assert shown["train"] > 0
    assert shown["dev"] > 0


def test_test_is_not_judged_where_no_proposal_is_accepted(
    lab: Lab, tmp_path: Path, asked: list[Request]
) -> None:
    run_and_split(lab, write_study(tmp_path, CLEAR))
    asked.clear()
    lab.improvements.improve("support")
    split = lab.store.splits.find("support")
    assert split is not None
    items = {item.id: item.text for item in lab.store.evidence.all_evidence()}
    prompts = [message.content for request in asked for message in request.messages]
    tested = [id for id, part in split.items.items() if part == "test"]
    assert not any(items[id] in text for id in tested for text in prompts)
    assert split.uses == 0


def test_the_same_command_pays_nothing_twice_and_uses_test_once(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE))
    before = paid(lab)
    first = lab.improvements.improve("support")
    # Three proposals, each on 64 items of dev, and the best on 64 of test; the parent is paid.
    assert paid(lab) - before == 3 + 3 * 64 + 64
    again = lab.improvements.improve("support")
    assert paid(lab) - before == 3 + 3 * 64 + 64
    assert again == first
    assert again["tested"] is not None
    assert again["tested"]["uses"] == 1


def test_a_budget_stops_it_and_the_next_command_continues(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE))
    before = paid(lab)
    with pytest.raises(BudgetError, match="100 calls"):
        lab.improvements.improve("support", budget={"calls": 100})
    assert paid(lab) - before == 100
    result = lab.improvements.improve("support", budget={"calls": 1000})
    assert result["accepted"] is not None
    assert paid(lab) - before == 3 + 3 * 64 + 64


def test_proposals_of_an_earlier_command_count_in_k(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE))
    assert lab.improvements.improve("support", proposals=3)["compared"] == 3
    fewer = lab.improvements.improve("support", proposals=1)
    assert fewer["compared"] == 3  # 2 and 3 were tried before
    assert fewer["alpha"] == pytest.approx(0.05 / 3)


def test_an_unreadable_proposal_is_counted_and_shown(lab: Lab, tmp_path: Path) -> None:
    path = write_study(tmp_path, VAGUE, assistant="sim:assistant?garble=1")
    run_and_split(lab, path)
    result = lab.improvements.improve("support")
    assert [row["status"] for row in result["rows"]] == ["parse_failed"] * 3
    assert [row["tag"] for row in result["rows"]] == [None] * 3
    assert "3 of the answers could not be used" in result["sentence"]
    assert result["compared"] == 3


# --- what the lab shows --------------------------------------------------------------------------


def test_judges_and_compare_work_on_proposals(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE))
    result = lab.improvements.improve("support")
    rows = lab.reports.judges("support-improve")["rows"]
    assert len(rows) == 4
    assert {tag for row in rows for tag in row["tags"]} > {row["tag"] for row in result["rows"]}
    [parent] = [row["setup"] for row in rows if "rubric given" in row["setup"]]
    compared = lab.reports.compare("support-improve", b=parent)
    assert compared["differing"] > 0
    tag = result["rows"][0]["tag"]
    assert tag is not None
    [rubric] = lab.store.rubrics.of_experiment(tag)
    assert rubric["reasoning"].startswith("Revised from given~")
    assert result["rows"][0]["diff"] in rubric["reasoning"]


# --- what is refused -----------------------------------------------------------------------------


def test_few_labelled_items_are_refused_with_their_numbers(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE, items=60))
    before = paid(lab)
    with pytest.raises(ConflictError, match="24 labelled items in dev and 24 in test, and 30 are"):
        lab.improvements.improve("support")
    assert paid(lab) == before


def test_a_study_without_a_split_is_refused(lab: Lab, tmp_path: Path) -> None:
    lab.runs.run(write_study(tmp_path, VAGUE, items=4))
    with pytest.raises(ConflictError, match="judge-gym labels split support"):
        lab.improvements.improve("support")
    with pytest.raises(NotFoundError, match="suport"):
        lab.improvements.improve("suport")


def test_a_setup_that_is_not_there_is_refused(lab: Lab, tmp_path: Path) -> None:
    run_and_split(lab, write_study(tmp_path, VAGUE))
    with pytest.raises(NotFoundError, match=r"judge\?noise=0.5"):
        lab.improvements.improve("support", setup="sim:strict")
    before = paid(lab)
    with pytest.raises(DesignError, match="budget"):
        lab.improvements.improve("support", budget={"euros": 3})
    assert paid(lab) == before


# --- the command ---------------------------------------------------------------------------------


def test_the_command_prints_diffs_and_writes_the_rubric(call: Call, tmp_path: Path) -> None:
    write_study(tmp_path, VAGUE)
    succeed(call("run", "support.yaml"))
    succeed(call("labels", "split", "support"))
    shown = succeed(call("improve", "support.yaml", "--out", "rubric.json"))
    assert "proposal 1: accepted, +" in shown.out
    assert "  -- It is as it should be" in shown.out
    assert "the test part was used once" in shown.out
    document = succeed(call("improve", "support", "--json")).json
    assert (tmp_path / "rubric.json").read_text() == document["accepted"]
    assert [row["status"] for row in document["rows"]] == ["accepted"] * 3


def test_no_better_proposal_is_a_good_end(call: Call, tmp_path: Path) -> None:
    write_study(tmp_path, CLEAR)
    succeed(call("run", "support.yaml"))
    succeed(call("labels", "split", "support"))
    shown = succeed(call("improve", "support", "--proposals", "1", "--out", "rubric.json"))
    assert "No proposal was better" in shown.out
    assert not (tmp_path / "rubric.json").exists()


@pytest.mark.slow
@pytest.mark.needs("smollm2")
def test_a_small_local_model_may_propose(lab: Lab, tmp_path: Path) -> None:
    # A quiet judge: few disagreements fit into the context of a small model.
    path = write_study(tmp_path, CLEAR, judges=["sim:judge?noise=0.35"], assistant="local:smollm2")
    run_and_split(lab, path)
    result = lab.improvements.improve("support", proposals=1)
    assert result["assistant"] == "local:smollm2"
    assert 0 < result["disagreements"] < 15
    [row] = result["rows"]  # whatever it answers is a record
    assert row["status"] != "provider_error", result["notes"]
