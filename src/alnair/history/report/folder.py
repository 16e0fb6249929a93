"""A report in a folder: the whole of it, or what was there before."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from alnair.history import atomic_file
from alnair.history.history import History
from alnair.history.metrics import Metrics
from alnair.history.report.files import FORMAT, render


class NotReportError(Exception):
    """The folder has something else in it; the message says which and what to do."""


def check(folder: Path) -> None:
    """Refuse a place that a report must not take.

    Raises:
        NotReportError: there is something that is no report.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        found = msgspec.json.decode((folder / "summary.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise NotReportError(
            f"{folder}: there is something else than a report: name a folder that does not exist "
            "yet, or remove it"
        )


def write(
    histories: Mapping[str, History],
    folder: Path,
    computed: Mapping[str, Metrics] | None = None,
) -> None:
    """Write a report on scheduling into a folder, in place of an earlier one.

    Args:
        histories: as of `render`.
        folder: where; it is made with its parents.
        computed: as of `render`.

    Raises:
        NotReportError: there is something that is no report.
        OSError: it cannot be written.
        ValueError: a history contradicts itself.
    """
    check(folder)
    write_files(render(histories, computed), folder)


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a report, `summary.json` among them, in place of an earlier one.

    They are made beside it and then renamed, so that nobody finds a part of one.

    Raises:
        NotReportError: there is something that is no report.
        OSError: it cannot be written; its `filename` says what.
    """
    check(folder)
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        new, old = made / "new", made / "old"
        new.mkdir()
        for name, data in files.items():
            with atomic_file.naming(folder):
                (new / name).write_bytes(data)
        check(folder)
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(made)
