"""Tokens are known again by their hash alone, until they are revoked."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.store import Store
from judge_gym.store import tokens as tokening
from judge_gym.store.tables import tokens


def kept(store: Store) -> list[dict[str, Any]]:
    with store.database.read() as connection:
        return [dict(row) for row in connection.execute(sa.select(tokens)).mappings()]


def test_the_secret_itself_is_stored_nowhere(store: Store) -> None:
    made, secret = store.tokens.create("ada", "read")
    [row] = kept(store)
    assert secret not in str(row)
    assert row["hash"] == hashlib.sha256(secret.encode()).hexdigest()
    assert (made.name, made.scope, made.used, made.revoked) == ("ada", "read", None, None)
    assert len(secret) >= 3 + 43, "256 bits"


def test_secrets_differ(store: Store) -> None:
    secrets = [store.tokens.create(str(number), "read")[1] for number in range(5)]
    assert len(set(secrets)) == 5


@pytest.mark.postgres
def test_a_token_is_found_by_its_secret_and_by_nothing_else(store: Store) -> None:
    made, secret = store.tokens.create("ada", "write")
    found = store.tokens.find(secret)
    assert found is not None
    assert (found.id, found.name, found.scope) == (made.id, "ada", "write")
    [row] = kept(store)
    for wrong in ("", "ada", secret[:-1], secret + "x", secret.upper(), row["hash"], "\ud800"):
        assert store.tokens.find(wrong) is None


def test_the_last_use_is_recorded_once_a_minute(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = store.tokens.create("ada", "read")
    began = datetime.now(UTC)
    store.tokens.find(secret)
    [token] = store.tokens.list()
    first = token.used
    assert first is not None and began <= first <= datetime.now(UTC)
    store.tokens.find(secret)
    assert store.tokens.list()[0].used == first, "no write for every request"
    monkeypatch.setattr(tokening, "FRESH", timedelta(0))
    store.tokens.find(secret)
    later = store.tokens.list()[0].used
    assert later is not None and later > first


@pytest.mark.postgres
def test_a_revoked_token_is_invalid_and_its_name_is_free(store: Store) -> None:
    _, old = store.tokens.create("ada", "read")
    assert store.tokens.any_valid()
    with pytest.raises(ConflictError, match="'ada' already"):
        store.tokens.create("ada", "write")
    store.tokens.revoke("ada")
    assert store.tokens.find(old) is None
    assert not store.tokens.any_valid()
    _, new = store.tokens.create("ada", "write")
    found = store.tokens.find(new)
    assert found is not None and found.scope == "write"
    assert [token.revoked is None for token in store.tokens.list()] == [False, True]


def test_revoking_an_unknown_token_is_refused(store: Store) -> None:
    store.tokens.create("ada", "read")
    with pytest.raises(NotFoundError) as refusal:
        store.tokens.revoke("bob")
    assert refusal.value.choices == ("ada",)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x1b[31m"])
def test_a_name_is_printable_text(store: Store, name: str) -> None:
    with pytest.raises(DesignError):
        store.tokens.create(name, "read")


def test_a_scope_is_one_of_two(store: Store) -> None:
    scope: Any = "admin"
    with pytest.raises(DesignError) as refusal:
        store.tokens.create("ada", scope)
    assert refusal.value.choices == ("read", "write")
