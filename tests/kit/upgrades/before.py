"""An older Alnair, of the repository's history: its images, its chart, and the values for those."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from alnair.built_from import ROOT
from alnair.local.own_images.images import Built, described

_BUILD = """
import inspect, json, os
from alnair.local import release
from alnair.local.own_images import images
from alnair.local.report import NO_REPORT
built = images.build(os.environ, NO_REPORT)
names = [image.name for image in built]
known = inspect.signature(release.values).parameters
options = {"only": False} if "only" in known else {}
print(json.dumps([[str(image.archive) for image in built], release.values(names, **options)]))
"""


class Before(msgspec.Struct, frozen=True):
    """What an older Alnair is installed by.

    Attributes:
        sources: A checkout of it.
        images: Its images.
        values: Those of its chart for a local cluster.
    """

    sources: Path
    images: list[Built]
    values: dict[str, Any]

    @property
    def chart(self) -> Path:
        """Its chart."""
        return self.sources / "charts" / "alnair"


@contextmanager
def before(revision: str, folder: Path) -> Iterator[Before]:
    """Check a revision out and build its images, by itself; the checkout is gone afterwards.

    Args:
        revision: As git knows it, such as `HEAD~1` or a tag.
        folder: For the checkout; it is not there yet.

    Raises:
        subprocess.CalledProcessError: There is no such revision, or it builds no images.
    """
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run([*git, "add", "--detach", str(folder), revision], check=True)
    try:
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        command = (sys.executable, "-c", _BUILD)
        said = subprocess.run(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        archives, values = json.loads(said.splitlines()[-1])
        yield Before(folder, [described(Path(path)) for path in archives], values)
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)
