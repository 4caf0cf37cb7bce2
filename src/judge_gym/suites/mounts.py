"""The mounts of a sandbox: what it shows of its host, and the commands that set it up."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from judge_gym.errors import DesignError

Isolation = Literal["bubblewrap", "namespaces", "none"]
ISOLATIONS: tuple[Isolation, ...] = ("bubblewrap", "namespaces")
"""In order of preference; `none` is used only on request."""
BOX = "/box"
INSIDE = Path(__file__).parent / "inside"
PACKAGE = Path(__file__).parent.parent
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")


def program(isolation: Isolation) -> str:
    """Finds the program that sets up an isolation."""
    return {"bubblewrap": "bwrap", "namespaces": "unshare", "none": "sh"}[isolation]


def view(
    mounts: Mapping[str, Path], tools: Sequence[str], hidden: Sequence[Path], disk_mb: int
) -> dict[str, Any]:
    """Describes what a job sees: bound folders, links and hidden folders."""
    binds, links = [], []
    for path in (*SYSTEM, *SETTINGS):
        if os.path.islink(path) and path in SYSTEM:
            links.append((os.readlink(path), path))
        elif os.path.exists(path):
            binds.append((path, path))
    roots = {sys.prefix, sys.base_prefix, *(_home(tool) for tool in tools)}
    for root in sorted(roots):
        if not any(Path(root).is_relative_to(path) for path, _ in binds):
            binds.append((root, root))
    # The package contains reference answers; a candidate that can read them could copy them.
    secret = {folder.resolve() for folder in (PACKAGE, *hidden)}
    covered = [
        str(folder)
        for folder in secret
        # The parent of a folder hides it, too: nothing can be mounted in an empty, read-only one.
        if secret.isdisjoint(folder.parents)
        and any(folder.is_relative_to(path) for path, _ in binds)
    ]
    binds += [(str(path.resolve()), f"/mnt/{name}") for name, path in mounts.items()]
    binds.append((str(INSIDE), "/mnt/inside"))
    if not any(Path(target).is_relative_to("/tmp") for _, target in binds):
        links.append((f"{BOX}/tmp", "/tmp"))  # for programs that ignore TMPDIR
    return {
        "binds": binds,
        "links": links,
        "hidden": sorted(covered),
        "box": BOX,
        "disk_mb": disk_mb,
    }


def _home(tool: str) -> str:
    """Finds the folder of a program and its libraries."""
    program_path = shutil.which(tool)
    if program_path is None:
        raise DesignError(f"the tool {tool!r} is not installed")
    program_file = Path(program_path).resolve()
    folder = program_file.parent.parent
    # For a program in ~/bin that would be the whole home folder, with its keys.
    return str(program_file.parent if Path.home().is_relative_to(folder) else folder)


def enter(isolation: Isolation, seen: Mapping[str, Any]) -> list[str]:
    """Builds the command line that sets up the view and starts the first process in it."""
    root = os.getuid() == 0
    parts = "/mnt" if isolation == "bubblewrap" else str(INSIDE.parent)
    code = f"import sys; sys.path.append({parts!r}); from inside.first_process import main; main()"
    start = [sys.executable, "-I", "-S", "-c", code]
    if isolation == "none":
        return start
    program_path = shutil.which(program(isolation)) or program(isolation)
    spaces = ["pid", "ipc", "uts", "net", *([] if root else ["user"])]
    if isolation == "namespaces":
        user_map = [] if root else ["--map-root-user"]
        namespaces = [f"--{space}" for space in ["mount", *spaces]]
        return [program_path, *namespaces, *user_map, "--fork", "--kill-child=KILL", *start]
    words = [f"--unshare-{space}" for space in spaces]
    words += ["--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    if root:
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    for folder in _parents([target for _, target in seen["binds"]]):
        words += ["--perms", "0755", "--dir", folder]
    for source, target in seen["binds"]:
        words += ["--ro-bind", source, target]
    for folder in seen["hidden"]:
        words += ["--size", "4096", "--tmpfs", folder, "--remount-ro", folder]
    for target, link in seen["links"]:
        words += ["--symlink", target, link]
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += ["--perms", "1777", "--size", str(1 << 20), "--tmpfs", "/dev/shm"]
    words += ["--remount-ro", "/dev"]
    words += ["--perms", "0777", "--size", str(seen["disk_mb"] << 20), "--tmpfs", seen["box"]]
    return [program_path, *words, "--remount-ro", "/", "--chdir", "/", *start]


def _parents(targets: Sequence[str]) -> list[str]:
    """Lists the parent folders of mounts, which bubblewrap would make readable to root only."""
    folders = {str(parent) for target in targets for parent in Path(target).parents}
    inside = {
        str(folder) for folder in folders for top in targets if Path(folder).is_relative_to(top)
    }
    return sorted(folders - inside - {"/"})
