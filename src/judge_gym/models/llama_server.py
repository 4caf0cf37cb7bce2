"""The program of a child process: serves a GGUF file on loopback until its last user is gone.

It is started by `local_model.py` as a script, and imports nothing of judge-gym. It reads its
settings as JSON from standard input and writes one line of JSON when it is ready. A user is a
connection to its control port; the kernel closes that of a process that ends in any way.
"""

import asyncio
import hmac
import json
import os
import sys
import time
from typing import Any

LINGER = 5.0
"""Seconds without a user after which it ends: the next command may follow soon."""
CHECK = 0.2
HANDSHAKE = 5.0
"""Seconds within which a user must send the key."""


class Users:
    """The connections of users."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._connected = 0
        self._last_seen = time.monotonic()

    @property
    def gone(self) -> bool:
        """Whether there has been no user for a while."""
        return not self._connected and time.monotonic() - self._last_seen > LINGER

    async def hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Counts a connection with the right key as a user until it closes."""
        try:
            sent = await asyncio.wait_for(reader.readline(), HANDSHAKE)
            if not hmac.compare_digest(sent.strip(), self._key):
                return
            self._connected += 1
            try:
                writer.write(b"ok\n")
                await writer.drain()
                while await reader.read(1024):
                    pass
            finally:
                self._connected -= 1
                self._last_seen = time.monotonic()
        except (OSError, TimeoutError, ValueError):
            pass  # a connection that broke is no user
        finally:
            writer.close()


def load(settings: dict[str, Any]) -> Any:
    """Loads the model and starts its server."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.n_ctx = settings["context"] * settings["slots"]  # llama.cpp divides it by the slots
    params.n_parallel = settings["slots"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [settings["key"]]
    params.cache_ram_mib = 0  # by default 8 GB of prompts
    params.warmup = params.ui = params.endpoint_slots = False
    params.cors_origins = "null"
    params.verbosity = 1  # errors only
    return xllamacpp.Server(params)


async def serve(settings: dict[str, Any]) -> None:
    """Serves until the last user is gone."""
    server = load(settings)
    users = Users(settings["key"])
    control = await asyncio.start_server(users.hold, "127.0.0.1", 0)
    port = control.sockets[0].getsockname()[1]
    ready = {"url": server.listening_address, "control": port, "pid": os.getpid()}
    print(json.dumps(ready), flush=True)
    while not users.gone:
        await asyncio.sleep(CHECK)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    if hasattr(os, "fork") and os.fork():
        os._exit(0)  # who starts it need not wait for its end
    try:
        asyncio.run(serve(given))
    except Exception as error:  # the process that started it shows these words
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)  # llama.cpp's threads would hold up an orderly end
