"""What is said of an option's number that is none, or out of range: what to write instead.

Typer's own words name its types ("not a valid int range"), and it takes `nan` for a number within
any range, as no comparison with it is true: a command would then wait or loop for ever.
"""

import copy
import math
from collections.abc import Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

#: Typer's names of the types of numbers.
_WHOLE: Final = ("integer", "int", "integer range", "int range")
_REAL: Final = ("float", "float range")


class Verb(TyperCommand):
    """A verb whose numbers are told so."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _tell(self.params)


class Verbs(TyperGroup):
    """A verb with verbs of its own, whose numbers are told so."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _tell(self.params)


def _tell(parameters: Sequence[Any]) -> None:
    """Have the numbers among these parameters refuse in our words what they do not take."""
    for one in parameters:
        if one.type.name in _WHOLE + _REAL:
            one.type = _Number.over(one.type)


class _Number:
    """How a text becomes a number; put over a type of Typer's, which goes on to do it."""

    @staticmethod
    def over(kind: Any) -> Any:
        """Return the type with our words; the one given may be other parameters', too."""
        told = copy.copy(kind)
        told.convert = _Number(kind)
        return told

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __call__(self, value: Any, parameter: Any, context: Any) -> int | float:
        noun = "whole number" if self._kind.name in _WHOLE else "number"
        try:
            number: int | float = (int if self._kind.name in _WHOLE else float)(value)
        except (ValueError, OverflowError):
            wrong = f"{value!r} is no {noun}"
        else:
            if self._is_within(number):
                return number
            wrong = f"{value} is no {noun}" if math.isnan(number) else f"{value} is out of range"
        raise typer.BadParameter(f"{wrong}: write a {noun}{self._range()}", context, parameter)

    def _is_within(self, number: float) -> bool:
        # False of nan where there is a bound; else the verb judges it.
        low, high = self._bounds()
        return (low is None or number >= low) and (high is None or number <= high)

    def _range(self) -> str:
        low, high = self._bounds()
        if low is not None and high is not None:
            return f" from {low:g} to {high:g}"
        if low is not None:
            return f" of {low:g} or more"
        return "" if high is None else f" of {high:g} or less"

    def _bounds(self) -> tuple[float | None, float | None]:
        return getattr(self._kind, "min", None), getattr(self._kind, "max", None)
