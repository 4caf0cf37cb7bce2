"""Answering from the ledger alone: what is not there is counted, and an error once all is read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.errors import NotFoundError
from judge_gym.records import Request
from judge_gym.store import Answer, Ledger, Payer


class OfflineError(NotFoundError):
    """Requests that the ledger does not hold, in a run that may ask no model."""


@dataclass(slots=True)
class OfflineAsker:
    """Asks no model, and opens none."""

    ledger: Ledger
    models: Models
    _missing: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Stage and model, by key: what two runs miss is missed once."""
    _fault: Exception | None = None

    def stop(self, fault: Exception) -> None:
        """Look nothing further up."""
        self._fault = self._fault or fault

    async def ask(
        self, requests: Sequence[Request], payer: Payer, tally: RunProgress
    ) -> list[Answer | None]:
        """What the ledger knows of requests, in their order; None where they were never asked.

        A call that brought no answer then brings none now, so that a replay has its failures too.
        """
        if self._fault is not None:
            raise self._fault
        keys = [request.key(self.models.card(request.model).endpoint) for request in requests]
        known = self.ledger.find_asked(keys)
        for key, request in zip(keys, requests, strict=True):
            if key in known:
                tally.reuse(1, 0.0)
            else:
                self._missing[key] = (payer.stage, request.model)
        return [known.get(key) for key in keys]

    def refuse_missing(self) -> None:
        """Say what was not there; what was is written by now."""
        if not self._missing:
            return
        counted = sorted(Counter(self._missing.values()).items())
        listed = ", ".join(f"{count:,} {stage} of {model}" for (stage, model), count in counted)
        one = len(self._missing) == 1
        raise OfflineError(
            f"{len(self._missing):,} request{'' if one else 's'} {'is' if one else 'are'} not in "
            f"the ledger: {listed}. What is there was written; what builds on the missing was not "
            "looked for. Run it without --offline, or first: judge-gym ledger import FILE"
        )
