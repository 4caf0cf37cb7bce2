"""Selects the evals of a suite by path, category and number. Pure."""

import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from judge_gym.errors import DesignError, NotFoundError, nearest, unknown
from judge_gym.suites.loader import CodeTask, Suite

GLOB = frozenset("*?[")


def select(
    suite: Suite,
    evals: Sequence[str] = (),
    *,
    filter: str | None = None,
    categories: Sequence[str] = (),
    among: Collection[str] | None = None,
    limit: int | None = None,
) -> tuple[CodeTask, ...]:
    """Selects the evals that satisfy every condition, in the order of the suite.

    Args:
        suite: to select from.
        evals: parts of paths, or globs over whole paths or names; one of them must match.
        filter: a regular expression that must be found in the path.
        categories: full names, or names without their number.
        among: the only paths that may be selected.
        limit: the most evals to return.

    Raises:
        NotFoundError: a name matches nothing, or no eval satisfies all conditions.
    """
    paths = [task.path for task in suite.evals]
    for pattern in evals:
        if not any(_matches(task, pattern) for task in suite.evals):
            near = nearest(pattern, paths)
            raise NotFoundError(unknown("eval", pattern, near, suite.name), choices=near)
    names = list(dict.fromkeys(task.category for task in suite.evals))
    for category in categories:
        if not any(_is_category(name, category) for name in names):
            raise NotFoundError(unknown("category", category, names, suite.name), choices=names)
    try:
        expression = re.compile(filter or "")
    except re.error as error:
        raise DesignError(f"the filter {filter!r} is no regular expression: {error}") from error
    selected = [
        task
        for task in suite.evals
        if (not evals or any(_matches(task, pattern) for pattern in evals))
        and (not categories or any(_is_category(task.category, name) for name in categories))
        and expression.search(task.path)
        and (among is None or task.path in among)
    ]
    if not selected:
        near = nearest(filter or "", paths)
        criteria = [*evals, *([filter] if filter else []), *categories]
        criteria += ["what did not pass"] if among is not None else []
        raise NotFoundError(
            f"no eval of the suite {suite.name!r} is selected by {' and '.join(criteria)}; "
            f"choose such as {', '.join(near)}",
            choices=near,
        )
    return tuple(selected[:limit])


def _matches(task: CodeTask, pattern: str) -> bool:
    if GLOB & set(pattern):
        return fnmatchcase(task.path, pattern) or fnmatchcase(task.name, pattern)
    return pattern in task.path


def _is_category(name: str, given: str) -> bool:
    """Whether a name such as `001-basics` is meant by itself or by `basics`."""
    return given in (name, name.partition("-")[2])
