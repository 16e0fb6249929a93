"""Tier A on the fake: the driver's own limits, set by the agent, hold without an interposer."""

import os
from contextlib import ExitStack
from pathlib import Path

import pynvml
import pytest

from alnair.node import memory_limits
from alnair.node.memory_limits import MemoryLimit, Refused
from alnair.sharing.tiers import Tier, offer
from native import build
from native.fake import Fake
from native.test_nvml import using

GIB = 1 << 30
OUT_OF_MEMORY = "2\n"


@pytest.fixture
def cgroup(tmp_path: Path) -> Path:
    """A "cgroup": in the fake its last part is the tag of its processes."""
    found = tmp_path / "pod" / "container-1"
    found.mkdir(parents=True)
    return found


def holds(fake: Fake, mib: int, tag: str) -> bool:
    """Whether a program without the interposer gets so much memory; it frees it again."""
    said = build.checked(
        build.client("hold", "-l:libcuda.so.1"), mib, environment=fake.environment(tag)
    )
    assert said in {"held\n", OUT_OF_MEMORY}
    return said == "held\n"


def test_the_hard_limit_holds_to_the_byte_without_the_interposer(
    fake: Fake, gpu: object, cgroup: Path
) -> None:
    assert holds(fake, 4096, "container-1")
    context = fake.peak("container-1") - (4096 << 20)
    assert memory_limits.set_limit(gpu, cgroup, limit=2 * GIB) == ""
    fake.reset("container-1")
    fake.watch(2 * GIB, "container-1")
    room = (2 * GIB - context) >> 20
    assert holds(fake, room - room % 2, "container-1")
    assert not holds(fake, room - room % 2 + 2, "container-1")
    assert not holds(fake, 4096, "container-1")
    assert fake.over("container-1") == (0, 0)
    assert holds(fake, 4096, "container-2"), "another cgroup is not limited"


def test_managed_memory_is_beyond_the_drivers_limit(fake: Fake, gpu: object, cgroup: Path) -> None:
    assert memory_limits.set_limit(gpu, cgroup, limit=GIB) == ""
    program, environment = build.client("hold", "-l:libcuda.so.1"), fake.environment("container-1")
    with build.start(program, 4096, "managed", environment=environment) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        found = memory_limits.read(gpu, cgroup)
        assert isinstance(found, MemoryLimit)
        assert found.used == fake.used("container-1") - 4 * GIB
        assert not holds(fake, 1024, "container-1")
        process.communicate("")
    assert fake.used("container-1") == 0


def test_a_limit_counts_all_processes_and_changes_live(
    fake: Fake, gpu: object, cgroup: Path
) -> None:
    assert memory_limits.set_limit(gpu, cgroup, limit=3 * GIB) == ""
    program = build.client("hold", "-l:libcuda.so.1")
    with ExitStack() as stack:
        first = stack.enter_context(
            build.start(program, 1024, environment=fake.environment("container-1"))
        )
        assert first.stdout
        assert first.stdout.readline() == "held\n"
        assert not holds(fake, 1024, "container-1")
        found = memory_limits.read(gpu, cgroup)
        assert found == MemoryLimit(3 * GIB, 3 * GIB, fake.used("container-1"))
        assert memory_limits.set_limit(gpu, cgroup, limit=4 * GIB, guaranteed=GIB) == ""
        assert holds(fake, 1024, "container-1"), "beyond the soft limit it borrows"
        assert memory_limits.clear(gpu, cgroup) == ""
        assert memory_limits.read(gpu, cgroup) is None
        assert holds(fake, 8192, "container-1")
        first.communicate("")


def test_a_limited_container_sees_its_limit_as_the_gpu(
    fake: Fake, gpu: object, cgroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory_limits.set_limit(gpu, cgroup, limit=2 * GIB) == ""
    monkeypatch.setenv("FAKEGPU_TAG", "container-1")
    memory = pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
    assert (memory.total, memory.used, memory.free) == (2 * GIB, 0, 2 * GIB)
    assert memory_limits.shows_limit(cgroup)
    assert not memory_limits.shows_limit(cgroup.parent)


@pytest.mark.parametrize(
    ("fault", "cuda", "why"),
    [
        ("", None, ""),
        ("", "13000", "driver 580.65.06 is older than release 615"),
        ("nvml_limits_off=1", None, "this GPU and kernel have no memory limits"),
    ],
)
def test_a_node_knows_whether_it_has_limits(
    fake: Fake,
    gpu: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    cuda: str | None,
    why: str,
) -> None:
    fake.fault(fault)
    if cuda:
        monkeypatch.setenv("FAKEGPU_CUDA", cuda)
    assert memory_limits.lacks(gpu, tmp_path) == why
    facts = memory_limits.observe(interposer="", mps="not chosen", cgroups=tmp_path)
    assert facts.cgroup_v2
    v1 = memory_limits.observe(interposer="", mps="not chosen", cgroups=None)
    assert offer(v1).memory is Tier.INTERPOSER
    assert not facts.mig
    assert offer(facts).memory == (Tier.INTERPOSER if why else Tier.DRIVER)


def test_an_old_driver_answers_a_question_for_limits_with_a_reason(
    gpu: object, cgroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKEGPU_CUDA", "12040")
    missing = "the driver has no memory limits"
    assert memory_limits.set_limit(gpu, cgroup, limit=GIB) == missing
    assert memory_limits.read(gpu, cgroup) == Refused(missing)


def test_mig_has_no_limits(fake: Fake, gpu: object, cgroup: Path, tmp_path: Path) -> None:
    fake.mig("")
    facts = memory_limits.observe(interposer="", mps="", cgroups=tmp_path)
    assert facts.mig
    assert offer(facts).memory is Tier.INTERPOSER
    assert memory_limits.set_limit(gpu, cgroup, limit=GIB)


def test_a_gpu_in_mig_mode_takes_no_limits_from_the_others(tmp_path: Path) -> None:
    with Fake("h100", gpus=2) as fake, using(fake):
        fake.mig("1g.10gb", gpu=1)
        facts = memory_limits.observe(interposer="", mps="", cgroups=tmp_path)
        assert facts.mig
        assert offer(facts).memory is Tier.DRIVER
        assert offer(facts).compute is Tier.INTERPOSER, "no MPS beside MIG"


@pytest.mark.skipif(os.geteuid() != 0, reason="the driver refuses whoever is not root first")
def test_errors_say_what_to_do(fake: Fake, gpu: object, cgroup: Path) -> None:
    total = pynvml.nvmlDeviceGetMemoryInfo(gpu).total
    assert "exceeds the GPU" in memory_limits.set_limit(gpu, cgroup, limit=total + 1)
    assert "the soft the hard one" in memory_limits.set_limit(
        gpu, cgroup, limit=GIB, guaranteed=2 * GIB
    )
    gone = cgroup.with_name("gone")
    assert "still there" in memory_limits.set_limit(gpu, gone, limit=GIB)
    found = memory_limits.read(gpu, gone)
    assert isinstance(found, Refused)
    assert "still there" in found.why
    assert memory_limits.set_limit(gpu, cgroup, limit=total) == ""
    fake.xid(79)
    assert "fallen off the bus" in memory_limits.set_limit(gpu, cgroup, limit=GIB)
