"""Verbs over what is judged: collect evidence, freeze pools, import what people say of it."""

import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import (
    AsJson,
    Private,
    app,
    gathered_words,
    notes,
    open_lab,
    read_lab,
    same_command,
    some,
)
from judge_gym.cli.workflows import evidence_app
from judge_gym.errors import DesignError
from judge_gym.records import find_origin, search_origins

if TYPE_CHECKING:
    from judge_gym.lab.collection import CollectionResult
    from judge_gym.studies import PoolSpec

pool_app = typer.Typer(help="Frozen, ordered sets of evidence.", no_args_is_help=True)
labels_app = typer.Typer(help="What people say of the evidence.", no_args_is_help=True)
app.add_typer(pool_app, name="pool")
app.add_typer(labels_app, name="labels")

SEARCHES = " or ".join(
    origin.name + (" (paid)" if origin.paid else "")
    for origin in search_origins().values()
    if origin.takes == "query"
)
Window = Annotated[int | None, typer.Option(help="A window by its number.")]


@evidence_app.command("add")
def add(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders or globs; or a study file, for all it searches."),
    ] = None,
    feed: Annotated[list[str] | None, typer.Option(help="An RSS or Atom feed; repeat it.")] = None,
    search: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Search for --query with {SEARCHES}.")
    ] = None,
    query: Annotated[str, typer.Option(help="What to search for.")] = "",
    country: Annotated[str | None, typer.Option(help="The window's country.")] = None,
    start: Annotated[str | None, typer.Option(help="Its first day, YYYY-MM-DD.")] = None,
    end: Annotated[str | None, typer.Option(help="Its last day.")] = None,
    window: Window = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Articles that a search keeps at most (100)."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Of a study: search again for what is new.")
    ] = False,
    allow_private: Private = False,
    json: AsJson = False,
) -> None:
    """Collect evidence into a window; what it holds already is not added again."""
    from judge_gym.cli import display

    study = next((Path(p) for p in paths or [] if Path(p).suffix in (".yaml", ".yml")), None)
    if study is not None:
        flags: dict[str, Any] = {"--feed": feed, "--search": search, "--limit": limit}
        flags |= {
            "--query": query,
            "--country": country,
            "--start": start,
            "--end": end,
            "--window": window,
        }
        taken = [*(paths or [])[1:], *(name for name, value in flags.items() if value)]
        if taken:
            raise DesignError(
                f"{study} says what it searches for; evidence comes from one origin, so leave "
                f"{', '.join(taken)} out"
            )
    elif again:
        raise DesignError("--again is for a study file; other searches always look for what is new")
    with open_lab() as lab, display.counting("articles", quiet=json) as watch:
        if study is not None:
            made = lab.evidence.collect_study(
                study, again=again, allow_private=allow_private, watch=watch
            )
        else:
            spec = _spec(paths or [], feed or [], search, query, limit)
            spec = _in_window(spec, country, start, end, window)
            options: dict[str, Any] = {"allow_private": allow_private, "watch": watch}
            made = {"": lab.evidence.collect_pool(spec, window_id=window, **options)}
    if json:
        rows = [{"evidence": name, **_summary(one)} for name, one in made.items()]
        display.print_json(rows if study is not None else rows[0])
    else:
        if not made:
            typer.echo("everything that the study searches for was collected; --again looks anew")
        for name, one in made.items():
            _tell(name, one)
    _end(made, quiet=json)


def _spec(
    paths: list[str], feeds: list[str], search: str | None, query: str, limit: int | None
) -> "PoolSpec":
    from judge_gym.studies import PoolSpec

    origins: dict[str, Any] = {"files": paths, "feeds": feeds}
    if search is not None:
        origins[find_origin(search).name] = query if query.strip() else None
    given = [name for name, value in origins.items() if value]
    if search is not None and search not in given:
        raise DesignError(f"--search {search} needs --query WORDS")
    if len(given) != 1:
        raise DesignError(
            "evidence comes from one origin at a time: files, --feed URL or --search NAME; given: "
            f"{' and '.join(given) or 'none'}"
        )
    if paths and (query or limit):
        raise DesignError("--query and --limit are for a search; files are taken as they are")
    options: dict[str, Any] = {"limit": limit} if limit else {}
    [name] = given
    return PoolSpec(**{name: origins[name]}, query=query if feeds else "", **options)


def _in_window(
    spec: "PoolSpec", country: str | None, start: str | None, end: str | None, window: int | None
) -> "PoolSpec":
    from judge_gym.studies import WindowSpec

    if window is not None:
        if country or start or end:
            raise DesignError("--window names a window; leave --country, --start and --end out")
        return spec
    if not country:
        raise DesignError("evidence belongs to a window: --country NAME --start DATE --end DATE")
    try:
        days = [date.fromisoformat(day) if day else None for day in (start, end)]
    except ValueError as fault:
        raise DesignError(f"a date is YYYY-MM-DD: {fault}") from fault
    if days[0] and days[1] and days[0] > days[1]:
        raise DesignError("a window ends after it starts")
    given = WindowSpec(country=country, start=days[0], end=days[1])
    return spec.model_copy(update={"window": given})


def _summary(made: "CollectionResult") -> dict[str, Any]:
    return {
        "window": made.window_id,
        "source": made.source,
        "found": len(made.found.items) + sum(made.found.dropped.values()),
        "added": made.added,
        "held": made.held,
        "dropped": dict(made.found.dropped),
        "notes": list(made.found.notes),
        "fault": made.found.fault,
    }


def _tell(name: str, made: "CollectionResult") -> None:
    typer.echo((f"{name}: " if name else "") + gathered_words(made))
    notes(*some(made.found.notes))


def _end(made: "Mapping[str, CollectionResult]", *, quiet: bool) -> None:
    from judge_gym.cli import FAILED, INTERRUPTED

    for one in made.values():
        if one.found.interrupted:
            if not quiet:
                typer.echo(f"interrupted; go on with: {same_command()}", err=True)
            raise typer.Exit(INTERRUPTED)
        if one.found.fault:
            if not quiet:
                kept = "; what was found is kept" if one.held else ""
                print(f"judge-gym: {one.found.fault}{kept}", file=sys.stderr)
            raise typer.Exit(FAILED)


@evidence_app.command("list")
def list_evidence(
    window: Annotated[int | None, typer.Argument(help="A window; all windows if none.")] = None,
    json: AsJson = False,
) -> None:
    """List windows, or the items of one."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = lab.evidence.list_windows() if window is None else lab.evidence.list(window)
    if json:
        display.print_json(rows)
    elif not rows:
        typer.echo("no evidence yet; collect some with: judge-gym evidence add ...")
    else:
        hidden = ("collections", "truth")
        display.table(
            "", [{k: v for k, v in row.items() if k not in hidden} for row in rows], compact=True
        )


@evidence_app.command("show")
def show(
    id: Annotated[int, typer.Argument(help="The number of an item.")], json: AsJson = False
) -> None:
    """Show an item with its views side by side, and what in a view its source does not say."""
    from judge_gym.cli import display

    with read_lab() as lab:
        item = lab.evidence.show(id)
    if json:
        display.print_json(item)
        return
    about = [f"{name}: {item[name]}" for name in ("url", "date", "source") if item[name]]
    typer.echo("\n".join([f"{item['id']}. {item['title']}", *about, ""]))
    raw = "\n\n".join(
        [
            item["text"],
            *(f"RESPONSE {n}\n{text}" for n, text in enumerate(item["responses"], 1)),
        ]
    )
    columns = {f"raw\n{item['words']} words": raw}
    for number, view in enumerate(item["views"], 1):
        name = f"neutralized by {view['editor']}" + (f" ({number})" if number > 1 else "")
        columns[f"{name}\n{_checked(view)}"] = view["text"] or f"({view['status']})"
    display.side_by_side(columns)
    if not item["views"]:
        typer.echo("no view was made of it yet")


def _checked(view: Mapping[str, Any]) -> str:
    checks = view["checks"]
    if checks is None:
        return view["status"] if view["text"] is None else "not checked"
    parts = [f"{checks['words']} words"]
    if checks["length_ratio"] is not None:
        parts.append(f"{checks['length_ratio']:.0%} of the source")
    if checks["too_long"]:
        parts.append("too long")
    for kind in ("numbers", "names"):
        if checks[kind]:
            parts.append(f"{kind} not in the source: {', '.join(checks[kind])}")
    return "; ".join(parts)


@evidence_app.command("drop")
def drop(
    ids: Annotated[list[int], typer.Argument(help="Numbers of items.")],
    window: Window = None,
    undo: Annotated[bool, typer.Option("--undo", help="Put them back.")] = False,
    json: AsJson = False,
) -> None:
    """Take items out of a window, for good: no search brings them back; frozen pools keep them."""
    from judge_gym.cli import display

    with read_lab() as lab:
        count = lab.evidence.drop(ids, window_id=window, undo=undo)
    what = "put back" if undo else "dropped"
    display.print_json({what.replace(" ", "_"): count}) if json else typer.echo(f"{what} {count}")


@pool_app.command("freeze")
def freeze(
    name: Annotated[str, typer.Argument(help="The pool's name; it will always mean this pool.")],
    files: Annotated[list[str] | None, typer.Argument(help="Files, in place of --window.")] = None,
    window: Window = None,
    experiment: Annotated[
        str | None, typer.Option(metavar="TAG", help="What this experiment judges.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Freeze what a window holds now, for studies to name: `evidence: {usa: {pool: NAME}}`."""
    from judge_gym.cli import display

    with open_lab() as lab:
        pool = lab.evidence.freeze_pool(
            name, window_id=window, files=files or (), experiment_tag=experiment
        )
    if json:
        display.print_json(pool)
    else:
        typer.echo(f"froze {name}: {pool['items']} items, {pool['hash'][:12]}")


@pool_app.command("list")
def list_pools(json: AsJson = False) -> None:
    """List the frozen pools."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = lab.evidence.list_pools()
    if json:
        display.print_json(rows)
    elif not rows:
        typer.echo("no pool yet; freeze one with: judge-gym pool freeze NAME --window ID")
    else:
        display.table("", [{**row, "hash": row["hash"][:12]} for row in rows])


@pool_app.command("show")
def show_pool(name: str, json: AsJson = False) -> None:
    """List the items of a frozen pool."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = lab.evidence.list_pool_items(name)
    display.print_json(rows) if json else display.table("", rows, compact=True)


@pool_app.command("diff")
def diff(before: str, after: str, json: AsJson = False) -> None:
    """Show what one frozen pool has and the other has not."""
    from judge_gym.cli import display

    with read_lab() as lab:
        found = lab.evidence.diff_pools(before, after)
    if json:
        display.print_json(found)
        return
    if found["same"] and not found["truths_changed"]:
        typer.echo(f"{before} and {after} are the same pool")
        return
    order = ", in another order" if found["reordered"] else ""
    typer.echo(f"{found['shared']} items in both{order}")
    display.table(f"only in {after}", found["added"], compact=True)
    display.table(f"only in {before}", found["removed"], compact=True)
    display.table("with another truth", found["truths_changed"], compact=True)


@labels_app.command("import")
def import_labels(
    file: Annotated[Path, typer.Argument(help="A CSV with item, rater and stage.")],
    study: Annotated[
        str | None, typer.Option(help="The study or tag whose items are meant.")
    ] = None,
    concept: Annotated[str, typer.Option(help="What the raters judged; any if none.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Take stages that differ from earlier ones.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Import people's stages, all or nothing; an item is a number, an address, an id or a title."""
    from judge_gym.cli import display

    with open_lab() as lab:
        counts = lab.labels.import_file(file, target=study, concept=concept, replace=replace)
    if json:
        display.print_json(counts)
    else:
        typer.echo(", ".join(f"{count} {kind}" for kind, count in counts.items()) + " labels")


@labels_app.command("list")
def list_labels(json: AsJson = False) -> None:
    """List people's stages."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = lab.labels.list()
    if json:
        display.print_json(rows)
    elif not rows:
        typer.echo("no labels yet; import some with: judge-gym labels import FILE.csv")
    else:
        display.table("", rows)
