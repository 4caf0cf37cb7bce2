"""Balances, as events make them."""

from collections.abc import Iterable
from decimal import Decimal

from ledger.events import Event, Interest, Moved, Opened, Reversed
from ledger.money import EXACT, rounded

WORLD = "world"


class Refused(ValueError):
    """An event breaks a rule."""


class Book:
    """Applied events, and the movement that each of them made."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: list[Event] = []
        self._moves: list[Moved | None] = []
        self._open = {WORLD}
        for event in events:
            self.apply(event)

    @property
    def events(self) -> tuple[Event, ...]:
        """All applied events."""
        return tuple(self._events)

    def apply(self, event: Event) -> int:
        """Check an event, apply it and return its number."""
        move = self._checked(event)
        if isinstance(event, Opened):
            self._open.add(event.account)
        self._events.append(event)
        self._moves.append(move)
        return len(self._events)

    def balance(self, account: str, at: int | None = None) -> Decimal:
        """The balance after an event."""
        last = len(self._events) if at is None else at
        if not 0 <= last <= len(self._events):
            raise Refused(f"there is no event {last}")
        if account != WORLD and Opened(account) not in self._events[:last]:
            raise Refused(f"{account!r} is not open")
        total = Decimal(0)
        for move in self._moves[:last]:
            if move and move.target == account:
                total += move.amount
            if move and move.source == account:
                total -= move.amount
        return rounded(total) + 0 if total == 0 else rounded(total)

    def _checked(self, event: Event) -> Moved | None:
        """The movement that an event makes, if it keeps the rules."""
        match event:
            case Opened(account):
                if not account or account in self._open:
                    raise Refused(f"{account!r} cannot be opened")
                return None
            case Moved(source, target, amount):
                if source == target or amount <= 0 or amount != rounded(amount):
                    raise Refused("this is not a movement")
                move = event
            case Interest(account, rate):
                if account == WORLD or rate < 0:
                    raise Refused("this is not interest")
                exact = EXACT.multiply(self.balance(account), rate)
                move = Moved(WORLD, account, rounded(EXACT.divide(exact, Decimal(100))))
            case Reversed(number):
                made = self._moves[number - 1] if 1 <= number <= len(self._moves) else None
                if made is None or isinstance(self._events[number - 1], Reversed):
                    raise Refused(f"event {number} cannot be reversed")
                if event in self._events:
                    raise Refused(f"event {number} is reversed already")
                move = Moved(made.target, made.source, made.amount)
        if not {move.source, move.target} <= self._open:
            raise Refused("an account is not open")
        if move.source != WORLD and self.balance(move.source) < move.amount:
            raise Refused(f"{move.source!r} has not enough")
        return move
