"""How much of a provider's limits a run uses, and how often it is refused.

`python bench/limits.py`: the limits stand in the endpoint's entry and are enforced by the server.
Short questions reach the limit of requests, long ones that of tokens. The server's allowance, which
begins full, is nearly used up before, so that every call too many is refused at once.
"""

import argparse
import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from rig import keep_flying, laboratory, questions, served, timed

from judge_gym.models.http_model import HttpModel

RPM, TPM = 600, 200_000
LATENCY = 0.5
USED_UP = 0.95
"""The share of a minute's allowance that is used before."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked, and how many calls a minute the limits allow of it."""

    binds: str
    brief: bool
    calls: int


SETTINGS = (Setting("requests", True, RPM), Setting("tokens", False, 160))


def measured(setting: Setting, minutes: int) -> str:
    """A line of the table: a run that takes so long at the limit."""
    entry = f"rpm = {RPM}\ntpm = {TPM}"
    samples = setting.calls * minutes
    with (
        served(latency=LATENCY, rpm=RPM, tpm=TPM) as server,
        laboratory("lab:balanced", samples, url=server.url, entry=entry, brief=setting.brief) as (
            lab,
            prepared,
        ),
    ):
        before = questions(prepared, "before")[: int(USED_UP * setting.calls)]
        model = HttpModel("lab:balanced", server.url, "balanced", seeded=True)
        asyncio.run(keep_flying(model.complete, before, flying=32))
        took = timed(lambda: lab.runs.run(prepared), server).wall / 60
        refused = server.stats()["outcomes"].get("429", 0)
        usage = lab.store.usage.rows(study=prepared.study)
    calls = sum(row["attempts"] for row in usage)
    tokens = sum(row["input_tokens"] + row["output_tokens"] for row in usage)
    return (
        f"{setting.binds:10} {calls:7,} {tokens:9,} {took:8.2f} "
        f"{calls / took / RPM:12.1%} {tokens / took / TPM:12.1%} {refused:6}"
    )


def main() -> None:
    """Measure both settings at the same time, each against a server of its own, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=2, help="by default 2")
    minutes = parser.parse_args().minutes
    print(f"{RPM} requests and {TPM:,} tokens a minute")
    print(
        f"{'binding':10} {'calls':>7} {'tokens':>9} {'minutes':>8} "
        f"{'of requests':>12} {'of tokens':>12} {'429s':>6}"
    )
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(SETTINGS), mp_context=context) as pool:
        for line in pool.map(measured, SETTINGS, [minutes] * len(SETTINGS)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
