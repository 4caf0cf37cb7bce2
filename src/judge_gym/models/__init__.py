"""Calls models; no other package does.

A `Model` answers requests; the `Registry` looks up ids, prices and limits, and opens models.
"""

from typing import Protocol

from judge_gym.models.model_card import ModelCard
from judge_gym.models.registry import Registry
from judge_gym.records import Completion, Request

__all__ = ["Model", "ModelCard", "Registry"]


class Model(Protocol):
    """Answers a request, or raises `ProviderError` where no completion came."""

    @property
    def id(self) -> str:
        """`provider:name`."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Returns the provider's answer."""
        ...
