"""Measures the items page of a study of 100,000 items: `python bench/items.py`.

Five setups judge every item and three people label a part of them. The first page reads the grid;
the others find it in memory.
"""

import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import httpx

from judge_gym.axes import Design
from judge_gym.lab import Lab
from judge_gym.records import (
    Completion,
    Display,
    Draw,
    Evidence,
    Message,
    OrdinalRubric,
    Pool,
    Request,
    RubricStage,
    Sample,
)
from judge_gym.store import Attempt, Payer, Store, Targets
from judge_gym.studies import Experiment, Task
from judge_gym.web import serve

ITEMS, SETUPS, LABELLED = 100_000, 5, 20_000
RATERS = ("ann", "ben", "cem")
PAGES = {
    "another page": "?after=50000",
    "as in the pool": "?sort=position",
    "furthest from people": "?sort=people",
    "disagreements": "?differs=1",
    "a cell of the confusion table": "?setup=0&verdict=pass&label=fail",
}


def fill(store: Store, items: int) -> None:
    """Writes a study in which every setup gave every item a verdict."""
    random = Random(1)
    texts = tuple(Evidence(f"item {n}", f"text {n}") for n in range(items))
    pool = store.evidence.save_pool(Pool(texts))
    request = Request("sim:x", (Message("user", ("?",)),), Draw("0", 0))
    answer = Completion("VERDICT: A", "stop", "sim:x", 1, 1, 0.0)
    payer = Payer(1, "bench", "bench", "scorer")
    [call] = store.ledger.record([Attempt(request.key(""), request, "", payer, 0.1, answer)])
    stages = (RubricStage("fail", ("bad",)), RubricStage("pass", ("good",)))
    rubric = OrdinalRubric(stages, "provided", "quality", "")
    rubric = replace(rubric, id=store.rubrics.save_given(rubric).id)
    shown = Display(("A", "B"), (1, 2))
    for number in range(SETUPS):
        design = Design.of({"judge.model": f"sim:{number}", "rubric.author": "provided"})
        task = Task("benchmark", "quality", "", pool, rubric)
        experiment = Experiment(f"bench/{number}", task, design, 0)
        store.experiments.save(experiment, "bench")
        run = store.runs.save(
            experiment, "bench", "0", Targets(1, (), False, 0.05), makers=(None,) * 2
        )
        store.runs.link_rubric(run, rubric.id, is_swap=False)
        store.verdicts.save_samples(
            run,
            [
                Sample(
                    rubric, item, 0, shown, "scored", (random.randint(1, 2),), call_id=call.call_id
                )
                for item in pool.items
            ],
        )
        store.events.record([run.id], "ended")
    store.evidence.save_labels(
        [
            {"evidence_id": item.id, "concept": "", "rater": rater}
            | {"stage": random.choice(("fail", "pass"))}
            for item in pool.items[:LABELLED]
            for rater in RATERS
        ],
        replace=False,
    )


def main() -> None:
    """Prints the seconds of each page."""
    with tempfile.TemporaryDirectory() as folder:
        with Lab.open(f"sqlite:///{Path(folder) / 'items.db'}") as lab, serve(lab, port=0) as at:
            fill(lab.store, ITEMS)
            headers = {"Authorization": f"Bearer {at.token}", "Accept": "text/html"}
            with httpx.Client(base_url=at.url, headers=headers, timeout=600) as client:

                def seconds(query: str) -> float:
                    began = time.monotonic()
                    client.get(f"/studies/bench/items{query}").raise_for_status()
                    return time.monotonic() - began

                print(f"{ITEMS:,} items, {SETUPS} setups, {LABELLED:,} labelled by {len(RATERS)}")
                print(f"the first page: {seconds(''):.2f} s")
                for name, query in PAGES.items():
                    times = [seconds(query) for _ in range(6)]
                    again = statistics.median(times[1:])
                    print(f"{name}: {times[0]:.3f} s, then {again:.3f} s")


if __name__ == "__main__":
    main()
