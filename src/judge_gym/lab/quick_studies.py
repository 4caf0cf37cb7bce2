"""The study file of a quick study: texts, a question and judges, one knob varied at a time."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from judge_gym.records import digest


def quick_study_text(
    texts: Sequence[str | Mapping[str, Any]],
    question: str,
    judges: Sequence[str],
    *,
    vary: Mapping[str, Sequence[Any]],
    stages: Sequence[str],
    samples: int,
    name: str | None,
    budget: Mapping[str, Any],
) -> str:
    """Writes the study file. Without a name, the study is named by its content."""
    items = [text if isinstance(text, str) else dict(text) for text in texts]
    task = {"concept": question, "evidence": "texts"}
    keys: dict[str, Any] = {
        "study": name or f"quick-{digest([items, question, [*stages]])[:8]}",
        "samples": samples,
        "evidence": {"texts": {"items": items}},
        "tasks": [{**task, "rubric": [*stages]} if stages else task],
        "judges": [*judges],
        "vary": {knob: [*levels] for knob, levels in vary.items()},
        "sweep": "ablate",
        "probe": False,
        "budget": dict(budget),
    }
    text: str = yaml.safe_dump(keys, sort_keys=False, allow_unicode=True, width=100)
    return text
