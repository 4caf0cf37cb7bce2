"""What the verbs that serve share: where they listen, and how they end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated

import typer

Host = Annotated[
    str, typer.Option(help="The address to listen at; one that others reach needs a token.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
AllowHost = Annotated[
    list[str],
    typer.Option(metavar="NAME", help="A further name under which the server may be asked."),
]
Work = Annotated[
    bool, typer.Option("--work/--no-work", help="Carry out what is started on the lab.")
]


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Serve within until Ctrl-C, or until the process is told to end, which is the same."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
