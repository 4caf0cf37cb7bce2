"""Where evidence and benchmarks come from. Every source answers one question: `search`.

What fetches pages loads when it is used: `feeds`, `gdelt`, `firecrawl`, `fetching`.
"""

from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint

from judge_gym.records import Evidence, find_origin
from judge_gym.records.origins import GROUP
from judge_gym.sources.benchmarks import judgebench, load_benchmark
from judge_gym.sources.collecting import Collected, Keep, Source, Watch
from judge_gym.sources.files import FileSource, load_files, load_rubric
from judge_gym.sources.judgebench import read_judged
from judge_gym.sources.labels import read_labels
from judge_gym.sources.vdem import vdem_truth

__all__ = [
    "Collected",
    "FileSource",
    "Keep",
    "Source",
    "Watch",
    "judgebench",
    "load_benchmark",
    "load_files",
    "load_rubric",
    "open_search",
    "read_judged",
    "read_labels",
    "vdem_truth",
]


def open_search(
    name: str,
    addresses: Sequence[str],
    *,
    known: Collection[Evidence],
    allow_private: bool,
    watch: Watch,
    keep: Keep,
) -> Source:
    """Opens the search of a name; an unknown one is refused with the choices.

    Args:
        name: one of `records.search_origins`.
        addresses: what a search of addresses looks at.
        known: what the window holds already; it is not fetched again.
        allow_private: fetch from addresses of the user's own network, too.
        watch: called with the progress.
        keep: called with every article that is kept, at once.
    """
    from judge_gym.sources.fetching import Fetcher

    origin = find_origin(name)
    implementation = EntryPoint(origin.name, origin.source, GROUP).load()
    given = [addresses] if origin.takes == "addresses" else []
    fetcher = Fetcher(allow_private=allow_private)
    source: Source = implementation(*given, fetcher, known=known, watch=watch, keep=keep)
    return source
