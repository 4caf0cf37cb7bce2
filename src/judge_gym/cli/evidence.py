"""Commands over evidence and frozen pools of it."""

import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, INTERRUPTED, app, notes, open_lab, read_lab
from judge_gym.cli.options import NONE, AllowPrivate, AsJson
from judge_gym.cli.results import collection_summary, first, same_command
from judge_gym.cli.workflows import evidence_app
from judge_gym.errors import DesignError
from judge_gym.records import search_origins

if TYPE_CHECKING:
    from judge_gym.lab.collection import CollectionResult
    from judge_gym.studies import PoolSpec

SEARCHES = " or ".join(
    origin.name + (" (paid)" if origin.paid else "")
    for origin in search_origins().values()
    if origin.takes == "query"
)
Window = Annotated[int | None, typer.Option(help="The number of a window.")]


@evidence_app.command("add")
def add(
    paths: Annotated[
        list[str],
        typer.Argument(help="Files, folders or globs; or a study file, for all its searches."),
    ] = NONE,
    feed: Annotated[list[str], typer.Option(help="An RSS or Atom feed; repeatable.")] = NONE,
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
        typer.Option(min=1, max=10_000, help="Most articles that a search keeps (100)."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Search a study's sources again for new articles.")
    ] = False,
    allow_private: AllowPrivate = False,
    json: AsJson = False,
) -> None:
    """Collect evidence without duplicates into a window."""
    study = next((Path(p) for p in paths if Path(p).suffix in (".yaml", ".yml")), None)
    if study is not None:
        flags: dict[str, Any] = {
            "--feed": feed,
            "--search": search,
            "--limit": limit,
            "--query": query,
            "--country": country,
            "--start": start,
            "--end": end,
            "--window": window,
        }
        extra = [*paths[1:], *(name for name, value in flags.items() if value)]
        if extra:
            raise DesignError(
                f"{study} defines its own searches; evidence comes from one origin, so leave "
                f"{', '.join(extra)} out"
            )
    elif again:
        raise DesignError("--again is for a study file; other searches always look for new items")
    with open_lab() as lab, display.counting("articles", quiet=json) as watch:
        if study is not None:
            results = lab.evidence.collect_study(
                study, again=again, allow_private=allow_private, watch=watch
            )
        else:
            spec = _spec(paths, feed, search, query, limit)
            spec = _in_window(spec, country, start, end, window)
            options: dict[str, Any] = {"allow_private": allow_private, "watch": watch}
            results = {"": lab.evidence.collect_pool(spec, window_id=window, **options)}
    if json:
        rows = [{"evidence": name, **_summary(result)} for name, result in results.items()]
        display.print_json(rows if study is not None else rows[0])
    else:
        if not results:
            typer.echo("the study's evidence was collected already; --again searches again")
        for name, result in results.items():
            typer.echo((f"{name}: " if name else "") + collection_summary(result))
            notes(*first(result.found.notes))
    _end(results, quiet=json)


def _spec(
    paths: list[str], addresses: list[str], search: str | None, query: str, limit: int | None
) -> "PoolSpec":
    from judge_gym.studies import PoolSpec

    origin = search or ("feeds" if addresses else None)
    if bool(paths) == bool(origin):
        origins_text = f"files and {origin}" if origin else "none"
        raise DesignError(
            "evidence comes from one origin at a time: files, --feed URL or --search NAME; given: "
            f"{origins_text}"
        )
    if origin:
        options: dict[str, Any] = {"limit": limit} if limit else {}
        return PoolSpec.for_search(origin, query, addresses, **options)
    if query or limit:
        raise DesignError("--query and --limit are for searches, not for files")
    return PoolSpec(files=paths)


def _in_window(
    spec: "PoolSpec", country: str | None, start: str | None, end: str | None, window: int | None
) -> "PoolSpec":
    from judge_gym.studies import WindowSpec

    if window is not None:
        if country or start or end:
            raise DesignError("--window names a window; leave --country, --start and --end out")
        return spec
    if not (country or start or end):
        raise DesignError("evidence belongs to a window: --country NAME --start DATE --end DATE")
    try:
        days = [date.fromisoformat(day) if day else None for day in (start, end)]
    except ValueError as error:
        raise DesignError(f"a date is YYYY-MM-DD: {error}") from error
    if days[0] and days[1] and days[0] > days[1]:
        raise DesignError("a window must end after it starts")
    bounds = WindowSpec(country=country or "", start=days[0], end=days[1])
    return spec.model_copy(update={"window": bounds})


def _summary(result: "CollectionResult") -> dict[str, Any]:
    return {
        "window": result.window_id,
        "source": result.source,
        "found": len(result.found.items) + sum(result.found.dropped.values()),
        "added": result.added,
        "held": result.held,
        "dropped": dict(result.found.dropped),
        "notes": list(result.found.notes),
        "error": result.found.error,
    }


def _end(results: "Mapping[str, CollectionResult]", *, quiet: bool) -> None:
    for result in results.values():
        if result.found.interrupted:
            if not quiet:
                typer.echo(f"interrupted; continue with: {same_command()}", err=True)
            raise typer.Exit(INTERRUPTED)
        if result.found.error:
            if not quiet:
                what_is_kept = "; items found before are kept" if result.held else ""
                print(f"judge-gym: {result.found.error}{what_is_kept}", file=sys.stderr)
            raise typer.Exit(FAILED)


@evidence_app.command("list")
def list_evidence(
    window: Annotated[
        int | None, typer.Argument(help="A window's number; default: list all windows.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List windows, or the items of one window."""
    with read_lab() as lab:
        rows = lab.evidence.list_windows() if window is None else lab.evidence.list(window)
    columns = set(rows[0]) - {"collections", "truth"} if rows else None
    empty = "no evidence yet; collect some with: judge-gym evidence add ..."
    display.show_rows(rows, json, empty=empty, columns=columns, compact=True)


@evidence_app.command("show")
def show(
    id: Annotated[int, typer.Argument(help="The number of an item.")], json: AsJson = False
) -> None:
    """Show an item and its views side by side, with what a view adds to its source."""
    with read_lab() as lab:
        item = lab.evidence.show(id)
    if json:
        display.print_json(item)
        return
    about = [f"{name}: {item[name]}" for name in ("url", "date", "source", "cluster") if item[name]]
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
        columns[f"{name}\n{_checks_text(view)}"] = view["text"] or f"({view['status']})"
    display.side_by_side(columns)
    if not item["views"]:
        typer.echo("no views of it yet")


def _checks_text(view: Mapping[str, Any]) -> str:
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
    ids: Annotated[list[int], typer.Argument(help="The numbers of items.")],
    window: Window = None,
    undo: Annotated[bool, typer.Option("--undo", help="Restore them.")] = False,
    json: AsJson = False,
) -> None:
    """Drop items from a window for good. Frozen pools keep them."""
    with read_lab() as lab:
        count = lab.evidence.drop(ids, window_id=window, undo=undo)
    verb = "restored" if undo else "dropped"
    display.print_json({verb: count}) if json else typer.echo(f"{verb} {count}")


# --- pools ---------------------------------------------------------------------------------------

pool_app = typer.Typer(help="Frozen, ordered sets of evidence.", no_args_is_help=True)
app.add_typer(pool_app, name="pool")


@pool_app.command("freeze")
def freeze(
    name: Annotated[str, typer.Argument(help="The pool's name, which is permanent.")],
    files: Annotated[list[str], typer.Argument(help="Files, instead of --window.")] = NONE,
    window: Window = None,
    tag: Annotated[
        str | None, typer.Option(help="The evidence that this experiment judges.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Freeze what a window holds, for studies to name: `evidence: {usa: {pool: NAME}}`."""
    with open_lab() as lab:
        pool = lab.evidence.freeze_pool(name, window_id=window, files=files, tag=tag)
    if json:
        display.print_json(pool)
    else:
        typer.echo(f"froze {name}: {pool['items']} items, {pool['hash'][:12]}")


@pool_app.command("list")
def list_pools(json: AsJson = False) -> None:
    """List the frozen pools."""
    with read_lab() as lab:
        rows = lab.evidence.list_pools()
    empty = "no pools yet; freeze one with: judge-gym pool freeze NAME --window ID"
    listed = rows if json else [{**row, "hash": row["hash"][:12]} for row in rows]
    display.show_rows(listed, json, empty=empty)


@pool_app.command("show")
def show_pool(name: str, json: AsJson = False) -> None:
    """List the items of a frozen pool."""
    with read_lab() as lab:
        rows = lab.evidence.list_pool_items(name)
    display.show_rows(rows, json, compact=True)


@pool_app.command("diff")
def diff(before: str, after: str, json: AsJson = False) -> None:
    """Show how two frozen pools differ."""
    with read_lab() as lab:
        difference = lab.evidence.diff_pools(before, after)
    if json:
        display.print_json(difference)
        return
    if difference["same"] and not difference["truths_changed"]:
        typer.echo(f"{before} and {after} are the same pool")
        return
    order = ", in another order" if difference["reordered"] else ""
    typer.echo(f"{difference['shared']} items in both{order}")
    display.table(f"only in {after}", difference["added"], compact=True)
    display.table(f"only in {before}", difference["removed"], compact=True)
    display.table("with another known answer", difference["truths_changed"], compact=True)
