"""Health and load of fake GPUs, through the real nvidia-ml-py: errors injected, kernels run."""

import asyncio
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from alnair.node.gpu_driver import GpuDriver
from alnair.node.gpu_looks import GpuLooks
from alnair.node.health import GpusHealth
from alnair.node.load import GpuHolder, GpusLoad
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.sharing.health import HealthRules
from native import build
from native.fake import Fake

MIB = 1 << 20
POD = OwningPod("ns", "train", "uid-1")


class Watch:
    """A driver, the looks through it, and those who judge."""

    def __init__(self, fake: Fake) -> None:
        self.driver = GpuDriver()
        self.health = GpusHealth(self.driver.suspect, HealthRules(answers=2, seconds=0.0))
        self.uuids = [f"GPU-{fake.uuid(gpu)}" for gpu in range(fake.gpus)]
        self.load = GpusLoad({}, lambda: [GpuHolder(POD, (self.uuids[0],))])
        self.looks = GpuLooks(self.driver, (self.health.take, self.load.take))

    async def look(self, times: int = 1) -> dict[str, str]:
        for _ in range(times):
            await self.looks.look()
        return self.health.unhealthy


@contextmanager
def watching(fake: Fake) -> Iterator[Watch]:
    """In this process, on that machine."""
    ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))  # its soname is then known to dlopen
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKEGPU_STATE", str(fake.state))
        watch = Watch(fake)
        try:
            yield watch
        finally:
            watch.driver.close()


async def test_errors_of_programs_are_counted_and_others_pass(fake: Fake) -> None:
    with watching(fake) as watch:
        await watch.driver.look()
        (uuid,) = watch.uuids
        assert await watch.look() == {}
        for xid in (31, 13, 31):
            fake.xid(xid)
        assert await watch.look() == {}
        assert watch.health.xids == {(uuid, 31): 2, (uuid, 13): 1}
        fake.xid(94)
        assert await watch.look() == {uuid: "XID 94: contained memory error"}
        assert await watch.look() == {}


async def test_after_a_double_bit_error_only_a_reset_heals(fake: Fake) -> None:
    with watching(fake) as watch:
        await watch.driver.look()
        fake.xid(48)
        ill = {watch.uuids[0]: "XID 48: double-bit ECC error"}
        assert await watch.look(10) == ill
        fake.fault("lost=0")  # as it is while it is reset
        assert await watch.look() == ill
        fake.fault("")
        assert await watch.look(10) == ill, "NVML was not opened since"
        await watch.driver.look()
        assert await watch.look() == ill
        assert await watch.look() == {}


async def test_one_gpu_falls_off_the_bus_and_comes_back_and_the_other_goes_on() -> None:
    with Fake(gpus=2) as fake, watching(fake) as watch:
        await watch.driver.look()
        await watch.look()
        fake.xid(79, gpu=1)
        ill = {watch.uuids[1]: "XID 79: the GPU has fallen off the bus"}
        assert await watch.look() == ill
        await watch.driver.look()
        assert [gpu.uuid for gpu in watch.driver.gpus] == watch.uuids[:1]
        assert await watch.look(3) == ill
        fake.fault("")  # the machine found it again
        assert await watch.look(3) == ill
        watch.driver.suspect()  # as is done once a minute
        await watch.driver.look()
        assert [gpu.uuid for gpu in watch.driver.gpus] == watch.uuids
        assert await watch.look(2) == {}


async def test_load_follows_what_runs(fake: Fake) -> None:
    program = build.client("hold", "-l:libcuda.so.1")
    with watching(fake) as watch:
        await watch.driver.look()
        (uuid,) = watch.uuids
        await watch.look()
        idle = watch.load.gpus()[uuid]
        assert idle.util == 0
        with build.start(program, 256, "ns_5000000", environment=fake.environment("a")) as process:
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            async with asyncio.timeout(20):
                while watch.load.gpus()[uuid].util <= 50:
                    await watch.look()
                    await asyncio.sleep(0.05)
            busy = watch.load.gpus()[uuid]
            assert busy.memory_bytes - idle.memory_bytes >= 256 * MIB
            use = watch.load.pods()[POD]
            assert use is not None
            assert (use.gpu > 50, use.idle_for) == (True, None)
            process.communicate("")
        async with asyncio.timeout(20):
            while True:
                after = GpusLoad({})
                await GpuLooks(watch.driver, [after.take]).look()
                if after.gpus() == {uuid: idle}:
                    break
                await asyncio.sleep(0.05)
