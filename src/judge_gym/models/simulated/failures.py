"""Reads a failed coding eval for a simulated judge: cues in its error, lines to quote.

Facts come before the error: a documented gap, or a reference answer that fails too, explains the
failure, whatever was printed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

PRINTED: dict[str, tuple[float, str]] = {
    "unusable": (0.8, r"\b(?:SyntaxError|IndentationError)\b|\bholds no file\b"),
    "wrong": (0.75, r"\btests failed\b|\b[A-Z]\w*(?:Error|Exception)\b"),
    "types": (0.55, r"\berror: [^\n]*\[[a-z-]+\]$|\bFound \d+ errors?\b"),
    "lint": (0.27, r"\b[A-Z]{1,4}\d{3,4}\b"),
}
"""The strain of what tools print about a failure, on the scale of the lexicon."""
EXPLAINED = {
    "One is documented that shares words": 0.02,
    "The reference answer fails this grader too": 0.2,
}
"""Facts that explain a failure, and their strain."""
FACT_WEIGHT = 4
"""The number of cues that a fact counts for."""
QUOTED_LINES = 6
_PRINTED = re.compile("|".join(f"(?P<{kind}>{p})" for kind, (_, p) in PRINTED.items()), re.M)
_PART = re.compile(r"<(?P<tag>(?P<name>[a-z]+)-[0-9a-f]{12})>\n(?P<text>.*?)\n</(?P=tag)>", re.S)
_FILE = re.compile(r"--- (.+) ---")
_STEP = re.compile(r"failed at the steps? '([^']+)'")
_PLACE = re.compile(r"([\w./-]+\.\w+):(\d+)(?::\d+)?:?\s*")
_TRACED = re.compile(r'File "([^"]+)", line (\d+)')
_SUPPRESSION = re.compile(r"# noqa\b.*")
"""Names the rules that a line of a kit or grader may break, and no error."""
_LONGEST_LINE = 2_000
_LONGEST_ERROR = 200


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed eval as it is shown to judges."""

    facts: str
    parts: Mapping[str, str]

    @property
    def evidence(self) -> list[str]:
        """The cues of the failure: facts that explain it, else what was printed."""
        facts = [fact for fact in EXPLAINED if fact in self.facts]
        return facts or [match[0] for match in _PRINTED.finditer(self._error)]

    @property
    def cues(self) -> tuple[float, ...]:
        """The strain of each cue; a fact counts for several."""
        explained = [strain for fact, strain in EXPLAINED.items() if fact in self.facts]
        printed = (PRINTED[str(match.lastgroup)][0] for match in _PRINTED.finditer(self._error))
        return tuple(explained * FACT_WEIGHT) or tuple(printed)

    @property
    def _error(self) -> str:
        lines = self.parts.get("error", "").splitlines()
        return "\n".join(_SUPPRESSION.sub("", line[:_LONGEST_LINE]) for line in lines)

    def difference(self) -> tuple[str, str]:
        r"""Returns the first lines in which candidate and answer differ, if any.

        >>> Failure("", {"candidate": "a\nb > 1", "answer": "a\nb < 1"}).difference()
        ('b > 1', 'b < 1')
        """
        candidate, right = (
            self.parts.get(name, "").splitlines() for name in ("candidate", "answer")
        )
        for kind, a, b, c, d in SequenceMatcher(
            None, candidate, right, autojunk=False
        ).get_opcodes():
            sides = [_some(lines) for lines in (candidate[a:b], right[c:d])]
            if kind != "equal" and any(side.strip() for side in sides):
                return sides[0], sides[1]
        return "", ""

    def reason(self) -> str:
        r"""Returns a sentence on the step that failed, the candidate's line, and the error.

        >>> error = "--- lint ---\nexit code 1\n\na.py:2:8: F401 `re` imported but unused"
        >>> Failure("", {"error": error, "candidate": "--- a.py ---\n#\nimport re"}).reason()
        "The candidate fails at lint, line 2 of a.py: F401 're' imported but unused."
        """
        sections = _sections(self._error)
        first = _STEP.search(self.facts)
        step = first[1] if first and first[1] in sections else next(iter(sections), "")
        lines = [line.strip() for line in sections.get(step, ()) if line.strip()]
        asserted = [line for line in lines if line.startswith("E ")]
        printed = [line for line in lines[1:] if _PRINTED.search(line)]
        error = next(iter([*asserted, *printed, *lines]), "no error is shown")
        files = _sections(self.parts.get("candidate", ""))
        named = _PLACE.match(error)
        location = f"line {named[2]} of {named[1]}" if named and named[1] in files else ""
        location = location or _traced_place(lines, files) or self._first_change(files)
        text = _PLACE.sub("", error.removeprefix("E "), count=1).strip().replace("`", "'")
        where = f", {location}" if location else ""
        return f"The candidate fails at {step or 'a step'}{where}: {text[:_LONGEST_ERROR]}."

    def _first_change(self, files: Mapping[str, Sequence[str]]) -> str:
        """Returns the candidate's first line that differs from the reference answer, if any."""
        answer = _sections(self.parts.get("answer", ""))
        for name, lines in files.items():
            right = answer.get(name, [])
            for number, line in enumerate(lines, 1):
                if number > len(right) or line != right[number - 1]:
                    return f"line {number} of {name}" if name else ""
        return ""

    def remarks(self, verdict: str) -> str:
        """Returns reasoning and quotes in the form that the prompt asks for."""
        candidate, right = self.difference()
        cues = list(dict.fromkeys(self.evidence))
        signs_text = ", ".join(cues[:3]) + ", ..." * (len(cues) > 3)
        signs = f"Signs of the failure: {signs_text or 'none that the criteria speak of'}."
        reason = f"{self.reason()} {signs} {verdict}"
        code = f"MODEL CODE:\n{_fenced(candidate)}\nEXPECTED CODE:\n{_fenced(right)}"
        return f"REASONING: {reason}\n{code}"


def failure_in(text: str) -> Failure | None:
    """Returns the failed eval that a text shows, if it shows one."""
    parts = {match["name"]: match["text"] for match in _PART.finditer(text)}
    if not {"error", "candidate", "answer"} <= parts.keys():
        return None
    return Failure(text[: text.index("<error-")], parts)


def _sections(text: str) -> dict[str, list[str]]:
    """Returns the lines of a part by file or step; those before any name under an empty one."""
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if header := _FILE.fullmatch(line):
            name = header[1]
            sections[name] = []
        else:
            sections.setdefault(name, []).append(line)
    return sections


def _traced_place(lines: Sequence[str], files: Mapping[str, Sequence[str]]) -> str:
    r"""Returns the innermost line of a traceback that is in one of the files, if any.

    >>> _traced_place(['File "/mnt/a.py", line 3', 'File "/lib/b.py", line 9'], {"a.py": []})
    'line 3 of a.py'
    """
    for path, number in reversed(_TRACED.findall("\n".join(lines))):
        name = next((name for name in files if name and f"/{path}".endswith(f"/{name}")), None)
        if name is not None:
            return f"line {number} of {name}"
    return ""


def _some(lines: Sequence[str]) -> str:
    return "\n".join(lines[:QUOTED_LINES]).strip("\n")


def _fenced(code: str) -> str:
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", code))])
    return f"{fence}\n{code}\n{fence}" if code.strip() else "NONE"
