"""Commands that serve the lab: lab for browsers and programs, mcp for agents."""

import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli.app import app, limit_options, notes, open_lab
from judge_gym.cli.options import NONE
from judge_gym.errors import DesignError

if TYPE_CHECKING:
    from judge_gym.lab import Lab
    from judge_gym.web import Address

MCP_PORT = 8643
TOKEN_FILE = Path(".judge-gym") / "lab.token"
"""The token of the person who started a server, where it cannot be shown on a terminal."""
Host = Annotated[
    str, typer.Option(help="The address to listen on; one that others can reach needs a token.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
AllowHost = Annotated[
    list[str],
    typer.Option(metavar="NAME", help="A further name by which clients may address the server."),
]
Work = Annotated[
    bool, typer.Option("--work/--no-work", help="Execute the runs that are started on the lab.")
]


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Serves within the context until Ctrl-C or SIGTERM."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@app.command()
def lab(
    host: Host = "127.0.0.1",
    port: Port = 8642,
    allow_host: AllowHost = NONE,
    work: Work = True,
    public_reads: Annotated[
        bool,
        typer.Option(
            "--public-reads", help="Show suite runs and their scores without a token; no more."
        ),
    ] = False,
    open: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Serve the lab to browsers and programs over HTTP."""
    from judge_gym.web import serve

    with (
        until_interrupted(),
        open_lab() as opened,
        serve(
            opened,
            host,
            port,
            names=allow_host,
            work=work,
            options=limit_options(),
            public_reads=public_reads,
        ) as address,
    ):
        url = f"{address.url}/?token={address.token}" if address.token else address.url
        typer.echo(url if _on_terminal(address) else address.url)
        _warn(address, opened)
        if open:
            webbrowser.open(url)
        threading.Event().wait()


@app.command()
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP instead of standard input and output.")
    ] = False,
    host: Host = "127.0.0.1",
    port: Port = MCP_PORT,
    allow_host: AllowHost = NONE,
    work: Work = True,
) -> None:
    """Serve the lab to agents (Model Context Protocol)."""
    from judge_gym.mcp import over_http, over_stdio
    from judge_gym.web import in_process, serve

    if not http and (host != "127.0.0.1" or port != MCP_PORT or allow_host):
        raise DesignError("--host, --port and --allow-host are for --http")
    options = limit_options()
    with until_interrupted(), open_lab() as opened:
        if not http:
            with in_process(opened, work=work, options=options) as (api, token):
                over_stdio(api, token)
            return
        with serve(
            opened,
            host,
            port,
            names=allow_host,
            work=work,
            options=options,
            agents=over_http,
        ) as address:
            typer.echo(f"{address.url}/mcp")
            if address.token is not None and _on_terminal(address):
                typer.echo(f"Authorization: Bearer {address.token}")
            _warn(address, opened)
            threading.Event().wait()


def _on_terminal(address: "Address") -> bool:
    """Returns whether a token may be printed; otherwise writes it where only its owner reads it."""
    if address.token is None or sys.stdout.isatty():
        return True
    from judge_gym.store.database import create_private

    TOKEN_FILE.parent.mkdir(exist_ok=True)
    TOKEN_FILE.unlink(missing_ok=True)
    create_private(TOKEN_FILE)
    TOKEN_FILE.write_text(f"{address.token}\n")
    notes(f"the token is in {TOKEN_FILE}, since the output is no terminal")
    return False


def _warn(address: "Address", lab: "Lab") -> None:
    if address.token is None:  # others can reach it
        notes("connections are not encrypted: put a proxy with TLS in front of it")
    if not lab.admin.may_write():
        notes("the database is production and this session is dev: nothing can be changed here")
