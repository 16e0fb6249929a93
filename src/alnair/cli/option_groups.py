"""Groups of options: one parameter of a command that stands for several of them.

A group is a frozen struct whose fields are options (`Annotated[..., typer.Option(...)]`), in the
order of the help. Commands that need the same options share the group.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

import msgspec


class OptionGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Options that belong together; a subclass declares them as its fields."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Make a function whose parameters may be groups a command that Typer understands.

    What Typer sees has every field of a group in the place of the group, and equal help.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[OptionGroup]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and issubclass(hint, OptionGroup):
            groups[parameter.name] = hint
            parameters += _options(hint)
        else:
            parameters.append(
                parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            )

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            fields = {field: given.pop(field) for field in group.__struct_fields__}
            given[name] = group(**fields)
        command(**given)

    signature = inspect.Signature(parameters, return_annotation=None)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _options(group: type[OptionGroup]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.required else field.default,
            annotation=hints[field.name],
        )
        for field in msgspec.structs.fields(group)
    ]
