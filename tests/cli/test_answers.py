"""Unreadable answers: the warning at the end of a run, and the command and page that list them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from conftest import Call, Scripted, succeed
from engines import replace_engine
from judge_gym.engine import Engine
from judge_gym.lab import Lab
from judge_gym.models.simulated import SimulatedModel
from judge_gym.models.simulated.prompts import understand
from judge_gym.records import Completion, Request

WriteStudy = Callable[..., Path]
MUMBLE = "I would rather not say.\x1b[31m"


class Unreadable(Scripted):
    """A simulated judge whose first verdicts cannot be read."""

    def __init__(self, unreadable: int, finish: Literal["stop", "length"] = "stop") -> None:
        super().__init__(lambda request: MUMBLE)
        self.left, self.finish = unreadable, finish

    async def complete(self, request: Request) -> Completion:
        if understand(request.messages).kind == "score" and self.left:
            self.left -= 1
            return replace(await super().complete(request), finish=self.finish)
        return await SimulatedModel(request.model).complete(request)


def test_unreadable_answers_are_warned_about_and_listed_word_for_word(
    lab: Lab, write_study: WriteStudy, call: Call
) -> None:
    replace_engine(lab, Engine(lab.store, Unreadable(2)))
    result = lab.runs.run(write_study(judges=["sim:balanced"], samples=3, probe=False))
    answers = sum(result.runs[0].counts.values())
    assert result.warnings[-1] == (
        f"2 of {answers} answers of sim:balanced could not be read; list them with: "
        "'judge-gym answers small --status parse_failed'"
    )
    words = ("--db", lab.admin.database, "answers", "small", "--status", "parse_failed")
    shown = succeed(call(*words))
    assert shown.out.count("I would rather not say.") == 2
    assert "\x1b" not in shown.out, "a model's text cannot change the terminal"
    first = succeed(call(*words, "--limit", "1", "--json")).json
    assert [row["text"] for row in first["items"]] == [MUMBLE]
    second = succeed(call(*words, "--after", first["next"], "--json")).json
    assert len(second["items"]) == 1 and second["next"] is None
    assert second["items"][0]["sample"] > first["items"][0]["sample"]
    assert call("answers", "small", "--status", "odd").code == 2


def test_answers_that_were_cut_off_are_warned_about(lab: Lab, write_study: WriteStudy) -> None:
    replace_engine(lab, Engine(lab.store, Unreadable(2, finish="length")))
    result = lab.runs.run(write_study(judges=["sim:balanced"], samples=3, probe=False))
    assert result.runs[0].counts["truncated"] == 2
    answers = sum(result.runs[0].counts.values())
    assert result.warnings[-1] == (
        f"2 of {answers} answers of sim:balanced were cut off (judge.max_tokens); list them with: "
        "'judge-gym answers small --status truncated'"
    )


def test_few_unreadable_answers_are_no_warning(lab: Lab, write_study: WriteStudy) -> None:
    replace_engine(lab, Engine(lab.store, Unreadable(1)))
    study = write_study(judges=["sim:balanced"], samples=8, probe=False)
    result = lab.runs.run(study)
    assert result.runs[0].counts["parse_failed"] == 1
    assert not [warning for warning in result.warnings if "could not be read" in warning]
