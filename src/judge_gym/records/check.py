"""What `check` says of a file: how good each judge in it is, and what the file does not support."""

from typing import Annotated, Literal, NotRequired

from typing_extensions import TypedDict

from judge_gym.records.judge_table import LabelScale
from judge_gym.records.responses import UNTRUSTED, UntrustedText


class CheckedQuantity(TypedDict):
    """An estimate, with the ends of its interval or the reason why it has none."""

    value: float
    low: NotRequired[float]
    high: NotRequired[float]
    n: int
    """The number of items it is based on."""
    withheld: NotRequired[str]


class CheckedRoles(TypedDict):
    """The columns of the file by role, null for a role that no column has."""

    item: Annotated[str | None, UNTRUSTED]
    text: Annotated[str | None, UNTRUSTED]
    responses: Annotated[list[str], UNTRUSTED]
    """The two columns of a pair; else empty."""
    judges: Annotated[list[str], UNTRUSTED]
    """Columns with verdicts, or the one that names the judge of its row."""
    verdict: Annotated[str | None, UNTRUSTED]
    """Of a long file, the column with the verdict of the row's judge."""
    people: Annotated[list[str], UNTRUSTED]
    label: Annotated[str | None, UNTRUSTED]
    truth: Annotated[str | None, UNTRUSTED]
    repeat: Annotated[str | None, UNTRUSTED]
    cluster: Annotated[str | None, UNTRUSTED]
    length: Annotated[str | None, UNTRUSTED]
    usd: Annotated[str | None, UNTRUSTED]
    seconds: Annotated[str | None, UNTRUSTED]
    system: Annotated[str | None, UNTRUSTED]
    rationale: Annotated[str | None, UNTRUSTED]
    knobs: Annotated[list[str], UNTRUSTED]


class CheckedJudge(TypedDict):
    """A judge, or a judge with one level of the named knobs."""

    judge: UntrustedText
    measures: dict[str, CheckedQuantity]
    """Its agreement with people or with known answers, by the measures that fit the scale."""
    consistency: CheckedQuantity | None
    """The share of equal verdicts among pairs of repeats."""
    usd_per_1000: CheckedQuantity | None


class CheckedPeople(TypedDict):
    """People compared with each other."""

    measures: dict[str, CheckedQuantity]


class CheckedRate(TypedDict):
    """The share of all items that people would call positive, or their mean stage from 0 to 1."""

    judge: UntrustedText
    """Whose verdicts it rests on."""
    raw: CheckedQuantity
    """By the judge alone."""
    corrected: CheckedQuantity
    method: Literal["prediction-powered"]
    rogan_gladen: CheckedQuantity | None
    labels: CheckedQuantity
    """By the labels alone."""


class CheckedLength(TypedDict):
    """How the judge's verdicts depend on length at equal label of people."""

    judge: UntrustedText
    per_doubling: CheckedQuantity
    """The change in the share of positive verdicts, or of the mean stage from 0 to 1."""


class CheckedSystems(TypedDict):
    """The rate of system A minus that of system B."""

    a: UntrustedText
    b: UntrustedText
    judged: CheckedQuantity
    """By the judge alone."""
    corrected: CheckedQuantity
    """By people's labels and all verdicts."""


class CheckResult(TypedDict):
    """The answer to: is my judge good enough?"""

    sentence: UntrustedText
    """The answer in words; everything after it is the numbers behind it."""
    roles: CheckedRoles
    scale: LabelScale
    judges: list[CheckedJudge]
    """The best first."""
    people: CheckedPeople | None
    """Null where no two people labelled an item."""
    rate: CheckedRate | None
    length: CheckedLength | None
    systems: CheckedSystems | None
    """The later system by name minus the first one; null where the file has no two."""
    disagreements: int
    """The number of items on which the first judge differs from most of their labels; without
    labels, on which two judges differ."""
    missing: Annotated[list[str], UNTRUSTED]
    """What the file does not support, and which column or how many labels would."""
