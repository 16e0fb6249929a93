"""What pods do, from their figures and logs: told when it is news, and where it may be read."""

from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, NotFound, ServerUnavailable
from alnair.model import names, usage
from alnair.model.api_types import Workload
from alnair.node.pods.container_logs import ContainerLogs
from alnair.processes.agent.profiler.training_logs import TrainingLogs
from alnair.processes.agent.profiler.workloads import Workloads, is_news
from alnair.profiler.samples import ProcessSample
from alnair.sharing.matching.node_state import PodOnNode
from kit.fake_cgroups import UID
from kit.profiled_node import ProfiledNode

_STEP = "Train Epoch: 1 [{}/60000 ({:.0f}%)]\tLoss: 0.5"


class _ApiServer:
    """Takes what is applied."""

    def __init__(self) -> None:
        self.applied: list[dict[str, Any]] = []
        self.refusal: ApiError | None = None

    async def apply(self, _: object, body: dict[str, Any], *, field_manager: str) -> None:
        assert field_manager == "alnair-agent-workload"
        if self.refusal is not None:
            raise self.refusal
        self.applied.append(body["metadata"])


class _Scene:
    """A node with a training on its GPU, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.node = ProfiledNode(folder)
        self.logs = folder / "logs"
        self.server = _ApiServer()
        self.now = 1_800_000_000.0
        self.pod = PodOnNode(UID, "team", "train", 0.0)
        self.silent: tuple[str, ...] = ()

    async def begin(self) -> Workloads:
        path = self.node.pod()
        self.node.machine.process(17, path)
        stat = self.node.machine.proc / "17" / "stat"
        stat.write_text("17 (x) R" + " 1" * 18 + " 4242 0\n")
        for _ in range(3):
            await self.node.second(ProcessSample(17, 40.0), path=path)
        self.uses(50.0)
        return Workloads(
            cast("Client", self.server),
            self.node.profiler,
            lambda: {UID: self.pod},
            TrainingLogs(ContainerLogs(self.logs)),
            silent=self.silent,
            now=lambda: self.now,
        )

    def uses(self, percent: float, period: int = 10) -> None:
        """Let the last ten minutes be a cycle of the GPU's use."""
        times = self.now - 600 + np.arange(600.0)
        util = np.where(np.arange(600) % period < period // 2, 2 * percent, 0.0)
        accounts = cast("Any", self.node.profiler.accounts)
        accounts.window = lambda _: (times, {usage.GPU_UTIL: util})

    def says(self, *lines: str) -> None:
        file = self.logs / f"team_train_{UID}" / "main" / "0.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as log:
            for number, line in enumerate(lines):
                log.write(f"2027-01-15T07:50:{number:02}Z stdout F {line}\n")

    def told(self) -> list[Workload]:
        texts = [one["annotations"][names.WORKLOAD] for one in self.server.applied]
        self.server.applied.clear()
        return [msgspec.json.decode(text, type=Workload) for text in texts]


@pytest.fixture
def scene(tmp_path: Path) -> _Scene:
    return _Scene(tmp_path)


async def test_a_cyclic_use_of_the_gpu_is_told_as_a_training(scene: _Scene) -> None:
    workloads = await scene.begin()
    assert await workloads.look() > 0
    (found,) = scene.told()
    assert found.type == "training"
    assert found.period_s == pytest.approx(10, rel=0.02)
    assert found.progress is None
    assert scene.node.profiler.usage(UID).workload == found


async def test_a_log_tells_how_far_the_training_is(scene: _Scene) -> None:
    scene.says(*(_STEP.format(step * 640, step) for step in range(40)))
    workloads = await scene.begin()
    await workloads.look()
    (found,) = scene.told()
    assert found.framework in ("pytorch", "horovod")
    assert found.epoch == 1


@pytest.mark.parametrize("how", ["annotation", "namespace", "all"])
async def test_a_log_that_may_not_be_read_is_not(scene: _Scene, how: str) -> None:
    scene.says(*(_STEP.format(step * 640, step) for step in range(40)))
    if how == "annotation":
        scene.pod = msgspec.structs.replace(scene.pod, reads_log=False)
    scene.silent = {"annotation": (), "namespace": ("team",), "all": ("*",)}[how]
    workloads = await scene.begin()
    await workloads.look()
    (found,) = scene.told()
    assert found.framework is None
    assert found.step is None


async def test_a_pod_s_own_pattern_is_used_and_a_bad_one_said_once(
    scene: _Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.pod = msgspec.structs.replace(
        scene.pod, log_pattern=r"at (?P<step>\d+) of (?P<steps>\d+)"
    )
    scene.says(*(f"at {step} of 80" for step in range(1, 21)))
    workloads = await scene.begin()
    await workloads.look()
    assert scene.told()[0].progress == pytest.approx(0.25)
    scene.pod = msgspec.structs.replace(scene.pod, log_pattern="(")
    again = await scene.begin()
    for _ in range(2):
        scene.now += 100
        scene.says("at 30 of 80")
        await again.look()
    assert caplog.text.count("its log pattern is not used") == 1


async def test_each_pod_has_its_turn_and_no_more(scene: _Scene) -> None:
    workloads = await scene.begin()
    await workloads.look()
    assert await workloads.look() == 0.0
    scene.now += 31
    assert await workloads.look() > 0


async def test_what_is_no_news_is_not_written_again(scene: _Scene) -> None:
    workloads = await scene.begin()
    await workloads.look()
    scene.told()
    for _ in range(5):
        scene.now += 31
        scene.uses(50.0)
        await workloads.look()
    assert scene.told() == []
    scene.uses(0.5)
    scene.now += 31
    await workloads.look()
    assert scene.told()[0].type == "idle"


async def test_what_cannot_be_written_is_written_at_the_next_look(
    scene: _Scene, caplog: pytest.LogCaptureFixture
) -> None:
    workloads = await scene.begin()
    scene.server.refusal = ServerUnavailable(503, "", "no etcd")
    for _ in range(2):
        await workloads.look()
        scene.now += 31
    assert caplog.text.count("is not written: 503") == 1
    scene.server.refusal = None
    await workloads.look()
    assert len(scene.told()) == 1


async def test_a_pod_that_is_gone_is_no_problem(
    scene: _Scene, caplog: pytest.LogCaptureFixture
) -> None:
    workloads = await scene.begin()
    scene.server.refusal = NotFound(404, "NotFound", "no pod")
    await workloads.look()
    assert caplog.text == ""


def _at(seconds: float, **fields: Any) -> Workload:
    return Workload(1, f"2027-01-15T08:{int(seconds) // 60:02}:{int(seconds) % 60:02}Z", **fields)


_BEGIN = 1_800_000_000.0


@pytest.mark.parametrize(
    ("after", "old", "new", "news"),
    [
        (20, {"phase": "training"}, {"phase": "checkpoint"}, False),
        (31, {"phase": "training"}, {"phase": "checkpoint"}, True),
        (59, {"progress": 0.1}, {"progress": 0.9}, False),
        (61, {"progress": 0.1}, {"progress": 0.105}, False),
        (61, {"progress": 0.1}, {"progress": 0.12}, True),
        (100, {"eta_s": 1000.0}, {"eta_s": 900.0}, False),  # as foreseen
        (100, {"eta_s": 1000.0}, {"eta_s": 1100.0}, True),  # it does not come nearer
        (61, {"period_s": 1.0}, {"period_s": 1.05}, False),
        (61, {"period_s": 1.0}, {"period_s": 2.0}, True),
        (61, {"step": 5}, {"step": 6}, True),
        (61, {"step": 5}, {"step": 5}, False),
        (61, {"eta_s": None}, {"eta_s": 5.0}, True),
    ],
)
def test_news_is_what_changes_more_than_was_foreseen(
    after: int, old: dict[str, Any], new: dict[str, Any], *, news: bool
) -> None:
    assert is_news(_at(0, **old), _at(after, **new), _BEGIN + after) is news
