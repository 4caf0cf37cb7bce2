"""Reads the bodies of replies within limits on their size, compressed or not.

A server may send a body without end, or a few bytes that unpack to gigabytes. A reply beyond the
limit is an error of its call, and the memory of all replies that are being read is bounded.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack

from judge_gym.errors import RejectedError
from judge_gym.models.event_loops import LoopResources

MAX_BODY = 8 * 1024**2
"""Bytes of one reply, decompressed."""
LARGE = 64 * 1024
"""Bytes from which a reply counts as large."""
LARGE_AT_ONCE = 16
"""Large replies that are read at once, 128 MB in all; further ones wait."""
ENCODINGS = "gzip, deflate"
"""What servers may send, as the header Accept-Encoding."""

TOO_LARGE = f"its reply has more than {MAX_BODY // 1024**2} MB; the rest was not read"

_turns = LoopResources[asyncio.Semaphore]()


class UnreadableBody(RejectedError):
    """A reply beyond the limit, or in an encoding that was not asked for."""


async def read_body(
    chunks: AsyncIterator[bytes], headers: Mapping[str, str], stack: AsyncExitStack
) -> bytes:
    """Returns a body, decompressed.

    Args:
        chunks: the body as it arrives.
        headers: of the reply.
        stack: holds the turn of a large body until its caller has read what it needs.
    """
    unpack = _unpacker(headers.get("Content-Encoding", ""))
    body = bytearray()
    large = False
    async for chunk in chunks:
        body += unpack(chunk)
        if len(body) > MAX_BODY:
            raise UnreadableBody(TOO_LARGE)
        if not large and len(body) > LARGE:
            large = True
            await stack.enter_async_context(await _turns.get(_new_turns))
    return bytes(body)


async def _new_turns(_: AsyncExitStack) -> asyncio.Semaphore:
    return asyncio.Semaphore(LARGE_AT_ONCE)


def _unpacker(encoding: str) -> Callable[[bytes], bytes]:
    """Returns what decompresses chunks, each up to a little more than the limit."""
    match encoding.strip().lower():
        case "" | "identity":
            return bytes
        case "gzip" | "x-gzip" | "deflate":
            stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # gzip or zlib, by its head

            def unpack(chunk: bytes) -> bytes:
                try:
                    return stream.decompress(chunk, MAX_BODY + 1)
                except zlib.error as error:
                    raise UnreadableBody(f"its reply cannot be decompressed: {error}") from error

            return unpack
    raise UnreadableBody(f"its reply is encoded as {encoding[:40]!r}, which was not asked for")
