"""Tokens are made here too, so that their form is checked and not only that they can be read."""

import base64
import hashlib
import hmac
import json

import pytest
from inside.grading import Raised

SOURCE = """
    from solution import BadToken, Signer
    now = [start]
    signer = Signer([key.encode() for key in keys], lambda: now[0], purpose=purpose, max_age=100)

    def attempt(function, *args):
        try:
            return function(*args)
        except BadToken as error:
            return "bad: " + error.reason

"""


def run(candidate, source, keys=("new", "old"), purpose="login", start=1000.9, **inputs):
    inputs |= {"keys": list(keys), "purpose": purpose, "start": start}
    return candidate.run(SOURCE + source, **inputs)


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(value, time="1000", key="new", purpose="login", payload=None):
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    signed = f"{encode(text.encode()) if payload is None else payload}.{time}"
    digest = hmac.new(key.encode(), f"{purpose}.{signed}".encode(), hashlib.sha256).digest()
    return f"{signed}.{encode(digest)}"


def read(candidate, *tokens, **options):
    return run(candidate, "    [attempt(signer.read, each) for each in tokens]\n", tokens=tokens, **options)


def test_the_form_of_a_token(candidate):
    value = {"b": 1, "a": "é ü", "c": [None, True, "???>>>"]}
    assert run(candidate, "    signer.sign(value)\n", value=value) == token(value)
    assert run(candidate, "    signer.sign({})\n", purpose="é") == token({}, purpose="é")


def test_any_key_reads_and_the_first_signs(candidate):
    tokens = [token({"k": key}, key=key) for key in ("new", "old", "gone")]
    assert read(candidate, *tokens) == [{"k": "new"}, {"k": "old"}, "bad: signature"]


def test_purposes_and_changes_break_the_signature(candidate):
    good = token({"user": 1})
    payload, time, signature = good.split(".")
    other = token({"user": 2}).split(".")[0]
    wrong = [
        token({"user": 1}, purpose="reset"),
        f"{other}.{time}.{signature}",
        f"{payload}.1001.{signature}",
        f"{payload}.01000.{signature}",
        f"{payload}.{time}.{signature[:-1]}",
        f"{payload}.{time}.{signature}A",
        f"{payload}.{time}.{signature.swapcase()}",
    ]
    assert read(candidate, *wrong, good) == ["bad: signature"] * 7 + [{"user": 1}]


def test_a_signature_has_one_spelling(candidate):
    """The last character of 32 bytes has two bits that do not count."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    good = token({})
    twin = good[:-1] + alphabet[alphabet.index(good[-1]) + 1]
    assert read(candidate, twin, good) == ["bad: signature", {}]


def test_what_is_malformed(candidate):
    good = token({})
    payload, time, signature = good.split(".")
    bad = [
        "",
        "a.b",
        good + ".x",
        f".{time}.{signature}",
        f"{payload}..{signature}",
        f"{payload}.{time}.",
        f"{payload}.-5.{signature}",
        f"{payload}.1e3.{signature}",
        f"{payload}.١٠٠.{signature}",
        f"{payload}=.{time}.{signature}",
        f"{payload}.{time}.{signature}\n",
        f"{payload}.{time}.{signature[:-2]}é",
        f"{payload}.{time}.{signature[:-2]}+/",
    ]
    assert read(candidate, *bad) == ["bad: malformed"] * len(bad)


def test_a_signed_payload_that_is_no_object_is_malformed(candidate):
    payloads = [encode(b"[1]"), encode(b"\xff\xfe"), encode(b"{"), "A", encode(b"null")]
    tokens = [token({}, payload=payload) for payload in payloads]
    assert read(candidate, *tokens) == ["bad: malformed"] * 5
    old = [token({}, payload=payload, time="1") for payload in payloads]
    assert read(candidate, *old) == ["bad: expired"] * 5
    assert read(candidate, token({}, payload="A", key="gone")) == ["bad: signature"]


def test_expiry(candidate):
    source = """
    seen = []
    for moment in moments:
        now[0] = moment
        seen.append(attempt(signer.read, token))
    seen
    """
    moments = [1000, 1100, 1100.1, 940, 939.9]
    seen = run(candidate, source, moments=moments, token=token({}))
    assert seen == [{}, {}, "bad: expired", {}, "bad: expired"]


def test_refresh(candidate):
    source = """
    seen = []
    for moment in (1050, 1050.5, 1101):
        now[0] = moment
        seen.append([attempt(signer.needs_refresh, each) for each in tokens])
    seen
    """
    tokens = [token({}), token({}, key="old"), "x", token({}, key="gone")]
    late = ["bad: malformed", "bad: signature"]
    assert run(candidate, source, tokens=tokens) == [
        [False, True, *late],
        [True, True, *late],
        ["bad: expired", "bad: expired", *late],
    ]


@pytest.mark.parametrize("keys", [[], [""], ["a", ""]])
def test_keys_are_needed(candidate, keys):
    with pytest.raises(Raised) as error:
        run(candidate, "    None\n", keys=keys)
    assert error.value.kind == "ValueError"


def cookies(candidate, cases):
    source = """
    from solution import set_cookie
    def attempt(args, options):
        try:
            return set_cookie(*args, **options)
        except ValueError:
            return "refused"
    [attempt(args, options) for args, options in cases]
    """
    return candidate.run(source, cases=cases)


def test_the_cookie_that_is_set(candidate):
    bare = {"secure": False, "http_only": False, "path": "/a b"}
    full = {"max_age": 0, "domain": "example.org", "same_site": "None"}
    assert cookies(candidate, [[["a", "b"], {}], [["a", ""], bare], [["__Host-a", "x=y"], {}]]) == [
        "a=b; Path=/; Secure; HttpOnly; SameSite=Lax",
        "a=; Path=/a b; SameSite=Lax",
        "__Host-a=x=y; Path=/; Secure; HttpOnly; SameSite=Lax",
    ]
    assert cookies(candidate, [[["a", "b"], full]]) == [
        "a=b; Max-Age=0; Path=/; Domain=example.org; Secure; HttpOnly; SameSite=None"
    ]


def test_cookies_that_are_refused(candidate):
    names = ["", "a b", "a=b", "a;b", "é", "a\n", "a,b"]
    values = ["a b", 'a"', "a,b", "a;b", "a\\b", "é", "a\n", "\x7f"]
    options = [
        {"path": "/;x"},
        {"path": "/\r\nX: y"},
        {"domain": "a;b"},
        {"domain": "a\x7f"},
        {"same_site": "lax"},
        {"same_site": "None", "secure": False},
    ]
    cases = [[[name, "x"], {}] for name in names] + [[["x", value], {}] for value in values]
    cases += [[["x", "y"], each] for each in options]
    hosts = [{"secure": False}, {"path": "/a"}, {"domain": "a.b"}]
    cases += [[["__Host-x", "y"], each] for each in hosts]
    cases += [[["__Secure-x", "y"], {"secure": False}]]
    assert cookies(candidate, cases) == ["refused"] * len(cases)
    good = {"path": "/a", "domain": "a.b"}
    assert cookies(candidate, [[["__Secure-x", "y"], good]])[0].startswith("__Secure-x=y; Path=/a")


def test_reading_cookies(candidate):
    source = "from solution import read_cookies\n[read_cookies(each) for each in headers]"
    headers = [None, "", 'a=1;b = "x y" ; c=d=e', "a=1; a=2; =3; d; e=", 'q="; r="a"b"; A=1; a="']
    assert candidate.run(source, headers=headers) == [
        {},
        {},
        {"a": "1", "b": "x y", "c": "d=e"},
        {"a": "1", "e": ""},
        {"q": '"', "r": 'a"b', "A": "1", "a": '"'},
    ]
