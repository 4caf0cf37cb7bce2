"""How this installation of judge-gym was made, and the command that adds an extra to it."""

import json
import shlex
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit


def install_command(extra: str) -> str:
    """Writes the command that adds an extra to this installation.

    A folder that judge-gym was installed from is named again, since an index may have another
    version; so is the program that installed it.
    """
    try:
        installed = metadata.distribution("judge-gym")
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        installer = (installed.read_text("INSTALLER") or "pip").strip()
    except metadata.PackageNotFoundError:  # run from a source tree
        origin, installer = {}, "pip"
    folder = Path(unquote(urlsplit(origin.get("url", "")).path))
    from_folder = origin.get("url", "").startswith("file:") and folder.is_dir()
    package = shlex.quote(f"{folder if from_folder else 'judge-gym'}[{extra}]")
    editable = "-e " if from_folder and origin.get("dir_info", {}).get("editable") else ""
    prefix = Path(sys.prefix)
    if prefix.parts[-3:-1] == ("uv", "tools"):
        return f"uv tool install --force {editable}{package}"
    if "archive-v0" in prefix.parts:
        return f"uvx --from {package} judge-gym"
    if prefix.parts[-3:-1] == ("pipx", "venvs"):
        return f"pipx install --force {editable}{package}"
    python = shlex.quote(sys.executable)
    if installer == "uv" and find_spec("pip") is None:
        return f"uv pip install --python {python} {editable}{package}"
    return f"{python} -m pip install {editable}{package}"
