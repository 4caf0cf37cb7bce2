"""How long deduplication takes and how it grows: `python bench/dedupe.py`.

Sifts generated articles, of which some are exact and some are near copies of others, at two sizes;
beside them stands the comparison of every pair at the smaller size. Each runs in its own process.
"""

import multiprocessing
import random
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from judge_gym.records import Evidence
from judge_gym.sources.deduplication import NEAR_DUPLICATE, SHINGLE_WORDS
from judge_gym.sources.filters import EvidenceFilter

SMALL, LARGE = 2_500, 10_000
EXACT, NEAR = 0.05, 0.10
"""Shares of exact and of near copies."""
CHANGED = 0.02
"""Share of the words that a near copy changes."""
VOCABULARY = 30_000


def generated(count: int, seed: int = 7) -> list[Evidence]:
    """Articles of 150 to 2,000 words, most near 600, in words as frequent as Zipf has them."""
    rng = random.Random(seed)
    words = [f"w{rng.getrandbits(40):x}" for _ in range(VOCABULARY)]
    weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
    articles: list[list[str]] = []
    for _ in range(count):
        kind = rng.random() if articles else 1.0
        if kind < EXACT:
            articles.append(rng.choice(articles))
        elif kind < EXACT + NEAR:
            copy = list(rng.choice(articles))
            for place in rng.sample(range(len(copy)), max(1, int(CHANGED * len(copy)))):
                copy[place] = rng.choice(words)
            articles.append(copy)
        else:
            length = min(2_000, max(150, int(rng.lognormvariate(6.4, 0.5))))
            articles.append(rng.choices(words, weights, k=length))
    return [
        Evidence(f"Article {number}", " ".join(text), f"https://wire.example/{number}")
        for number, text in enumerate(articles)
    ]


def filtered(articles: list[Evidence]) -> int:
    """Returns the number of articles that the filter keeps."""
    kept = EvidenceFilter(None, searched=True)
    return sum(kept.add(article) for article in articles)


def compared(articles: list[Evidence]) -> int:
    """Returns the number kept if each article is compared with all that were kept before."""
    kept: list[frozenset[tuple[str, ...]]] = []
    for article in articles:
        words = article.text.split()
        places = range(len(words) - SHINGLE_WORDS + 1)
        new = frozenset(tuple(words[place : place + SHINGLE_WORDS]) for place in places)
        for old in kept:
            shared = len(new & old)
            if shared >= NEAR_DUPLICATE * (len(new) + len(old) - shared):
                break
        else:
            kept.append(new)
    return len(kept)


def measured(work: Callable[[list[Evidence]], int], count: int) -> tuple[int, float, float]:
    """Returns the number kept, the seconds, and the growth of the peak memory in MB."""
    filtered(generated(10))  # imports are not measured
    articles = generated(count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    kept = work(articles)
    seconds = time.perf_counter() - start
    return kept, seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    """Measure and print."""
    print(f"{'':12} {'articles':>9} {'kept':>7} {'seconds':>9} {'MB more':>9}")
    seconds = {}
    for name, work, count in (
        ("filter", filtered, SMALL),
        ("filter", filtered, LARGE),
        ("every pair", compared, SMALL),
    ):
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            kept, took, grown = pool.submit(measured, work, count).result()
        seconds[name, count] = took
        print(f"{name:12} {count:9,} {kept:7,} {took:9.2f} {grown:9.0f}", flush=True)
    growth = seconds["filter", LARGE] / seconds["filter", SMALL]
    gain = seconds["every pair", SMALL] / seconds["filter", SMALL]
    print(f"{LARGE // SMALL} times the articles take {growth:.1f} times as long;")
    print(f"at {SMALL:,} articles, the filter is {gain:.0f} times as fast as comparing every pair.")


if __name__ == "__main__":
    main()
