"""The grammar of an axis group: a frozen model whose every field describes itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from judge_gym.records import StageName

Alias = str | Mapping[Any, Mapping[str, Any]]
"""A blueprint name: the knob that it means, or for each of its values the knobs that it sets."""


def knob(
    default: Any = ...,
    *,
    question: str,
    cite: str = "",
    examples: tuple[Any, ...] = (),
    **limits: Any,
) -> Any:
    """A field of an axis group.

    Args:
        default: the level that reproduces the behaviour from before the knob existed.
        question: the research question that the knob answers, in one line.
        cite: the literature behind it.
        examples: levels to show and to test where the type does not list them.
        limits: pydantic's constraints (`ge`, `le`, `min_length`).
    """
    return Field(
        default,
        description=question,
        examples=list(examples),
        json_schema_extra={"cite": cite},
        **limits,
    )


class Axes(BaseModel):
    """A group of knobs. Frozen, hashable, and refuses what it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    aliases: ClassVar[Mapping[str, Alias]] = {}
    """The blueprint's names for knobs of this group."""

    def remarks(self, stage: StageName) -> tuple[str, ...]:
        """Sentences that this group's levels add to the instructions of a stage."""
        return ()


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob as flags, schema, columns, docs and errors see it."""

    path: str
    type: str
    default: Any
    """None where a study must give it, or where it may stay unset."""
    levels: tuple[Any, ...]
    """Every level of a closed knob; of an open one, its examples."""
    open: bool
    question: str
    cite: str
    limits: str

    @property
    def choices(self) -> str:
        """What may be chosen, in words."""
        if not self.open:
            return " or ".join(
                filter(None, [", ".join(map(repr, self.levels[:-1])), repr(self.levels[-1])])
            )
        return f"{self.type}{self.limits}"


def knobs_of(model: type[BaseModel], prefix: str = "") -> Iterator[Knob]:
    """Every knob below a group, in the order of declaration."""
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
    extra = field.json_schema_extra
    return Knob(
        path=path,
        type=_words(annotation),
        default=default,
        levels=levels,
        open=open_,
        question=field.description or "",
        cite=str(extra.get("cite", "")) if isinstance(extra, dict) else "",
        limits=limits,
    )


def _words(annotation: Any) -> str:
    """A type in the user's words."""
    names = {int: "an integer", float: "a number", str: "text", bool: "true or false"}
    kinds = [names[kind] for kind in (annotation, *get_args(annotation)) if kind in names]
    return kinds[0] if kinds else "text"
