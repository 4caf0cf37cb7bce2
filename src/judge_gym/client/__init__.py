"""A remote lab: the nouns and verbs of `Lab`, against its HTTP API.

What the server refuses is raised as the same errors as `Lab` raises. Starting a run queues it: a
worker of the server carries it out, and `follow` streams its progress.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import urllib3

from judge_gym.client.connection import Connection, fields
from judge_gym.client.nouns import (
    Admin,
    Evidence,
    Experiments,
    Failures,
    Labels,
    Reports,
    Runs,
    Suites,
)

__all__ = ["Client"]


class Client:
    """A remote lab.

    Args:
        url: its address, `http://HOST:PORT`, or the one that `judge-gym lab` prints.
        token: what `judge-gym token create` printed; else that of the address, else
            `JUDGE_GYM_TOKEN`.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 60.0) -> None:
        self._connection = connection = Connection(url, token, timeout=timeout)
        self.url = connection.url
        self.evidence = Evidence(connection)
        self.experiments = Experiments(connection)
        self.runs = Runs(connection)
        self.labels = Labels(connection)
        self.reports = Reports(connection)
        self.suites = Suites(connection)
        self.failures = Failures(connection)
        self.admin = Admin(connection)

    def close(self) -> None:
        """Closes the connections."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def samples_file(
        self,
        *targets: str,
        format: Literal["csv", "parquet"] = "csv",
        include: Sequence[Literal["labels", "text", "answer"]] = (),
    ) -> bytes:
        """Downloads all samples of tags and studies, or of everything, as a file.

        `include` adds people's labels, the item's text and the judge's words.
        """
        query = {"target": [*targets], "format": format, "include": [*include]}
        return self._connection.ask("GET", "/api/samples/file", query).data

    def report_file(self, target: str, *, format: Literal["html", "markdown"] = "html") -> bytes:
        """Downloads the report on a study or an experiment as a page or as text."""
        query = {"target": target, "format": format}
        return self._connection.ask("GET", "/api/report/file", query).data

    def follow(
        self, target: str | None = None, *, after: int = 0
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields `event` and `status` until all runs have ended, then `end`, each with its data."""
        while True:  # a lost connection is opened again and continues after the last event
            headers = {"Last-Event-ID": str(after)} if after else {}
            query = {"target": target}
            stream = self._connection.ask("GET", "/api/events", query, headers=headers, stream=True)
            kind = ""
            try:
                for name, value in fields(stream):
                    if name == "event":
                        kind = value
                    elif name == "id":
                        after = int(value)
                    elif name == "data":
                        yield kind, json.loads(value)
                        if kind == "end":
                            return
            except urllib3.exceptions.HTTPError:
                continue
            finally:
                stream.close()
