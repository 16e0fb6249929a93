"""Calls of NVML: a figure that is not to be had is None, a GPU that is not there is an error."""

from typing import Any, Final

from alnair.node.readings.values import NvmlError

#: NVML's results, which are part of its ABI (nvml.h, nvmlReturn_t).
SUCCESS: Final = 0
NOT_SUPPORTED: Final = 3
NOT_FOUND: Final = 6
INSUFFICIENT_SIZE: Final = 7
FUNCTION_NOT_FOUND: Final = 13
#: No figure of this GPU can be had: uninitialised, no driver, the GPU is lost or needs a reset, the
#: driver was replaced.
_GONE: Final = frozenset({1, 9, 15, 16, 18})


class Calls:
    """The functions of `pynvml`, asked for one GPU.

    Args:
        api: What has them.
        uuid: Of the GPU, for errors.
    """

    def __init__(self, api: Any, uuid: str) -> None:
        self.api = api
        self._uuid = uuid
        #: Functions that this driver lacks, with how many arguments: a newer form is another one.
        self._missing: set[tuple[str, int]] = set()
        # Raised for a function that is older in the driver than the package believes.
        self._errors = (api.NVMLError, getattr(api, "NVMLLibraryMismatchError", api.NVMLError))

    def ask(self, name: str, *arguments: Any, nothing: Any = None, needed: bool = False) -> Any:
        """Call a function; None if this GPU or this driver cannot answer.

        Args:
            name: Of the function.
            arguments: Its own.
            nothing: The answer where there is nothing new.
            needed: A GPU that answers with an error is not there; else only the figure is missing.

        Raises:
            NvmlError: The GPU is not there.
        """
        form = name, len(arguments)
        function = None if form in self._missing else getattr(self.api, name, None)
        if function is None:
            return None
        for again in (True, False):
            try:
                return function(*arguments)
            except self._errors as error:
                value = getattr(error, "value", FUNCTION_NOT_FOUND)
                if value in _GONE or (
                    needed and value not in (NOT_SUPPORTED, NOT_FOUND, FUNCTION_NOT_FOUND)
                ):
                    raise NvmlError(f"{self._uuid}: {error}") from error
            # Between the question for the size and that for the rows there came one more.
            if value != INSUFFICIENT_SIZE or not again:
                break
        if value == FUNCTION_NOT_FOUND:
            self._missing.add(form)
        # A size of no rows is a success, which the package raises as an error with that name.
        return nothing if value in (NOT_FOUND, SUCCESS) else None

    def first(self, *names: str, arguments: tuple[Any, ...]) -> Any:
        """Call the first of these functions that answers."""
        for name in names:
            if (answer := self.ask(name, *arguments)) is not None:
                return answer
        return None
