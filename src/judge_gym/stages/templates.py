"""A judge's own prompt, as it stands: a text with placeholders, and a head that says how to read.

A file begins with a head between two lines of `---`: `read` (`last line`, `json: KEY` or
`regex: PATTERN`), and optionally `labels` (what the prompt calls each stage) and `system`. The rest
is the prompt. Placeholders such as `{output}` are replaced once; nothing else is touched.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import regex
import yaml

from judge_gym.errors import DesignError, unknown
from judge_gym.records import FIELD_NAMES, Evidence, Pool, Rubric, Status
from judge_gym.stages.answer_lines import BARE, clean_lines, split_turn
from judge_gym.stages.verdicts import last_json_field

MAX_LENGTH = 100_000
"""Characters of a file."""
HEAD = re.compile(r"---[ \t]*\n(?P<head>.*?\n)?---[ \t]*(?:\n|\Z)", re.S)
READ_LINE = re.compile(r"^read:[ \t]*(?P<kind>json|regex):[ \t]*(?P<key>.*)$", re.M | re.I)
HEAD_KEYS = ("read", "labels", "system")
READ = ("last line", "json: KEY", "regex: PATTERN")
PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
PLACEHOLDERS = ("text", *FIELD_NAMES, "response_a", "response_b", "rubric", "labels")
JUDGED_PARTS = ("output", "messages", "response_a", "response_b")
"""The parts that are judged; others help to judge them, where an item has one of these."""
ABSTAIN = "abstain"
ABSTAINED = 0
"""What stands for abstaining among the numbers of stages."""
# What may surround a label: markup, quotation marks, brackets and punctuation, but no + or %.
AROUND = " \t\n*_`~#>\"'“”‘’«»[](){}<$\\|•.,:;!?…"
BULLET = re.compile(r"\A[-–—]\s+")
LAST_CHARACTERS = 20_000
"""The end of an answer in which a pattern is searched for."""
MAX_PATTERN = 500
SECONDS = 0.5
"""The CPU time after which a pattern has matched nothing; a harmless one takes microseconds."""
# Answers on which patterns with nested repeats take forever.
HARD_ANSWERS = (
    "a" * 3000,
    "a" * 3000 + "!",
    " " * 3000 + "!",
    "a b " * 750 + "!",
    "1" * 3000,
    "\n" * 3000,
)

Kind = Literal["last line", "json", "regex"]


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A judge's own prompt and how its answers are read."""

    name: str
    """Of its file."""
    body: str
    kind: Kind
    key: str
    """The key of the JSON object, or the pattern; empty for the last line."""
    labels: Mapping[str, str]
    """What the prompt calls stages, to their labels or `abstain`; empty where it uses the labels.
    """
    system: str

    # --- asking ----------------------------------------------------------------------------------

    def fill(self, text: str, values: Mapping[str, str]) -> tuple[str, ...]:
        """Fills the parts of a message. Placeholders within a value are left alone."""
        parts = PLACEHOLDER.split(text)
        filled = [values.get(part, "") if number % 2 else part for number, part in enumerate(parts)]
        return tuple(part for part in filled if part)

    def values(self, item: Evidence, text: str, rubric: Rubric, *, flipped: bool) -> dict[str, str]:
        """Collects what replaces each placeholder. `text` is the view that is shown."""
        return {**_item_values(item, text, flipped), **self._rubric_values(rubric)}

    def _rubric_values(self, rubric: Rubric) -> dict[str, str]:
        stages = (
            "\n".join(
                [
                    " / ".join(self._words(stage.label)),
                    *(f"  - {criterion}" for criterion in stage.criteria),
                ]
            )
            for stage in rubric.stages
        )
        words = [word for stage in rubric.stages for word in self._words(stage.label)]
        words += [word for word, label in self.labels.items() if label == ABSTAIN]
        return {"rubric": "\n".join(stages), "labels": ", ".join(words)}

    def _words(self, label: str) -> list[str]:
        """Lists what the prompt calls a stage."""
        return [word for word, stage in self.labels.items() if stage == label] or [label]

    # --- reading ---------------------------------------------------------------------------------

    def read(self, answer: str, rubric: Rubric) -> tuple[Status, tuple[int, ...]]:
        """Reads the status of an answer, and the stage that it names, as it was shown."""
        verdict = self.verdict(answer)
        number = None if verdict is None else _stages(self, rubric).get(_plain(verdict))
        if number is None:
            return "parse_failed", ()
        return ("scored", (number,)) if number else ("abstained", ())

    def verdict(self, answer: str) -> str | None:
        """Finds the words of an answer that are its verdict, or None if it has none."""
        turn, _ = split_turn(answer)
        match self.kind:
            case "last line":
                lines = (line for line in reversed(clean_lines(turn)) if not BARE.match(line))
                return next((line.strip() for line in lines), None)
            case "json":
                return _json_word(last_json_field(turn, self.key))
            case "regex":
                return _last_group(self.key, turn[-LAST_CHARACTERS:])

    # --- checks ----------------------------------------------------------------------------------

    def check(self, pool: Pool, rubric: Rubric | None, *, neutralized: bool = False) -> None:
        """Refuses placeholders that the items cannot fill, and labels that the rubric lacks."""
        if neutralized and not self._placeholders.isdisjoint(pool.field_names):
            raise DesignError(
                f"{self.name} shows named parts of items, which no editor neutralizes; leave "
                "evidence.view out, or show {text}"
            )
        choices = (*_item_names(pool), "rubric", "labels")
        for name in PLACEHOLDERS:
            if name in self._placeholders and name not in choices:
                placeholders = [f"{{{choice}}}" for choice in choices]
                raise DesignError(
                    f"{self.name}: these items have no {name} for {{{name}}}; choose "
                    f"{', '.join(placeholders)}",
                    choices=placeholders,
                )
        if rubric is None:
            if self.labels:
                raise DesignError(
                    f"{self.name} names the stages of a rubric, so the task needs one: "
                    "rubric: FILE.json"
                )
            return
        stages = [stage.label for stage in rubric.stages]
        for label in self.labels.values():
            if label not in (*stages, ABSTAIN):
                choices = (*stages, ABSTAIN)
                raise DesignError(
                    unknown("stage", label, choices, f"labels of {self.name}"), choices=choices
                )
        words = [_plain(word) for label in stages for word in self._words(label)]
        words += [_plain(word) for word, label in self.labels.items() if label == ABSTAIN]
        if twice := next((word for word in words if words.count(word) > 1), None):
            raise DesignError(f"{self.name}: {twice!r} means two stages; labels: gives each a word")

    def doubts(self, pool: Pool, rubric: Rubric | None) -> Iterator[str]:
        """Yields what is missing in the prompt, for a plan."""
        used = self._placeholders
        judged = [name for name in _item_names(pool) if name in JUDGED_PARTS] or pool.field_names
        if used.isdisjoint(["text", *judged]):
            placeholders = " or ".join(f"{{{name}}}" for name in judged)
            yield f"shows no item: it has no {placeholders}"
        if pool.paired and not {"response_a", "response_b"} <= used:
            yield "does not show both {response_a} and {response_b}"
        for name in pool.field_names:
            lacking = sum(name not in item.fields for item in pool.items)
            if name in used and lacking:
                yield f"{{{name}}} is empty for {lacking} of {len(pool.items)} items"
        if "{{" in self.body:
            yield "contains {{, which is sent as it stands; in a format string it means one brace"
        said = self._own_words(rubric)
        exits = [word for word, label in self.labels.items() if label == ABSTAIN] or [ABSTAIN]
        if not any(_names(said, word) for word in exits):
            yield (
                "names no way to abstain, so that an item that cannot be judged gets a verdict all "
                "the same; say when to answer ABSTAIN, or name your own word for it: "
                "labels: {UNSURE: abstain}"
            )
        named = {stage.label: self._words(stage.label) for stage in rubric.stages} if rubric else {}
        every = [word for words in named.values() for word in words]
        for label, words in named.items():
            if not any(_names(_without(said, word, every), word) for word in words):
                yield f"does not name the label {label!r}, so that no answer may be it"
        if rubric is None and used.isdisjoint({"rubric", "labels"}):
            yield "shows neither {rubric} nor {labels}, and the rubric is yet to be written"
        if self.kind == "json" and not _names(said, self.key):
            yield f"does not name the JSON key {self.key!r} from which the verdict is read"

    @property
    def _placeholders(self) -> frozenset[str]:
        """The placeholders of the prompt."""
        return frozenset(PLACEHOLDER.findall(f"{self.system}\n{self.body}"))

    def _own_words(self, rubric: Rubric | None) -> str:
        """Joins the words of the prompt, without any item."""
        values = self._rubric_values(rubric) if rubric else {}
        return "\n".join("".join(self.fill(text, values)) for text in (self.system, self.body))


@lru_cache(maxsize=256)
def read_template(text: str, name: str = "the prompt") -> PromptTemplate:
    """Reads a prompt from the text of a file, and refuses one that cannot be asked or read."""
    if len(text) > MAX_LENGTH:
        raise DesignError(f"{name}: a prompt has at most {MAX_LENGTH:,} characters")
    fields, body = _head(text, name)
    kind, key = _read_rule(fields.get("read"), name)
    labels = fields.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise DesignError(
            f"{name}: labels says what the prompt calls each stage, as {{PASS: good, FAIL: bad}}"
        )
    system = fields.get("system") or ""
    if not isinstance(system, str):
        raise DesignError(f"{name}: system is a text")
    if not body.strip():
        raise DesignError(f"{name}: below its head there is no prompt")
    for used in PLACEHOLDER.findall(f"{system}\n{body}"):
        if used not in PLACEHOLDERS:
            placeholders = [f"{{{choice}}}" for choice in PLACEHOLDERS]
            raise DesignError(
                f"{name}: {unknown('placeholder', f'{{{used}}}', placeholders)}; "
                f"where it is meant as it stands, write {{ {used} }}",
                choices=placeholders,
            )
    double = re.search(rf"\{{\{{\s*({'|'.join(PLACEHOLDERS)})\s*\}}\}}", f"{system}\n{body}")
    if double:
        raise DesignError(
            f"{name}: {double[0]} has two braces; a placeholder has one: {{{double[1]}}}"
        )
    return PromptTemplate(name, body.strip(), kind, key, labels, system.strip())


def _head(text: str, name: str) -> tuple[dict[str, Any], str]:
    """Splits the text of a file into its head and the prompt below it."""
    match = HEAD.match(text)
    if match is None:
        raise DesignError(
            f"{name}: its head says how the verdict is read; begin the file with the lines "
            "'---', 'read: last line' and '---'"
        )
    head = match["head"] or ""
    rule = READ_LINE.search(head)  # taken as it stands: a pattern needs no quotes of YAML
    if rule:
        head = READ_LINE.sub("", head, count=1)
    try:  # every value is text: yes and no are labels, not truth values
        fields = yaml.load(head, Loader=yaml.BaseLoader) or {}
    except yaml.YAMLError as error:
        raise DesignError(f"{name}: broken head: {getattr(error, 'problem', error)}") from error
    if not isinstance(fields, dict):
        raise DesignError(f"{name}: its head is a mapping with {', '.join(HEAD_KEYS)}")
    for key in fields:
        if key not in HEAD_KEYS:
            raise DesignError(f"{name}: {unknown('key', key, HEAD_KEYS)}", choices=HEAD_KEYS)
    if rule:
        fields["read"] = {rule["kind"]: rule["key"]}
    return fields, text[match.end() :]


def _read_rule(given: Any, name: str) -> tuple[Kind, str]:
    """Reads how the verdict is found, and the key or the pattern for it."""
    if isinstance(given, dict) and len(given) == 1:
        [(kind, key)] = given.items()
    else:
        kind, _, key = str(given or "").partition(":")
    key = key.strip() if isinstance(key, str) else ""
    match kind.strip().casefold():
        case "last line" if not key:
            return "last line", ""
        case "json" if key:
            return "json", key
        case "regex" if key:
            _check_pattern(key, name)
            return "regex", key
    raise DesignError(f"{name}: read is {', '.join(READ)}, not {given!r}", choices=READ)


def _check_pattern(pattern: str, name: str) -> None:
    """Refuses a pattern that is broken, has not one group, or may take forever."""
    if len(pattern) > MAX_PATTERN:
        raise DesignError(f"{name}: a pattern has at most {MAX_PATTERN} characters")
    try:
        compiled = _compile(pattern)
    except regex.error as error:
        raise DesignError(f"{name}: broken pattern {pattern!r}: {error}") from error
    if compiled.groups != 1:
        raise DesignError(
            f"{name}: the pattern {pattern!r} has {compiled.groups} groups; it has one, around the "
            "verdict: others begin with (?:"
        )
    try:
        for answer in HARD_ANSWERS:
            for _ in compiled.finditer(answer, timeout=SECONDS / 4):
                pass
    except TimeoutError:
        raise DesignError(
            f"{name}: the pattern {pattern!r} takes too long on some answers: a repeat within a "
            "repeat, such as (a+)+$"
        ) from None


def _last_group(pattern: str, text: str) -> str | None:
    """Finds the group of a pattern's last match. None means no match in time."""
    try:
        matches = [*_compile(pattern).finditer(text, timeout=SECONDS)]
    except TimeoutError:
        return None
    return matches[-1][1] if matches else None


@lru_cache(maxsize=64)
def _compile(pattern: str) -> Any:
    return regex.compile(pattern)


def _item_names(pool: Pool) -> tuple[str, ...]:
    """Lists the placeholders that the items of a pool can fill."""
    if pool.paired:
        return ("text", "input", "response_a", "response_b")
    return ("text", *pool.field_names) if pool.field_names else ("text", "output")


def _item_values(item: Evidence, text: str, flipped: bool) -> dict[str, str]:
    if item.responses:
        first, second = reversed(item.responses) if flipped else item.responses
        return {"text": text, "input": text, "response_a": first, "response_b": second}
    if item.fields:
        return {"text": text, **item.fields}
    return {"text": text, "output": text}


@lru_cache(maxsize=256)
def _cached_stages(
    labels: tuple[tuple[str, str], ...], stages: tuple[str, ...]
) -> Mapping[str, int]:
    numbers = {label: number for number, label in enumerate(stages, 1)}
    renamed = {label for _, label in labels}
    plain_labels = {
        _plain(label): number for label, number in numbers.items() if label not in renamed
    }
    words = {_plain(word): numbers.get(label, ABSTAINED) for word, label in labels}
    return {ABSTAIN: ABSTAINED, **plain_labels, **words}


def _stages(template: PromptTemplate, rubric: Rubric) -> Mapping[str, int]:
    """Maps each word to the stage that it means, or to `ABSTAINED`."""
    stages = tuple(stage.label for stage in rubric.stages)
    return _cached_stages(tuple(template.labels.items()), stages)


def _plain(word: str) -> str:
    """Strips markup and punctuation around a word, and lowers its case.

    >>> _plain('**"Not helpful".**'), _plain("- A+")
    ('not helpful', 'a+')
    """
    text = BULLET.sub("", " ".join(clean_lines(word)).strip(AROUND))
    return " ".join(text.strip(AROUND).casefold().split())


def _without(text: str, word: str, words: Sequence[str]) -> str:
    """Removes the longer words that contain a word, as "not helpful" contains "helpful"."""
    text, word = text.casefold(), word.casefold()
    for longer in map(str.casefold, words):
        if word in longer and word != longer:
            text = text.replace(longer, " ")
    return text


def _names(text: str, word: str) -> bool:
    """Whether a text contains a word, not only as a part of another."""
    pattern = rf"(?<!\w){re.escape(' '.join(word.casefold().split()))}(?!\w)"
    return re.search(pattern, " ".join(text.casefold().split())) is not None


def _json_word(value: Any) -> str | None:
    """Converts a value of a JSON object to a word, or None for a list, an object or null."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | int | float) else None
