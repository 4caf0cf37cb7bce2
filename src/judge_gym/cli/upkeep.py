"""Verbs that describe and keep: axes, database, ledger, second readings, simulated judges."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli.app import AsJson, Target, app, notes, open_lab, read_lab
from judge_gym.cli.serving import Port, until_interrupted
from judge_gym.errors import DesignError, NotFoundError

if TYPE_CHECKING:
    from pydantic import BaseModel


@app.command()
def axes(
    json: AsJson = False,
    markdown: Annotated[bool, typer.Option(help="Print the page of the docs.")] = False,
    schema: Annotated[bool, typer.Option(help="Print the JSON Schema of a design.")] = False,
) -> None:
    """List every knob with its levels and its research question."""
    from judge_gym.axes import Design
    from judge_gym.cli import display, reference

    if schema:
        display.print_json(Design.model_json_schema())
    elif markdown:
        typer.echo(reference.axes_page(), nl=False)
    elif json:
        display.print_json(
            [
                {
                    name: getattr(knob, name)
                    for name in ("path", "levels", "open", "default", "question", "cite")
                }
                for knob in Design.knobs().values()
            ]
        )
    else:
        rows = [
            {"knob": k.path, "levels (default first)": reference.levels(k), "question": k.question}
            for k in Design.knobs().values()
        ]
        display.table("", rows)


ledger_app = typer.Typer(help="The ledger of calls.", no_args_is_help=True)
sim_app = typer.Typer(help="Simulated judges and code writers.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")
app.add_typer(sim_app, name="sim")


@ledger_app.command("show")
def show_call(call_id: int, json: AsJson = False) -> None:
    """Print what was asked in a call, and every attempt at an answer."""
    from judge_gym.cli import display

    with read_lab() as lab:
        messages, attempts = lab.store.ledger.transcript(call_id)
    if not messages:
        raise NotFoundError(f"there is no call {call_id}")
    if json:
        asked = [{"role": message.role, "content": message.content} for message in messages]
        display.print_json(
            {"call": call_id, "messages": asked, "attempts": [dict(row) for row in attempts]}
        )
        return
    for message in messages:
        typer.echo(f"--- {message.role}\n{message.content}\n")
    for row in attempts:
        typer.echo(
            f"--- attempt {row['id']} ({row['reported_model'] or row['error']}, {row['finish']})"
            f"\n{row['body'] or ''}\n"
        )


@ledger_app.command("export")
def export_calls(
    file: Annotated[Path, typer.Argument(help="File to write, such as study.jsonl.gz.")],
    target: Annotated[
        str | None, typer.Argument(help="Only what this study or experiment rests on.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Write calls with every attempt to a file, for another lab to import."""
    from judge_gym.cli import display

    with read_lab() as lab:
        made = lab.admin.export_ledger(file, target)
    if json:
        display.print_json({"file": str(file), **made._asdict()})
        return
    typer.echo(
        f"wrote {made.calls:,} calls with {made.attempts:,} attempts, {made.texts:,} texts and "
        f"{made.evidence:,} items of searched or frozen evidence to {file}"
    )


@ledger_app.command("import")
def import_calls(
    file: Annotated[Path, typer.Argument(help="A file that 'ledger export' wrote.")],
    json: AsJson = False,
) -> None:
    """Add the calls of a file, all or none; an answer that is here already stays."""
    from judge_gym.cli import display

    with open_lab() as lab:
        made = lab.admin.import_ledger(file)
    if json:
        display.print_json({"file": str(file), **made._asdict()})
        return
    typer.echo(
        f"{made.calls:,} calls: {made.new:,} new, {made.answered:,} answered here before; "
        f"{made.attempts:,} attempts added"
    )
    if made.differing:
        notes(f"{made.differing:,} calls have another answer in {file}; the one here stays")


@app.command()
def reparse(
    target: Target,
    write: Annotated[
        bool, typer.Option("--write", help="Change the records; without it nothing is written.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Read stored answers with today's parsers, and show what changes before it is written."""
    from judge_gym.cli import display

    with read_lab() as lab:
        result = lab.runs.reparse(target, write=write)
    if json:
        display.print_json(result)
        return
    display.table("changes", result["changes"])
    display.table("examples; judge-gym ledger show CALL prints the answer", result["examples"])
    read = ", ".join(f"{count:,} {record}s" for record, count in result["read"].items())
    changed = sum(change["count"] for change in result["changes"])
    typer.echo(f"read {read or 'nothing'}: {changed:,} changed")
    if result["probes_dropped"]:
        verb = "were deleted" if write else "would be deleted"
        notes(
            f"{result['probes_dropped']:,} probes asked about verdicts that changed and {verb}; "
            "the ledger keeps their answers"
        )
    if changed:
        command = f"judge-gym {'run' if write else 'reparse'} {shlex.quote(target)}"
        ways = "ask what is missing now with: " if write else "nothing is written yet; write with: "
        notes(ways + command + (" --write" if not write else ""))


@sim_app.command("list")
def list_simulated(json: AsJson = False) -> None:
    """List the presets, and the parameters that `sim:NAME?parameter=value` takes."""
    from judge_gym.cli import display
    from judge_gym.models.simulated import CODERS, PRESETS, CoderProfile, JudgeProfile

    if json:
        every = {**PRESETS, **CODERS}
        display.print_json({name: preset.model_dump() for name, preset in every.items()})
        return
    listed: list[tuple[str, Mapping[str, BaseModel], type[BaseModel]]] = [
        ("judges", PRESETS, JudgeProfile),
        ("code writers", CODERS, CoderProfile),
    ]
    for what, models, kind in listed:
        display.table(
            what,
            [{"model": f"sim:{name}", **preset.model_dump()} for name, preset in models.items()],
        )
        display.table(
            f"parameters of {what}",
            [
                {"parameter": name, "default": field.default, "meaning": field.description}
                for name, field in kind.model_fields.items()
            ],
        )


@sim_app.command("serve")
def serve_simulated(
    port: Port = 8089,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    latency: Annotated[float, typer.Option(min=0, help="Seconds before an answer.")] = 0.0,
    jitter: Annotated[float, typer.Option(min=0, help="Seconds more at most.")] = 0.0,
    rpm: Annotated[int | None, typer.Option(min=1, help="Requests a minute at most.")] = None,
    tpm: Annotated[int | None, typer.Option(min=1, help="Tokens a minute at most.")] = None,
    key_env: Annotated[
        str | None, typer.Option(help="The variable that holds the API key to demand.")
    ] = None,
    faults: Annotated[
        str,
        typer.Option(
            metavar="FAULTS",
            help="KIND=SHARE at random, KIND@N at each request's Nth attempt, with commas; "
            "a kind is a status such as 429, or reset, stall, truncated, html, empty.",
        ),
    ] = "",
    seed: Annotated[int, typer.Option(help="Of the faults and the jitter.")] = 0,
) -> None:
    """Serve the simulated models in the OpenAI wire format until Ctrl-C."""
    import os
    import threading

    from judge_gym.models.simulated.faults import Faults
    from judge_gym.models.simulated.server import SimulatedServer, serve

    key = os.environ.get(key_env, "") if key_env else ""
    if key_env and not key:
        raise DesignError(f"--key-env names {key_env}, which is not set")
    server = SimulatedServer(
        latency=latency,
        jitter=jitter,
        rpm=rpm,
        tpm=tpm,
        key=key,
        faults=Faults.parse(faults),
        seed=seed,
    )
    with until_interrupted(), serve(server, host, port) as url:
        typer.echo(url)
        threading.Event().wait()
