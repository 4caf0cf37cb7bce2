"""What planning a study returns: what to buy next, and the power of its tests."""

from typing import Annotated, Any

from typing_extensions import TypedDict

from judge_gym.records.responses import UNTRUSTED, UntrustedText


class Purchase(TypedDict):
    """An amount to buy of one option, and the interval to expect afterwards."""

    option: str
    more: int | None
    calls: float | None
    usd: float | None
    """Null if a price is unknown."""
    half_width: float | None
    lowest: float | None
    """The half width that no amount of this option makes smaller."""
    note: str
    """Why the option cannot be predicted; empty if it can."""


class NextPurchase(TypedDict):
    """What to buy next for one quantity of a study."""

    study: str
    sentence: UntrustedText
    apart: UntrustedText
    """How many more items would tell two judges apart; empty where that is not the question."""
    quantity: UntrustedText
    value: float | None
    half_width: float | None
    """Half the width of the 95 % interval to expect with the data so far."""
    items: int
    clusters: int
    repeats: float | None
    draws: int
    purchases: list[Purchase]
    variance: Annotated[list[dict[str, Any]], UNTRUSTED]
    """The variance components of a verdict, by task."""
    quantities: Annotated[list[str], UNTRUSTED]
    """What else can be asked for."""


class EndpointPower(TypedDict):
    """The power of one test, with null for numbers that cannot be computed."""

    endpoint: str
    test: str
    unit: str
    """What the test is over: items, clusters or concepts."""
    planned: int
    repeats: float
    effect: float
    power: float | None
    smallest_effect: float | None
    """The effect that is detected with a power of 80 %."""
    needed_80: int | None
    needed_90: int | None
    """How many units a power of 80 % and of 90 % needs."""
    concept: float
    cluster: float
    item: float
    repeat: float | None
    """The variance components that were assumed; null for repeats of a rate, which imply it."""
    source: str
    """Where they come from: `default`, or the pilot."""
    note: str


class PowerPlan(TypedDict):
    """The power of the tests of a study."""

    study: str
    pilot: str
    """The study whose samples give the components; empty if there are none."""
    sentence: str
    endpoints: list[EndpointPower]
