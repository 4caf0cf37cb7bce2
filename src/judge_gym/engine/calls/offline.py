"""Answers from the ledger alone; what is missing is counted, and an error at the end."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.errors import NotFoundError
from judge_gym.records import Request
from judge_gym.store import Answer, Ledger, Payer

T = TypeVar("T")


class OfflineError(NotFoundError):
    """Requests that the ledger does not hold, in a run that may call no model."""


@dataclass(slots=True)
class OfflineAsker:
    """Answers requests without calling a model."""

    ledger: Ledger
    models: Models
    _missing: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Stage and model, by key: what two runs miss is counted once."""
    _error: Exception | None = None

    def stop(self, error: Exception) -> None:
        """Looks up nothing further."""
        self._error = self._error or error

    async def ask(
        self, requests: Sequence[Request], payer: Payer, progress: RunProgress
    ) -> list[Answer | None]:
        """Returns what the ledger holds, in the order of the requests; None where it holds nothing.

        A call that failed when it was made is returned as failed, so that a replay equals the run.
        """
        if self._error is not None:
            raise self._error
        keys = [request.key(self.models.card(request.model).endpoint) for request in requests]
        stored = self.ledger.find_asked(keys)
        for key, request in zip(keys, requests, strict=True):
            if key in stored:
                progress.reuse(1, 0.0)
            else:
                self._missing[key] = (payer.stage, request.model)
        return [stored.get(key) for key in keys]

    async def answers(
        self, questions: Sequence[tuple[T, Request]], payer: Payer, progress: RunProgress
    ) -> AsyncGenerator[list[tuple[T, Answer]]]:
        """Yields the targets whose requests the ledger holds, each with its answer."""
        answers = await self.ask([request for _, request in questions], payer, progress)
        pairs = zip(questions, answers, strict=True)
        yield [(target, answer) for (target, _), answer in pairs if answer is not None]

    def refuse_missing(self) -> None:
        """Raises an error that lists what the ledger did not hold."""
        if not self._missing:
            return
        counted = sorted(Counter(self._missing.values()).items())
        listed = ", ".join(f"{count:,} {stage} of {model}" for (stage, model), count in counted)
        noun = "request is" if len(self._missing) == 1 else "requests are"
        raise OfflineError(
            f"{len(self._missing):,} {noun} not in the ledger: {listed}. What was found is "
            "written; what depends on the missing was not looked up. Run it "
            "without --offline, or first: judge-gym ledger import FILE"
        )
