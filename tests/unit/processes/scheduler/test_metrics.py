"""What /metrics says, after things have happened."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)

from alnair.model.action import Bind
from alnair.model.quota import Quota
from alnair.processes.scheduler.endpoints import application
from alnair.processes.scheduler.loop import Decisions
from alnair.processes.scheduler.metrics import metrics, of_configuration
from alnair.scheduler.advice.census import SchedulerFigures, census
from alnair.scheduler.engine import events
from alnair.scheduler.metric_counters import Histogram, SchedulerCounters
from alnair.serving.exposition import counter, exposition, gauge, histogram, text_of
from kit import make
from kit.described_metrics import described
from kit.world import World


def render(counters: SchedulerCounters, state: SchedulerFigures | None) -> str:
    """The page in the text format."""
    return text_of(metrics(counters, state))


def figures(world: World) -> dict[str, float]:
    """All samples: name with labels → value."""
    text = render(world.engine.counters, census(world.engine.view))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def busy_world() -> World:
    """One node; a pod placed, one that fits nowhere, one gated, a gang that lacks a member."""
    world = World(make.node(gpus=2, gpu_memory=1000))
    world.create(make.pod("good", make.spec(whole=1)))
    world.create(make.pod("large", make.spec(cpu=9000)))
    world.create(make.pod("gated", gated=True))
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 1))
    world.settle(0.0)
    return world


def test_pods_count_by_queue_and_by_what_refuses_them() -> None:
    found = figures(busy_world())
    pending = 'scheduler_pending_pods{queue="%s"}'
    assert found[pending % "active"] == 0
    assert found[pending % "unschedulable"] == 2
    assert found[pending % "gated"] == 1
    by_plugin = [name for name in found if name.startswith("scheduler_unschedulable_pods")]
    labels = 'plugin="NodeResourcesFit",profile="alnair-scheduler"'
    assert by_plugin == [f"scheduler_unschedulable_pods{{{labels}}}"]


def test_attempts_count_by_result() -> None:
    world = busy_world()
    attempts = 'scheduler_schedule_attempts_total{profile="alnair-scheduler",result="%s"}'
    found = figures(world)
    assert found[attempts % "scheduled"] == 1
    assert found[attempts % "unschedulable"] == 2
    assert found["scheduler_pod_scheduling_attempts_count"] == 1
    assert (attempts % "error") not in found


def test_a_failed_binding_is_an_error_and_its_pod_needs_a_second_attempt() -> None:
    world = World(make.node())
    faults = iter(["the API server says no"])
    world.fault = lambda action: next(faults, "") if isinstance(action, Bind) else ""
    world.create(make.pod())
    world.settle(5.0)
    found = figures(world)
    profile = 'profile="alnair-scheduler"'
    assert found[f'scheduler_schedule_attempts_total{{{profile},result="error"}}'] == 1
    assert found["scheduler_pod_scheduling_attempts_sum"] == 2
    assert found['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="2"}'] == 1
    assert found['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="2"}'] == 1.0
    entered = 'scheduler_queue_incoming_pods_total{event="%s",queue="%s"}'
    assert found[entered % ("BindingFailure", "backoff")] == 1
    assert found[entered % ("BackoffComplete", "active")] == 1


def test_time_in_the_queue_does_not_count_the_time_behind_gates() -> None:
    world = World(make.node())
    world.create(make.pod(gated=True))
    world.settle(0.0)
    world.now += 100.0
    world.update("pod", gated=False)
    world.settle(0.0)
    waited = 'scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="1"}'
    assert figures(world)[waited] == 0.0


def test_what_is_on_the_way_is_assumed() -> None:
    world = World(make.node())
    world.create(make.pod())
    world.step()
    found = figures(world)
    assert found["alnair_bindings_in_flight"] == 1
    assert found['scheduler_scheduler_cache_size{type="assumed_pods"}'] == 1


def test_gpus_count_by_state_and_nodes_by_free_gpus() -> None:
    world = World(make.node("a", gpus=4, gpu_memory=1000), make.node("b", gpus=2, gpu_memory=1000))
    world.create(make.pod("whole", make.spec(whole=1, selector={"kubernetes.io/hostname": "a"})))
    part = make.spec(slice_mib=250, compute=20, selector={"kubernetes.io/hostname": "a"})
    world.create(make.pod("part", part))
    world.settle(0.0)
    found = figures(world)
    assert [found[f'alnair_gpus{{state="{s}"}}'] for s in ("free", "shared", "whole")] == [4, 1, 1]
    assert found["alnair_gpu_memory_bytes"] == 6000 * make.MIB
    assert found["alnair_gpu_memory_free_bytes"] == 4750 * make.MIB
    assert found["alnair_gpu_compute_free_gpus"] == pytest.approx(4.8)
    assert found["alnair_gpu_fragmentation_ratio"] == pytest.approx(750 / 4750)
    nodes = [found[f'alnair_gpu_nodes{{free_gpus="{n}"}}'] for n in range(3)]
    assert nodes == [0, 0, 2]


def test_gangs_count_by_state() -> None:
    world = World(make.node())
    for name, there in (("short", 1), ("whole", 2)):
        world.declare(make.gang(name, 2))
        world.create(*make.members(name, there))
    world.step()
    gangs = ("waiting", "planning", "running")
    assert [figures(world)[f'alnair_gangs{{state="{s}"}}'] for s in gangs] == [1, 1, 0]
    world.settle(0.0)
    assert [figures(world)[f'alnair_gangs{{state="{s}"}}'] for s in gangs] == [1, 0, 1]


def test_preemptions_count_with_their_victims() -> None:
    world = World(make.node(cpu=1000))
    small = make.spec(cpu=500)
    world.create(make.pod("a", small), make.pod("b", small))
    world.settle(0.0)
    world.create(make.pod("urgent", make.spec(cpu=1000), priority=9))
    world.settle(0.0)
    found = figures(world)
    assert found["scheduler_preemption_attempts_total"] == 1
    assert found["scheduler_preemption_victims_sum"] == 2


def test_pods_that_a_quota_keeps_back_count_for_it() -> None:
    world = World(make.node())
    quota = Quota("q", min={"cpu": 100}, max={"cpu": 100})
    world.inbox.append(events.ObjectChanged("ElasticQuota", "default", "q", quota))
    world.create(make.pod("over", make.spec(cpu=200)))
    world.settle(0.0)
    labels = 'plugin="ElasticQuota",profile="alnair-scheduler"'
    assert figures(world)[f"scheduler_unschedulable_pods{{{labels}}}"] == 1


def test_a_standby_shows_what_it_counted_and_no_state() -> None:
    text = render(SchedulerCounters(), None)
    assert 'leader_election_master_status{name="alnair-scheduler"} 0.0' in text
    assert "scheduler_pending_pods" not in text
    assert "scheduler_preemption_attempts_total 0.0" in text


def test_a_value_on_a_bound_belongs_to_its_bucket_and_buckets_add_up() -> None:
    values = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        values.observe(value)
    assert text_of([histogram("h", "Help.", [({"a": "b"}, values)])]).splitlines() == [
        "# HELP h Help.",
        "# TYPE h histogram",
        'h_bucket{a="b",le="1"} 2.0',
        'h_bucket{a="b",le="2"} 3.0',
        'h_bucket{a="b",le="+Inf"} 4.0',
        'h_sum{a="b"} 12.0',
        'h_count{a="b"} 4.0',
    ]


def test_label_values_and_help_are_escaped() -> None:
    text = text_of([counter("c_total", "two\nlines", [({"l": 'a"b\\c\nd'}, 1)])])
    assert text.splitlines() == [
        r"# HELP c_total two\nlines",
        "# TYPE c_total counter",
        r'c_total{l="a\"b\\c\nd"} 1.0',
    ]


def everything() -> str:
    """A page on which every family has samples."""
    world = busy_world()
    world.engine.counters.preempted(2)
    world.engine.counters.evicted("Preempted")
    world.engine.counters.ran("Bind", "Success", "alnair-scheduler", 0.002)
    configuration = text_of(of_configuration({"applied": 1}, "", 1.0))
    return render(world.engine.counters, census(world.engine.view)) + configuration


def test_the_configuration_in_force_and_the_file_can_be_told_apart() -> None:
    text = text_of(of_configuration({"refused": 2}, "it has no profiles", 1.0))
    assert "alnair_configuration_in_force 0.0" in text
    assert 'alnair_configuration_reloads_total{result="refused"} 2.0' in text
    assert "alnair_configuration_in_force 1.0" in text_of(of_configuration({}, "", 1.0))


def test_every_family_is_there_once_with_help_and_samples() -> None:
    text = everything()
    families = re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)
    assert len(families) == len(set(families))
    assert not [f for f in families if not re.search(rf"^{f}\S* ", text, re.MULTILINE)]


def test_promtool_finds_nothing_to_complain_about() -> None:
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (Debian, Ubuntu: apt-get install prometheus)")
    run = subprocess.run(
        ["promtool", "check", "metrics"],
        input=everything(),
        text=True,
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


async def test_the_page_is_served_as_prometheus_reads_it() -> None:
    app = application(Decisions(), lambda: True, lambda: metrics(SchedulerCounters(), None))
    async with TestClient(TestServer(app)) as client:
        answer = await client.get("/metrics")
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "process_cpu_seconds_total" in await answer.text()


def test_openmetrics_is_for_those_who_ask_for_it() -> None:
    values = Histogram((1.0,))
    values.observe(0.5)
    families = [
        histogram("h", "Help.", [({}, values)]),
        counter("c_total", "Help.", [({}, 2)]),
        gauge("g", "Help.", [({"l": "x"}, 3)]),
    ]
    body, content_type = exposition(families, "application/openmetrics-text;version=1.0.0,*/*")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    read = {family.name: family for family in openmetrics_families(body.decode())}
    assert {name: family.type for name, family in read.items()} == {
        "h": "histogram",
        "c": "counter",
        "g": "gauge",
    }
    bounds = [s.labels["le"] for s in read["h"].samples if s.name == "h_bucket"]
    assert bounds == ["1.0", "+Inf"]
    assert body.endswith(b"# EOF\n")


def test_names_types_labels_and_helps_are_those_that_users_know() -> None:
    golden = Path(__file__).parents[3] / "golden" / "metrics-of-the-scheduler.tsv"
    assert described(everything()) == golden.read_text().splitlines()


def test_the_reference_lists_every_metric() -> None:
    page = Path(__file__).parents[4] / "docs" / "reference" / "metrics.md"
    families = set(re.findall(r"^# TYPE (\S+) ", everything(), re.MULTILINE))
    assert families == set(re.findall(r"^\| `(\w+)", page.read_text(), re.MULTILINE))
