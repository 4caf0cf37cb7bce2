"""Which evals the filters of a command select, over the paths of a small suite."""

from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError, NotFoundError
from judge_gym.suites import Suite, load_suite, select

PATHS = ("001-basics/001-slug", "001-basics/002-chunk", "002-types/001-parse", "002-types/010-slug")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    folder: Path = tmp_path_factory.mktemp("four")
    (folder / "suite.toml").write_text('name = "four"\n[steps.tests]\ncommand = ["true"]\n')
    for path in PATHS:
        for name in ("TASK.md", "answer/a.py", "grader/g.py"):
            file = folder / path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("text")
    return load_suite(folder)


@pytest.mark.parametrize(
    ("given", "selected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"evals": ["slug"]}, (0, 3)),
        ({"evals": ["basics/001", "parse"]}, (0, 2)),
        ({"evals": ["001-*"]}, (0, 1, 2)),
        ({"evals": ["*/00[12]-*"]}, (0, 1, 2)),
        ({"evals": ["002-*/001-*"]}, (2,)),
        ({"filter": r"^001|/010"}, (0, 1, 3)),
        ({"filter": "slug$", "categories": ["002-types"]}, (3,)),
        ({"categories": ["basics"]}, (0, 1)),
        ({"categories": ["basics", "types"], "limit": 3}, (0, 1, 2)),
        ({"among": {PATHS[3], PATHS[0]}, "limit": 1}, (0,)),
    ],
)
def test_filters_select_evals_in_the_order_of_the_suite(
    suite: Suite, given: dict[str, Any], selected: tuple[int, ...]
) -> None:
    assert [task.path for task in select(suite, **given)] == [PATHS[n] for n in selected]


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ({"evals": ["slug", "chunck"]}, PATHS[1]),
        ({"evals": ["002-tpyes/*"]}, PATHS[2]),
        ({"categories": ["typos"]}, "001-basics"),
        ({"evals": ["slug"], "filter": "chunk"}, PATHS[1]),
    ],
)
def test_what_selects_nothing_is_refused_with_near_matches(
    suite: Suite, given: dict[str, Any], nearest: str
) -> None:
    with pytest.raises(NotFoundError) as refusal:
        select(suite, **given)
    assert refusal.value.choices[0] == nearest


def test_a_broken_regular_expression_is_refused(suite: Suite) -> None:
    with pytest.raises(DesignError, match="no regular expression"):
        select(suite, filter="(")
