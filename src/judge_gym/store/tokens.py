"""Tokens of those who use the lab over the network: shown once, kept as a hash, revocable."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import sqlalchemy as sa

from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown
from judge_gym.store.database import Database
from judge_gym.store.tables import tokens

Scope = Literal["read", "write"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "jg_"
"""By which a scanner of logs and repositories knows a secret."""
FRESH = timedelta(minutes=1)
"""So exactly is the last use known: a write for every request would be a hot row."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret."""

    id: int
    name: str
    scope: Scope
    created: datetime
    used: datetime | None
    revoked: datetime | None


class Tokens:
    """Makes tokens, knows them again, and revokes them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, scope: Scope) -> tuple[Token, str]:
        """A new token and its secret, which is kept nowhere and cannot be shown again."""
        if scope not in SCOPES:
            raise DesignError(unknown("scope", scope, SCOPES), choices=SCOPES)
        if not name.strip() or not name.isprintable():
            raise DesignError(f"a token's name is printable text, not {name!r}")
        secret = new_secret()
        now = datetime.now(UTC)
        row = {"name": name, "scope": scope, "hash": hash_of(secret), "created": now}
        try:
            with self._database.begin() as connection:
                made = connection.execute(tokens.insert(), row).inserted_primary_key
        except sa.exc.IntegrityError:
            raise ConflictError(f"there is a token {name!r} already; revoke it first") from None
        assert made is not None
        return Token(made[0], name, scope, now, None, None), secret

    def find(self, secret: str) -> Token | None:
        """The live token of a secret, which counts as a use of it; None where there is none."""
        hashed = hash_of(secret)
        query = sa.select(tokens).where(tokens.c.hash == hashed, tokens.c.revoked.is_(None))
        with self._database.read() as connection:
            row = connection.execute(query).mappings().first()
        if row is None or not hmac.compare_digest(row["hash"], hashed):
            return None
        token, now = _token(row), datetime.now(UTC)
        stale = token.used is None or token.used < now - FRESH
        if stale and self._database.may_write:  # else reading would need a profile
            with self._database.begin() as connection:
                connection.execute(tokens.update().where(tokens.c.id == token.id).values(used=now))
        return token

    def listed(self) -> list[Token]:
        """All tokens, revoked ones too, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(tokens).order_by(tokens.c.id)).mappings()
            return [_token(row) for row in rows]

    def revoke(self, name: str) -> Token:
        """End a token, at once and for good."""
        live = sa.and_(tokens.c.name == name, tokens.c.revoked.is_(None))
        with self._database.begin() as connection:
            row = connection.execute(sa.select(tokens).where(live)).mappings().first()
            if row is not None:
                connection.execute(tokens.update().where(live).values(revoked=datetime.now(UTC)))
        if row is None:
            names = [token.name for token in self.listed() if token.revoked is None]
            raise NotFoundError(unknown("token", name, names), choices=names)
        return _token(row)

    def exist(self) -> bool:
        """Whether there is a live token."""
        return any(token.revoked is None for token in self.listed())


def new_secret() -> str:
    """256 random bits, for a URL or a header."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """What is kept of a secret; it is random, so that nothing slow is needed against guessing."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: sa.RowMapping) -> Token:
    at = {name: _aware(row[name]) for name in ("created", "used", "revoked")}
    created = at.pop("created")
    assert created is not None
    return Token(row["id"], row["name"], row["scope"], created, **at)


def _aware(at: datetime | None) -> datetime | None:
    """SQLite forgets the zone, which is UTC always."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at
