"""A made-up suite run: failures of every kind, and the replies of scripted judges."""

from collections.abc import Mapping, Sequence
from functools import cache

from judge_gym.records import Completion
from judge_gym.records.outcomes import (
    EvalResult,
    EvalSource,
    Failed,
    Inconclusive,
    InconclusiveReason,
    Outcome,
    Passed,
    StepResult,
)
from judge_gym.stages import Scorer, ScoreTarget
from judge_gym.triage import (
    CLASSES,
    RUBRIC,
    Case,
    JudgeVerdict,
    PriorReport,
    RunInfo,
    failure_study,
    find_facts,
    make_case,
)

RUN = RunInfo(
    id="7f3a91c2d4e8",
    model="sim:coder-hasty",
    condition="default",
    suite="python-basics",
    version="b2c4e6a8",
    date="2026-03-01",
)

SLUG_CODE = "def slugify(text: str) -> str:\n    return text.lower().replace(' ', '-')\n"
SLUG_ANSWER = "def slugify(text: str) -> str:\n    return '-'.join(text.lower().split())\n"
SLUG_GRADER = (
    "from slug import slugify\n\n\n"
    "def test_runs_of_spaces_make_one_hyphen() -> None:\n"
    "    assert slugify('a  b') == 'a-b'\n"
)


def failed(
    path: str,
    step: str,
    reason: str,
    *,
    output: str = "",
    files: Mapping[str, str] | None = None,
    replicate: int = 0,
) -> EvalResult:
    """A result that failed at a step."""
    category, _, name = path.partition("/")
    steps = (
        StepResult("filesystem", "passed", 0.1),
        StepResult(step, "failed", 1.0, reason, output),
    )
    return EvalResult(category, name, Failed(step, reason), steps, files or {}, replicate)


def passed(path: str) -> EvalResult:
    """A result that passed."""
    category, _, name = path.partition("/")
    return EvalResult(category, name, Passed())


def inconclusive(path: str, why: InconclusiveReason, reason: str = "lost") -> EvalResult:
    """A result from which nothing was learnt."""
    category, _, name = path.partition("/")
    return EvalResult(category, name, Inconclusive(why, reason, "install"))


def source(
    result: EvalResult,
    *,
    task: str = "Write it.",
    answer: Mapping[str, str] | None = None,
    grader: Mapping[str, str] | None = None,
    gaps: str = "",
) -> EvalSource:
    """The files behind a result's eval."""
    return EvalSource(result.category, result.name, task, answer or {}, grader or {}, gaps)


SLUG = failed(
    "000-strings/001-slugify",
    "tests",
    "1 of 4 tests failed",
    output=(
        "E       AssertionError: assert 'a--b' == 'a-b'\n"
        "FAILED test_slug.py::test_runs_of_spaces_make_one_hyphen - AssertionError\n"
    ),
    files={"slug.py": SLUG_CODE},
)
UNUSED = failed(
    "000-strings/002-initials",
    "lint",
    "1 lint error",
    output="initials.py:1:8: F401 `re` imported but unused\n",
    files={"initials.py": "import re\n\n\ndef initials(name: str) -> str:\n    return name[0]\n"},
)
SORTED = failed(
    "001-collections/001-top-words",
    "tests",
    "1 of 3 tests failed",
    output="FAILED test_top.py::test_ties_keep_their_order - AssertionError\n",
    files={"top.py": "def top(words):\n    return sorted(set(words))\n"},
)
DATES = failed(
    "001-collections/002-parse-dates",
    "lint",
    "2 lint errors",
    output="dates.py:3:5: F401 `os` imported but unused\ndates.py:9:1: E501 Line too long\n",
    files={"dates.py": "import os\n"},
)
SOURCES = {
    SLUG.path: source(
        SLUG,
        task="Write slugify(text): lower case, words joined by one hyphen.",
        answer={"slug.py": SLUG_ANSWER},
        grader={"test_slug.py": SLUG_GRADER},
    ),
    UNUSED.path: source(UNUSED, task="Write initials(name).", answer={"initials.py": "..."}),
    SORTED.path: source(
        SORTED,
        task="Write top(words): the words, most common first.",
        gaps="# Gaps\n\n- The task does not say how ties are ordered; the grader keeps it.\n",
    ),
    DATES.path: source(DATES, task="Write parse(text)."),
}
RESULTS: tuple[EvalResult, ...] = (
    DATES,
    SORTED,
    UNUSED,
    SLUG,
    passed("000-strings/003-reverse"),
    passed("000-strings/004-count-vowels"),
    passed("001-collections/003-flatten"),
    passed("002-files/001-line-count"),
    passed("002-files/002-tail"),
    inconclusive("002-files/003-download", "infrastructure", "the package index timed out | twice"),
    inconclusive("002-files/004-archive", "rate_limit"),
)


def cases(
    prior: Sequence[PriorReport] = (), others: Mapping[str, Sequence[Outcome]] | None = None
) -> list[Case]:
    """The failures of the run with their facts."""
    return [
        make_case(
            result,
            SOURCES[result.path],
            find_facts(
                result,
                SOURCES[result.path],
                reference=passed(result.path),
                others=others,
                prior=prior,
                version=RUN.version,
            ),
        )
        for result in (SLUG, UNUSED, SORTED, DATES)
    ]


def reply(classes: Sequence[str], labels: Mapping[str, str], body: str = "") -> str:
    """A judge's words for these classes; `ABSTAIN` and `garbled` are what they say."""
    chosen = ", ".join(labels.get(name, name) for name in classes)
    ending = "I would rather not decide." if classes == ["garbled"] else f"VERDICT: {chosen}"
    return f"{body or 'REASONING: The lines decide it.'}\n\n{ending}"


@cache
def scorer_of(judge: str) -> Scorer:
    """The scorer of a judge in the study of failures, whichever they are."""
    [experiment] = failure_study(RUN.id, cases()[:1], [judge]).sweep.experiments
    return Scorer(experiment.design, experiment.seed, "0")


def judge_verdicts(
    one: Case, classes_by_judge: Mapping[str, Sequence[Sequence[str]]], body: str = ""
) -> list[JudgeVerdict]:
    """Verdicts by judge and replicate, put in words and read by the real scorer.

    A verdict is the classes that it names, `["ABSTAIN"]`, `["garbled"]`, or nothing for a call
    that brought no answer.
    """
    made = []
    for judge in classes_by_judge:
        scorer = scorer_of(judge)
        for replicate, classes in enumerate(classes_by_judge[judge]):
            target = ScoreTarget(RUBRIC, one.evidence, one.evidence.text, replicate)
            shown = scorer.display(target)
            labels = {
                CLASSES[stage - 1]: label
                for label, stage in zip(shown.labels, shown.stages, strict=True)
            }
            text = reply(list(classes), labels, body) if classes else ""
            answer = Completion(text, "stop", judge, 1, 1, None) if classes else None
            made.append(JudgeVerdict(judge, scorer.read(target, answer), text))
    return made
