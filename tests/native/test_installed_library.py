"""The copies of the library that an agent installed never run without limits."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from alnair.node.vgpu.installed_library import Installed, install
from native import build
from native.container import Container
from native.fake import Fake

GIB = 1 << 30
NOT_PERMITTED = 800
#: What session.c prints: the result of cuInit, and of a call after it.
WORKS, NO_CUDA = "0 0\n", f"{NOT_PERMITTED} {NOT_PERMITTED}\n"
NO_MOUNTS = "no mounts can be made here"

Made = Callable[..., Container]

pytestmark = pytest.mark.skipif(bool(build.SANITIZE), reason="shells here would need the sanitizer")


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Both builds as an agent installs them."""
    proxy = build.LIBRARIES / "proxy" / "libcuda.so.1"
    return install(tmp_path / "library", proxy=proxy, preload=build.INTERPOSER)


def environment(fake: Fake, installed: Installed, way: str, **more: str) -> dict[str, str]:
    """Of a client that gets CUDA through the proxy or the preloaded library."""
    if way == "preload":
        return {**fake.environment(), "LD_PRELOAD": str(installed.preload), **more}
    return {**fake.environment(), "LD_LIBRARY_PATH": str(installed.proxy.parent), **more}


def run_in(
    steps: list[str], words: str, given: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run a program after these steps, in a mount namespace of its own."""
    variables = " ".join(f"{name}={value}" for name, value in given.items())
    script = " && ".join([*steps, f"exec env {variables} {words}"])
    done = build.run("unshare", "-m", "sh", "-c", script, environment={})
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"{NO_MOUNTS}: {done.stderr}")
    return done


def mounted(container: Container) -> list[str]:
    """The steps that give a program a container's folder, and the driver, where a node has them."""
    return [
        "mount -t tmpfs none /run",
        "mkdir -p /run/alnair/vgpu /run/alnair/driver",
        f"mount --bind {container.folder} /run/alnair/vgpu",
        f"cp {build.LIBRARIES}/libcuda.so.1 {build.LIBRARIES}/libfakegpu.so /run/alnair/driver/",
    ]


def refused(done: "subprocess.CompletedProcess[str]", says: str) -> None:
    assert done.stdout == NO_CUDA, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("alnair-vgpu: no CUDA in this container: ")
    assert says in line


@pytest.mark.parametrize("way", ["preload", "proxy"])
def test_an_unmarked_library_limits_nothing_where_there_is_no_folder(fake: Fake, way: str) -> None:
    built = Installed(
        build.LIBRARIES / "proxy" / "libcuda.so.1", build.INTERPOSER, Path("/nowhere")
    )
    driver = str(build.LIBRARIES / "libcuda.so.1")
    given = environment(fake, built, way, ALNAIR_VGPU_DRIVER=driver)
    done = build.run(build.client("session", "-l:libcuda.so.1"), "init", environment=given)
    assert (done.stdout, done.stderr) == (WORKS, "")


@pytest.mark.parametrize("way", ["preload", "proxy"])
def test_an_installed_library_gives_no_cuda_where_there_is_no_folder(
    fake: Fake, container: Made, installed: Installed, way: str
) -> None:
    client = build.client("session", "-l:libcuda.so.1")
    # Pages that are good, and a driver: named by variables, which tests of other copies use.
    variables = {
        "ALNAIR_VGPU_DIR": str(container().folder),
        "ALNAIR_VGPU_DRIVER": str(build.LIBRARIES / "libcuda.so.1"),
    }
    for more in ({}, variables):
        done = build.run(client, "init", environment=environment(fake, installed, way, **more))
        refused(done, "limits")


@pytest.mark.parametrize("way", ["preload", "proxy"])
@pytest.mark.parametrize(
    "hide",
    [
        "mount -t tmpfs none /run/alnair/vgpu",
        "umount /run/alnair/vgpu && rmdir /run/alnair/vgpu",
        "mount --bind /dev/null /run/alnair/vgpu/limits",
        "mount -t tmpfs none /run",
    ],
)
def test_hiding_the_limits_ends_cuda(
    fake: Fake, container: Made, installed: Installed, way: str, hide: str
) -> None:
    made = container(memory_limit=2 * GIB)
    hold = build.client("hold", "-l:libcuda.so.1")
    given = environment(fake, installed, way)
    done = run_in(mounted(made), f"{hold} 1024", given)
    assert (done.stdout, done.stderr) == ("held\n", "")
    done = run_in(mounted(made), f"{hold} 2048", given)
    assert (done.stdout, done.stderr) == ("2\n", "")
    given["ALNAIR_VGPU_DIR"] = str(made.folder)
    client = build.client("session", "-l:libcuda.so.1")
    refused(run_in([*mounted(made), hide], f"{client} init", given), "limits")


def test_programs_without_cuda_do_not_notice_the_installed_library(installed: Installed) -> None:
    done = build.run("ls", "/", environment={"LD_PRELOAD": str(installed.preload)})
    assert (done.returncode, done.stderr) == (0, "")
