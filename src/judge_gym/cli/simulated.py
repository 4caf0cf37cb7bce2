"""Commands over the simulated models: sim list and serve."""

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app
from judge_gym.cli.options import AsJson
from judge_gym.cli.serve import Port, until_interrupted
from judge_gym.errors import DesignError

if TYPE_CHECKING:
    from pydantic import BaseModel

sim_app = typer.Typer(help="Simulated judges and code writers.", no_args_is_help=True)
app.add_typer(sim_app, name="sim")


@sim_app.command("list")
def list_models(json: AsJson = False) -> None:
    """List the presets, and the parameters that `sim:NAME?parameter=value` takes."""
    from judge_gym.models.simulated import CODERS, PRESETS, CoderProfile, JudgeProfile

    if json:
        every = {**PRESETS, **CODERS}
        display.print_json({name: preset.model_dump() for name, preset in every.items()})
        return
    kinds: list[tuple[str, Mapping[str, BaseModel], type[BaseModel]]] = [
        ("judges", PRESETS, JudgeProfile),
        ("code writers", CODERS, CoderProfile),
    ]
    for title, models, kind in kinds:
        rows = [{"model": f"sim:{name}", **preset.model_dump()} for name, preset in models.items()]
        display.table(title, rows)
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
