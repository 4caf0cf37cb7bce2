"""Verbs about models: which there are, what is known of one, whether it answers."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import AsJson, app, notes, open_lab
from judge_gym.cli.scores import end, show_reports
from judge_gym.cli.suite import Experiment, Unisolated
from judge_gym.errors import DesignError, unknown

if TYPE_CHECKING:
    from judge_gym.models import ModelCard

models_app = typer.Typer(help="Models: hosted, your own, simulated.", no_args_is_help=True)
app.add_typer(models_app, name="models")


@models_app.command("list")
def list_models(
    provider: Annotated[
        str | None, typer.Argument(help="List all models with a known price of this provider.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List providers and your endpoints with what they need, and models that differ."""
    from judge_gym.cli import display
    from judge_gym.models import Registry

    registry = Registry()
    if provider is not None:
        choices = list(registry.entries.providers)
        if provider not in choices:
            raise DesignError(unknown("provider", provider, choices), choices=choices)
        rows = [_row(registry.card(id)) for id in registry.priced(provider)]
        display.print_json(rows) if json else display.table("", rows)
        return
    providers = registry.providers()
    rows = [_row(registry.card(id)) for id in registry.entries.named]
    if json:
        display.print_json({"providers": providers, "models": rows})
        return
    display.table("providers and endpoints", providers)
    display.table("models", rows, note="Any other name works too: provider:name.")


@models_app.command("show")
def show_model(
    id: Annotated[str, typer.Argument(metavar="ID", help="provider:name, or a bare name.")],
    json: AsJson = False,
) -> None:
    """Print what is known of a model: limits, prices, what it takes, where it is asked."""
    from judge_gym.cli import display
    from judge_gym.models import Registry

    registry = Registry()
    facts = _facts(registry.card(registry.resolve(id)))
    if json:
        display.print_json(facts)
        return
    limits = facts.pop("limits")
    told = {**facts, **{f"limit: {name}": value for name, value in limits.items()}}
    display.table("", [{"": name, " ": value} for name, value in told.items()])


@models_app.command("check")
def check_models(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="provider:name")],
    suite: Annotated[
        str | None, typer.Option(help="Have each solve some of this suite's tasks, too.")
    ] = None,
    evals: Annotated[int, typer.Option(min=1, help="How many of them.")] = 2,
    experiment: Experiment = "default",
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Make one tiny real call to each model: whether it works, how fast, at what cost, as what."""
    from judge_gym.cli import FAILED, display
    from judge_gym.models import Registry
    from judge_gym.models.model_check import check_model

    registry = Registry()
    asked = [registry.resolve(id) for id in ids]
    for id in asked:
        registry.open(id)  # what cannot be called is refused before any call
    if suite is not None:
        with open_lab() as lab:
            for id in asked:
                lab.suites.check_model(suite, id, experiment=experiment, first=evals)

    async def ask() -> list[dict[str, Any]]:
        return [asdict(await check_model(registry, id)) for id in asked]

    checks = asyncio.run(ask())
    solved = []
    if suite is not None:
        works = [id for id, one in zip(asked, checks, strict=True) if one["works"]]
        from judge_gym.lab.suites import CHECK

        with open_lab() as lab:
            solved = [
                lab.suites.run(
                    suite,
                    id,
                    experiment=experiment,
                    first=evals,
                    series=CHECK,
                    allow_unisolated=allow_unisolated,
                )
                for id in works
            ]
        for one in solved:
            lost = [
                row.result.outcome for row in one.results if row.result.outcome.kind != "passed"
            ]
            row = next(row for id, row in zip(asked, checks, strict=True) if id == one.run.model)
            row["passed"] = f"{one.score.passed} of {one.run.wanted}"
            row["first reason"] = getattr(lost[0], "reason", "") if lost else None
    if json:
        runs = {"suite": [one.to_json() for one in solved]} if suite is not None else {}
        display.print_json({"models": checks, **runs} if runs else checks)
    else:
        display.table("", checks)
        notes(*(note for id in asked if (note := registry.card(id).unpinned)))
        show_reports(solved)
    if not all(one["works"] for one in checks) or any(one.failed for one in solved):
        raise typer.Exit(FAILED)
    if stopped := [one for one in solved if one.stopped is not None]:
        end(stopped, quiet=json)


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
        "deadline": card.deadline,
        "input usd/M": prices.input if prices else None,
        "cached usd/M": prices.cached if prices else None,
        "output usd/M": prices.output if prices else None,
        "search usd/k": prices.search if prices else None,
        "limits": asdict(card.limits),
    }


def _row(card: "ModelCard") -> dict[str, Any]:
    return {
        "model": card.id,
        "context": card.context,
        "input usd/M": None if (prices := card.tariff()) is None else prices.input,
        "output usd/M": None if prices is None else prices.output,
        "temperature": card.takes_temperature,
        "seed": card.takes_seed,
        "structured": card.structured,
        "web search": card.searches,
        "dated": card.dated,
        "version": card.version or None,
    }
