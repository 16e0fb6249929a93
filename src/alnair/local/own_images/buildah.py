"""Calls of buildah, with a storage of our own: the machine's other images are not touched.

Each call has mounts and settings of its own. Otherwise the storage would stay mounted when buildah
has ended, and notes of it would stay in /var/lib and /etc/cni.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alnair.local.errors import LocalClusterError

_NEVER: Final = ("--isolation=chroot", "--network=host", "--pull=never", "--identity-label=false")
_HIDE = 'mount -t tmpfs alnair /var/lib; exec "$@"'


@dataclass(frozen=True)
class Buildah:
    """A storage of images, and what writes to it.

    Attributes:
        folder: Of the storage.
        environment: Of all calls.
    """

    folder: Path
    environment: Mapping[str, str]

    def build(
        self,
        context: Path,
        name: str,
        *,
        file: Path,
        platform: str,
        time: int,
        target: str = "",
        arguments: Mapping[str, str] | None = None,
        mounts: Mapping[Path, str] | None = None,
    ) -> None:
        """Builds an image.

        Args:
            context: The folder whose files it may copy.
            name: Of the image, with a tag.
            file: The Containerfile.
            platform: As in `linux/arm64`.
            time: Of all files and of the image, in seconds since 1970.
            target: The stage; "" is the last one.
            arguments: Values of the Containerfile's ARGs.
            mounts: Folders to be seen in RUN, and where; not written to.

        Raises:
            LocalClusterError: It failed; the message has what buildah said.
        """
        options = [f"--file={file}", f"--tag={name}", f"--platform={platform}"]
        options += [f"--timestamp={time}", "--layers", "--force-rm"]
        options += [f"--target={target}"] if target else []
        options += [f"--build-arg={key}={value}" for key, value in (arguments or {}).items()]
        options += [f"--volume={source}:{seen}:ro" for source, seen in (mounts or {}).items()]
        self._run("bud", *_NEVER, *options, str(context))

    def save(self, name: str, archive: Path) -> None:
        """Writes an image as an archive that `ctr images import` and `docker load` read.

        Raises:
            LocalClusterError: It failed.
        """
        self._run("push", "--quiet", name, f"docker-archive:{archive}:{name}")

    def _run(self, *arguments: str) -> None:
        result = self._call(*arguments)
        if result.returncode != 0:
            said = f"{result.stdout}{result.stderr}".strip()[-1500:]
            raise LocalClusterError(f"buildah {arguments[0]} failed: {said}")

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        storage: Sequence[str] = (
            f"--root={self.folder / 'storage'}",
            f"--runroot={self.folder / 'run'}",
            f"--storage-driver={_driver(self.folder)}",
        )
        settings = self.folder / "containers.conf"
        settings.write_text(f'[network]\nnetwork_config_dir = "{self.folder / "run"}"\n')
        command = ["buildah", *storage, *arguments]
        if not self.folder.is_relative_to("/var/lib"):
            command = ["/bin/sh", "-ec", _HIDE, "sh", *command]
        return subprocess.run(
            ["unshare", "--mount", "--propagation=private", "--", *command],
            env={**self.environment, "CONTAINERS_CONF": str(settings)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def _driver(folder: Path) -> str:
    """`overlay` where the file system below can carry one, else `vfs`, which copies."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["stat", "--file-system", "--format=%T", str(folder)]
    kind = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return "vfs" if kind in {"overlayfs", "nfs", "fuseblk", "v9fs"} else "overlay"
