"""Recognises the same article: by address, by text, and by nearly the same text."""

import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import urldefrag, urlsplit

import numpy as np
from numpy.typing import NDArray

from judge_gym.records import Evidence, content_hash

Hashes = NDArray[np.uint32]

NEAR_DUPLICATE = 0.8
"""Texts that share this proportion of their shingles (Jaccard) are nearly the same."""
SHINGLE_WORDS = 3
SHINGLE_CHARS = 5
MIX = np.uint64(0x9E3779B97F4A7C15)
MOST_COMPARED = 50
BANDS, ROWS = 20, 5
"""LSH finds a pair at `NEAR_DUPLICATE` with probability 1 - (1 - 0.8**5)**20, or 0.9996."""
TOGETHER = 100_000
"""Characters of texts that are sketched together: on one short text, numpy's calls would cost more
than their work."""
# Han, kana, Hangul, Thai, Lao, Burmese, Khmer: words are not separated by spaces.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
)


# What normalisation leaves as it is, apart from the scheme: no query, port, dots or other signs.
PLAIN_URL = re.compile(r"https?://([a-z0-9.-]+(?:/(?!\.\.?(?:/|$))[A-Za-z0-9_~.-]+)*)/?")

_RANDOM = np.random.RandomState(1)
FACTORS = _RANDOM.randint(0, 2**31, BANDS * ROWS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
OFFSETS = _RANDOM.randint(0, 2**32, BANDS * ROWS, dtype=np.uint32)
"""Of permutations of 32-bit numbers; odd factors permute."""


def canonical_url(url: str) -> str:
    """Removes parts of an address that do not change the article, such as the scheme.

    >>> canonical_url("HTTP://www.Example.com:80/a/?utm_source=feed#top")
    'example.com/a'
    """
    stripped = url.strip()
    match = PLAIN_URL.fullmatch(stripped)
    plain = match[1] if match and "xn--" not in match[1] else _normalized(stripped)
    return plain.removeprefix("www.").removesuffix("/") or stripped


def _normalized(url: str) -> str:
    """Returns a normal address without its scheme; empty where it is none."""
    from courlan import normalize_url

    try:
        bare = urldefrag(url).url
        query = urlsplit(bare).query
        plain = normalize_url(bare, trailing_slash=False).partition("://")[2].rpartition("@")[2]
    except ValueError:
        return ""
    # A query without "=" may be an article's number; courlan removes it.
    return plain + (f"?{query}" if query and "=" not in query else "")


def keys(item: Evidence) -> Iterator[str]:
    """Yields what makes two items the same: an address, or the text apart from spaces."""
    for url in (item.url, str(item.metadata.get("link") or "")):
        if url:
            yield f"url {canonical_url(url)}"
    yield f"text {content_hash(' '.join(item.body.split()))}"


def fold_text(text: str) -> str:
    """Removes differences of case and Unicode form from a text."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


class Sketch(NamedTuple):
    """What is compared of a text."""

    shingles: Hashes
    """Hashes of its runs of words or characters, each once, in order."""
    signature: Hashes
    """Its MinHash: the least of its shingles under each permutation."""
    bands: list[int]
    """A number for each part of the signature; texts that share one may be nearly the same."""


class NearDuplicates:
    """Finds texts that are nearly the same: MinHash proposes, the exact overlap decides."""

    def __init__(self) -> None:
        self._by_band: defaultdict[int, list[int]] = defaultdict(list)
        self._texts: list[tuple[Evidence, Sketch]] = []

    def find(self, sketch: Sketch) -> Evidence | None:
        """Finds an added item whose text is nearly the same, if any."""
        by_band = self._by_band
        numbers = sorted({n for band in sketch.bands if band in by_band for n in by_band[band]})
        if not numbers:
            return None
        # The likeliest first; a template may have a thousand copies.
        signatures = np.array([self._texts[number][1].signature for number in numbers])
        similarity = (signatures == sketch.signature).sum(axis=1)
        for index in np.argsort(-similarity, kind="stable")[:MOST_COMPARED]:
            other, theirs = self._texts[numbers[int(index)]]
            sizes = sketch.shingles.size + theirs.shingles.size
            shared = np.intersect1d(sketch.shingles, theirs.shingles, assume_unique=True).size
            if shared >= NEAR_DUPLICATE * (sizes - shared):
                return other
        return None

    def add(self, item: Evidence, sketch: Sketch) -> None:
        """Adds an item, so that later ones are compared with it."""
        for band in sketch.bands:
            self._by_band[band].append(len(self._texts))
        self._texts.append((item, sketch))


def sketches(texts: Iterable[str]) -> Iterator[Sketch]:
    """Yields the sketch of each text; many short ones are sketched together."""
    group: list[str] = []
    size = 0
    for text in texts:
        group.append(text)
        size += len(text)
        if size >= TOGETHER:
            yield from _sketches(group)
            group, size = [], 0
    yield from _sketches(group)


def _sketches(texts: Sequence[str]) -> Iterator[Sketch]:
    if texts:
        shingles = _shingles(texts)
        signatures = _signatures(shingles)
        yield from map(Sketch, shingles, signatures, _bands(signatures))


def _bands(signatures: Hashes) -> list[list[int]]:
    """Hashes each band of signatures together with its number, to 64 bits."""
    rows = signatures.reshape(-1, BANDS, ROWS).astype(np.uint64)
    hashes = np.broadcast_to(np.arange(BANDS, dtype=np.uint64), rows.shape[:2])
    for row in range(ROWS):
        hashes = (hashes ^ rows[:, :, row]) * MIX
        hashes ^= hashes >> np.uint64(29)
    bands: list[list[int]] = hashes.tolist()
    return bands


def _signatures(shingles: Sequence[Hashes]) -> Hashes:
    """Computes the MinHash of texts, one in each row."""
    mixed = np.concatenate(shingles)
    mixed ^= mixed >> np.uint32(16)  # the finalizer of MurmurHash3
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    begins = [0, *accumulate(part.size for part in shingles[:-1])]
    # One permutation at a time, so that its numbers stay in the processor's cache.
    least = np.empty((BANDS * ROWS, len(shingles)), np.uint32)
    for row, factor, offset in zip(least, FACTORS, OFFSETS, strict=True):
        np.minimum.reduceat(mixed * factor + offset, begins, out=row)
    return np.ascontiguousarray(least.T)


def _shingles(texts: Sequence[str]) -> list[Hashes]:
    """Hashes each text's runs of words, or of characters in scripts without spaces."""
    coded = [*_coded(texts)]
    # A text that is shorter than one run is a run by itself.
    shingles = [
        _runs(codes.astype(np.uint64), codes.size) if codes.size < length else codes[:0]
        for codes, length in coded
    ]
    codes = np.concatenate([codes for codes, _ in coded]).astype(np.uint64)
    owner = np.repeat(np.arange(len(coded), dtype=np.uint64), [codes.size for codes, _ in coded])
    lengths = np.array([length for _, length in coded])
    for length in {length for codes, length in coded if codes.size >= length}:
        runs = _runs(codes, length)
        first, last = owner[: runs.size], owner[length - 1 :]
        inside = (first == last) & (lengths[first.astype(int)] == length)
        # Owner and hash as one number, so that one sort serves all texts.
        numbers = np.sort(first[inside] << np.uint64(32) | runs[inside])
        numbers = numbers[np.append(True, numbers[1:] != numbers[:-1])]
        owners, hashes = numbers >> np.uint64(32), numbers.astype(np.uint32)
        begins = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
        for owner_begin, part in zip(begins, np.split(hashes, begins[1:]), strict=True):
            shingles[int(owners[owner_begin])] = part
    return shingles


def _runs(codes: NDArray[np.uint64], size: int) -> Hashes:
    """Hashes each run of so many codes."""
    runs = np.zeros(codes.size - size + 1, np.uint64)
    for offset in range(size):
        runs = (runs + codes[offset : offset + runs.size]) * MIX
    return (runs >> np.uint64(32)).astype(np.uint32)


def _coded(texts: Iterable[str]) -> Iterator[tuple[Hashes, int]]:
    """Yields the words or characters of each text as numbers, and how many make up a shingle."""
    for text in texts:
        plain = fold_text(text)
        words = re.findall(r"\w+", plain) or list(plain)
        letters = "" if plain.isascii() else "".join(words)
        if len(UNSPACED.findall(letters)) * 2 > len(letters):
            codes = np.frombuffer(letters.encode("utf-32-le", "replace"), np.uint32)
            yield codes, SHINGLE_CHARS
        else:
            yield np.array([*map(_code, words)], np.uint32), SHINGLE_WORDS


@lru_cache(1 << 16)  # most words recur
def _code(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))
