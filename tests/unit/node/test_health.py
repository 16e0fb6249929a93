"""The health of all GPUs, by the looks at them."""

import asyncio

from alnair.node.gpu_looks import GpuLook
from alnair.node.health import AGAIN, GpusHealth
from alnair.node.nvml import Usage
from alnair.sharing.health import HealthRules

RULES = HealthRules(answers=2, seconds=1.0)
GOOD = Usage(0.0, 0)


class Suspicions:
    """Counts how often NVML was to be opened anew."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def look(
    now: float, *lost: str, xids: tuple[tuple[str, int], ...] = (), opened: int = 1
) -> GpuLook:
    there = {uuid: GOOD for uuid in ("a", "b") if uuid not in lost}
    return GpuLook(now, opened, there, dict.fromkeys(lost, "GPU is lost"), xids)


async def test_an_error_makes_one_gpu_unhealthy_and_a_reset_heals_it() -> None:
    health = GpusHealth(Suspicions(), RULES)
    health.take(look(0.0))
    assert (health.unhealthy, health.changes) == ({}, 0)
    health.take(look(1.0, xids=(("a", 48), ("b", 31))))
    assert health.unhealthy == {"a": "XID 48: double-bit ECC error"}
    assert health.xids == {("a", 48): 1, ("b", 31): 1}
    for now in (2.0, 3.0, 4.0):
        health.take(look(now))
    assert health.unhealthy
    health.take(look(5.0, "a"))
    for now in (6.0, 7.0):
        health.take(look(now, opened=2))
    assert (health.unhealthy, health.changes) == ({}, 2)


async def test_whoever_waits_is_told_of_every_change() -> None:
    health = GpusHealth(Suspicions(), RULES)
    waiting = asyncio.create_task(health.changed(0))
    await asyncio.sleep(0)
    health.take(look(0.0))
    assert not waiting.done()
    health.take(look(1.0, "b"))
    assert await waiting == 1
    assert await health.changed(0) == 1  # it was before the question


async def test_an_error_of_an_unknown_gpu_counts_for_all() -> None:
    health = GpusHealth(Suspicions(), RULES)
    health.take(look(0.0, xids=(("", 63),)))
    assert health.unhealthy == dict.fromkeys("ab", "XID 63: GPU memory was remapped")


async def test_while_a_gpu_is_lost_nvml_is_opened_anew_now_and_then() -> None:
    suspicions = Suspicions()
    health = GpusHealth(suspicions, RULES)
    health.take(look(0.0))
    for now in range(1, int(AGAIN * 2) + 1):
        health.take(look(float(now), "a"))
    assert suspicions.count == 2
