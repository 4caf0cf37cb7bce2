"""Removes keys and passwords from texts: no error, log or row may contain one."""

import base64
import re
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

LONGEST_MESSAGE = 200
"""Characters of a provider's error message that are kept."""
SHORTEST_VALUE = 4
"""Characters; a shorter value of a query is not a secret, and occurs in any text."""
MARK = "[key]"


class Redactor:
    """Redacts secrets in texts of others.

    Args:
        key: the key that is sent to the provider.
        base_url: its URL; a password and the values of a query are secrets.
    """

    def __init__(self, key: str, base_url: str = "") -> None:
        parts = urlsplit(base_url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        header = base64.b64encode(f"{user}:{password}".encode()).decode() if user else ""
        query_values = [pair.partition("=")[2] for pair in parts.query.split("&")]
        values = [value for value in query_values if len(value) >= SHORTEST_VALUE]
        written = (parts.password or "", *values)  # as the URL has them
        meant = (key, password, header, *map(unquote_plus, values))
        secrets = [secret for secret in (*written, *meant) if secret]
        forms = {form for secret in secrets for form in _forms(secret)}
        # The longest first, or the end of a longer form would be left behind.
        listed = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
        self._secrets = re.compile(listed, re.IGNORECASE) if listed else None

    def __call__(self, text: str) -> str:
        """Returns the text on one line, shortened, and without secrets."""
        line = " ".join((self._secrets.sub(MARK, text) if self._secrets else text).split())
        return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 3] + "..."

    def __repr__(self) -> str:
        return "Redactor()"


def _forms(secret: str) -> set[str]:
    """Returns how a secret may be echoed: as it is, in a URL, in a form, in JSON."""
    escaped = secret.replace("\\", "\\\\").replace('"', '\\"')
    return {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), escaped}
