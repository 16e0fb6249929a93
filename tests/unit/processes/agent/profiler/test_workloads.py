"""What pods do, from their figures and logs: told when it is news, and where it may be read."""

from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, NotFound, ServerUnavailable
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.timestamps import timestamp
from alnair.model import names, usage
from alnair.model.api_types import Workload
from alnair.model.job_facts import CudaCalls, Declared, Figure, InputPlace, ModelFacts, Name
from alnair.node.pods.container_logs import ContainerLogs
from alnair.processes.agent.profiler.training_logs import TrainingLogs
from alnair.processes.agent.profiler.workload_annotations import is_news
from alnair.processes.agent.profiler.workloads import Workloads
from alnair.profiler.samples import GpuSample, NetworkSample, ProcessSample
from alnair.sharing.matching.node_state import PodOnNode
from kit.fake_cgroups import UID
from kit.profiled_node import GPU, ProfiledNode

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
        self.idle: float | None = None
        self.events: list[tuple[Any, ...]] = []

    async def begin(self) -> Workloads:
        path = self.node.pod()
        self.node.machine.process(17, path)
        stat = self.node.machine.proc / "17" / "stat"
        stat.write_text("17 (x) R" + " 1" * 18 + " 4242 0\n")
        for _ in range(3):
            await self.node.second(ProcessSample(17, 40.0), path=path)
        self.uses(50.0)
        made = Workloads(
            cast("Client", self.server),
            self.node.profiler,
            lambda: {UID: self.pod},
            TrainingLogs(ContainerLogs(self.logs)),
            silent=self.silent,
            idle_for=lambda _: self.idle,
            now=lambda: self.now,
        )
        cast("Any", made)._recorder.record = lambda *event: self.events.append(event)
        return made

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

    def says_at(self, at: float, line: str) -> None:
        file = self.logs / f"team_train_{UID}" / "main" / "0.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as log:
            log.write(f"{rfc3339(at)} stdout F {line}\n")

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
    assert found.period_s is None, "samples of a second show no iteration for certain"
    assert found.progress is None
    assert scene.node.profiler.usage(UID).workload == found


async def test_a_pod_that_goes_while_it_is_looked_at_is_left_out(scene: _Scene) -> None:
    workloads = await scene.begin()
    accounts = scene.node.profiler.accounts

    def read(_: object) -> None:
        accounts.pods.clear()

    cast("Any", workloads)._logs.read = read
    assert await workloads.look() > 0
    assert scene.told() == []
    assert await workloads.look() == 0


async def test_the_driver_s_own_samples_of_a_gpu_that_it_has_alone_tell_its_iterations(
    scene: _Scene,
) -> None:
    workloads = await scene.begin()
    busy = scene.node.profiler.busy
    stamps = scene.now - 120 + np.arange(720) / 6
    pairs = tuple((float(at), 100.0 * bool(at % 1.5 < 0.9)) for at in stamps)
    for one in (), pairs:
        busy.take({GPU: GpuSample(0.0, 60.0, busy=one)}, {GPU: UID})
    await workloads.look()
    (found,) = scene.told()
    assert found.period_from == "gpu"
    assert found.period_s == pytest.approx(1.5, rel=0.02)
    assert found.busy_s == pytest.approx(0.75, rel=0.02)


async def test_gpus_that_are_held_and_not_used_are_told_once_with_an_event(scene: _Scene) -> None:
    scene.idle = 1500.0
    workloads = await scene.begin()
    scene.uses(0.0)
    for _ in range(3):
        await workloads.look()
        scene.now += 31
    (found,) = scene.told()
    assert found.idle_since is not None
    assert timestamp(found.idle_since) == pytest.approx(1_800_000_000.0 - 1500, abs=1)
    assert len(scene.events) == 1
    assert scene.events[0][1] == "GpuIdle"
    scene.idle = None
    await workloads.look()
    assert scene.told()[0].idle_since is None


async def test_memory_that_grows_is_told_before_it_is_full(scene: _Scene) -> None:
    workloads = await scene.begin()
    accounts = cast("Any", scene.node.profiler.accounts)
    used = 10_000.0
    for _ in range(65):
        accounts.newest = lambda *_: [used]  # noqa: B023
        await workloads.look()
        scene.now += 31
        used += 1000.0
    reasons = {reason for _, reason, *_ in scene.events}
    assert "GpuMemoryFilling" in reasons
    found = scene.node.profiler.workloads[UID]
    assert found.memory_full_s is not None
    left = (81_559 - used) / 1000 * 31
    assert 0.8 * left < found.memory_full_s < 1.6 * left


async def test_a_training_beside_another_is_slower_than_alone_by_its_own_log(
    scene: _Scene,
) -> None:
    workloads = await scene.begin()
    others: frozenset[str] = frozenset()
    since, done = 0.0, 0
    neighbours = cast("Any", scene.node.profiler.neighbours)
    for number in range(12):
        if number == 6:
            others, since = frozenset({"team/other"}), scene.now
        neighbours.of = lambda _: (since, others)  # noqa: B023
        done += 20 if others else 30
        line = f"step={done}/9000 loss=0.5"
        scene.says_at(scene.now, line)
        await workloads.look()
        scene.now += 31
    found = scene.node.profiler.workloads[UID]
    assert found.neighbours == ("team/other",)
    assert found.slowdown == pytest.approx(1.5, rel=0.01)
    assert found.slowdown_from == "log"


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


async def test_what_a_pod_works_on_is_told_with_its_sources(scene: _Scene) -> None:
    model = ModelFacts(Name("org/tiny", "option --model"))
    place = InputPlace("nfs", "files:/export", "volume data at /data")
    scene.pod = msgspec.structs.replace(scene.pod, declared=Declared(model, (place,)))
    scene.says("Total params: 1,199,882 (4.58 MB)")
    workloads = await scene.begin()
    account = scene.node.profiler.accounts.pods[UID]
    account.network = NetworkSample(1.0, 500 << 20, 7)
    await workloads.look()
    (found,) = scene.told()
    assert found.type == "training"
    assert found.model is not None
    assert found.model.name == model.name
    assert found.model.parameters == Figure(1_199_882, "log")
    assert found.input is not None
    assert found.input.places == (place,)
    assert found.input.read_mib == Figure(500.0, "bytes received by network")
    assert found.input.epoch_mib is None
    assert found.cuda is not None
    assert names.COUNT_CALLS in found.cuda.unknown


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


def _weights(mib: float) -> ModelFacts:
    return ModelFacts(weights_mib=Figure(mib, "estimated"))


@pytest.mark.parametrize(
    ("old", "new", "is_it"),
    [
        ({"model": _weights(1000)}, {"model": _weights(1050)}, False),
        ({"model": _weights(1000)}, {"model": _weights(2000)}, True),
        ({}, {"model": ModelFacts(Name("a", "b"))}, True),
        ({"cuda": CudaCalls(9, {"launch": 0.9})}, {"cuda": CudaCalls(1, {"launch": 0.85})}, False),
        ({"cuda": CudaCalls(9, {"launch": 0.9})}, {"cuda": CudaCalls(9, {"h2d": 0.9})}, True),
        ({"cuda": CudaCalls(9, {"launch": 0.9})}, {}, False),
    ],
)
def test_another_model_and_other_calls_are_news(
    old: dict[str, Any], new: dict[str, Any], is_it: bool
) -> None:
    now = 1_800_000_000.0
    assert is_news(_at(0, **old), _at(200, **new), now + 200) is is_it
