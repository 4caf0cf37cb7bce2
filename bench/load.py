"""What a whole run costs beside bare loops with the same calls: `python bench/load.py`.

A run builds prompts, keeps limits and budgets, calls, writes the ledger, reads verdicts and writes
rows; the loops only call, or call and write one row each. The ideal wall time is that of the
server's latency alone. At the end the server must have answered every question once.
"""

import argparse
import asyncio
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from rig import ITEMS, Served, Took, keep_flying, laboratory, questions, served, timed

from judge_gym.lab import Lab
from judge_gym.lab.prepare import PreparedStudy
from judge_gym.models.model_card import Limits
from judge_gym.records import Request

ROUNDS = 2
PLENTY = 1_000_000_000
"""A limit that is never reached: hosted models have limits by default."""


@dataclass(frozen=True, slots=True)
class Task:
    """What every contender is given: a lab with its study, and the same questions without one."""

    lab: Lab
    prepared: PreparedStudy
    requests: list[Request]
    series: str
    url: str
    flying: int


# --- contenders ----------------------------------------------------------------------------------


def loop(task: Task) -> None:
    """The least that a call takes: encode, post, decode."""
    asyncio.run(_loop(task, lambda request, text: None))


def loop_with_rows(task: Task) -> None:
    """The same, and a row of SQLite for every answer, committed before the next call."""
    connection = sqlite3.connect("rows.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("CREATE TABLE answers (series, replicate, question, answer)")

    def keep(request: Request, text: str) -> None:
        draw, asked = request.draw, request.messages[-1].content
        connection.execute(
            "INSERT INTO answers VALUES (?, ?, ?, ?)", (draw.series, draw.index, asked, text)
        )

    asyncio.run(_loop(task, keep))
    connection.close()


async def _loop(task: Task, keep: Callable[[Request, str], None]) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def call(request: Request) -> None:
            body = {
                "model": "balanced",
                "messages": [{"role": m.role, "content": m.content} for m in request.messages],
                "max_tokens": request.max_tokens,
                "temperature": request.temperature,
                "seed": request.draw.seed,
            }
            async with session.post(
                f"{task.url}/chat/completions",
                data=json.dumps(body).encode(),
                headers={"Content-Type": "application/json"},
            ) as response:
                answer = json.loads(await response.read())
            keep(request, answer["choices"][0]["message"]["content"])

        await keep_flying(call, task.requests, task.flying)


def direct(task: Task) -> None:
    """pydantic-ai's direct request, which the hosted lane stands on."""
    asyncio.run(_direct(task))


async def _direct(task: Task) -> None:
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart
    from pydantic_ai.models.openai import OpenAIChatModel

    async def call(request: Request) -> None:
        system, user = (message.content for message in request.messages)
        settings: Any = {"max_tokens": request.max_tokens, "seed": request.draw.seed}
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        messages = [ModelRequest([SystemPromptPart(system), UserPromptPart(user)])]
        await model_request(model, messages, model_settings=settings)

    async with OpenAIChatModel("balanced") as model:
        await keep_flying(call, task.requests, task.flying)


def run(task: Task) -> None:
    """The whole path of judge-gym."""
    result = task.lab.runs.run(task.prepared, series=task.series)
    [made] = result.runs
    wanted = len(task.requests)
    assert (made.calls, sum(made.counts.values())) == (wanted, wanted), result


@dataclass(frozen=True, slots=True)
class Contender:
    """Who makes the calls, to which model."""

    name: str
    work: Callable[[Task], None]
    judge: str = "lab:balanced"


BARE = Contender("aiohttp", loop)
ROWS = Contender("aiohttp, SQLite", loop_with_rows)
LEAN = Contender("judge-gym, lean", run)
DIRECT = Contender("pydantic-ai", direct, "openai:balanced")
HOSTED = Contender("judge-gym, hosted", run, "openai:balanced")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A server's latency in seconds, the calls in flight, and who is measured."""

    latency: float
    flying: int
    contenders: tuple[Contender, ...]


SCENARIOS = (
    Scenario(0.05, 64, (BARE, ROWS, LEAN, DIRECT, HOSTED)),
    Scenario(0.2, 100, (BARE, ROWS, LEAN)),
    Scenario(1.0, 100, (DIRECT, HOSTED)),
)


# --- measuring -----------------------------------------------------------------------------------


def measured(contender: Contender, server: Served, samples: int, series: str, flying: int) -> Took:
    """One turn of a contender; every answer was asked for once."""
    limits = Limits(rpm=PLENTY, tpm=PLENTY, concurrency=flying)
    with laboratory(contender.judge, samples, url=server.url, limits=limits) as (lab, prepared):
        requests = questions(prepared, series)
        task = Task(lab, prepared, requests, series, server.url, flying)
        before = server.stats()
        took = timed(lambda: contender.work(task), server)
        after = server.stats()
    asked = after["requests"] - before["requests"]
    answered = after["bodies"]["answered"] - before["bodies"]["answered"]
    assert asked == answered == len(requests), (contender.name, before, after)
    return took


@contextmanager
def hosted_at(server: Served) -> Iterator[None]:
    """OpenAI's models are served here."""
    os.environ |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
    yield
    del os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]


def main() -> None:
    """Measure and print, in turns, so that a busy moment hurts all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=5_000, help="by default 5,000")
    samples = max(1, parser.parse_args().samples // ITEMS) * ITEMS
    print(f"{samples:,} samples; best of {ROUNDS} rounds; CPU s are per 1,000 samples")
    print(f"{'':32} {'wall s':>8} {'x ideal':>8} {'CPU s':>8} {'server':>8} {'samples/s':>10}")
    for scenario in SCENARIOS:
        with served(latency=scenario.latency) as server, hosted_at(server):
            best = {contender: Took() for contender in scenario.contenders}
            for contender in best:
                measured(contender, server, ITEMS, f"{contender.name}, warm", scenario.flying)
            for turn in range(ROUNDS):
                for contender in best:
                    series = f"{contender.name}, {turn}"
                    took = measured(contender, server, samples, series, scenario.flying)
                    best[contender] = best[contender].best(took)
        where = f"{scenario.latency * 1000:g} ms, {scenario.flying} in flight"
        ideal = samples / scenario.flying * scenario.latency
        for contender, took in best.items():
            print(
                f"{where:21} {contender.name:17} {took.wall:8.2f} {took.wall / ideal:8.2f} "
                f"{took.cpu / samples * 1000:8.3f} {took.server / samples * 1000:8.3f} "
                f"{samples / took.wall:10.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
