"""Which calls wait where a provider asks for a pause."""

import asyncio
from dataclasses import replace

import pytest

from conftest import Scripted
from judge_gym.engine.calls.limit import CallLimits
from judge_gym.models import ModelCard
from judge_gym.models.model_card import Limits

CARD = ModelCard("openai:a", "openai", "a", "gpt", False, limits=Limits("openai", rpm=60_000))
SIBLING = replace(CARD, id="openai:b", name="b")


async def begins(limits: CallLimits, card: ModelCard) -> bool:
    """Whether a call may begin at once, or nearly so."""
    try:
        async with asyncio.timeout(0.2), limits.reserve(card, 1, 1, lambda: None):
            return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("alone", [True, False])
def test_a_pause_holds_for_one_model_alone_or_for_all_that_share_its_limits(alone: bool) -> None:
    async def after_a_pause() -> tuple[bool, bool]:
        limits = CallLimits(Scripted(lambda request: ""), Limits(), None)
        assert await begins(limits, CARD) and await begins(limits, SIBLING)
        limits.block(CARD, 60.0, alone=alone)
        return await begins(limits, CARD), await begins(limits, SIBLING)

    assert asyncio.run(after_a_pause()) == (False, alone)
