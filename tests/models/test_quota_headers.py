"""What is left, as providers say it: their headers, their durations, their dates."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.models import quota_headers
from judge_gym.models.quota_headers import Quota, Remaining, quota_listener, read_quota, report
from tables import each_row


def openai(reset: str, remaining: str = "3", kind: str = "requests") -> dict[str, str]:
    return {f"x-ratelimit-remaining-{kind}": remaining, f"x-ratelimit-reset-{kind}": reset}


@each_row(
    ("reset", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1m30.5s", 90.5),
        ("1h0m2s", 3602.0),
        ("7.66s", 7.66),
        ("0s", 0.0),
        ("1d", 86_400.0),
        ("45", 45.0),
    ],
)
def test_a_reset_is_a_duration(reset: str, seconds: float) -> None:
    assert read_quota(openai(reset))["requests"] == pytest.approx((3, seconds))


@each_row(
    ("reset", "remaining"),
    [
        ("", "3"),
        ("soon", "3"),
        ("1s later", "3"),
        ("1760000000", "3"),
        ("-1s", "3"),
        ("2025-13-01T00:00:00Z", "3"),
        ("2025-01-01T00:00:00", "3"),
        ("1s", ""),
        ("1s", "-1"),
        ("1s", "many"),
        ("1s", "nan"),
    ],
)
def test_what_cannot_be_read_tells_nothing(reset: str, remaining: str) -> None:
    assert read_quota(openai(reset, remaining)) == {}


@pytest.mark.slow
@given(st.text(max_size=12), st.text(max_size=12))
def test_any_header_is_read_or_left_out(reset: str, remaining: str) -> None:
    for left in read_quota(openai(reset, remaining)).values():
        assert left.amount >= 0 and 0 <= left.seconds <= quota_headers.LONGEST_RESET


def test_an_answer_without_a_reset_or_without_an_amount_tells_nothing() -> None:
    assert read_quota({"x-ratelimit-remaining-requests": "3"}) == {}
    assert (
        read_quota({"x-ratelimit-reset-requests": "3s", "x-ratelimit-limit-requests": "60"}) == {}
    )


def test_openai_tells_of_requests_and_tokens() -> None:
    told = read_quota(
        {**openai("1s", "0"), **openai("2s", "149984", "tokens"), "x-request-id": "9"}
    )
    assert told == {"requests": Remaining(0, 1), "tokens": Remaining(149_984, 2)}


@pytest.mark.parametrize("skew", [0, 7200])
def test_anthropic_tells_dates_which_are_read_by_its_own_clock(skew: int) -> None:
    now = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=skew)
    reset = (now + timedelta(seconds=30)).isoformat().replace("+00:00", "Z")
    headers = {"date": format_datetime(now, usegmt=True)}
    for number, kind in enumerate(("requests", "tokens", "input-tokens", "output-tokens")):
        headers[f"anthropic-ratelimit-{kind}-limit"] = "50"
        headers[f"anthropic-ratelimit-{kind}-remaining"] = str(number)
        headers[f"anthropic-ratelimit-{kind}-reset"] = reset
    assert read_quota(headers) == {
        kind: Remaining(number, 30.0) for number, kind in enumerate(quota_headers.KINDS)
    }


def test_a_reset_that_has_passed_is_now() -> None:
    headers = {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2024-01-01T00:00:00Z",
    }
    assert read_quota(headers) == {"requests": Remaining(0, 0.0)}


def test_only_who_made_the_call_hears_of_it() -> None:
    async def call(number: int) -> list[Quota]:
        heard: list[Quota] = []
        with quota_listener(heard.append):
            await asyncio.sleep(0)
            report(openai("1s", str(number)))
        report(openai("1s", "99"))
        return heard

    async def both() -> list[list[Quota]]:
        return list(await asyncio.gather(call(1), call(2)))

    assert asyncio.run(both()) == [[{"requests": Remaining(n, 1)}] for n in (1, 2)]


def test_an_answer_that_asks_to_wait_says_when_to_come_again_and_no_more() -> None:
    heard: list[Quota] = []
    with quota_listener(heard.append):
        report({**openai("60s", "0"), "retry-after": "1"})
        report({"content-type": "application/json"})
    assert heard == []
