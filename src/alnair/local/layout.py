"""Where a cluster lives: one folder per cluster name, private to the user."""

import contextlib
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from alnair.local.errors import InvalidArgumentError

DEFAULT_NAME = "alnair"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


def clusters_folder(environ: Mapping[str, str]) -> Path:
    """The folder of all clusters: ALNAIR_STATE, or `alnair/clusters` in the user's state folder."""
    if given := environ.get("ALNAIR_STATE"):
        return Path(given).expanduser().absolute()
    base = environ.get("XDG_STATE_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "state"
    return root / "alnair" / "clusters"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """The folder of built binaries: ALNAIR_CACHE, or `alnair` in the user's cache folder."""
    if given := environ.get("ALNAIR_CACHE"):
        return Path(given).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "alnair"


@dataclass(frozen=True)
class Layout:
    """The files of one cluster."""

    root: Path
    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidArgumentError(
                f"cluster name {self.name!r} is not valid: use 1 to 40 lower-case letters,"
                " digits and dashes, starting and ending with a letter or digit"
            )

    @property
    def folder(self) -> Path:
        """The folder of this cluster."""
        return self.root / self.name

    @property
    def lock(self) -> Path:
        """Held by whoever changes the cluster; beside the folder, which `down` removes."""
        return self.root / f".{self.name}.lock"

    @property
    def state(self) -> Path:
        """The remembered ports and options."""
        return self.folder / "state.json"

    @property
    def pki(self) -> Path:
        """The CA, certificates and keys."""
        return self.folder / "pki"

    @property
    def etcd_data(self) -> Path:
        """The data folder of etcd: everything that the cluster knows."""
        return self.folder / "etcd"

    @property
    def logs(self) -> Path:
        """The folder of the logs, a file per component."""
        return self.folder / "logs"

    def log(self, component: str) -> Path:
        """The log of a component."""
        return self.logs / f"{component}.log"

    def kubeconfig(self, identity: str) -> Path:
        """The kubeconfig of an identity."""
        return self.folder / f"{identity}.kubeconfig"


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes a file so that a reader, or a crash at any moment, sees the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
