"""How four processes share an endpoint's limits and a study's budget, on Postgres.

`python bench/workers.py`: the server enforces the limits and has nearly none of its first minute's
allowance left, so that every call too many is refused. It needs what the tests need, and runs them
for longer: all four busy, and one busy among four.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import sqlalchemy as sa

import postgres
from judge_gym.models.serving import SimulatedServer, serve
from judge_gym.store import Store, tables
from workers import Work, all_work, processes, write_entry

RPM, TPM = 3000, 400_000
PLENTY, FEW = 100_000, 20
SETTINGS = {
    "requests": {"rpm": RPM},
    "tokens": {"tpm": TPM},
    "both": {"rpm": RPM, "tpm": TPM},
}


def measured(
    pool: ProcessPoolExecutor, limits: dict[str, int], wanted: Sequence[int], seconds: float
) -> str:
    """What four processes make of limits in so many seconds."""
    server = SimulatedServer(**limits, latency=0.5)
    server._requests.take(limits.get("rpm", 0) * 59 / 60)
    server._tokens.take(limits.get("tpm", 0) * 59 / 60)
    entry = "\n".join(f"{name} = {limit}" for name, limit in limits.items())
    with TemporaryDirectory() as folder, serve(server) as url:
        write_entry(Path(folder), url, entry)
        lab = postgres.fresh_url()
        begin = time.time() + 0.5
        all_work(
            pool,
            [
                Work(f"worker {run}", lab, Path(folder), run, min(calls, 6000), seconds, begin)
                for run, calls in enumerate(wanted)
            ],
        )
        store = Store.open(lab)
        a = tables.attempts.c
        with store.database.read() as connection:
            rows = connection.execute(
                sa.select(a.at, a.seconds, a.run_id, a.input_tokens + a.output_tokens)
            ).all()
        store.close()
    began = [at.timestamp() - took for at, took, *_ in rows]
    minutes = (max(began) - min(began)) / 60
    paid = Counter(run for *_, run, _ in rows)
    used = {"rpm": len(rows), "tpm": sum(tokens for *_, tokens in rows)}
    shares = " ".join(
        f"{name} {used[name] / minutes / limit:6.1%}" for name, limit in limits.items()
    )
    each = "/".join(str(paid[run]) for run in range(len(wanted)))
    return (
        f"{len(rows):6} {minutes * 60:6.1f} s  {shares:24} {server._outcomes['429']:4} 429s  {each}"
    )


def main() -> None:
    """Measure each setting and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="by default 20")
    seconds = parser.parse_args().seconds
    with processes(4) as pool:
        for name, limits in SETTINGS.items():
            for who, wanted in (("all", [PLENTY] * 4), ("one", [PLENTY, FEW, FEW, FEW])):
                print(f"{name:9} {who}  {measured(pool, limits, wanted, seconds)}", flush=True)


if __name__ == "__main__":
    main()
