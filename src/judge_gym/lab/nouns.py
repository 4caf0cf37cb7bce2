"""The parts of a lab by name, what their verbs take and return, and what else is public on them.

The annotated signature of a verb's method is its schema: its arguments, with their limits and
descriptions, are the request, and its result is the response.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, create_model
from pydantic.fields import FieldInfo

from judge_gym.errors import DesignError, unknown
from judge_gym.lab.admin import Admin
from judge_gym.lab.evidence import EvidenceLibrary
from judge_gym.lab.experiments import Experiments
from judge_gym.lab.failures import Failures
from judge_gym.lab.labels import Labels
from judge_gym.lab.reports import Reports
from judge_gym.lab.runs import Runs
from judge_gym.lab.suites import Suites
from judge_gym.records.requests import Local, Sent, VerbRequest
from judge_gym.verbs import PAGING, Verb

NOUNS: Mapping[str, type] = {
    "evidence": EvidenceLibrary,
    "experiments": Experiments,
    "runs": Runs,
    "labels": Labels,
    "reports": Reports,
    "suites": Suites,
    "failures": Failures,
    "admin": Admin,
}
"""The parts of a lab, by the names under which it has them."""
BLUEPRINT: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "experiment_tag": ("tag", "target"),
        "experiment_tags": ("targets",),
        "swap_rubric_from": ("rivals",),
    }
)
"""The blueprint's arguments by what verbs call them, the first that a verb has; all of its names
may be written in camel case: `experimentTag`, `startDate`."""


def method(verb: Verb) -> Any:
    """Finds the method that implements a verb."""
    return getattr(NOUNS[verb.noun], verb.method)


LOCAL: Mapping[str, str] = {
    # A verb, for those who are where the lab's files and models are.
    "evidence.collect_missing": "evidence.collect of a study file, with progress",
    "evidence.collect_pool": "evidence.collect, with progress",
    "evidence.collect_study": "evidence.collect of a study file, with progress",
    "evidence.load_benchmark_files": "evidence.load_benchmark of files",
    "evidence.load_files": "evidence.load of files",
    "experiments.export": "experiments.export_file to any path",
    "experiments.exported_samples": "experiments.export_csv as a data frame",
    "experiments.load_rubric_file": "experiments.load_rubric of a file",
    "experiments.samples": "experiments.list_samples of several as a data frame",
    "failures.analyze": "failures.start in this process",
    "labels.import_file": "labels.add of a file",
    "reports.build": "reports.show with its figures, to be written anywhere",
    "runs.estimate": "runs.plan with its calls, to be shown beside other numbers",
    "runs.run": "runs.start in this process",
    "runs.run_evidence": "runs.start_evidence in this process",
    "runs.run_resumed": "runs.resume in this process",
    "suites.estimate": "suites.plan with its calls",
    "suites.resume": "runs.resume of a suite run in this process",
    "suites.run": "suites.start in this process",
    "suites.run_each": "suites.start of several models in this process",
    # What the command line alone offers.
    "admin.export_ledger": "writes a file of calls",
    "admin.import_ledger": "reads a file of calls",
    "reports.suggest_swaps": "ranks pairs of judges for swaps",
    "suites.ablate": "runs a suite with parts of its guidelines left out",
    "suites.check": "checks the answers of a suite's files",
    "suites.check_model": "tries a model on a few evals",
    "suites.find": "loads the files of a suite",
    "suites.limited": "holds a budget during scheduled runs",
    "suites.list": "loads the files of all suites",
    "suites.schedule": "lists what is due, of models that a file names",
    "admin.check_model": "makes one small call to a model, as `models check` does",
    # What pages, other nouns and a client that posts runs read of suites.
    "failures.perform": "the work of a queued analysis",
    "suites.budget": "the budget of a suite",
    "suites.files": "the files of a run, to be downloaded",
    "suites.find_result": "one result of a run",
    "suites.find_run": "a run by its number or the beginning of its key",
    "suites.find_task": "the files behind an eval",
    "suites.report": "the report behind suites.show_run",
    "suites.reports": "the reports behind suites.list_runs",
    "suites.results": "the results of a run",
}
"""Every public method of a noun that is no verb and no page of one, and what it is for.

A method that is neither is private, or stands in a part of the lab that is no noun: `studies`,
`workers`, `pages`, `benchmarks`, `serving`, `tokens`.
"""


def describe(verb: Verb) -> str:
    """Reads the first line of the docstring of a verb's method."""
    return str(method(verb).__doc__).partition("\n")[0]


def response_type(verb: Verb) -> Any:
    """Reads the annotated result of a verb's method."""
    return get_type_hints(method(verb), include_extras=True)["return"]


@cache
def request_model(verb: Verb) -> type[BaseModel]:
    """Builds the model of a verb's arguments, which refuses unknown ones."""
    return _model(verb, dict(_arguments(verb)))


@cache
def body_model(verb: Verb) -> type[BaseModel] | None:
    """Builds the model of the arguments in a verb's HTTP body. None means that it has none."""
    if verb.http_method != "POST":
        return None
    model = request_model(verb)
    names = [name for name in model.model_fields if name not in verb.path_arguments]
    if len(names) == len(model.model_fields):
        return model
    return _model(verb, {name: _declaration(model.model_fields[name]) for name in names})


def argument_names(verb: Verb) -> tuple[str, ...]:
    """Names all arguments of a verb over HTTP and for agents."""
    return (*request_model(verb).model_fields, *(PAGING if verb.paged else ()))


def canonical(verb: Verb, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Renames arguments by the blueprint's names to ours.

    Raises:
        DesignError: an argument is unknown, or is given by two names with different values.
    """
    names = argument_names(verb)
    sent_as: dict[str, str] = {}
    values: dict[str, Any] = {}
    for alias, value in arguments.items():
        name = alias if alias in names else _name_of(alias, names)
        if name not in names:
            raise DesignError(unknown("argument", alias, names, verb.tool), choices=names)
        if name == "rivals" and isinstance(value, str):
            value = [value]
        if name in values and values[name] != value:
            raise DesignError(
                f"{sent_as[name]} and {alias} are the same argument of {verb.tool}, with different "
                f"values: {values[name]!r} and {value!r}"
            )
        sent_as[name], values[name] = alias, value
    return values


def _name_of(alias: str, names: Sequence[str]) -> str:
    """Finds the argument of a verb that the blueprint names differently."""
    snake = re.sub(r"(?<=[a-z])[A-Z]", lambda capital: f"_{capital.group()}", alias).lower()
    candidates = (snake, *BLUEPRINT.get(snake, ()))
    return next((name for name in candidates if name in names), alias)


# --- signatures ----------------------------------------------------------------------------------


def _model(verb: Verb, fields: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    name = "".join(part.title() for part in verb.tool.split("_"))
    definitions: dict[str, Any] = {**fields}
    model: type[BaseModel] = create_model(f"{name}Request", __base__=VerbRequest, **definitions)
    return model


def _declaration(field: FieldInfo) -> tuple[Any, Any]:
    """Declares a field as `create_model` takes it."""
    return field.annotation, field


def _arguments(verb: Verb) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yields the arguments of a verb's method that can be sent, with their types and defaults."""
    hints = get_type_hints(method(verb), include_extras=True)
    for name, parameter in inspect.signature(method(verb)).parameters.items():
        if name == "self":
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            [options] = get_args(hints[name])  # Unpack[a TypedDict], whose fields have defaults
            for option, hint in get_type_hints(options, include_extras=True).items():
                if not _marks(hint, Local):
                    field = FieldInfo.from_annotation(hint)
                    yield option, (_sent_type(hint), None if field.is_required() else field.default)
        elif not _marks(hints[name], Local):
            required = parameter.default is parameter.empty or name in verb.path_arguments
            yield name, (_sent_type(hints[name]), ... if required else parameter.default)


def _sent_type(hint: Any) -> Any:
    """The type of an argument in a request."""
    sent = _marks(hint, Sent)
    if not sent:
        return hint
    marks = [mark for mark in get_args(hint)[1:] if mark not in sent]
    if not marks:
        return sent[0].type
    return Annotated[(sent[0].type, *marks)]


def _marks(hint: Any, kind: type) -> list[Any]:
    """Finds the marks of a kind on an annotated type."""
    if get_origin(hint) is not Annotated:
        return []
    return [mark for mark in get_args(hint)[1:] if isinstance(mark, kind)]
