"""Stops the calls of a run to an endpoint that is down, and tries it again with a single call."""

import asyncio
from typing import TypedDict

from judge_gym.errors import JudgeGymError

FAILURES_IN_A_ROW = 20
"""Failed attempts of a run in a row after which its endpoint counts as down for it."""
FIRST_WAIT = 15.0
"""Seconds before an endpoint that is down is tried again; each later wait is twice as long."""
LONGEST_WAIT = 600.0


class Trial(TypedDict):
    """Which endpoint is to be tried again, and after how many seconds."""

    endpoint: str
    wait: float


class EndpointDown(JudgeGymError):
    """An endpoint cannot be used for now: its share of the work is paused, others continue.

    Where only a change by the user helps, there is no `trial`.
    """

    status = 502
    retry = True

    def __init__(self, message: str, trial: Trial | None = None) -> None:
        super().__init__(message)
        self.trial = trial


class Circuit:
    """Whether a run may call an endpoint: it may, or the endpoint is down, or it is on trial."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._errors: list[str] = []
        """Of the failed attempts in a row."""
        self._wait = FIRST_WAIT
        self._trial: asyncio.Lock | None = None
        """Held by the one call that tries the endpoint, while others wait for its result."""

    def try_again(self, waited: float) -> None:
        """Lets one call through, whose result decides about the others."""
        self._errors, self._trial = [], asyncio.Lock()
        self._wait = min(LONGEST_WAIT, 2 * waited)

    async def enter(self) -> asyncio.Lock | None:
        """Waits for the call that tries the endpoint; returns the lock if this call does."""
        while (trial := self._trial) is not None:
            await trial.acquire()
            if self._trial is trial:
                return trial
            trial.release()
        return None

    def succeed(self) -> None:
        """Notes that the endpoint answered."""
        self._errors, self._wait, self._trial = [], FIRST_WAIT, None

    def fail(self, error: str) -> None:
        """Notes a failed attempt."""
        self._errors.append(error)

    @property
    def is_open(self) -> bool:
        """Whether no further call may begin."""
        return len(self._errors) >= (FAILURES_IN_A_ROW if self._trial is None else 1)

    def refuse(self) -> None:
        """Raises an error where no further call may begin."""
        if self.is_open:
            times = f"{FAILURES_IN_A_ROW} times in a row" if self._trial is None else "again"
            raise EndpointDown(
                f"{self._endpoint} failed {times}, last: {self._errors[-1]}; its share of the "
                "work is paused, everything so far is kept",
                {"endpoint": self._endpoint, "wait": self._wait},
            )
