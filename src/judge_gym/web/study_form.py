"""The form of a new study as a study file: each line knows the step of the form it comes from."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from judge_gym.axes import PROTOCOLS, Design, Knob
from judge_gym.recorded.pasted import PastedTexts, read_pasted
from judge_gym.recorded.study_items import PAIR_STAGES
from judge_gym.studies import Study

STEPS = ("evidence", "question", "judges", "vary", "review")
KINDS = {"an integer": "number", "a number": "number", "true or false": "flag"}
"""How a value is written in a study file, by the type of its knob; others are text."""
BARE = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
RESERVED = re.compile(r"true|false|null|yes|no|on|off|y|n", re.IGNORECASE)
NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
TASK_FIELDS = ("concept", "stages", "evidence", "type", "dose", "rubric", "value", "source")
ASSISTED = "evidence.view"
"""The knob that needs an assistant unless it is `raw`."""


class Line(NamedTuple):
    """A line of the study file."""

    text: str
    step: str


class StudyForm:
    """What was entered into the form of a new study.

    Args:
        fields: the names and values of its fields, in the order of the page; a name may repeat.
    """

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in fields:
            self._values.setdefault(name, []).append(value.replace("\r\n", "\n"))

    def get(self, name: str) -> str:
        """Returns the value of a field without spaces around it; empty if it was not sent."""
        return self._values.get(name, [""])[0].strip()

    def has(self, name: str) -> bool:
        """Returns whether a field was sent, as a box that is ticked is."""
        return name in self._values

    @property
    def by_hand(self) -> bool:
        """Whether the file was changed by hand, so that it counts in place of the form."""
        return self.get("edited") == "true"

    @cached_property
    def pasted(self) -> PastedTexts:
        """What was pasted; what was said about columns counts while the header is the same."""
        texts = self._values.get("texts", [""])[0]
        same = self.get("header") == header_of(texts)
        prefix = "role:"
        roles = {
            name.removeprefix(prefix): values[0]
            for name, values in self._values.items()
            if name.startswith(prefix)
        }
        layout = {"lines": False, "table": True}.get(self.get("layout")) if same else None
        about_table = same and bool(roles) and self.get("layout") == self.get("read as")
        return read_pasted(
            texts,
            table=layout,
            roles=roles if about_table else None,
            accept=same and self.has("accept"),
        )

    @property
    def pastes(self) -> bool:
        """Whether items are pasted, and not those of a pool."""
        return self.get("source") != "pool"

    @property
    def pairs(self) -> bool:
        """Whether pairs of responses were pasted."""
        return any("responses" in item for item in self.pasted.items)

    @cached_property
    def tasks(self) -> list[dict[str, str]]:
        """The questions, by the names of their fields."""
        columns = {name: self._values.get(f"task.{name}", []) for name in TASK_FIELDS}
        count = max(1, len(columns["concept"]))
        return [
            {
                name: values[number].strip() if number < len(values) else ""
                for name, values in columns.items()
            }
            for number in range(count)
        ]

    @property
    def judges(self) -> list[str]:
        """The models that judge, ticked or written."""
        return [*self._values.get("judge", ()), *_lines(self.get("judges"))]

    @property
    def protocol(self) -> str:
        """The name of the protocol; empty for none."""
        return self.get("protocol")

    @property
    def needs_assistant(self) -> bool:
        """Whether a model edits texts or criticises rubrics."""
        return (
            bool(self.protocol)
            or self.get(f"base:{ASSISTED}") not in ("", "raw")
            or self.has(f"vary:{ASSISTED}")
        )

    @property
    def varied(self) -> list[str]:
        """The knobs of which several levels are compared."""
        return [path for path in Design.knobs() if self.has(f"vary:{path}")]

    # --- what the form proposes ------------------------------------------------------------------

    def followed(self, name: str) -> bool:
        """Returns whether a field has what the form proposed before, or nothing."""
        return self.get(name) in ("", self.get(f"proposed:{name}"))

    def propose(self, name: str, value: str) -> None:
        """Sets a field to what the form proposes."""
        self._values[name] = [value, *self._values.get(name, [""])[1:]]
        self.__dict__.pop("tasks", None)

    def propose_name(self, taken: Sequence[str]) -> str:
        """Returns a name for the study after its question, with a number where that is taken."""
        words = re.findall(r"[^\W_]+", self.tasks[0]["concept"].lower())
        base = "-".join(words)[:40].strip("-") or "new-study"
        names = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 3)))
        return next(name for name in names if name not in taken)

    def propose_assistant(self, models: Mapping[str, Mapping[str, Any]]) -> str:
        """Returns a model of the first judge's provider that is no judge; empty without one."""
        judges = self.judges
        provided = models.get(judges[0].partition(":")[0] if judges else "", {})
        ids = (*provided.get("assistants", ()), *provided.get("ids", ()))
        return next((id for id in ids if id not in judges), "")

    def propose_stages(self) -> str:
        """Returns the answers that occur in the table, one per line, from the lowest."""
        stages = self.pasted.stages if self.pastes and not self.pairs else []
        return "\n".join(stages) if len(stages) > 1 else ""

    # --- what is still needed --------------------------------------------------------------------

    def lacking(self) -> dict[str, str]:
        """Returns what each step still lacks, in words; a step that is complete is left out."""
        lacks = {}
        if evidence := self._lacking_evidence():
            lacks["evidence"] = evidence
        if not all(task["concept"] for task in self.tasks):
            lacks["question"] = "a question"
        if not self.judges:
            lacks["judges"] = "a judge"
        return lacks

    def _lacking_evidence(self) -> str:
        if not self.pastes:
            return "" if self.get("pool") else "a pool"
        if self.pasted.error:
            return "a table that can be read"
        if self.pasted.questions:
            return "a look at the columns of the table"
        if not self.pasted.items:
            return "texts"
        needs_country = self.protocol and not self.get("country")
        return "the country that the texts are about" if needs_country else ""

    def missing_key(self, models: Mapping[str, Mapping[str, Any]]) -> str:
        """Says which key a chosen model needs that is not set; empty if none."""
        assistants = [self.get("assistant")] if self.needs_assistant else []
        for id in (*self.judges, *assistants):
            provider = id.partition(":")[0]
            if missing := models.get(provider, {}).get("missing"):
                return (
                    f"{missing} is not set, so {provider} cannot be called. Set it where the lab "
                    "runs, or choose other models."
                )
        return ""

    # --- the file --------------------------------------------------------------------------------

    def text(self) -> str:
        """Returns the study file."""
        if self.by_hand:
            return self._values.get("yaml", [""])[0]
        return "".join(f"{line.text}\n" for line in self.lines())

    def step_of(self, number: int) -> str:
        """Returns the step that a line of the file comes from, by its number; empty if none."""
        lines = [] if self.by_hand else [*self.lines()]
        return lines[number - 1].step if 0 < number <= len(lines) else ""

    def lines(self) -> Iterator[Line]:
        """Yields the lines of the study file."""
        yield Line(f"study: {_word(self.get('study'))}", "review")
        yield Line(f"seed: {_number(self.get('seed'))}", "review")
        yield Line(f"samples: {_number(self.get('samples'))}", "judges")
        yield from self._evidence()
        if self.protocol:
            yield Line(f"protocol: {self.protocol}", "review")
        yield Line("tasks:", "question")
        for task in self.tasks:
            yield Line(f"  - {_map(self._task(task))}", "question")
        yield Line(f"judges: {_list(map(_word, self.judges))}", "judges")
        if self.needs_assistant and self.get("assistant"):
            yield Line(f"assistant: {_word(self.get('assistant'))}", "judges")
        yield from self._design()
        yield from self._budget()

    def _pool(self, task: Mapping[str, str]) -> str:
        return task["evidence"] or ("texts" if self.pastes else self.get("pool"))

    def _evidence(self) -> Iterator[Line]:
        yield Line("evidence:", "evidence")
        for name in dict.fromkeys(map(self._pool, self.tasks)):
            if name != "texts" or not self.pastes:
                yield Line(f"  {_word(name)}: {{pool: {_word(name)}}}", "evidence")
                continue
            yield Line("  texts:", "evidence")
            yield Line("    items:", "evidence")
            for item in self.pasted.items:
                yield Line(f"      - {_item(item)}", "evidence")
            if raters := self.pasted.raters:
                yield Line(f"    labels: {_list(map(_word, raters))}", "evidence")
            if self.protocol and self.get("country"):
                country = _word(self.get("country"))
                yield Line(f"    window: {{country: {country}}}", "evidence")

    def _task(self, task: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        if task["type"]:
            yield "type", task["type"]
        yield "concept", _word(task["concept"])
        yield "evidence", _word(self._pool(task))
        if task["dose"]:
            yield "dose", _number(task["dose"])
        stages = _lines(task["stages"])
        if task["rubric"]:
            yield "rubric", _word(task["rubric"])
        elif self.pastes and self.pairs and self._pool(task) == "texts":
            yield "rubric", _nominal(PAIR_STAGES)
        elif stages:
            yield "rubric", self._rubric(stages)
        if task["value"] or task["source"]:
            truth = {"source": _word(task["source"]), "value": _number(task["value"])}
            yield "truth", _map(truth.items())

    def _rubric(self, stages: Sequence[str]) -> str:
        """Writes answers as a rubric: ordered from the lowest, or options without an order.

        Unless the user says which, answers as they stand in the table are what the table shows.
        """
        as_found = self.pastes and stages == self.pasted.stages
        found = "nominal" if as_found and not self.pasted.ordered else "ordered"
        if (self.get("scale") or found) == "ordered":
            return _list(json.dumps(stage, ensure_ascii=False) for stage in stages)
        split = [stage.partition(":") for stage in stages]
        return _nominal(
            {label.strip(): about.strip() or label.strip() for label, _, about in split}
        )

    def _design(self) -> Iterator[Line]:
        defaults = PROTOCOLS[self.protocol] if self.protocol in PROTOCOLS else {}
        base, vary = [], []
        for path, knob in Design.knobs().items():
            name, write = f"base:{path}", _WRITERS[KINDS.get(knob.type, "text")]
            if self.has(name) and self.get(name) != default_text(knob, defaults):
                base.append(Line(f"  {path}: {write(self.get(name))}", "vary"))
            if self.has(f"vary:{path}"):
                levels = [
                    each for text in self._values.get(f"level:{path}", ()) for each in _lines(text)
                ]
                vary.append(Line(f"  {path}: {_list(map(write, levels))}", "vary"))
        for key, lines in (("design", base), ("vary", vary)):
            if lines:
                yield Line(f"{key}:", "vary")
                yield from lines
        if self.get("sweep") == "sample":
            yield Line(f"sweep: {{sample: {_number(self.get('points'))}}}", "vary")
        elif self.get("sweep") not in ("", "grid"):
            yield Line(f"sweep: {self.get('sweep')}", "vary")
        if self.get("swap") not in ("", "none"):
            yield Line(f"swap: {self.get('swap')}", "vary")
        if not self.has("probe"):
            yield Line("probe: false", "vary")

    def _budget(self) -> Iterator[Line]:
        caps = {
            name.removeprefix("budget."): _number(values[0].strip())
            for name, values in self._values.items()
            if name.startswith("budget.") and values[0].strip()
        }
        if caps:
            yield Line(f"budget: {_map(caps.items())}", "review")
        default = Study.model_fields["tolerance"].default
        if self.get("tolerance") not in ("", str(default)):
            yield Line(f"tolerance: {_number(self.get('tolerance'))}", "review")


def header_of(texts: str) -> str:
    """Returns the first line of pasted texts, by which a table is known again."""
    return texts.lstrip("\n").partition("\n")[0].strip()


def default_text(knob: Knob, defaults: Mapping[str, Any]) -> str:
    """Returns the default of a knob under a protocol, as the form shows it."""
    value = defaults.get(knob.path, knob.default)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _word(text: str) -> str:
    """Writes a text as YAML: bare where that is safe, else as JSON, which YAML reads."""
    if BARE.fullmatch(text) and not RESERVED.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _number(text: str) -> str:
    return text if NUMBER.fullmatch(text) else _word(text)


_WRITERS: Mapping[str, Callable[[str], str]] = {"text": _word, "number": _number, "flag": str}


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _map(entries: Iterable[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{_word(name)}: {value}' for name, value in entries)}}}"


def _item(item: Mapping[str, Any]) -> str:
    """Writes an item: a bare text, or a map of its fields."""
    if item.keys() == {"text"}:
        return json.dumps(item["text"], ensure_ascii=False)
    return _map((name, json.dumps(value, ensure_ascii=False)) for name, value in item.items())


def _nominal(options: Mapping[str, str]) -> str:
    """Writes a rubric of options without an order."""
    stages = (
        _map((("label", json.dumps(label)), ("criteria", json.dumps([about]))))
        for label, about in options.items()
    )
    return _map((("kind", "nominal"), ("stages", _list(stages))))
