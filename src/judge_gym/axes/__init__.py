"""The axes of the design space. A `Design` has one value per knob.

Groups are listed in pipeline order. A new knob is a field in its group's file; a new group is a
file and a line in `Design`.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from judge_gym.axes._knobs import ANY, NONE, TASK, TEMPLATE, Alias, Axes, Knob, TaskTrait, knobs_of
from judge_gym.axes.evidence import EvidenceAxes
from judge_gym.axes.foreign import FOREIGN, RECORDED, ForeignAxes
from judge_gym.axes.judge import JudgeAxes
from judge_gym.axes.presentation import PresentationAxes
from judge_gym.axes.probe import ProbeAxes
from judge_gym.axes.prompt import PromptAxes, template_digest, template_file, template_level
from judge_gym.axes.protocols import BLUEPRINT_KNOBS, CONTESTED, PROTOCOLS, ProtocolName
from judge_gym.axes.rubric import RubricAxes
from judge_gym.axes.verdict import VerdictAxes
from judge_gym.errors import DesignError, unknown
from judge_gym.records import StageName

__all__ = [
    "ANY",
    "BLUEPRINT_KNOBS",
    "CONTESTED",
    "FOREIGN",
    "NONE",
    "PROTOCOLS",
    "RECORDED",
    "TASK",
    "TEMPLATE",
    "Axes",
    "Design",
    "Knob",
    "ProtocolName",
    "TaskTrait",
    "complete",
    "defaults",
    "expand",
    "find_knob",
    "inactive_knobs",
    "template_digest",
    "template_file",
    "template_level",
]


class Design(Axes):
    """One judge as an instrument: a value for every knob."""

    judge: JudgeAxes
    evidence: EvidenceAxes = EvidenceAxes()
    rubric: RubricAxes = RubricAxes()
    presentation: PresentationAxes = PresentationAxes()
    verdict: VerdictAxes = VerdictAxes()
    probe: ProbeAxes = ProbeAxes()
    prompt: PromptAxes = PromptAxes()
    foreign: ForeignAxes = ForeignAxes()

    @classmethod
    @cache
    def knobs(cls) -> Mapping[str, Knob]:
        """Maps every knob's path to the knob."""
        return {knob.path: knob for knob in knobs_of(cls)}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Design":
        """Builds the design with these knobs, given by path, and defaults for the others.

        >>> Design.of({"judge.model": "sim:strict", "verdict.method": "subset"}).verdict.method
        'subset'
        """
        tree: dict[str, Any] = {}
        for path, value in values.items():
            group, dot, name = path.partition(".")
            if group + dot == FOREIGN:
                tree.setdefault(group, {})[name] = value
                continue
            *groups, name = find_knob(path).path.split(".")
            node = tree
            for group in groups:
                node = node.setdefault(group, {})
            node[name] = value
        try:
            return cls.model_validate(tree)
        except ValidationError as error:
            raise _refusal(error) from error

    def values(self) -> dict[str, Any]:
        """Maps every knob's path to its value."""
        return dict(_leaves(self))

    def chosen(self, protocol: str = "") -> dict[str, Any]:
        """Selects the knobs that are not at their default under a protocol."""
        knobs, replaced = self._own_knobs(), PROTOCOLS[protocol]
        return {
            path: value
            for path, value in self.values().items()
            if value != replaced.get(path, knobs[path].default)
        }

    def identity(self) -> dict[str, Any]:
        """Selects the knobs that a digest covers, which a new knob does not change."""
        levels = self.chosen()
        if TEMPLATE in levels:  # a renamed file is the same prompt
            levels[TEMPLATE] = template_digest(self.prompt.template)
        return levels

    def _own_knobs(self) -> Mapping[str, Knob]:
        """Maps paths to knobs, with those that were recorded of this judge."""
        recorded = self.foreign.model_extra or {}
        return {
            **self.knobs(),
            **{path: foreign_knob(path) for path in map(FOREIGN.__add__, recorded)},
        }

    def replace(self, values: Mapping[str, Any]) -> "Design":
        """Copies this design with other values for some knobs."""
        return Design.of({**self.values(), **values})

    def notes(self, stage: StageName) -> tuple[str, ...]:
        """Collects the sentences that levels of all groups add to a stage's instructions."""
        groups = (getattr(self, name) for name in type(self).model_fields)
        return tuple(remark for group in groups for remark in group.remarks(stage))


def defaults(protocol: str = "") -> dict[str, Any]:
    """The default of every knob under a protocol, of which "" is none.

    >>> defaults()["evidence.view"], defaults("contested-concepts")["evidence.view"]
    ('raw', 'neutralized')
    """
    usual = {path: knob.default for path, knob in Design.knobs().items()}
    return {**usual, **PROTOCOLS[protocol]}


def complete(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the default of every knob that a stored design lacks.

    >>> complete({"judge.model": "sim:strict", "rubric.scale": 5})["verdict.method"]
    'single'
    """
    recorded = {path: level for path, level in stored.items() if path.startswith(FOREIGN)}
    values = {path: stored.get(path, knob.default) for path, knob in Design.knobs().items()}
    return values | recorded


def find_knob(path: str) -> Knob:
    """Finds the knob of a path, or refuses an unknown one with the choices."""
    knobs = Design.knobs()
    if path in knobs:
        return knobs[path]
    if path.startswith(FOREIGN):
        return foreign_knob(path)
    group = path.rpartition(".")[0]
    siblings = [name for name in knobs if group and name.startswith(f"{group}.")]
    choices = siblings or sorted({name.split(".")[0] + ".*" for name in knobs})
    raise DesignError(unknown("knob", path, choices), choices=choices)


def foreign_knob(path: str) -> Knob:
    """Builds the knob of a choice that another tool or paper made."""
    return Knob(
        path=path,
        type="text",
        default=None,
        levels=(),
        open=True,
        question=f"Does {path.removeprefix(FOREIGN)}, as it was recorded, change the verdict?",
        cite="",
        limits="",
        inactive={},
    )


def inactive_knobs(levels: Mapping[str, Any], task: Collection[TaskTrait] = ()) -> set[str]:
    """Lists the knobs that cannot act under these levels, on a task with these traits.

    >>> "rubric.critic" in inactive_knobs({"rubric.author": "provided"})
    True
    >>> inactive_knobs({}, ["pairs"]) & {"evidence.view", "verdict.method"}
    {'evidence.view'}
    """
    return {path for path, knob in Design.knobs().items() if knob.is_inactive(levels, task)}


@cache
def aliases() -> Mapping[str, Alias]:
    """Collects the blueprint's names for knobs, from every group."""
    groups = (field.annotation for field in Design.model_fields.values())
    return {
        name: alias
        for group in groups
        if isinstance(group, type) and issubclass(group, Axes)
        for name, alias in group.aliases.items()
    }


def expand(name: str, value: Any) -> dict[str, Any]:
    """Resolves one entry of a design to the knobs that it sets, by path.

    An entry is a path, a group or set of slots with a mapping, or a name of the blueprint.

    >>> expand("scoringMethod", "freeform-suffix-subset")
    {'verdict.method': 'subset', 'verdict.output': 'suffix'}
    >>> expand("prompt.slots", {"scorer.persona": "a nurse"})
    {'prompt.slots.scorer.persona': 'a nurse'}
    """
    alias = aliases().get(name)
    if isinstance(alias, str):
        return {alias: value}
    if alias is not None:
        for level, knobs in alias.items():
            if level == value and type(level) is type(value):
                return dict(knobs)
        levels = [str(level).lower() if isinstance(level, bool) else str(level) for level in alias]
        raise DesignError(unknown("level", value, levels, name), choices=levels)
    inner = any(path.startswith(f"{name}.") for path in Design.knobs())
    if inner and isinstance(value, Mapping):
        return {
            path: leaf
            for key, item in value.items()
            for path, leaf in expand(f"{name}.{key}", item).items()
        }
    if name.startswith(FOREIGN):
        raise DesignError(f"{name} was recorded elsewhere; no judge can be asked with it")
    return {find_knob(name).path: value}


def _leaves(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
    for name, value in (model.__pydantic_extra__ or {}).items():
        yield f"{prefix}{name}", value


def _refusal(invalid: ValidationError) -> DesignError:
    """Words pydantic's first error in our form: what, value, choices."""
    error = invalid.errors()[0]
    path = ".".join(str(part) for part in error["loc"])
    if path not in Design.knobs():  # a group is missing: the judge
        missing = next(p for p in Design.knobs() if p.startswith(path))
        return DesignError(f"{missing} is not given; name a model such as 'sim:balanced'")
    knob = Design.knobs()[path]
    if error["type"] == "missing":
        return DesignError(f"{path} is not given; it takes {knob.choices}")
    if not knob.open:
        levels = [str(level).lower() if isinstance(level, bool) else level for level in knob.levels]
        return DesignError(unknown("level", error["input"], levels, path), choices=map(str, levels))
    takes = error["ctx"]["error"] if error["type"] == "value_error" else knob.choices
    return DesignError(f"{path} cannot be {error['input']!r}; it takes {takes}")
