"""What can be called, read off the API's own description: names, arguments, effects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from judge_gym.axes import Design
from judge_gym.errors import DesignError, unknown

LEFT_OUT = ("health", "session", "events", "suite_tasks", "keep_tasks", "keep_run", "keep_eval")
"""What is of no use to an agent: it knows that it asks and who it is, streams do not end, and
results are posted by the lab that made them."""
UNSAID = ("format", "last-event-id")
"""Arguments that are not an agent's to choose."""
PAYS = "Pays for model calls, up to the budget; simulated judges (sim:...) are free."
FREE = "Free: no model is called."
EFFECTS = {
    "plan": f"{FREE} Changes nothing; say what it would cost before you start anything.",
    "start": f"{PAYS} Returns at once; ask `status` until `going_on` is false.",
    "resume": f"{PAYS} Returns at once; ask `status` until `going_on` is false.",
    "retry": f"{PAYS} Only what failed is asked again. Returns at once; ask `status`.",
    "pause": f"{FREE} `resume` goes on; nothing that was paid for is lost.",
    "cancel": f"{FREE} For good: only `start` goes on; nothing that was paid for is lost.",
    "retune": f"{FREE} A higher budget lets runs that go on pay more.",
    "cleanup": f"{FREE} Deletes samples and probes; with `ledger`, paid answers too: ask first.",
    "drop_evidence": f"{FREE} `undo` puts items back.",
    "reparse": f"{FREE} With `write` it changes verdicts that are read otherwise today.",
    "collect": "Pays where Firecrawl is asked, which charges for searches; feeds and GDELT are "
    "free. Asks servers elsewhere and adds what they have.",
    "create_window": f"{FREE} Adds a window, or finds it.",
    "load_evidence": f"{FREE} Adds texts.",
    "load_benchmark_evidence": f"{FREE} Adds items with known answers.",
    "freeze_pool": f"{FREE} A frozen pool stays as it is.",
    "import_labels": f"{FREE} Adds people's stages; with `replace`, changes them.",
    "create_experiment": f"{FREE} Adds an experiment; `start` runs it.",
    "load_benchmark_rubric": f"{FREE} Gives a benchmark its rubric.",
}
"""What each function that is not a mere reading costs and does."""
PAYING = tuple(name for name, effect in EFFECTS.items() if effect.startswith("Pays"))
DESTRUCTIVE = ("cancel", "cleanup", "drop_evidence", "import_labels", "reparse")
KNOBS = ("config", "overrides")
"""Arguments that hold knobs by path."""


@dataclass(frozen=True, slots=True)
class Function:
    """One resource of the API, by the name of the verb."""

    name: str
    says: str
    method: str
    path: str
    part: str
    """Of the API: evidence, experiments, runs, inspection, reference."""
    places: Mapping[str, str]
    """Where each argument goes: path, query or body."""
    schema: Mapping[str, Any]
    """JSON Schema of the arguments."""

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET" or self.name == "plan"

    @property
    def effect(self) -> str:
        """What it costs and does, in words."""
        untold = f"{FREE} Changes nothing." if self.reads else "It may change the lab, and cost."
        return EFFECTS.get(self.name, untold)

    def request(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The request of a call, as an HTTP client takes it."""
        for name in arguments:
            if name not in self.places:
                known = list(self.places)
                raise DesignError(unknown("argument", name, known, self.name), choices=known)
        given: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "body": {}}
        for name, value in arguments.items():
            if value is not None:
                given[self.places[name]][name] = value
        url = self.path
        for name, place in self.places.items():
            if place == "path":
                if not str(given["path"].get(name, "")):
                    raise DesignError(f"{self.name} needs {name}")
                url = url.replace(f"{{{name}}}", quote(str(given["path"][name]), safe=""))
        request = {"method": self.method, "url": url, "params": given["query"]}
        return request if self.method != "POST" else {**request, "json": given["body"]}


def functions(description: Mapping[str, Any]) -> dict[str, Function]:
    """The functions that an OpenAPI description lists, by name."""
    schemas = description["components"]["schemas"]
    found = [
        _function(method.upper(), path, operation, schemas)
        for path, item in description["paths"].items()
        for method, operation in item.items()
    ]
    return {one.name: one for one in found if one.name not in LEFT_OUT}


def _function(
    method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]
) -> Function:
    places, properties, required = {}, {}, []
    for one in operation.get("parameters", ()):
        if one["name"] not in UNSAID:
            places[one["name"]] = one["in"]
            described = {"description": one["description"]} if "description" in one else {}
            properties[one["name"]] = {**one["schema"], **described}
            required += [one["name"]] * bool(one.get("required"))
    if "requestBody" in operation:
        [kind] = operation["requestBody"]["content"].values()
        body = schemas[_named(kind["schema"])]
        places |= dict.fromkeys(body["properties"], "body")
        properties |= body["properties"]
        required += body.get("required", [])
    for name in KNOBS:
        if name in properties:
            properties[name] = _knobs(name)
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    defined: dict[str, Any] = {}
    schema = _plain(schema, schemas, defined)
    if defined:
        schema["$defs"] = defined
    name, says = operation["operationId"], " ".join(operation["description"].split())
    return Function(name, says, method, path, operation["tags"][0], places, schema)


def _knobs(argument: str) -> dict[str, Any]:
    """The schema of knobs by path: each with its levels where they are told, else by name."""
    knobs = Design.knobs()
    if argument == "overrides":
        names = [path for path in knobs if path != "judge.model"]
        said = "Knobs by path, over those of the study's text; create_experiment tells their levels"
        return {"type": "object", "description": said, "propertyNames": {"enum": names}}
    properties: dict[str, Any] = {}
    for path, knob in knobs.items():
        if path == "judge.model":  # which has an argument of its own
            continue
        said = f"{knob.question} Default: {knob.default!r}."
        if knob.open:
            properties[path] = {"description": f"{said} Takes {knob.choices}."}
        else:
            properties[path] = {"enum": list(knob.levels), "description": said}
    said = "Knobs by path, those that are not at their default; the blueprint's names work too."
    return {"type": "object", "description": said, "properties": properties}


def _plain(part: Any, schemas: Mapping[str, Any], defined: dict[str, Any]) -> Any:
    """A schema without its titles, its references pointing into itself."""
    if isinstance(part, list):
        return [_plain(one, schemas, defined) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        name = _named(part)
        if name not in defined:
            defined[name] = {}
            defined[name] = _plain(schemas[name], schemas, defined)
        return {"$ref": f"#/$defs/{name}"}
    return {
        key: _plain(value, schemas, defined)
        for key, value in part.items()
        if not (key == "title" and isinstance(value, str))
    }


def _named(reference: Mapping[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
