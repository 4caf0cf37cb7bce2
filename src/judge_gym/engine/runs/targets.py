"""Lists the targets of a run: rubrics by author, verdicts by replicate and item, missing evals."""

import itertools
from collections.abc import Iterable, Iterator, Mapping

from judge_gym.records import Rubric, SuiteRun
from judge_gym.stages import Critic, Neutralizer, RubricTarget, ScoreTarget
from judge_gym.store import Run, Store
from judge_gym.studies import Experiment


def makers(experiment: Experiment) -> tuple[str | None, str | None]:
    """Returns the makers of an experiment's views and critiques; None where none are made."""
    editor = experiment.design.evidence.resolve().editor
    return (
        Neutralizer(experiment.design).maker if editor else None,
        None if experiment.task.rubric else Critic(experiment.design).maker,
    )


def rubric_authors(run: Run) -> tuple[list[RubricTarget], list[RubricTarget]]:
    """Returns the rubrics that a run scores under: its own, and its rivals'."""
    task, design = run.experiment.task, run.experiment.design
    strategy = design.rubric.resolve(design.judge.model)
    draws = range(strategy.draws)
    own = [strategy.author] if strategy.author else []
    return (
        [
            RubricTarget(author, task.concept, task.country, draw)
            for author in own
            for draw in draws
        ],
        [
            RubricTarget(rival, task.concept, task.country, draw)
            for rival in run.rivals
            for draw in draws
        ],
    )


def score_targets(
    run: Run,
    rubric: Rubric,
    texts: Mapping[int, str],
    *,
    is_swap: bool,
    replicates: Iterable[int] | None = None,
    items: slice = slice(None),
) -> Iterator[ScoreTarget]:
    """Yields the verdicts that a run needs under one rubric, replicate by replicate."""
    shown = [item for item in run.experiment.task.pool.items[items] if item.id in texts]
    orders = run.experiment.orders
    drawn = range(run.samples) if replicates is None else replicates
    for replicate, item, flipped in itertools.product(drawn, shown, orders):
        yield ScoreTarget(rubric, item, texts[item.id], replicate, is_swap, flipped)


def missing_evals(store: Store, run: SuiteRun) -> list[tuple[str, int]]:
    """Returns the path and replicate of each eval of a run that has no settled result."""
    rows = store.suites.results(run.id).get(run.id, [])
    settled = {(row.result.path, row.result.replicate) for row in rows if row.result.settled}
    targets = itertools.product(run.evals, range(run.replicates))
    return [target for target in targets if target not in settled]
