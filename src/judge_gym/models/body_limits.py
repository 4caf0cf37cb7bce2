"""Reads the bodies of replies within limits on their size, compressed or not.

A server may send a body without end, or a few bytes that unpack to gigabytes. A reply beyond the
limit is an error of its call, and the memory of all replies that are being read is bounded.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

from judge_gym.errors import RejectedError
from judge_gym.models.event_loops import LoopResources

MAX_BODY = 8 * 1024**2
"""Bytes of one reply, decompressed."""
LARGE = 64 * 1024
"""Bytes from which a reply counts as large."""
LARGE_AT_ONCE = 6
"""Large replies that are read at once, 48 MB in all; further ones wait."""
MAX_VALUES = 200_000
"""Commas in one reply: a list of small values takes 25 times the memory of its text."""
ENCODINGS = "gzip, deflate"
"""What servers may send, as the header Accept-Encoding."""
LONGEST_NAME = 14
"""Characters of the name of an encoding that is shown."""

TOO_LARGE = f"its reply has more than {MAX_BODY // 1024**2} MB; the rest was not read"

_turns = LoopResources[asyncio.Semaphore]()


class UnreadableBody(RejectedError):
    """A reply beyond the limit, or in an encoding that was not asked for."""


async def read_body(
    chunks: AsyncIterator[bytes], headers: Mapping[str, str], stack: AsyncExitStack
) -> bytearray:
    """Returns a body, decompressed.

    Args:
        chunks: the body as it arrives.
        headers: of the reply.
        stack: holds the turn of a large body until its caller has read what it needs.
    """
    encoding = headers.get("Content-Encoding", "").strip().lower()
    plain = encoding in ("", "identity")
    body = bytearray()
    try:
        async for piece in limited(chunks if plain else _decompressed(chunks, encoding), stack):
            body += piece
    except BaseException:
        body.clear()  # the error's traceback would keep it
        raise
    return body


async def limited(chunks: AsyncIterator[bytes], stack: AsyncExitStack) -> AsyncIterator[bytes]:
    """Yields a body up to the limit on its size; a large one waits for its turn."""
    size = values = 0
    async for chunk in chunks:
        before, size = size, size + len(chunk)
        values += chunk.count(b",")
        if size > MAX_BODY:
            raise UnreadableBody(TOO_LARGE)
        if values > MAX_VALUES:
            raise UnreadableBody(f"its reply has more than {MAX_VALUES:,} values")
        if before <= LARGE < size:
            await stack.enter_async_context(await _turns.get(_new_turns))
        yield chunk


async def _new_turns(_: AsyncExitStack) -> asyncio.Semaphore:
    return asyncio.Semaphore(LARGE_AT_ONCE)


async def _decompressed(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yields a body in small pieces: a few compressed bytes may hold gigabytes."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        # A longer name is no encoding, and may repeat a key.
        name = repr(encoding) if len(encoding) <= LONGEST_NAME else "something"
        raise UnreadableBody(f"its reply is encoded as {name}, which was not asked for")
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # gzip or zlib, by its head
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > MAX_BODY:  # also where nothing comes out of it
            raise UnreadableBody(TOO_LARGE)
        more = True
        while more and not stream.eof:
            try:
                piece = stream.decompress(chunk, LARGE)
            except zlib.error as error:
                raise UnreadableBody(f"its reply cannot be decompressed: {error}") from error
            yield piece
            chunk = stream.unconsumed_tail
            more = bool(chunk) or len(piece) == LARGE
