"""Ways out of a slice, with mounts as a node makes them: limited, refused, or found.

docs/concepts/isolation.md says of each which.
"""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from alnair.node.nvml import Nvml
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.driver_mappings import DriverMappings, file_id
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.installed_library import Installed, install
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.violations import Action, Kind, Policy, SliceViolation, ViolationRules
from native import build
from native.fake import Fake
from native.server_kit import Group, control_group, looks

NOT_PERMITTED, NOT_INITIALIZED, OUT_OF_MEMORY, REFUSED = 800, 3, 2, 77
LIMIT_MIB, FITS, TOO_MUCH = 2048, 512, 3072
DRIVER = "/run/alnair/driver/libcuda.so.1"

pytestmark = pytest.mark.skipif(bool(build.SANITIZE), reason="shells here would need the sanitizer")


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Both builds as an agent installs them."""
    proxy = build.LIBRARIES / "proxy" / "libcuda.so.1"
    return install(tmp_path / "library", proxy=proxy, preload=build.INTERPOSER)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[VgpuServer]:
    async with VgpuServer(tmp_path / "agent") as serving:
        yield serving


@pytest.fixture
def group() -> Iterator[Group]:
    with control_group() as made:
        yield made


class Tenants:
    """Programs of one container with a slice, with the mounts of a node."""

    def __init__(
        self, fake: Fake, group: Group, nvml: Nvml, server: VgpuServer, installed: Installed
    ) -> None:
        self.uuid = f"GPU-{fake.uuid()}"
        self._installed = installed
        self._group = group
        self._fake = fake
        share = Share(self.uuid, LIMIT_MIB, 50)
        who = ContainerMatch(cgroup=group.name)
        assert server.prepare(ContainerSlices("a", who, (share,), keep=True)) == ""
        self._folder = server.containers["a"].folder
        self._etc = self._make_etc(installed.proxy.parent.parent / "etc")
        self.told: list[Action] = []
        self.server = server
        self.mappings = DriverMappings([file_id(installed.proxy)])
        self.inspection = Inspection(
            server,
            Policy.EVICT,
            lambda _, __, action: self.told.append(action),
            ViolationRules(grace=0.0, confirmed=0.0, confirmed_hidden=0.0, settled=0.0),
            mappings=self.mappings,
        )
        self.looks = looks(nvml, self.inspection)

    def _make_etc(self, etc: Path) -> Path:
        """An /etc by which a loader finds the proxy first, and preloads."""
        etc.mkdir()
        preloaded = self._installed.preload_list.with_name("ld.so.preload.here")
        preloaded.write_text(f"{self._installed.preload}\n")
        preloaded.rename(etc / "ld.so.preload")
        (etc / "ld.so.conf").write_text(
            f"{self._installed.proxy.parent}\ninclude /etc/ld.so.conf\n"
        )
        command = ["ldconfig", "-X", "-f", str(etc / "ld.so.conf"), "-C", str(etc / "ld.so.cache")]
        subprocess.run(command, check=True, capture_output=True)
        return etc

    def start(self, *words: object) -> "subprocess.Popen[str]":
        """Start escape.c; see there."""
        driver = Path(DRIVER).parent
        steps = [
            f"echo $$ > {self._group.folder}/cgroup.procs",
            "mount -t tmpfs none /run",
            f"mkdir -p /run/alnair/vgpu {driver} /run/fakegpu",
            f"mount --bind {self._folder} /run/alnair/vgpu",
            "mount -o remount,bind,ro /run/alnair/vgpu",
            "mount --bind /run/alnair/vgpu/counters /run/alnair/vgpu/counters",
            "mount -o remount,bind,rw /run/alnair/vgpu/counters",
            f"cp {build.PLAIN}/libcuda.so.1 {build.PLAIN}/libfakegpu.so {driver}/",
            "touch /run/fakegpu/state",
            f"mount --bind {self._fake.state} /run/fakegpu/state",
            f"mount --bind {self._etc} /etc",
            f"exec {build.client('escape')} {' '.join(map(str, words))}",
        ]
        environment = {"ESCAPE_FOLDER": str(self._etc.with_name("escape"))}
        command = ["-m", "sh", "-c", " && ".join(steps)]
        return build.start("unshare", *command, environment=environment)

    def run(self, *words: object) -> tuple[str, int]:
        """What escape.c says of its attempt, and its exit code."""
        with self.start(*words) as process:
            out, err = process.communicate()
        if "unshare:" in err or "mount:" in err:
            pytest.skip(f"mounts cannot be made here: {err}")
        return out.strip() or err, process.returncode

    @contextlib.asynccontextmanager
    async def holding(self, *words: object) -> AsyncIterator[None]:
        """An attempt that has got memory and stays; the server and the inspection look at it."""
        process = self.start(*words)
        try:
            assert process.stdout
            line = await asyncio.to_thread(process.stdout.readline)
            if line != "held\n":
                pytest.skip(f"it cannot be tried here: {line}{process.communicate()[1]}")
            await asyncio.sleep(0.7)  # the server has seen who registered
            yield
        finally:
            process.kill()
            process.communicate()

    async def found(self) -> list[Kind]:
        """What two looks confirm: mappings are read beside the first."""
        await self.looks.look()
        await asyncio.to_thread(self.mappings.wait)
        await self.looks.look()
        return [action.kind for action in self.told if isinstance(action, SliceViolation)]


@pytest.fixture
async def tenants(
    fake: Fake, group: Group, nvml: Nvml, server: VgpuServer, installed: Installed
) -> Tenants:
    return Tenants(fake, group, nvml, server, installed)


@pytest.mark.parametrize(
    ("way", "file"),
    [("plain", ""), ("bare", ""), ("preload", "libm.so.6"), ("deep", ""), ("path", DRIVER)],
)
async def test_a_program_is_limited_however_it_comes_to_the_driver(
    tenants: Tenants, way: str, file: str
) -> None:
    said = await asyncio.to_thread(tenants.run, way, TOO_MUCH, 1, file)
    assert said == (str(OUT_OF_MEMORY), 0)
    async with tenants.holding(way, FITS, 60, file):
        assert await tenants.found() == []


async def test_a_loaders_namespace_of_its_own_gives_no_cuda(tenants: Tenants) -> None:
    # The proxy alone limits there; the preloaded library leads back to the first namespace.
    said = await asyncio.to_thread(tenants.run, "apart", FITS, 1)
    assert said == (str(NOT_INITIALIZED), 0)


async def test_mounting_over_the_limits_is_refused_cuda(tenants: Tenants) -> None:
    said, code = await asyncio.to_thread(tenants.run, "hide", FITS, 1)
    if code == REFUSED:
        pytest.skip(f"the kernel refuses it: {said}")
    assert (said, code) == (str(NOT_PERMITTED), 0)


@pytest.mark.parametrize("way", ["forge", "chroot", "loader"])
async def test_a_program_that_leaves_its_library_or_its_pages_behind_is_found(
    tenants: Tenants, way: str
) -> None:
    async with tenants.holding(way, TOO_MUCH, 60, DRIVER):
        found = await tenants.found()
        assert Kind.UNREGISTERED in found


async def test_a_copy_of_the_driver_beside_the_library_is_found(tenants: Tenants) -> None:
    async with tenants.holding("beside", FITS, 60, DRIVER):
        assert await tenants.found() == [Kind.BYPASS]
        violations = tenants.inspection.violations("a", tenants.uuid)
        assert "/escape/libcuda.so.1 beside the library" in violations[Kind.BYPASS]
