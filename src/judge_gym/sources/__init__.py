"""Where evidence comes from."""

from judge_gym.sources.files import Loaded, load_files, load_rubric

__all__ = ["Loaded", "load_files", "load_rubric"]
