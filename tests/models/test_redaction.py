"""No secret is left in a text, however it is echoed."""

import base64
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from judge_gym.models.redaction import LONGEST_MESSAGE, Redactor
from tables import each_row

KEY = "sk/very+secret=0123"
URL = "https://user:p%40ss+word@proxy:8443/v1?token=t0k%2Fen&v=3"


@each_row(
    "echo",
    [
        KEY,
        KEY.upper(),
        quote(KEY),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        quote_plus(KEY),
        f"Authorization: Bearer {KEY}",
        f'{{"key": "{KEY}"}}',
        "p@ss+word",
        "p%40ss%2Bword",
        f"Authorization: Basic {base64.b64encode(b'user:p@ss+word').decode()}",
        "t0k/en",
        "t0k%2Fen",
        URL,
    ],
)
@each_row("before", [0, LONGEST_MESSAGE - 8])
def test_a_secret_is_found_in_every_form(echo: str, before: int) -> None:
    told = Redactor(KEY, URL)(f"{'x' * before} no access with {echo} here")
    assert len(told) <= LONGEST_MESSAGE
    lowered = told.lower()
    for part in ("very", "ss+word", "ss%2bword", "t0k", "dxnlcjpw"):
        assert part not in lowered


def test_a_password_with_a_blank_is_found_as_a_form_has_it() -> None:
    told = Redactor("", "https://user:open%20sesame@proxy/v1")("no access with open+sesame here")
    assert "sesame" not in told


def test_words_that_are_no_secret_stay() -> None:
    scrub = Redactor(KEY, URL)
    assert scrub("version 3\n of   user at proxy:8443/v1") == "version 3 of user at proxy:8443/v1"
    assert Redactor("")("as it is") == "as it is"


@given(st.text(min_size=4, max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_any_key_is_taken_out_of_any_text(key: str, before: str, after: str) -> None:
    key = f"k{key}"
    told = Redactor(key)(before + key + after)
    assert key not in told or key in "[key]" or key in (before + "[key]" + after)


def test_a_scrubber_shows_nothing() -> None:
    scrub = Redactor(KEY, URL)
    assert repr(scrub) == "Redactor()"
