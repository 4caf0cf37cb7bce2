"""The verb that serves the lab over HTTP."""

from typing import Annotated

import typer

from judge_gym.cli.app import NoSet, app, limit_options, notes, open_lab
from judge_gym.cli.serving import AllowHost, Host, Port, Work, until_interrupted


@app.command()
def lab(
    host: Host = "127.0.0.1",
    port: Port = 8642,
    allow_host: AllowHost = NoSet,
    work: Work = True,
    public_reads: Annotated[
        bool,
        typer.Option(
            "--public-reads", help="Show suite runs and their scores without a token; no more."
        ),
    ] = False,
    open: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Serve the lab over HTTP until Ctrl-C, and carry out what is started there."""
    import threading
    import webbrowser

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
        ) as at,
    ):
        url = f"{at.url}/?token={at.token}" if at.token else at.url
        typer.echo(url)
        if at.token is None:
            notes("nothing is encrypted here: put a proxy with TLS before it")
        if open:
            webbrowser.open(url)
        threading.Event().wait()
