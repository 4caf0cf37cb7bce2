"""Model ids: what they mean, what they cost, and which can be called."""

import re
import subprocess
import sys
import types
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.models import ModelCard, Registry
from judge_gym.models.model_card import LOCAL, Limits
from judge_gym.models.providers import OPENERS
from judge_gym.models.registry_files import ScheduleEntry, write_schedule
from judge_gym.models.simulated import ASSISTANTS, CODERS, JUDGES, PRESETS
from tables import each_row

HOSTED = ("openai:gpt-5.2", "anthropic:claude-sonnet-4-5", "google:gemini-2.5-flash")
PROVIDERS = {"sim", *Registry().entries.providers}


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("id", HOSTED)
def test_a_bare_name_gets_its_provider(registry: Registry, id: str) -> None:
    assert registry.resolve(id.partition(":")[2]) == id


@pytest.mark.parametrize("id", [*HOSTED, "sim:strict", "sim:judge?bias=0.8&noise=0.3"])
def test_a_full_id_stays_as_it_is(registry: Registry, id: str) -> None:
    assert registry.resolve(id) == id


@each_row(
    ("written", "id"),
    [
        ("gpt-4.1", "openai:gpt-4.1"),
        ("gpt-4.1-mini", "openai:gpt-4.1-mini"),
        ("gpt-5.2", "openai:gpt-5.2"),
        ("claude-sonnet-4.5", "anthropic:claude-sonnet-4-5"),
        ("anthropic:claude-haiku-4.5", "anthropic:claude-haiku-4-5"),
        ("claude-opus-4.1", "anthropic:claude-opus-4-1"),
        ("anthropic:claude-2.1", "anthropic:claude-2.1"),
        ("anthropic:claude-instant-1.2", "anthropic:claude-instant-1.2"),
        ("gemini-2.5-flash", "google:gemini-2.5-flash"),
        ("grok-4", "xai:grok-4"),
        ("openrouter:anthropic/claude-sonnet-4.5", "openrouter:anthropic/claude-sonnet-4.5"),
        ("openrouter:openai/gpt-5.2", "openrouter:openai/gpt-5.2"),
    ],
)
def test_a_name_as_papers_write_it_becomes_the_id_of_the_provider(
    registry: Registry, written: str, id: str
) -> None:
    assert registry.resolve(written) == id
    assert registry.resolve(id) == id


def test_an_unknown_bare_name_is_refused_with_the_choices(registry: Registry) -> None:
    with pytest.raises(DesignError, match="unknown model 'gtp-4o-turbo-x'") as refusal:
        registry.resolve("gtp-4o-turbo-x")
    choices = set(refusal.value.choices)
    assert {f"sim:{preset}" for preset in JUDGES} < choices
    assert not choices & {f"sim:{preset}" for preset in (*ASSISTANTS, *CODERS)}
    assert all(choice in refusal.value.message for choice in refusal.value.choices)


@pytest.mark.parametrize("name", ["gpt-5.2", "grok-4", "mistral-large-latest", "deepseek-chat"])
def test_a_bare_name_ends_in_a_model_that_has_a_card_or_in_a_refusal(
    registry: Registry, name: str
) -> None:
    try:
        id = registry.resolve(name)
    except DesignError as refusal:
        assert refusal.choices
    else:
        assert registry.card(id).id == id


@pytest.mark.parametrize("id", ["opnai:gpt-5.2", ":gpt-5.2", "SIM:strict"])
def test_an_unknown_provider_is_refused_with_the_choices(registry: Registry, id: str) -> None:
    for look_up in (registry.card, registry.resolve, registry.open):
        with pytest.raises(DesignError, match="unknown provider") as refusal:
            look_up(id)
        assert set(refusal.value.choices) == PROVIDERS


@pytest.mark.parametrize("id", ["openai:", "sim:"])
def test_an_id_without_a_name_is_refused(registry: Registry, id: str) -> None:
    with pytest.raises(DesignError, match="names no model"):
        registry.card(id)


def test_an_unknown_simulated_model_is_refused_with_the_presets(registry: Registry) -> None:
    with pytest.raises(DesignError, match="unknown simulated model 'sim:strikt'") as refusal:
        registry.resolve("sim:strikt")
    assert set(refusal.value.choices) == {f"sim:{preset}" for preset in (*PRESETS, *CODERS)}


@pytest.mark.parametrize("id", HOSTED)
def test_a_hosted_model_has_a_price_that_grows_with_the_tokens(registry: Registry, id: str) -> None:
    card = registry.card(id)
    some, more_in, more_out = card.price(100, 50), card.price(200, 50), card.price(100, 100)
    assert some is not None and more_in is not None and more_out is not None
    assert 0 < some < more_in < more_out, "an output token costs more than an input token"
    assert card.price(0, 0) == 0


def test_prices_are_those_that_are_published(registry: Registry) -> None:
    # openai.com/api/pricing: gpt-5.2 at 1.75 USD per million input tokens, 14 per million output.
    assert registry.card("openai:gpt-5.2").price(1_000_000, 1_000_000) == pytest.approx(15.75)


def test_a_simulated_model_is_free_and_an_unknown_price_is_null(registry: Registry) -> None:
    assert registry.card("sim:strict").price(10_000, 10_000) == 0.0
    assert registry.card("openai:no-such-model-9").price(1, 1) is None


def test_a_card_says_who_made_the_model(registry: Registry) -> None:
    assert registry.card("openai:gpt-5.2") == ModelCard(
        "openai:gpt-5.2", "openai", "gpt-5.2", family="openai", simulated=False
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
    assert 0 < sim.seconds(0, 100, 64) == sim.seconds(0, 100, 1)
    hosted = replace(hosted, limits=Limits())
    assert 0 < hosted.seconds(0, 100, 64) < hosted.seconds(0, 100, 1)
    assert hosted.seconds(0, 100, 1) < hosted.seconds(0, 1000, 1)


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (Limits(rpm=30), 2.0),
        (Limits(tpm=6000), 15.0),
        (Limits(input_tpm=6000), 10.0),
        (Limits(output_tpm=1000, rpm=30), 30.0),
    ],
)
def test_a_call_adds_the_time_that_the_tightest_limit_makes_it_wait(
    registry: Registry, limits: Limits, seconds: float
) -> None:
    hosted = replace(registry.card(HOSTED[0]), limits=limits)
    assert hosted.seconds(1000, 500, 64) == pytest.approx(seconds)


def test_no_more_calls_are_expected_at_once_than_an_endpoint_allows(registry: Registry) -> None:
    hosted = replace(registry.card(HOSTED[0]), limits=Limits(concurrency=2))
    assert hosted.seconds(0, 100, 64) == hosted.seconds(0, 100, 2)


@pytest.mark.parametrize("id", HOSTED)
def test_a_hosted_model_is_refused_when_it_is_opened(registry: Registry, id: str) -> None:
    with pytest.raises(DesignError, match=f"{id} cannot be called") as refusal:
        registry.open(id)
    assert "sim:balanced" in refusal.value.choices
    judges, _, coders = refusal.value.message.partition("simulated judges")[2].partition("nor do")
    assert "sim:strict" in judges and "sim:coder" not in judges and "sim:critic" not in judges
    assert "sim:coder-weak" in coders


def test_every_provider_of_the_registry_has_an_opener_and_no_other_has(registry: Registry) -> None:
    assert PROVIDERS > {"local", "openai", "anthropic", "google"}
    assert {*OPENERS, LOCAL} == set(registry.entries.providers)


def test_a_provider_without_an_opener_is_refused_with_the_choices(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(OPENERS, "xai")
    monkeypatch.setenv("XAI_API_KEY", "k")
    with pytest.raises(DesignError, match="no opener for the provider 'xai'; choose") as refusal:
        registry.open("xai:grok-4")
    choices = refusal.value.choices
    assert "anthropic:NAME" in choices and "xai:NAME" not in choices


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


# --- what differs between models -----------------------------------------------------------------

BLUEPRINT = {
    "openai": (30, 100_000),
    "anthropic": (20, 80_000),
    "xai": (15, 50_000),
    "google": (20, 80_000),
    "openrouter": (20, 60_000),
}


@pytest.mark.parametrize(("provider", "rates"), BLUEPRINT.items())
def test_hosted_providers_have_the_limits_of_the_blueprint(
    registry: Registry, provider: str, rates: tuple[int, int]
) -> None:
    limits = registry.card(f"{provider}:any-model").limits
    assert (limits.rpm, limits.tpm) == rates
    assert limits.scope == provider, "its models share them"
    assert registry.hosted_limits.rpm == 60


def test_a_simulated_model_has_no_limits(registry: Registry) -> None:
    assert registry.card("sim:strict").limits == Limits()


@pytest.mark.parametrize(
    ("id", "temperature", "seed", "structured"),
    [
        ("openai:gpt-4o-2024-08-06", True, True, "native"),
        ("openai:gpt-4-0613", True, True, "tool"),
        ("openai:gpt-3.5-turbo", True, True, "tool"),
        ("openai:o3", False, False, "native"),
        ("openai:o4-mini-2025-04-16", False, False, "native"),
        ("openai:gpt-5-mini", False, False, "native"),
        ("openai:gpt-5.2", True, False, "native"),
        ("openai:gpt-6-sol", False, False, "native"),
        ("anthropic:claude-sonnet-4-5-20250929", True, False, "native"),
        ("anthropic:claude-opus-4-20250514", True, False, "tool"),
        ("anthropic:claude-3-5-haiku-latest", True, False, "tool"),
        ("anthropic:claude-opus-4-7", False, False, "native"),
        ("anthropic:claude-sonnet-5", False, False, "native"),
        ("anthropic:claude-opus-5-5", False, False, "native"),
        ("google:gemini-2.5-flash", True, True, "native"),
        ("xai:grok-4-0709", True, True, "native"),
        ("openrouter:openai/gpt-5.2", False, False, "native"),
        ("openrouter:openai/gpt-oss-120b", True, False, "native"),
        ("openrouter:meta-llama/llama-3.3-70b-instruct", True, False, "prompted"),
    ],
)
def test_a_card_says_what_a_model_takes(
    registry: Registry, id: str, temperature: bool, seed: bool, structured: str
) -> None:
    card = registry.card(id)
    assert (card.takes_temperature, card.takes_seed) == (temperature, seed)
    assert card.structured == structured


def test_models_that_answer_only_there_use_the_responses_api(registry: Registry) -> None:
    assert registry.card("openai:o3-pro").api == "responses"
    assert registry.card("openai:o3").api == "chat"


@pytest.mark.parametrize(
    ("id", "dated"),
    [
        ("openai:gpt-5.2-2025-12-11", True),
        ("openai:gpt-4-0613", True),
        ("anthropic:claude-sonnet-4-5-20250929", True),
        ("google:gemini-2.0-flash-001", True),
        ("google:gemini-2.5-flash-preview-05-20", True),
        ("xai:grok-4-0709", True),
        ("openai:gpt-5.2", False),
        ("anthropic:claude-opus-4-1", False),
        ("google:gemini-2.5-flash", False),
        ("openrouter:meta-llama/llama-3.3-70b-instruct:free", False),
    ],
)
def test_alias_differs_from_a_dated_version(registry: Registry, id: str, dated: bool) -> None:
    card = registry.card(id)
    assert card.dated is dated
    assert bool(card.unpinned) is not dated


def test_the_warning_of_an_alias_names_the_version(registry: Registry) -> None:
    assert "openai:gpt-5.2-2025-12-11" in registry.card("openai:gpt-5.2").unpinned
    assert registry.card("sim:strict").unpinned == ""


def test_a_router_passes_on_who_made_a_model(registry: Registry) -> None:
    families = {
        id: registry.card(f"openrouter:{id}").family
        for id in ("openai/gpt-5.2", "x-ai/grok-4", "meta-llama/llama-3.3-70b-instruct")
    }
    assert list(families.values()) == ["openai", "xai", "meta-llama"]
    assert registry.card("xai:grok-4").family == "xai"


def test_a_card_knows_the_context_and_the_kind(registry: Registry) -> None:
    card = registry.card("openai:gpt-4o")
    assert (card.context, card.kind) == (128_000, "hosted")
    assert registry.card("sim:strict").kind == "sim"
    assert registry.card("openai:no-such-model-9").context is None


def test_cached_tokens_cost_what_is_published(registry: Registry) -> None:
    # openai.com/api/pricing: a cached input token of gpt-5.2 costs a tenth.
    card = registry.card("openai:gpt-5.2")
    assert card.price(1_000_000, 0, 1_000_000) == pytest.approx(0.175)


def test_a_long_prompt_may_cost_more_per_token(registry: Registry) -> None:
    # ai.google.dev/pricing: gemini-2.5-pro at 1.25 USD per million up to 200k tokens, then 2.50.
    card = registry.card("google:gemini-2.5-pro")
    assert card.price(100_000, 0) == pytest.approx(0.125)
    assert card.price(400_000, 0) == pytest.approx(1.0)


# --- the user's file -----------------------------------------------------------------------------


def registry_of(folder: Path, text: str) -> Registry:
    (folder / "judge-gym.models.toml").write_text(text, encoding="utf-8")
    return Registry(folder)


LAB = """
[endpoints.lab]
base_url = "http://user:hidden@127.0.0.1:8000/v1"
key_env = "LAB_KEY"
concurrency = 8
tpm = 1000

[models."lab:llama*"]
family = "meta"
seed = true
structured = "prompted"
prices = {input = 1.0, output = 2.0, cached = 0.5}

[models."openai:gpt-5.2"]
prices = {input = 1.0, output = 3.0}
rpm = 500

[providers.openai]
rpm = 0

[hosted]
rpm = 1000
"""


def test_the_users_file_is_laid_over_the_packaged_one(tmp_path: Path) -> None:
    registry = registry_of(tmp_path, LAB)
    assert registry.card("openai:gpt-5.2").price(1_000_000, 1_000_000) == pytest.approx(4.0)
    own, shared = (registry.card(f"openai:{name}").limits for name in ("gpt-5.2", "gpt-4o"))
    assert (own.scope, own.rpm, own.tpm) == ("openai:gpt-5.2", 500, 100_000)
    assert (shared.scope, shared.rpm, shared.tpm) == ("openai", None, 100_000), "0 is no limit"
    assert registry.card("openai:gpt-5.2").version == "gpt-5.2-2025-12-11", "what it leaves stays"
    assert registry.card("anthropic:claude-opus-5").limits.rpm == 20
    assert registry.hosted_limits.rpm == 1000


def test_an_endpoint_gives_its_models_their_provider(tmp_path: Path) -> None:
    card = registry_of(tmp_path, LAB).card("lab:llama-3:70b")
    assert (card.provider, card.name, card.kind) == ("lab", "llama-3:70b", "endpoint")
    assert (card.family, card.structured, card.takes_seed) == ("meta", "prompted", True)
    assert card.endpoint == "http://127.0.0.1:8000/v1"
    assert card.limits == Limits("lab", tpm=1000, concurrency=8)
    assert card.price(1_000_000, 1_000_000, 500_000) == pytest.approx(2.75)
    assert card.unpinned == "", "its owner knows what it is"


def test_an_endpoints_price_is_unknown_unless_it_is_given(tmp_path: Path) -> None:
    text = '[endpoints.groq]\nbase_url = "http://127.0.0.1/v1"'
    assert registry_of(tmp_path, text).card("groq:llama-3.3-70b-versatile").price(1, 1) is None


def test_a_model_of_an_endpoint_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def wire_model(*given: Any, **more: Any) -> object:
        opened.append((given, more))
        return object()

    module = types.SimpleNamespace(HttpModel=wire_model)
    monkeypatch.setitem(sys.modules, "judge_gym.models.http_model", module)
    registry = registry_of(tmp_path, LAB)
    with pytest.raises(DesignError, match=r"lab:llama cannot be called: set LAB_KEY"):
        registry.open("lab:llama")
    assert not opened
    monkeypatch.setenv("LAB_KEY", "k")
    registry.open("lab:llama")
    [(given, more)] = opened
    assert given == ("lab:llama",)
    assert more["base_url"] == "http://user:hidden@127.0.0.1:8000/v1"
    assert (more["name"], more["key"], more["structured"]) == ("llama", "k", "prompted")


def test_an_unknown_provider_is_refused_with_the_endpoints_among_the_choices(
    tmp_path: Path,
) -> None:
    registry = registry_of(tmp_path, LAB)
    with pytest.raises(DesignError, match="unknown provider 'lba'") as refusal:
        registry.card("lba:llama")
    assert "lab" in refusal.value.choices
    with pytest.raises(DesignError, match="unknown model") as refusal:
        registry.resolve("no-such-model-at-all")
    assert "lab:NAME" in refusal.value.choices


@pytest.mark.parametrize(
    ("text", "words", "choice"),
    [
        ("[endpoints.lab", ["broken TOML"], None),
        ("[endpoint.lab]", ["unknown key 'endpoint'", "the file"], "endpoints"),
        ("[endpoints.lab]\nkey_env = 'K'", ["endpoints.lab.base_url is missing"], None),
        ("[endpoints.lab]\nbase_url = 'host'", ["endpoints.lab.base_url"], None),
        (
            "[endpoints.openai]\nbase_url = 'http://h'",
            ["endpoints.openai", "has it"],
            None,
        ),
        ("[endpoints.sim]\nbase_url = 'http://h'", ["endpoints.sim"], None),
        (
            "[endpoints.lab]\nbase_url = 'http://h'\nrmp = 3",
            ["unknown key 'rmp'", "endpoints.lab"],
            "rpm",
        ),
        ("[models.'openai:o3']\nrpm = -1", ["models.openai:o3.rpm"], None),
        ("[models.'openai:o3']\nrpm = true", ["models.openai:o3.rpm"], None),
        ("[models.'openai:o3']\nstructured = 'jason'", ["structured is not one of"], "tool"),
        ("[models.'openai:o3']\napi = 'soap'", ["api is not one of"], "responses"),
        ("[models.'opnai:o3']\nrpm = 1", ["unknown provider 'opnai'"], "openai"),
        ("[models.'openai:o3'.prices]\ninput = 1", ["prices.output is missing"], None),
        (
            "[models.'openai:o3'.prices]\ninput = 1.0\noutput = 1.0\ncash = 1.0",
            ["unknown key 'cash'"],
            "cached",
        ),
        ("[models.'openai:o3'.prices]\ninput = nan\noutput = 1.0", ["prices.input"], None),
        ("[providers.mistral]\nrpm = 1", ["unknown provider 'mistral'"], "openai"),
        ("[hosted]\nseed = true", ["unknown key 'seed'"], "rpm"),
        ("models = 3", ["models"], None),
    ],
)
def test_a_fault_in_the_file_is_named_with_its_place_and_the_choices(
    tmp_path: Path, text: str, words: list[str], choice: str | None
) -> None:
    with pytest.raises(DesignError) as refusal:
        registry_of(tmp_path, text).card("openai:gpt-5.2")
    assert all(word in refusal.value.message for word in ["judge-gym.models.toml", *words])
    if choice is not None:
        assert choice in refusal.value.choices and choice in refusal.value.message


def test_a_password_in_a_base_url_is_in_no_complaint_and_no_repr(tmp_path: Path) -> None:
    text = "[endpoints.lab]\nbase_url = 'ftp://user:hidden@host/v1'"
    with pytest.raises(DesignError) as refusal:
        registry_of(tmp_path, text).card("lab:x")
    assert "hidden" not in refusal.value.message
    registry = registry_of(tmp_path, LAB)
    assert "hidden" not in repr(registry.card("lab:x")) + repr(registry.entries.endpoints)


# --- retirement and schedule ---------------------------------------------------------------------


def test_a_retirement_is_announced_60_days_before(tmp_path: Path) -> None:
    (tmp_path / "judge-gym.models.toml").write_text(
        '[endpoints.own]\nbase_url = "http://localhost:1/v1"\n'
        '[models."own:old"]\nretires = 2026-06-30\n'
    )
    card = Registry(tmp_path).card("own:old")
    assert card.retirement(date(2026, 4, 30)) == ""
    assert "on 2026-06-30, in 60 days" in card.retirement(date(2026, 5, 1))
    assert "was retired by its provider on 2026-06-30" in card.retirement(date(2026, 6, 30))
    assert Registry(tmp_path).card("own:new").retirement(date(2099, 1, 1)) == ""


def test_every_retirement_is_of_a_known_provider_and_proposals_have_prices() -> None:
    registry = Registry()
    for day, patterns in registry.entries.retirements.items():
        assert date.fromisoformat(day)
        assert {pattern.partition(":")[0] for pattern in patterns} <= {*registry.entries.providers}
    cards = [registry.card(id) for id in registry.recommended()]
    proposing = {name for name, entry in registry.entries.providers.items() if entry.proposed}
    assert {card.provider for card in cards} == proposing
    assert all(card.tariff() is not None and card.retires is None for card in cards)


def test_only_models_of_providers_with_keys_are_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in Registry().providers():
        for name in (row["key"] or "").split(" or "):
            monkeypatch.delenv(name, raising=False)
    assert Registry().proposed(date(2026, 11, 16)) == []
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    proposed = Registry().proposed(date(2026, 11, 16))
    assert proposed and all(id.startswith("google:") for id in proposed)


def test_a_schedule_is_written_beside_other_tables(tmp_path: Path) -> None:
    file = tmp_path / "judge-gym.models.toml"
    file.write_text(
        '# mine\n[schedule]\nmodels = ["a:b"]\nusd_per_month = 1\n\n[hosted]\nrpm = 9\n'
    )
    write_schedule(tmp_path, ScheduleEntry(models=["openai:x", "sim:y"], usd_per_month=2.5))
    text = file.read_text()
    assert text.startswith("# mine\n[schedule]") and text.endswith("[hosted]\nrpm = 9\n")
    entry = Registry(tmp_path).entries.schedule
    assert entry is not None and (entry.models, entry.usd_per_month) == (["openai:x", "sim:y"], 2.5)
    file.unlink()
    write_schedule(tmp_path, entry)
    assert Registry(tmp_path).entries.schedule == entry


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[schedule]\nmodels = ["openai:x"]\n', "schedule.usd_per_month is missing"),
        ('[schedule]\nusd = 1\nusd_per_month = 1\nmodels = ["openai:x"]\n', "unknown key 'usd'"),
    ],
)
def test_a_schedule_without_a_budget_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "judge-gym.models.toml").write_text(text)
    with pytest.raises(DesignError, match=re.escape(message)):
        Registry(tmp_path).card("openai:gpt-6-luna")
