"""Commands that serve: lab for browsers and programs, mcp for agents, sim for simulated models."""

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, limit_options, notes, open_lab
from judge_gym.cli.options import NONE, AsJson
from judge_gym.errors import DesignError

if TYPE_CHECKING:
    from pydantic import BaseModel

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
            "--public-reads",
            help="Show suite runs, scores, and metrics except costs without a token; no more.",
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
    """Whether a token may be printed. If not, a file that only its owner reads gets it."""
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
    if not lab.serving.may_write():
        notes("the database is production and this session is dev: nothing can be changed here")


# --- simulated -----------------------------------------------------------------------------------

sim_app = typer.Typer(help="Simulated judges and code writers.", no_args_is_help=True)
app.add_typer(sim_app, name="sim")


@sim_app.command("list")
def list_models(json: AsJson = False) -> None:
    """List the presets, and the parameters that `sim:NAME?parameter=value` takes."""
    from judge_gym.models.simulated import ASSISTANTS, CODERS, JUDGES, CoderProfile, JudgeProfile

    if json:
        every = {**JUDGES, **ASSISTANTS, **CODERS}
        display.print_json({name: preset.model_dump() for name, preset in every.items()})
        return
    kinds: list[tuple[str, Mapping[str, BaseModel], type[BaseModel]]] = [
        ("judges", JUDGES, JudgeProfile),
        ("editors and critics, with a judge's parameters", ASSISTANTS, JudgeProfile),
        ("code writers", CODERS, CoderProfile),
    ]
    for title, models, kind in kinds:
        rows = [{"model": f"sim:{name}", **preset.model_dump()} for name, preset in models.items()]
        display.table(title, rows)
        if models is ASSISTANTS:
            continue
        fields = [
            {"parameter": name, "default": field.default, "meaning": field.description}
            for name, field in kind.model_fields.items()
        ]
        display.table(f"parameters of {title}", fields)


@sim_app.command("serve")
def serve(
    port: Port = 8089,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    latency: Annotated[float, typer.Option(min=0, help="Seconds before an answer.")] = 0.0,
    jitter: Annotated[float, typer.Option(min=0, help="Random extra seconds, at most.")] = 0.0,
    rpm: Annotated[int | None, typer.Option(min=1, help="Requests per minute, at most.")] = None,
    tpm: Annotated[int | None, typer.Option(min=1, help="Tokens per minute, at most.")] = None,
    key_env: Annotated[
        str | None, typer.Option(help="The variable with the API key that clients must send.")
    ] = None,
    faults: Annotated[
        str,
        typer.Option(
            metavar="FAULTS",
            help="KIND=SHARE at random, KIND@N at each request's Nth attempt, with commas; "
            "a kind is a status such as 429, or reset, stall, truncated, html, empty.",
        ),
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed of the errors and the jitter.")] = 0,
) -> None:
    """Serve the simulated models in the OpenAI wire format until Ctrl-C."""
    from judge_gym.models.simulated import server
    from judge_gym.models.simulated.faults import Faults

    key = os.environ.get(key_env, "") if key_env else ""
    if key_env and not key:
        raise DesignError(f"--key-env names {key_env}, which is not set")
    simulated = server.SimulatedServer(
        latency=latency,
        jitter=jitter,
        rpm=rpm,
        tpm=tpm,
        key=key,
        faults=Faults.parse(faults),
        seed=seed,
    )
    with until_interrupted(), server.serve(simulated, host, port) as url:
        typer.echo(url)
        threading.Event().wait()
