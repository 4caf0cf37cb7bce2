"""What can happen."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Opened:
    """An account was opened."""

    account: str


@dataclass(frozen=True)
class Moved:
    """Money went from one account to another."""

    source: str
    target: str
    amount: float


@dataclass(frozen=True)
class Interest:
    """An account got interest, in percent."""

    account: str
    rate: Decimal


@dataclass(frozen=True)
class Reversed:
    """An earlier movement was undone."""

    number: int


Event = Opened | Moved | Interest | Reversed
