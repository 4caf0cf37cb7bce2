"""Worker processes that ask at the same time, over one Postgres and one endpoint."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from judge_gym.axes import Design
from judge_gym.engine.calls.ask import Asker
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.stopped import Stopped
from judge_gym.errors import BudgetError
from judge_gym.models.registry import Registry
from judge_gym.records import Evidence, OrdinalRubric, Request, RubricStage
from judge_gym.stages import Scorer, ScoreTarget
from judge_gym.store import Payer, Store

MODEL = "lab:balanced"
TEXT = "Judges were dismissed by decree, an editor was detained and a newspaper was banned."
STAGES = tuple(RubricStage(cue, (f'Described as "{cue}"',)) for cue in ("upheld", "banned"))
RUBRIC = OrdinalRubric(STAGES, "provided", "fascism", "Valdoria")


@dataclass(frozen=True, slots=True)
class Work:
    """What one process does."""

    name: str
    url: str
    folder: Path
    """Where the entry of the endpoint is."""
    run: int
    calls: int
    seconds: float = 60.0
    """After which it stops."""
    begin: float = 0.0
    """The time of day at which it begins."""


def write_entry(folder: Path, url: str, entry: str = "") -> Path:
    """The registry file that names the endpoint."""
    lines = f'[endpoints.lab]\nbase_url = "{url}"\nseed = true\n{entry}\n'
    (folder / "judge-gym.models.toml").write_text(lines)
    return folder


def questions(name: str, count: int) -> list[Request]:
    """Different ones for each name."""
    design = Design.of({"judge.model": MODEL, "judge.max_tokens": 256})
    item = Evidence("An item", TEXT)
    targets = [ScoreTarget(RUBRIC, item, TEXT, number) for number in range(count)]
    return list(Scorer(design, 3, name).requests(targets))


def work(given: Work) -> str:
    """Ask, in this process; how it ended."""
    time.sleep(max(0.0, given.begin - time.time()))
    return asyncio.run(_ask(given))


async def _ask(given: Work) -> str:
    store = Store.open(given.url)
    leases = store.leases(given.name)
    asker = Asker(store.ledger, Registry(given.folder), Meters(store, leases), leases=leases)
    payer = Payer(given.run, "small", "tag", "scorer")
    loop = asyncio.get_running_loop()
    loop.call_later(given.seconds, asker.stop, Stopped("time is up"))
    try:
        await asker.ask(questions(given.name, given.calls), payer, RunProgress())
        return "done"
    except Stopped:
        return "stopped"
    except BudgetError as over:
        return over.message
    finally:
        if leases is not None:
            leases.release()
        store.close()


def all_work(pool: ProcessPoolExecutor, each: Sequence[Work]) -> list[str]:
    """Have all work at once."""
    return list(pool.map(work, each))
