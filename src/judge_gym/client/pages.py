"""Addresses of pages on suite runs: the lab that an address names, and the run."""

import re
from urllib.parse import urlsplit

from judge_gym.client import Client
from judge_gym.errors import ConflictError, DesignError, NotFoundError

_NUMBER = re.compile(r"\d{1,7}")
_RUN = re.compile(r"/run/([^/]+)")
_PLACE = re.compile(r"/(?:experiment|model)/")


def lab_of(name: str) -> str | None:
    """The address of the lab that a page belongs to, if the name is a page's address.

    A token in the page's address stays in it.

    >>> lab_of("https://lab.example.org/model/sim%3Aa/run/3/001-a?token=x#L3")
    'https://lab.example.org/?token=x'
    >>> lab_of("/model/sim%3Aa/run/3"), lab_of("3")
    (None, None)
    """
    parts = urlsplit(name.strip())
    if not parts.netloc:
        return None
    path = _PLACE.split(parts.path, maxsplit=1)[0] or "/"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{path}{query}"


def run_of(name: str) -> str:
    """The run that an address names. A name that is no address is returned as it is.

    >>> run_of("/experiment/default/run/12/001-a/001-b"), run_of(" 7 ")
    ('12', '7')
    """
    text = name.strip()
    if "/" not in text:
        return text
    named = _RUN.search(urlsplit(text).path)
    if named is None:
        raise NotFoundError(f"{text!r} is no page of a run; its path has /run/NUMBER")
    return named[1]


def choose_lab(name: str, lab: str | None) -> str | None:
    """The address of the lab that has a run: that of its page, or else the given one.

    Raises:
        DesignError: they are different labs.
    """
    address = lab_of(name)
    if address is not None and lab is not None and urlsplit(address).netloc != urlsplit(lab).netloc:
        raise DesignError(f"the page {name!r} is not of the lab {lab!r}; name one of them")
    return lab or address


def find_remote_run(client: Client, name: str) -> int:
    """Finds a run of another lab by its number, the beginning of its key or its page."""
    text = run_of(name)
    if _NUMBER.fullmatch(text):
        return int(text)
    runs = client.suites.list_runs()
    matches = [row["run"] for row in runs if text and row["key"].startswith(text.lower()[:16])]
    if len(matches) == 1:
        return matches[0]
    choices = [str(number) for number in matches or [row["run"] for row in runs]]
    if matches:
        raise ConflictError(
            f"{text!r} begins the keys of {len(matches)} runs at {client.url}; choose "
            f"{' or '.join(choices)}",
            choices=choices,
        )
    raise NotFoundError(f"there is no suite run {text!r} at {client.url}", choices=choices)
