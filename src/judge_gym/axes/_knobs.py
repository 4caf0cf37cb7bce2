"""The base of every axis group: a frozen model whose fields describe themselves."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from judge_gym.records import StageName

Alias = str | Mapping[Any, Mapping[str, Any]]
"""A blueprint name: the knob that it means, or for each of its values the knobs that it sets."""
TaskTrait = Literal["pairs", "single texts", "no named parts", "given rubric"]
"""What a task is: pairs of responses or single texts, whether its items have named parts (such as
input and output), and whether its rubric is given."""
TASK = "task"
"""The name of conditions on the task."""
ANY = "any"
"""In conditions on another knob: every level but the unset one."""
NONE = "none"
"""How a study writes the unset level of a knob whose levels are names."""
Conditions = Mapping[str, tuple[Any, ...]]
"""By the path of another knob, levels of it; by `task`, traits of a task. Any of them suffices."""
TEMPLATE = "prompt.template"
OWN_PROMPT: Conditions = {TEMPLATE: (ANY,)}
"""When a verdict is asked for in the study's own words, and read as these say."""


def knob(
    default: Any = ...,
    *,
    question: str,
    cite: str = "",
    examples: tuple[Any, ...] = (),
    inactive: Conditions | None = None,
    **limits: Any,
) -> Any:
    """Declares a field of an axis group.

    Args:
        default: the level of a design that does not name the knob, and of designs from before the
            knob existed, so it does what was done without it. Digests leave it out.
        question: the research question that the knob answers, in one line.
        cite: the literature behind it.
        examples: levels to show and to test if the type does not list them.
        inactive: when the knob cannot act: the levels of other knobs, or the traits of a task,
            under which it changes nothing. Designs have its default there.
        limits: pydantic's constraints (`ge`, `le`, `min_length`).
    """
    stated: dict[str, Any] = {}
    if inactive:
        stated["inactive"] = {name: list(levels) for name, levels in inactive.items()}
    return Field(
        default,
        description=question,
        examples=list(examples),
        json_schema_extra={"cite": cite, **stated},
        **limits,
    )


class Axes(BaseModel):
    """A group of knobs: frozen, hashable, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    aliases: ClassVar[Mapping[str, Alias]] = {}
    """The blueprint's names for knobs of this group."""

    def remarks(self, stage: StageName) -> tuple[str, ...]:
        """Lists the sentences that this group's levels add to a stage's instructions."""
        return ()


@dataclass(frozen=True, slots=True)
class Knob:
    """The description of a knob, from which flags, schema, columns, docs and errors derive."""

    path: str
    type: str
    default: Any
    """None if a study must give it, or if it may stay unset."""
    levels: tuple[Any, ...]
    """All levels of a closed knob; examples of an open one."""
    open: bool
    question: str
    cite: str
    limits: str
    inactive: Conditions
    """When it cannot act; empty if it always can."""

    def is_inactive(self, levels: Mapping[str, Any], task: Collection[TaskTrait] = ()) -> bool:
        """Whether the knob cannot act in a design, on a task with these traits.

        Args:
            levels: the levels of the other knobs by path; an unknown one meets no condition. Unset
                is None in a design, and empty or NaN in a frame.
            task: what is known of the task; nothing, if two designs of one task are compared.
        """
        return any(
            any(trait in choices for trait in task)
            if name == TASK
            else name in levels and _is_among(levels[name], choices)
            for name, choices in self.inactive.items()
        )

    @property
    def choices(self) -> str:
        """The allowed levels, in words."""
        if not self.open:
            return " or ".join(
                filter(None, [", ".join(map(repr, self.levels[:-1])), repr(self.levels[-1])])
            )
        return f"{self.type}{self.limits}"


def _is_among(level: Any, choices: Collection[Any]) -> bool:
    unset = level is None or level in ("", NONE) or level != level
    return level in choices or (None in choices if unset else ANY in choices)


def knobs_of(model: type[BaseModel], prefix: str = "") -> Iterator[Knob]:
    """Yields every knob of a group and its subgroups, in the order of declaration."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from knobs_of(field.annotation, f"{path}.")
        else:
            yield _knob(path, field)


def _knob(path: str, field: FieldInfo) -> Knob:
    annotation = field.annotation
    if get_origin(annotation) is Literal:
        levels, open_ = get_args(annotation), False
    elif annotation is bool:
        levels, open_ = (True, False), False
    else:
        levels, open_ = tuple(field.examples or ()), True
    default = None if field.default is PydanticUndefined else field.default
    if not open_:  # the default comes first, in tables as in prompts
        levels = (default, *(level for level in levels if level != default))
    bounds = {
        name: getattr(m, name) for m in field.metadata for name in ("ge", "le") if hasattr(m, name)
    }
    forms = {"ge": f" of at least {bounds.get('ge')}", "le": f" of at most {bounds.get('le')}"}
    both = f" from {bounds.get('ge')} to {bounds.get('le')}"
    limits = both if len(bounds) == 2 else next((forms[name] for name in bounds), "")
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return Knob(
        path=path,
        type=_words(annotation),
        default=default,
        levels=levels,
        open=open_,
        question=field.description or "",
        cite=str(extra.get("cite", "")),
        limits=limits,
        inactive=_inactive(extra),
    )


def _inactive(extra: Mapping[str, Any]) -> Conditions:
    declared: Mapping[str, list[Any]] = extra.get("inactive", {})
    return {name: tuple(levels) for name, levels in declared.items()}


def _words(annotation: Any) -> str:
    """Names a type for users."""
    names = {int: "an integer", float: "a number", str: "text", bool: "true or false"}
    kinds = [names[kind] for kind in (annotation, *get_args(annotation)) if kind in names]
    return kinds[0] if kinds else "text"
