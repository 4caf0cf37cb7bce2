"""Records the commit in what is built, for `judge-gym --version`."""

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {"wheel": "judge_gym/commit.txt", "sdist": "src/judge_gym/commit.txt"}


class CommitHook(BuildHookInterface):
    """Adds a file with the commit; a wheel that is built from a source archive keeps its file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Writes the file, unless the installation reads the checkout itself."""
        commit = os.environ.get("JUDGE_GYM_COMMIT", "").strip() or self._commit()
        if version == "editable" or not commit:
            return
        file = Path(self.directory) / "commit.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{commit}\n", encoding="ascii")
        build_data["force_include"][str(file)] = PLACES[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the file beside what was built."""
        (Path(self.directory) / "commit.txt").unlink(missing_ok=True)

    def _commit(self) -> str:
        if not (Path(self.root) / ".git").exists():
            return ""
        words = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        try:
            described = subprocess.run(words, cwd=self.root, capture_output=True, text=True)
        except OSError:
            return ""
        return described.stdout.strip()
