"""Where evidence and benchmarks come from. Every source answers one question: `search`.

What fetches pages loads when it is used: `feeds`, `gdelt`, `firecrawl`, `fetching`.
"""

from judge_gym.sources.benchmarks import judgebench, load_benchmark
from judge_gym.sources.collecting import Collected, Keep, Source, Watch
from judge_gym.sources.files import FileSource, load_files, load_rubric
from judge_gym.sources.judgebench import read_judged
from judge_gym.sources.labels import read_labels
from judge_gym.sources.vdem import vdem_truth

__all__ = [
    "Collected",
    "FileSource",
    "Keep",
    "Source",
    "Watch",
    "judgebench",
    "load_benchmark",
    "load_files",
    "load_rubric",
    "read_judged",
    "read_labels",
    "vdem_truth",
]
