"""The verb that serves the lab to agents."""

from typing import Annotated

import typer

from judge_gym.cli.app import NoSet, app, limit_options, notes, open_lab
from judge_gym.cli.serving import AllowHost, Host, Port, Work, until_interrupted
from judge_gym.errors import DesignError


@app.command()
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP, not on standard input and output.")
    ] = False,
    host: Host = "127.0.0.1",
    port: Port = 8643,
    allow_host: AllowHost = NoSet,
    work: Work = True,
) -> None:
    """Serve the lab to agents (Model Context Protocol) until Ctrl-C or the end of input."""
    import threading

    from judge_gym.mcp import over_http, over_stdio
    from judge_gym.web import serve, within

    if not http and (host != "127.0.0.1" or port != 8643 or allow_host):
        raise DesignError("--host, --port and --allow-host are for --http")
    options = limit_options()
    with until_interrupted(), open_lab() as lab:
        if not http:
            with within(lab, work=work, options=options) as (behind, token):
                over_stdio(behind, token)
            return
        with serve(
            lab,
            host,
            port,
            names=allow_host,
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
