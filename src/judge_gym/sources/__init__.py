"""Where evidence and benchmarks come from. Every source answers one question: `search`."""

from judge_gym.sources.collecting import Collected, Source
from judge_gym.sources.files import Loaded, load_files, load_rubric

__all__ = ["Collected", "Loaded", "Source", "load_files", "load_rubric"]
