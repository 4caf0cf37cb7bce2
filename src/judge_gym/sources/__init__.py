"""Reads evidence, benchmarks and labels from files, and searches the web for evidence.

Modules that fetch pages are imported when they are used: `feeds`, `gdelt`, `firecrawl`, `fetcher`.
"""

from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint

from judge_gym.records import Evidence, find_origin
from judge_gym.records.origins import GROUP
from judge_gym.sources.benchmarks import judgebench, load_benchmark
from judge_gym.sources.files import FileSource, load_files, load_items, load_rubric, read_text
from judge_gym.sources.labels import read_labels
from judge_gym.sources.search import OnItem, OnProgress, SearchResult, Source
from judge_gym.sources.vdem import vdem_truth

__all__ = [
    "FileSource",
    "OnItem",
    "OnProgress",
    "SearchResult",
    "Source",
    "judgebench",
    "load_benchmark",
    "load_files",
    "load_items",
    "load_rubric",
    "open_search",
    "read_labels",
    "read_text",
    "vdem_truth",
]


def open_search(
    name: str,
    addresses: Sequence[str],
    *,
    known: Collection[Evidence],
    allow_private: bool,
    on_progress: OnProgress,
    on_item: OnItem,
) -> Source:
    """Opens a search by its name, or refuses an unknown name with the choices.

    Args:
        name: one of `records.search_origins`.
        addresses: for a search of addresses.
        known: the items that the window has already, which are not fetched again.
        allow_private: whether private addresses may be fetched.
        on_progress: see `OnProgress`.
        on_item: see `OnItem`.
    """
    from judge_gym.sources.fetcher import Fetcher

    origin = find_origin(name)
    implementation = EntryPoint(origin.name, origin.source, GROUP).load()
    positional = [addresses] if origin.takes == "addresses" else []
    source: Source = implementation(
        *positional,
        Fetcher(allow_private=allow_private),
        known=known,
        on_progress=on_progress,
        on_item=on_item,
    )
    return source
