"""The retry rule: which attempts at a call are repeated, how often, and after how many seconds."""

import random

from judge_gym.errors import ProviderError, RateLimitError, UnavailableError
from judge_gym.models.limits import LONGEST_WAIT

ATTEMPTS = 5
"""Failed attempts after which a call has failed."""
BACKOFF = 0.5
"""Seconds before the second attempt; each later wait is twice as long."""
MAX_WAITS = 100
"""How often one call waits because its provider asks for it."""


class Retries:
    """Counts the attempts at one call, and decides on the next.

    Not stamina or tenacity: a wait that a provider asks for costs no attempt and holds back every
    call to the model, in all processes, and each attempt is a row of the ledger.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._failed = 0
        self._waits = 0

    def seconds_to_wait(self, error: RateLimitError) -> float:
        """Returns how long the provider is to be left alone, which costs no attempt."""
        self._waits += 1
        return error.wait if error.wait is not None else self._backoff(self._waits)

    @property
    def waited_too_often(self) -> bool:
        """Whether the provider asked for more waits than a call may have."""
        return self._waits > MAX_WAITS

    def seconds_to_next(self, error: ProviderError | None) -> float | None:
        """Returns the seconds before the next attempt; None if this one was the last."""
        if not isinstance(error, UnavailableError):
            return None
        self._failed += 1
        return self._backoff(self._failed) if self._failed < ATTEMPTS else None

    def _backoff(self, count: int) -> float:
        """Returns seconds to wait, with jitter so that calls do not come in waves."""
        jitter = random.Random(f"{self._key}/{count}").uniform(0.5, 1.0)
        return float(min(LONGEST_WAIT, BACKOFF * 2 ** (count - 1)) * jitter)
