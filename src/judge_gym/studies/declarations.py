"""What a study declares about its analysis: contrasts, hypotheses of its protocol, and a margin.

A declaration counts from the version of the study in which it appeared for the last time without
having been there before: removing and declaring it again starts anew, other edits change nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field

from judge_gym.errors import DesignError, unknown
from judge_gym.records import digest
from judge_gym.studies.origins import Spec
from judge_gym.studies.yaml_lines import Path, errors_at

Endpoint = Literal["stage", "abstention", "probability", "subset_size", "entropy", "agreement"]
ENDPOINTS: tuple[str, ...] = get_args(Endpoint)
"""What contrasts compare: the expected stage from 0 to 1, whether the judge abstained, the stated
probability that experts agree, the number of stages, the entropy of the stages that a judge chose
on an item in bits, and the share of verdicts on the known answer."""
HypothesisName = Literal["H1", "H2", "H3", "H4"]
MARGIN = "margin"
ALT_TEST = "alt_test"
Annotators = Literal["expert", "skilled", "crowd"]
EPSILON: dict[Annotators, float] = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
"""How far a judge may be behind a rater whom it replaces, for the price of such raters (Calderon,
Reichart and Dror 2025)."""
Epsilon = Annotators | float
JUDGE = "judge.model"


class ContrastSpec(Spec):
    """Two levels of a knob, or two judges, to be compared on one endpoint."""

    knob: str
    """A knob of `vary`, or `judge.model`."""
    level: Any
    base: Any
    endpoint: Endpoint = "stage"
    expect: Literal["higher", "lower"] | None = None
    """How the level is expected to compare with the base; None if only a difference is."""

    @property
    def name(self) -> str:
        """The contrast in words."""
        words = {"higher": " higher than", "lower": " lower than", None: " against"}[self.expect]
        return f"{self.knob} {_name(self.level)}{words} {_name(self.base)} in {self.endpoint}"


class AltTestSpec(Spec):
    """The alternative annotator test of a study."""

    epsilon: Annotators | Annotated[float, Field(ge=0, lt=1)]


def epsilon_name(epsilon: Epsilon) -> str:
    """Returns how far a judge may be behind a rater, in words.

    >>> epsilon_name("crowd"), epsilon_name(0.05)
    ('at most .1 behind the rater (crowd)', 'at most .05 behind the rater')
    """
    size = f"{EPSILON[epsilon] if isinstance(epsilon, str) else epsilon:g}"
    size = size.removeprefix("0") or "0"
    kind = f" ({epsilon})" if isinstance(epsilon, str) else ""
    return f"at most {size} behind the rater{kind}"


def _name(level: Any) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def check_contrasts(
    contrasts: Sequence[ContrastSpec],
    levels: Mapping[str, Sequence[Any]],
    resolve: Callable[[str], str],
    *,
    probe: bool,
) -> list[ContrastSpec]:
    """Returns the contrasts with complete model ids; refuses those that the study cannot estimate.

    `levels` are the levels of each knob that the study runs, its judges among them.
    """
    checked: list[ContrastSpec] = []
    for number, contrast in enumerate(contrasts):
        path: Path = ("contrasts", number)
        if contrast.knob not in levels:
            raise DesignError(
                unknown("knob", contrast.knob, levels, "contrasts, which compares what varies"),
                choices=levels,
                path=(*path, "knob"),
            )
        sides = {"level": contrast.level, "base": contrast.base}
        for side, level in sides.items():
            with errors_at((*path, side)):
                if contrast.knob == JUDGE:
                    sides[side] = level = resolve(str(level))
                if level not in levels[contrast.knob]:
                    choices = [_name(level_name) for level_name in levels[contrast.knob]]
                    what = f"{side} of {contrast.knob}"
                    raise DesignError(
                        unknown(what, _name(level), choices, "contrasts"), choices=choices
                    )
        declared = contrast.model_copy(update=sides)
        if declared.level == declared.base:
            raise DesignError(
                f"a contrast of {declared.knob} compares two levels, "
                f"not {_name(declared.level)!r} with itself",
                path=path,
            )
        if declared.endpoint == "probability" and not probe:
            raise DesignError(
                "a contrast is declared for probability, but probe is false",
                path=(*path, "endpoint"),
            )
        if declared in checked:
            raise DesignError(f"the contrast {declared.name!r} is declared twice", path=path)
        checked.append(declared)
    return checked


def margin_name(margin: float) -> str:
    """Returns a declared margin in words."""
    return f"margin of {margin:g}"


class StudyVersion(NamedTuple):
    """The declarations of one saved version of a study."""

    declared: Mapping[str, Any]
    """The keys margin, hypotheses and contrasts, and alt_test if the study names it."""
    saved: datetime


class Declaration(NamedTuple):
    """How many answers a study had when something was declared."""

    what: str
    """The margin, the name of a hypothesis, or a contrast, in words."""
    before: int
    """The answers that were there already."""
    answers: int
    """The answers until now."""

    @property
    def when(self) -> str:
        """When it was declared, in words."""
        if not self.before:
            return "before the first answer"
        return f"after {self.before:,} of {self.answers:,} answers"


class Declarations(NamedTuple):
    """What a study declares about its analysis, and when it did."""

    contrasts: tuple[ContrastSpec, ...] = ()
    hypotheses: tuple[str, ...] | None = None
    """Names of the protocol's hypotheses; None for all of them."""
    margin: float | None = None
    """The size below which an effect is negligible."""
    alt_test: Epsilon = "expert"
    """How far a judge may be behind a rater whom it replaces."""
    declared: tuple[Declaration, ...] = ()
    withdrawn: tuple[str, ...] = ()
    """What had been declared before some answers and was removed after them."""

    def when(self, what: str) -> str:
        """Returns when something was declared, in words."""
        return next(
            (contrast.when for contrast in self.declared if contrast.what == what), "unknown"
        )


NOTHING_DECLARED = Declarations()


def declarations(
    versions: Sequence[StudyVersion], count: Callable[[Iterable[datetime]], tuple[int, list[int]]]
) -> Declarations:
    """Returns what the newest version declares, and how many answers there were at the time.

    `count` returns the number of a study's answers, and for each time how many were earlier.
    """
    since: dict[str, datetime] = {}
    named: dict[str, str] = {}
    removed: dict[str, datetime] = {}
    for declared, saved in versions:
        items = {digest(item): name for name, item in _items(declared)}
        removed |= {key: saved for key in since.keys() - items.keys()}
        since = {key: since.get(key, saved) for key in items}
        named |= items
        removed = {key: when for key, when in removed.items() if key not in items}
    times = sorted({*since.values(), *removed.values()})
    answers, earlier = count(times)
    before = dict(zip(times, earlier, strict=True))
    newest = versions[-1].declared if versions else {}
    return Declarations(
        contrasts=tuple(map(ContrastSpec.model_validate, newest.get("contrasts", ()))),
        hypotheses=tuple(newest["hypotheses"]) if newest.get("hypotheses") else None,
        margin=newest.get(MARGIN),
        alt_test=newest.get(ALT_TEST, "expert"),
        declared=tuple(
            Declaration(named[key], before[when], answers) for key, when in since.items()
        ),
        withdrawn=tuple(named[key] for key, when in removed.items() if before[when]),
    )


def _items(declared: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Yields each part of a declaration by name; a changed part is another part."""
    if declared.get(MARGIN) is not None:
        yield margin_name(declared[MARGIN]), [MARGIN, declared[MARGIN]]
    if ALT_TEST in declared:
        name = f"alternative annotator test: {epsilon_name(declared[ALT_TEST])}"
        yield name, [ALT_TEST, declared[ALT_TEST]]
    for name in declared.get("hypotheses") or ():
        yield name, name
    for contrast in declared.get("contrasts") or ():
        yield ContrastSpec.model_validate(contrast).name, contrast
