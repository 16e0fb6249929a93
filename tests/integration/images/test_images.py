"""The container images: what is in them, and that they run, with nothing to write to.

Needs Linux, root, buildah and Debian's packages; elsewhere each test is skipped, with the reason.
"""

import json
import os
import re
import subprocess
import tarfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from alnair.built_from import ROOT
from alnair.local.own_images import checkout, images, requirements
from alnair.local.own_images.base_images import FINAL, PACKAGES
from alnair.local.report import NO_REPORT

#: Megabytes, of files: what a change may cost before somebody looks.
MOST = {"alnair": 215, "alnair-agent": 205}
SHELLS = re.compile(r"(^|/)bin/(sh|bash|dash|busybox|apt|dpkg|pip3?)$")
#: Runs a command as a user in a root that nobody can write to but in /run, as in a pod.
READ_ONLY = """
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount --bind /proc "$1/proc"
mount -t tmpfs run "$1/run"
shift
exec chroot "$@"
"""


class Image:
    """An image, unpacked."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.built = images.described(archive)
        self.root = folder
        self.files: dict[str, tarfile.TarInfo] = {}
        folder.mkdir()
        with tarfile.open(archive) as tar:
            manifest = json.load(tar.extractfile("manifest.json"))[0]
            self.configuration = json.load(tar.extractfile(manifest["Config"]))
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=tar.extractfile(layer)) as files:
                    self.files |= {info.name: info for info in files}
                content = tar.extractfile(layer).read()
                unpack = ["tar", "-x", "--keep-directory-symlink", "-C", folder]
                subprocess.run(unpack, input=content, check=True)
        (folder / "proc").mkdir(exist_ok=True)

    def run(self, *command: str, user: int) -> subprocess.CompletedProcess[str]:
        variables = dict(one.split("=", 1) for one in self.configuration["config"]["Env"])
        inside = [str(self.root), f"--userspec={user}:{user}", str(self.root), *command]
        return subprocess.run(
            ["unshare", "--mount", "/bin/sh", "-euc", READ_ONLY, "sh", *inside],
            capture_output=True,
            text=True,
            env=variables,
            timeout=60,
            check=False,
        )


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Image]:
    if reason := requirements.problem():
        pytest.skip(f"no images can be made here: {reason}")
    built = images.build(os.environ, NO_REPORT)
    folder = tmp_path_factory.mktemp("images")
    return {one.archive.stem: Image(one.archive, folder / one.archive.stem) for one in built}


@pytest.fixture(params=images.NAMES)
def image(unpacked: dict[str, Image], request: pytest.FixtureRequest) -> Image:
    return unpacked[request.param]


def name(image: Image) -> str:
    return image.root.name


def test_an_image_says_what_it_is_and_whose(image: Image) -> None:
    labels = image.configuration["config"]["Labels"]
    label = {key.removeprefix("org.opencontainers.image."): text for key, text in labels.items()}
    assert label["title"] == name(image)
    assert label["version"] == checkout.tag() == image.built.name.rpartition(":")[2]
    assert label["revision"] == (checkout.revision() or "unknown")
    assert label["licenses"] == "Apache-2.0"
    assert label["base.name"] == FINAL
    assert {"source", "description"} <= label.keys()
    assert image.built.name in images.names()


def test_only_the_agent_is_root(unpacked: dict[str, Image]) -> None:
    users = {name: one.configuration["config"]["User"] for name, one in unpacked.items()}
    assert users == {"alnair": "65532:65532", "alnair-agent": "0:0"}


def test_an_image_has_no_shell_no_installer_and_nothing_that_changes_the_user(image: Image) -> None:
    assert not [path for path in image.files if SHELLS.search(path)]
    set_user = [path for path, info in image.files.items() if info.isreg() and info.mode & 0o6000]
    assert not set_user
    writable = {p for p, i in image.files.items() if i.isreg() and i.mode & 0o002}
    assert not writable


def test_an_image_is_small(image: Image) -> None:
    assert image.built.size < MOST[name(image)] * 1_000_000


def test_no_layer_depends_on_when_it_was_built(image: Image) -> None:
    times = {info.mtime for info in image.files.values()}
    assert times == {0, 315532800}  # of the base, and of what we add
    created = image.configuration["config"]["Labels"]["org.opencontainers.image.created"]
    assert datetime.fromisoformat(created).timestamp() == checkout.time()


def test_the_list_of_parts_names_all_locked_and_all_debian_packages(image: Image) -> None:
    bill = json.loads((image.root / "usr/share/sbom/alnair.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    parts: list[dict[str, Any]] = bill["components"]
    lock = (ROOT / "requirements" / f"image-{name(image)}.txt").read_text()
    here = [line for line in lock.splitlines() if "==" in line and "win32" not in line]
    wanted = {line.split("==")[0] for line in here} | set(PACKAGES[FINAL]) | {"alnair"}
    assert {part["name"] for part in parts} == wanted
    assert all(part["version"] and part["purl"].startswith("pkg:") for part in parts)


def test_the_command_runs_as_its_user_where_nothing_can_be_written(image: Image) -> None:
    user = int(image.configuration["config"]["User"].partition(":")[0])
    result = image.run(*image.configuration["config"]["Entrypoint"], "--version", user=user)
    assert result.returncode == 0, result.stderr
    assert f"(commit {checkout.commit() or 'unknown'})" in result.stdout


@pytest.mark.parametrize("verb", ["scheduler", "controller", "explain", "simulate", "check"])
def test_the_image_of_the_scheduler_has_what_its_verbs_import(
    unpacked: dict[str, Image], verb: str
) -> None:
    result = unpacked["alnair"].run("/usr/local/bin/alnair", verb, "--help", user=65532)
    assert result.returncode == 0, result.stderr


def test_the_image_of_the_agent_has_the_library_and_what_the_agent_imports(
    unpacked: dict[str, Image],
) -> None:
    program = """
import grpc, pynvml
import alnair.processes.agent.device_plugin.process, alnair.node.vgpu.context_probe
from pathlib import Path
from alnair.node.vgpu import installed_library
installed = installed_library.install(Path("/run/alnair/library"))
print(installed.proxy.stat().st_size, installed.preload.stat().st_size)
"""
    result = unpacked["alnair-agent"].run("/usr/bin/python3", "-c", program, user=0)
    assert result.returncode == 0, result.stderr
    assert all(int(size) > 100_000 for size in result.stdout.split())


def test_a_command_of_another_image_says_so(unpacked: dict[str, Image]) -> None:
    result = unpacked["alnair"].run("/usr/local/bin/alnair", "status", user=65532)
    assert result.returncode == 1
    assert "needs the package psutil" in result.stderr
    assert "Traceback" not in result.stderr
