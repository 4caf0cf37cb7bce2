"""Tokens for access to the lab over the network: shown once, stored as a hash, revocable."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from judge_gym.errors import ConflictError, DesignError, NotFoundError, ReadOnlyDatabase, unknown
from judge_gym.store.database import Database
from judge_gym.store.tables import tokens

Scope = Literal["read", "write", "label"]
SCOPES: tuple[Scope, ...] = ("read", "write")
"""The scopes of tokens that users create; a link to label items creates its own."""
PREFIX = "jg_"
"""The prefix by which scanners of logs and repositories recognise a secret."""
FRESH = timedelta(minutes=1)
"""How precise the time of the last use is: not every request writes the row."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret."""

    id: int
    name: str
    scope: Scope
    created: datetime
    used: datetime | None
    revoked: datetime | None
    expires: datetime | None = None
    queue: int | None = None
    """The queue that a token with the scope `label` is for."""
    rater: str | None = None


class Tokens:
    """Creates, finds and revokes tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, scope: Scope) -> tuple[Token, str]:
        """Creates a token; returns it with its secret, which is not stored."""
        if scope not in SCOPES:
            raise DesignError(unknown("scope", scope, SCOPES), choices=SCOPES)
        if not name.strip() or not name.isprintable():
            raise DesignError(f"a token's name is printable text, not {name!r}")
        secret = new_secret()
        now = datetime.now(UTC)
        row = {"name": name, "scope": scope, "hash": hash_of(secret), "created": now}
        try:
            with self._database.begin() as connection:
                inserted = connection.execute(tokens.insert(), row).inserted_primary_key
        except sa.exc.IntegrityError:
            raise ConflictError(f"there is a token {name!r} already; revoke it first") from None
        assert inserted is not None
        return Token(inserted[0], name, scope, now, None, None), secret

    def create_link(self, queue: int, rater: str, expires: datetime) -> str:
        """Creates the token of a rater's link in place of an earlier one; returns its secret."""
        secret, now = new_secret(), datetime.now(UTC)
        row = {
            "name": f"label {queue} {rater}",
            "scope": "label",
            "hash": hash_of(secret),
            "created": now,
            "expires": expires,
            "queue_id": queue,
            "rater": rater,
        }
        earlier = sa.and_(tokens.c.name == row["name"], tokens.c.revoked.is_(None))
        with self._database.begin() as connection:
            connection.execute(tokens.update().where(earlier).values(revoked=now))
            connection.execute(tokens.insert(), row)
        return secret

    def find(self, secret: str) -> Token | None:
        """Returns the valid token of a secret and records its use; None if there is none."""
        hashed = hash_of(secret)
        query = sa.select(tokens).where(tokens.c.hash == hashed, tokens.c.revoked.is_(None))
        row = self._database.first(query)
        if row is None or not hmac.compare_digest(row.hash, hashed):
            return None
        token, now = _token(row), datetime.now(UTC)
        if token.expires is not None and token.expires <= now:
            return None
        stale = token.used is None or token.used < now - FRESH
        if stale and self._database.may_write:  # reading needs no profile
            with suppress(ReadOnlyDatabase), self._database.begin() as connection:
                connection.execute(tokens.update().where(tokens.c.id == token.id).values(used=now))
        return token

    def list(self) -> Sequence[Token]:
        """Returns all tokens, also revoked ones, oldest first."""
        with self._database.read() as connection:
            return [_token(row) for row in connection.execute(sa.select(tokens).order_by("id"))]

    def revoke(self, name: str) -> Token:
        """Makes a token invalid, permanently."""
        live = sa.and_(tokens.c.name == name, tokens.c.revoked.is_(None))
        with self._database.begin() as connection:
            row = connection.execute(sa.select(tokens).where(live)).first()
            if row is not None:
                connection.execute(tokens.update().where(live).values(revoked=datetime.now(UTC)))
        if row is None:
            names = [token.name for token in self.list() if token.revoked is None]
            raise NotFoundError(unknown("token", name, names), choices=names)
        return _token(row)

    def any_valid(self) -> bool:
        """Returns whether there is a valid token."""
        return any(token.revoked is None for token in self.list())


def new_secret() -> str:
    """Returns a secret of 256 random bits that fits into a URL or a header."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """Returns the stored hash of a secret; secrets are random, so a fast hash suffices."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: sa.Row[Any]) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        scope=row.scope,
        created=row.created,
        used=row.used,
        revoked=row.revoked,
        expires=row.expires,
        queue=row.queue_id,
        rater=row.rater,
    )
