"""Case files as they lie in a folder: `README.md` describes the format."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

Object = dict[str, Any]


class Case(msgspec.Struct, frozen=True):
    """One case; objects are as the API server has them."""

    id: str
    want: Object
    name: str = ""
    test: str = ""
    origin: str = ""
    notes: str = ""
    default_gates: bool = True
    #: Feature gates that the expectation holds under, when they are not the default ones: by name
    #: whether they are on, or the names of those that are.
    features: dict[str, bool] | list[str] = {}
    args: Object = {}
    pod: Object | None = None
    pods: list[Object] = []
    nodes: list[Object] = []
    existing_pods: list[Object] = []
    extra: Object = {}
    #: False: reasons carry an error message of Go, only codes are compared.
    reasons_exact: bool = True

    @property
    def gates(self) -> dict[str, bool]:
        """The gates that are not at their default, by name."""
        named = self.features
        return named if isinstance(named, dict) else dict.fromkeys(named, True)


class Document(msgspec.Struct, frozen=True):
    """A case file."""

    plugin: str
    kind: str
    cases: list[Case]


class CaseFileError(Exception):
    """A folder or file that cannot be read as cases; the text names it and says what to do."""


_decoder = msgspec.json.Decoder(Document)


def read(folder: Path) -> Iterator[tuple[str, Document]]:
    """Yield every case file's name and content, sorted by name.

    Raises:
        CaseFileError: the folder has no case files, or one of them cannot be read.
    """
    if not folder.is_dir():
        raise CaseFileError(f"{folder}: no such folder; give the folder that has the case files")
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise CaseFileError(
            f"{folder}: no case files; they are called PLUGIN_KIND.json, like nodename_filter.json"
        )
    for path in paths:
        try:
            yield path.name, _decoder.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise CaseFileError(
                f"{path}: {error}; mend the file or take it out of the folder "
                "(the format is described in tests/conformance/README.md)"
            ) from error
