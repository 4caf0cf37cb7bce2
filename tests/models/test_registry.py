"""Model ids: what they mean, what they cost, and which can be called."""

import subprocess
import sys

import pytest

from judge_gym.errors import DesignError
from judge_gym.models import ModelCard, Registry
from judge_gym.models.simulated import PRESETS

HOSTED = ("openai:gpt-4.1", "anthropic:claude-sonnet-4-5", "google:gemini-2.5-flash")
PROVIDERS = {"sim", "openai", "anthropic", "google", "xai", "openrouter"}


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("id", HOSTED)
def test_a_bare_name_gets_its_provider(registry: Registry, id: str) -> None:
    assert registry.resolve(id.partition(":")[2]) == id


@pytest.mark.parametrize("id", [*HOSTED, "sim:strict", "sim:judge?bias=0.8&noise=0.3"])
def test_a_full_id_stays_as_it_is(registry: Registry, id: str) -> None:
    assert registry.resolve(id) == id


def test_an_unknown_bare_name_is_refused_with_the_choices(registry: Registry) -> None:
    with pytest.raises(DesignError, match="unknown model 'gtp-4o-turbo-x'") as refusal:
        registry.resolve("gtp-4o-turbo-x")
    assert {f"sim:{preset}" for preset in PRESETS} < set(refusal.value.choices)
    assert all(choice in refusal.value.message for choice in refusal.value.choices)


@pytest.mark.parametrize("name", ["gpt-4.1", "grok-4", "mistral-large-latest", "deepseek-chat"])
def test_a_bare_name_ends_in_a_model_that_has_a_card_or_in_a_refusal(
    registry: Registry, name: str
) -> None:
    try:
        id = registry.resolve(name)
    except DesignError as refusal:
        assert refusal.choices
    else:
        assert registry.card(id).id == id


@pytest.mark.parametrize("id", ["opnai:gpt-4.1", ":gpt-4.1", "SIM:strict"])
def test_an_unknown_provider_is_refused_with_the_choices(registry: Registry, id: str) -> None:
    for look_up in (registry.card, registry.resolve, registry.open):
        with pytest.raises(DesignError, match="unknown provider") as refusal:
            look_up(id)
        assert set(refusal.value.choices) == PROVIDERS


@pytest.mark.parametrize("id", ["openai:", "sim:"])
def test_an_id_without_a_name_is_refused(registry: Registry, id: str) -> None:
    with pytest.raises(DesignError, match="names no model"):
        registry.card(id)


def test_an_unknown_simulated_judge_is_refused_with_the_presets(registry: Registry) -> None:
    with pytest.raises(DesignError, match="unknown simulated judge 'sim:strikt'") as refusal:
        registry.resolve("sim:strikt")
    assert set(refusal.value.choices) == {f"sim:{preset}" for preset in PRESETS}


@pytest.mark.parametrize("id", HOSTED)
def test_a_hosted_model_has_a_price_that_grows_with_the_tokens(registry: Registry, id: str) -> None:
    card = registry.card(id)
    some, more_in, more_out = card.price(100, 50), card.price(200, 50), card.price(100, 100)
    assert some is not None and more_in is not None and more_out is not None
    assert 0 < some < more_in < more_out, "an output token costs more than an input token"
    assert card.price(0, 0) == 0


def test_prices_are_those_that_are_published(registry: Registry) -> None:
    # openai.com/api/pricing: gpt-4.1 at 2 USD per million input tokens and 8 per million output.
    assert registry.card("openai:gpt-4.1").price(1_000_000, 1_000_000) == pytest.approx(10.0)


def test_a_simulated_model_is_free_and_an_unknown_price_is_null(registry: Registry) -> None:
    assert registry.card("sim:strict").price(10_000, 10_000) == 0.0
    assert registry.card("openai:no-such-model-9").price(1, 1) is None


def test_a_card_says_who_made_the_model(registry: Registry) -> None:
    assert registry.card("openai:gpt-4.1") == ModelCard(
        "openai:gpt-4.1", "openai", "gpt-4.1", family="openai", simulated=False
    )
    strict, inline = registry.card("sim:strict"), registry.card("sim:strict?noise=0.3")
    assert strict.simulated and strict.family == inline.family == PRESETS["strict"].family
    assert strict.family != registry.card("sim:alarmist").family


def test_an_openrouter_name_may_hold_a_slash_and_a_colon(registry: Registry) -> None:
    card = registry.card("openrouter:meta-llama/llama-3.3-70b-instruct:free")
    assert (card.provider, card.name) == ("openrouter", "meta-llama/llama-3.3-70b-instruct:free")


def test_simulated_seconds_do_not_shrink_with_concurrency_but_hosted_ones_do(
    registry: Registry,
) -> None:
    sim, hosted = registry.card("sim:judge"), registry.card(HOSTED[0])
    assert 0 < sim.seconds(100, 64) == sim.seconds(100, 1)
    assert 0 < hosted.seconds(100, 64) < hosted.seconds(100, 1)
    assert hosted.seconds(100, 1) < hosted.seconds(1000, 1)


@pytest.mark.parametrize("id", HOSTED)
def test_a_hosted_model_is_refused_when_it_is_opened(registry: Registry, id: str) -> None:
    with pytest.raises(DesignError, match=f"{id} cannot be called") as refusal:
        registry.open(id)
    assert "sim:balanced" in refusal.value.choices


def test_an_opened_simulated_model_has_its_id(registry: Registry) -> None:
    assert registry.open("sim:judge?bias=0.8").id == "sim:judge?bias=0.8"


def test_looking_up_simulated_models_loads_no_price_data() -> None:
    code = (
        "import sys; from judge_gym.models import Registry; r = Registry();"
        "r.resolve('sim:strict'); r.card('sim:strict').price(1, 1); r.open('sim:strict');"
        "print('genai_prices' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
