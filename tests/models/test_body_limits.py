"""Bodies of replies are read within limits on their size and on the memory of all of them."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from judge_gym.models.body_limits import (
    LARGE_AT_ONCE,
    MAX_BODY,
    MAX_VALUES,
    UnreadableBody,
    read_body,
)

MB = 1024**2
GZIP = {"Content-Encoding": "gzip"}


async def sent(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(*chunks: bytes, compressed: bool = True) -> bytes:
    async with AsyncExitStack() as stack:
        return bytes(await read_body(sent(*chunks), GZIP if compressed else {}, stack))


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 3 * MB])
@pytest.mark.parametrize("step", [1000, 10**9])
def test_a_compressed_body_is_read_whole_in_any_chunks(size: int, step: int) -> None:
    body = bytes(number % 251 for number in range(size))
    packed = gzip.compress(body)
    chunks = [packed[start : start + step] for start in range(0, len(packed), step)]
    assert asyncio.run(read(*chunks)) == body
    assert asyncio.run(read(zlib.compress(body))) == body


def test_what_follows_the_end_of_a_compressed_body_is_dropped_and_counted() -> None:
    packed = gzip.compress(b"{}")
    assert asyncio.run(read(packed + b"more", b"and more")) == b"{}"
    with pytest.raises(UnreadableBody, match="more than 8 MB"):
        asyncio.run(read(packed, *[bytes(MB)] * (MAX_BODY // MB)))


def test_a_body_of_very_many_values_is_refused_before_it_is_parsed() -> None:
    def body(count: int) -> bytes:
        return b"[" + b"0," * count + b"0]"

    assert asyncio.run(read(body(MAX_VALUES), compressed=False)) == body(MAX_VALUES)
    with pytest.raises(UnreadableBody, match="more than 200,000 values"):
        asyncio.run(read(body(MAX_VALUES + 1), compressed=False))


def test_bombs_are_unpacked_in_turn_and_their_errors_keep_nothing_of_them() -> None:
    bomb = gzip.compress(bytes(64 * MB), compresslevel=1)

    async def many() -> list[bytes | BaseException]:
        return await asyncio.gather(*[read(bomb) for _ in range(40)], return_exceptions=True)

    tracemalloc.start()
    try:
        errors = asyncio.run(many())
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(isinstance(error, UnreadableBody) for error in errors)
    assert peak < (LARGE_AT_ONCE + 4) * MAX_BODY * 1.2
    assert kept < 8 * MB
