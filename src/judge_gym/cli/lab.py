"""The verb that serves the lab over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from judge_gym.cli.app import NoSet, app, limit_options, notes, open_lab


@app.command()
def lab(
    host: Annotated[
        str, typer.Option(help="The address to listen at; one that others reach needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8642,
    allow_host: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="A further name under which the server may be asked."),
    ] = NoSet,
    work: Annotated[
        bool, typer.Option("--work/--no-work", help="Carry out what is started on the lab.")
    ] = True,
    public_reads: Annotated[
        bool,
        typer.Option(
            "--public-reads", help="Show suite runs and their scores without a token; no more."
        ),
    ] = False,
    open: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Serve the lab over HTTP until Ctrl-C, and carry out what is started there."""
    import signal
    import threading
    import webbrowser
    from contextlib import suppress

    from judge_gym.web import serve

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with (
            suppress(KeyboardInterrupt),
            open_lab() as opened,
            serve(
                opened,
                host,
                port,
                names=allow_host,
                folder=Path(),
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
    finally:
        signal.signal(signal.SIGTERM, before)
