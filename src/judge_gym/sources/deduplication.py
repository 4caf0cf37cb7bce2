"""Recognises the same article: by address, by text, and by nearly the same text."""

import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
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
BATCH = 50_000
"""Shingles that are permuted at once, which limits the memory for a book."""
# Han, kana, Hangul, Thai, Lao, Burmese, Khmer: words are not separated by spaces.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
)


_RANDOM = np.random.RandomState(1)
FACTORS = _RANDOM.randint(0, 2**31, BANDS * ROWS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
OFFSETS = _RANDOM.randint(0, 2**32, BANDS * ROWS, dtype=np.uint32)
"""Of permutations of 32-bit numbers; odd factors permute."""


def canonical_url(url: str) -> str:
    """Removes parts of an address that do not change the article, such as the scheme.

    >>> canonical_url("HTTP://www.Example.com:80/a/?utm_source=feed#top")
    'example.com/a'
    """
    from courlan import normalize_url

    try:
        bare = urldefrag(url.strip()).url
        query = urlsplit(bare).query
        plain = normalize_url(bare, trailing_slash=False).partition("://")[2].rpartition("@")[2]
    except ValueError:
        return url.strip()
    # A query without "=" may be an article's number; courlan removes it.
    plain += f"?{query}" if query and "=" not in query else ""
    return plain.removeprefix("www.").removesuffix("/") or url.strip()


def keys(item: Evidence) -> Iterator[str]:
    """Yields what makes two items the same: an address, or the text apart from spaces."""
    for url in (item.url, str(item.metadata.get("link") or "")):
        if url:
            yield f"url {canonical_url(url)}"
    yield f"text {content_hash(' '.join(item.body.split()))}"


def fold_text(text: str) -> str:
    """Removes differences of case and Unicode form from a text."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


class NearDuplicates:
    """Finds texts that are nearly the same: MinHash proposes, the exact overlap decides."""

    def __init__(self) -> None:
        self._bands: list[defaultdict[bytes, list[int]]] = [defaultdict(list) for _ in range(BANDS)]
        self._texts: list[tuple[Evidence, Hashes, Hashes]] = []
        self._last: tuple[Evidence, Hashes, Hashes] | None = None

    def find(self, item: Evidence) -> Evidence | None:
        """Finds an added item whose text is nearly the same, if any."""
        shingles, signature = self._sketch(item)
        same_band = (band.get(key, ()) for band, key in self._keys(signature))
        numbers = sorted(set(chain.from_iterable(same_band)))
        if not numbers:
            return None
        # The likeliest first; a template may have a thousand copies.
        signatures = np.array([self._texts[number][2] for number in numbers])
        similarity = (signatures == signature).sum(axis=1)
        for index in np.argsort(-similarity, kind="stable")[:MOST_COMPARED]:
            other, theirs, _ = self._texts[numbers[int(index)]]
            shared = np.intersect1d(shingles, theirs, assume_unique=True).size
            if shared >= NEAR_DUPLICATE * (shingles.size + theirs.size - shared):
                return other
        return None

    def add(self, item: Evidence) -> None:
        """Adds an item, so that later ones are compared with it."""
        shingles, signature = self._sketch(item)
        for band, key in self._keys(signature):
            band[key].append(len(self._texts))
        self._texts.append((item, shingles, signature))

    def _keys(self, signature: Hashes) -> Iterator[tuple[defaultdict[bytes, list[int]], bytes]]:
        """Pairs each band with its part of a signature."""
        signature_bytes, size = signature.tobytes(), ROWS * signature.itemsize
        parts = (
            signature_bytes[start : start + size] for start in range(0, len(signature_bytes), size)
        )
        return zip(self._bands, parts, strict=True)

    def _sketch(self, item: Evidence) -> tuple[Hashes, Hashes]:
        # An item is searched and then added; its sketch is computed once.
        if self._last is None or self._last[0] is not item:
            shingles = _shingles(item.body)
            self._last = (item, shingles, _signature(shingles))
        return self._last[1], self._last[2]


def _signature(shingles: Hashes) -> Hashes:
    """Computes a text's MinHash: the least of its shingles under each permutation."""
    mixed = shingles ^ (shingles >> np.uint32(16))  # the finalizer of MurmurHash3
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    least = [
        (mixed[start : start + BATCH, np.newaxis] * FACTORS + OFFSETS).min(axis=0)
        for start in range(0, mixed.size, BATCH)
    ]
    signature: Hashes = np.minimum.reduce(least)
    return signature


def _shingles(text: str) -> Hashes:
    """Hashes runs of words, or of characters in scripts without spaces."""
    plain = fold_text(text)
    words = re.findall(r"\w+", plain) or list(plain)
    letters = "".join(words)
    if len(UNSPACED.findall(letters)) * 2 > len(letters):
        codes = np.frombuffer(letters.encode("utf-32-le", "replace"), np.uint32)
        size = SHINGLE_CHARS
    else:
        codes = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in words], np.uint32)
        size = SHINGLE_WORDS
    runs = np.zeros(max(1, codes.size - size + 1), np.uint64)
    for offset in range(min(size, codes.size)):
        runs = (runs + codes[offset : offset + runs.size]) * MIX
    return np.unique((runs >> np.uint64(32)).astype(np.uint32))
