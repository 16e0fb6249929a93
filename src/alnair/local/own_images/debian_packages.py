"""Packages of Debian, fetched by apt with settings of its own: the machine's stay as they are."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from alnair.local.errors import LocalClusterError
from alnair.local.own_images.requirements import KEYRING

SUITE: Final = "bookworm"
_MIRROR: Final = "http://deb.debian.org"
_SOURCES: Final = (
    f"deb [signed-by={KEYRING}] {{mirror}}/debian {SUITE} main\n"
    f"deb [signed-by={KEYRING}] {{mirror}}/debian {SUITE}-updates main\n"
    f"deb [signed-by={KEYRING}] {{mirror}}/debian-security {SUITE}-security main\n"
)
_WITH_ALL: Final = ("install", "--yes", "--download-only", "--no-install-recommends")


def fetch(
    names: Sequence[str],
    architecture: str,
    work: Path,
    environ: Mapping[str, str],
    *,
    complete: bool = False,
) -> list[Path]:
    """Return files of packages, which apt verifies.

    Args:
        names: Of the packages.
        architecture: As Debian calls it (amd64, arm64).
        work: A folder for them.
        environ: ALNAIR_DEBIAN_MIRROR in it is another mirror of Debian's packages.
        complete: Fetch all that they depend on, too.

    Raises:
        LocalClusterError: They cannot be fetched.
    """
    mirror = environ.get("ALNAIR_DEBIAN_MIRROR", _MIRROR)
    for folder in ("lists/partial", "cache/archives/partial", "etc/parts", "packages"):
        (work / folder).mkdir(parents=True)
    (work / "sources.list").write_text(_SOURCES.format(mirror=mirror.rstrip("/")))
    (work / "status").touch()
    settings = {
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": work / "etc" / "parts",
        "Dir::Etc::preferencesparts": work / "etc" / "parts",
        "APT::Architecture": architecture,
        "APT::Architectures::": architecture,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    configuration = work / "apt.conf"
    # Architectures of this machine are none of the image's.
    lines = [
        "#clear APT::Architectures;",
        *(f'{key} "{value}";' for key, value in settings.items()),
    ]
    configuration.write_text("\n".join(lines))
    environment = {**os.environ, "APT_CONFIG": str(configuration), "LC_ALL": "C"}
    get = [*(_WITH_ALL if complete else ("download",)), *names]
    for command in (["update"], get):
        result = subprocess.run(
            ["apt-get", "-q", *command],
            cwd=work / "packages",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0 or "E:" in result.stderr:
            raise LocalClusterError(
                f"Debian's packages for the images cannot be fetched from {mirror}"
                f" ({result.stderr.strip()[-300:]}): check the network, or name another mirror by"
                " ALNAIR_DEBIAN_MIRROR"
            )
    found = work / "cache" / "archives" if complete else work / "packages"
    return sorted(found.glob("*.deb"))
