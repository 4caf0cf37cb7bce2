"""How long calls take: as measured in the ledger, or else as is usual."""

from typing import NamedTuple

from judge_gym.engine.calls.ask import Models
from judge_gym.models import ModelCard
from judge_gym.store import Usage

TYPICAL_TOKENS = 350
"""The usual length of an answer."""


class Pace(NamedTuple):
    """The wall time that one more call adds."""

    seconds: float
    measured: bool
    """Whether earlier calls to the same model at the same endpoint took so long."""


class Paces:
    """Looks up how long calls to models take.

    Args:
        usage: of the ledger.
        models: the registry.
        concurrency: calls in flight to one endpoint.
    """

    def __init__(self, usage: Usage, models: Models, concurrency: int) -> None:
        self._usage = usage
        self._models = models
        self._concurrency = concurrency
        self._measured: dict[str, float | None] = {}

    def of(
        self, card: ModelCard, input_tokens: int = 0, output_tokens: int = TYPICAL_TOKENS
    ) -> Pace:
        """Returns the pace of a model; a default depends on its limits and the call's length."""
        if card.id not in self._measured:
            self._measured[card.id] = self._usage.pace(card.id, card.endpoint)
        measured = self._measured[card.id]
        if measured is not None:
            return Pace(measured, True)
        return Pace(card.seconds(input_tokens, output_tokens, self._concurrency), False)
