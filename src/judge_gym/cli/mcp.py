"""The verb that serves the lab to agents."""

from pathlib import Path
from typing import Annotated

import typer

from judge_gym.cli.app import NoSet, app, limit_options, notes, open_lab
from judge_gym.errors import DesignError


@app.command()
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP, not on standard input and output.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="The address to listen at; one that others reach needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8643,
    allow_host: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="A further name under which the server may be asked."),
    ] = NoSet,
    work: Annotated[
        bool, typer.Option("--work/--no-work", help="Carry out what is started on the lab.")
    ] = True,
) -> None:
    """Serve the lab to agents (Model Context Protocol) until Ctrl-C or the end of input."""
    import signal
    import threading
    from contextlib import suppress

    from judge_gym.mcp import over_http, over_stdio
    from judge_gym.web import serve, within

    if not http and (host != "127.0.0.1" or port != 8643 or allow_host):
        raise DesignError("--host, --port and --allow-host are for --http")
    options = limit_options()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt), open_lab() as lab:
            if not http:
                with within(lab, folder=Path(), work=work, options=options) as (behind, token):
                    over_stdio(behind, token)
                return
            with serve(
                lab,
                host,
                port,
                names=allow_host,
                folder=Path(),
                work=work,
                options=options,
                face=over_http,
            ) as at:
                typer.echo(f"{at.url}/mcp")
                if at.token is not None:
                    typer.echo(f"Authorization: Bearer {at.token}")
                else:
                    notes("nothing is encrypted here: put a proxy with TLS before it")
                threading.Event().wait()
    finally:
        signal.signal(signal.SIGTERM, before)
