"""Finds the models that run on this machine: local files, and servers on their usual ports."""

import asyncio
import json
from importlib.util import find_spec
from typing import TypedDict

import aiohttp

from judge_gym.errors import DesignError
from judge_gym.models.local_files import DOWNLOADS, local_file
from judge_gym.models.model_card import LOCAL
from judge_gym.models.registry import Registry
from judge_gym.models.registry_files import USER_FILE
from judge_gym.records import bare_endpoint
from judge_gym.records.installation import install_command

SERVERS = {"ollama": 11434, "vllm": 8000, "llamacpp": 8080}
"""Loopback ports on which servers of OpenAI's format listen by default."""
SECONDS = 0.3
MAX_BYTES = 1 << 20
MAX_MODELS, MAX_NAME = 50, 100


class ModelHere(TypedDict):
    """A model that runs on this machine."""

    model: str
    """Its id."""
    runs: str
    """A file, or the URL of a server."""
    ready: bool
    """Whether a study can name the id as it is."""
    to_use_it: str
    """What to do first; empty where it is ready."""


async def models_here(registry: Registry) -> list[ModelHere]:
    """Lists the models that run here; every port gets one GET without a key."""
    model_names = await asyncio.gather(*map(_names, SERVERS.values()))
    rows = [model_file_here(name) for name in DOWNLOADS]
    endpoint_names = {
        bare_endpoint(endpoint.base_url).rstrip("/"): name
        for name, endpoint in registry.entries.endpoints.items()
    }
    for (server, port), names in zip(SERVERS.items(), model_names, strict=True):
        urls = [f"http://{host}:{port}/v1" for host in ("127.0.0.1", "localhost")]
        own_endpoint = next((endpoint_names[url] for url in urls if url in endpoint_names), None)
        entry = f'put [endpoints.{server}] base_url = "{urls[0]}" into {USER_FILE}'
        rows += [
            ModelHere(
                model=f"{own_endpoint or server}:{name}",
                runs=urls[0],
                ready=own_endpoint is not None,
                to_use_it="" if own_endpoint else entry,
            )
            for name in names
        ]
    return rows


def model_file_here(name: str) -> ModelHere:
    """Returns whether a model that `judge-gym models get` fetches can be called."""
    row = ModelHere(model=f"{LOCAL}:{name}", runs=DOWNLOADS[name].file, ready=True, to_use_it="")
    try:
        local_file(name)
    except DesignError:
        return row | {"ready": False, "to_use_it": f"judge-gym models get {name}"}
    if find_spec("xllamacpp") is None:
        return row | {"ready": False, "to_use_it": install_command("local")}
    return row


async def _names(port: int) -> list[str]:
    """Returns the models that a server on a loopback port lists; none where there is no server."""
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"http://127.0.0.1:{port}/v1/models", allow_redirects=False) as response,
        ):
            listed = json.loads(await response.content.read(MAX_BYTES))["data"]
            names = [str(row["id"]) for row in listed[:MAX_MODELS]]
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, LookupError, TypeError):
        return []  # another program may listen there
    return [name for name in names if name.isprintable() and len(name) <= MAX_NAME]
