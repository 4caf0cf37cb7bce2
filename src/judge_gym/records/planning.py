"""What planning a study returns: what to buy next, and the power of its tests."""

from typing import Annotated, Any

from typing_extensions import TypedDict

from judge_gym.records.responses import UNTRUSTED

Named = Annotated[str, UNTRUSTED]


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
    sentence: Named
    quantity: Named
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
