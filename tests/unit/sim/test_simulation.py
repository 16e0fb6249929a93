"""The simulation: what happens when, on a virtual clock."""

import math
from collections.abc import Sequence

import msgspec
import pytest

from alnair.history.history import History, Stay
from alnair.history.metrics import compute
from alnair.model.elastic_plan import Cluster, ElasticDemand, Plan
from alnair.scheduler.profiles import profiles
from alnair.sim.duration_estimates import Durations, Estimates
from alnair.sim.interference import Proportional, Tenant, measured
from alnair.sim.jobs import Elastic, Job, NodeEvent
from alnair.sim.simulation import Simulation, SimulationOptions
from kit import invariants, make
from kit.simulation import job, random_scenario, simulate
from kit.world import World


def stays(history: History, name: str) -> list[Stay]:
    """All stays of a job's pods, in the order of their creation."""
    return [stay for uid in history.jobs[name].pods for stay in history.pods[uid].stays]


def test_a_job_runs_from_its_submission_for_its_duration() -> None:
    history, _ = simulate([make.node(gpus=1)], job("one", at=50, duration=100))
    assert history.jobs["one"].finished == 150
    [stay] = stays(history, "one")
    assert (stay.node, stay.begin, stay.end, stay.how) == ("node", 50, 150, "completed")
    assert [part.milli for part in stay.gpus] == [1000]
    assert history.end == 150


def test_a_job_that_finds_no_room_waits_for_the_one_before_it() -> None:
    history, _ = simulate([make.node(gpus=1)], job("one"), job("two", at=10))
    assert stays(history, "two")[0].begin == 100
    assert history.jobs["two"].finished == 200
    assert history.pods["uid-default-two"].refused == ""


def test_a_job_that_asks_for_memory_of_a_gpu_alone_is_one_that_shares_a_gpu() -> None:
    quarter = make.spec(slice_mib=4096)
    both = make.spec(slice_mib=4096, compute=50)
    nodes = [make.node("large", gpus=2), make.node("small", gpus=1, gpu_memory=16384)]
    history, _ = simulate(nodes, job("one", quarter), job("two", quarter, pods=2), job("a", both))
    found = {name: each.gpus for name, each in history.jobs.items()}
    assert found == {"one": 0.25, "two": 0.5, "a": 0.5}
    assert {size: times.over.count for size, times in compute(history).wait.items()} == {
        "all": 3,
        "shared": 3,
    }


def test_a_job_that_never_fits_is_left_with_the_reason() -> None:
    history, simulation = simulate([make.node(gpus=1)], job("big", make.spec(whole=2)), job("one"))
    assert history.jobs["big"].finished is None
    assert "Insufficient nvidia.com/gpu" in history.pods["uid-default-big"].refused
    assert simulation.progress.submitted - simulation.progress.finished == 1
    assert simulation.pods_waiting() == 1


def test_pods_of_a_gang_start_together_or_not_at_all() -> None:
    nodes = [make.node("a", gpus=1), make.node("b", gpus=1)]
    history, _ = simulate(
        nodes, job("one", duration=70), job("gang", at=1, pods=2, gang=True), job("late", at=2)
    )
    begins = {stay.begin for stay in stays(history, "gang")}
    assert len(begins) == 1
    assert begins.pop() >= 70
    assert all(found.finished is not None for found in history.jobs.values())


def test_it_stops_when_it_is_told_to() -> None:
    history, simulation = simulate(
        [make.node(gpus=1)],
        job("one", duration=math.inf),
        job("two", at=90),
        options=SimulationOptions(until=60),
    )
    assert history.end == simulation.time == 60
    assert list(history.jobs) == ["one"]
    assert stays(history, "one")[0].end is None


def test_work_since_the_last_checkpoint_is_done_again_after_an_eviction() -> None:
    whole = make.spec(whole=1)
    history, simulation = simulate(
        [make.node(gpus=1)],
        job("low", whole, duration=1000),
        job("high", whole, at=250, duration=100, priority=10),
        options=SimulationOptions(checkpoint=100, grace=30),
    )
    first, second = stays(history, "low")
    assert (first.how, first.end, first.lost) == ("preempted", 280, 50)
    assert stays(history, "high")[0].begin == 280
    assert second.begin == 380
    assert second.end == 380 + 1000 - 200
    assert simulation.work == (pytest.approx(1100 + 50), 50)
    assert first.used == 250, "in its grace period it works no more"


def test_without_checkpoints_an_evicted_pod_begins_anew() -> None:
    history, simulation = simulate(
        [make.node(gpus=1)],
        job("low", duration=1000),
        job("high", at=250, duration=100, priority=10),
        options=SimulationOptions(grace=0),
    )
    assert [stay.lost for stay in stays(history, "low")] == [250, 0]
    assert history.jobs["low"].finished == 350 + 1000
    assert simulation.work[1] == 250


def test_a_pod_in_place_of_another_is_never_taken_for_a_job_of_its_name() -> None:
    big, small = make.spec(whole=8), make.spec(whole=1)
    others = [job(f"a{mark}1", small, at=1, duration=1000) for mark in ("-r", "-", ".")]
    history, _ = simulate(
        [make.node(gpus=8), make.node("other", gpus=4)],
        job("a", big, duration=100),
        *others,
        job("above", big, at=5, duration=10, priority=9),
    )
    assert len(history.jobs["a"].pods) == 2, "it was preempted, and there is another pod of it"
    assert all(found.finished is not None for found in history.jobs.values())


def test_a_gang_waits_for_a_pod_that_its_node_took_away_and_falls_back_as_a_whole() -> None:
    nodes = [make.node("a", gpus=1), make.node("b", gpus=1)]
    back = NodeEvent(900, "joins", nodes[1])
    history, _ = simulate(
        nodes,
        job("gang", pods=2, gang=True, duration=600),
        node_events=(NodeEvent(400, "fails", nodes[1]), back),
    )
    gone, stayed = sorted(stays(history, "gang")[:2], key=lambda stay: stay.how != "lost")
    assert (gone.node, gone.how, gone.end, gone.lost) == ("b", "lost", 400, 400)
    assert (stayed.node, stayed.lost) == ("a", 400)
    assert history.jobs["gang"].finished == 900 + 600
    assert stayed.used == 400 + 600, "it holds its GPU while it waits, and does not use it"
    assert history.nodes["b"].up == [(0, 400), (900, None)]


def test_what_shares_a_gpu_gets_its_part_of_the_time() -> None:
    half = make.spec(slice_mib=16000, compute=50, soft=True)
    history, _ = simulate(
        [make.node(gpus=1)],
        job("one", half, duration=300, util=80),
        job("two", half, at=100, duration=300, util=80),
        interference=Proportional(),
    )
    # Alone until 100; then both at 100 / 160 of their speed.
    assert history.jobs["one"].finished == pytest.approx(100 + 200 * 1.6)
    assert history.jobs["two"].finished == pytest.approx(420 + (300 - 200))
    [pair] = history.pairs
    assert (pair.first, pair.second, pair.seconds) == ("one", "two", pytest.approx(320))
    assert pair.first_rate == pair.second_rate == pytest.approx(0.625)
    assert stays(history, "one")[0].used == pytest.approx(300 * 0.8)


def test_a_hard_limit_of_compute_bounds_what_a_pod_uses_alone_too() -> None:
    history, _ = simulate(
        [make.node(gpus=1)],
        job("one", make.spec(slice_mib=16000, compute=50), duration=300),
        job("two", make.spec(slice_mib=16000, compute=50), duration=300),
        interference=Proportional(),
    )
    assert [found.finished for found in history.jobs.values()] == [300, 300]


def test_pairs_that_were_measured_run_as_measured() -> None:
    kinds = ("ResNet-50 (batch size 64)", "A3C")
    tenants = [Tenant(90.0, kind) for kind in kinds]
    assert measured().rates(tenants, "V100M32") == (0.671, 0.235)
    assert measured().rates(tenants, "K80") != measured().rates(tenants, "V100")
    # What did not fit together when it was measured, and what nobody measured, is proportional.
    for kind in ("ResNet-50 (batch size 128)", "my own"):
        assert (
            measured().rates([Tenant(90.0, kind), Tenant(60.0, "A3C")], "V100") == [100 / 150] * 2
        )


@pytest.mark.parametrize(
    ("mode", "limit"), [("exact", 100), ("limit", 7), ("learned", 0), ("none", 0)]
)
def test_the_scheduler_is_told_of_durations_as_chosen(mode: Durations, limit: int) -> None:
    given = job("one", duration=99.5)
    given = msgspec.structs.replace(
        given, pods=(msgspec.structs.replace(given.pods[0], time_limit=7),)
    )
    _, simulation = simulate(
        [make.node(gpus=1)], given, options=SimulationOptions(durations=mode, until=10)
    )
    [pod] = simulation.api.pods.values()
    assert pod.time_limit == limit


def test_learned_durations_are_high_quantiles_of_what_the_user_ran_before() -> None:
    estimates = Estimates("learned")
    done = [job(f"j{i}", user="ann", kind="bert", duration=float(i)) for i in range(1, 11)]
    for each in done:
        assert estimates.of(each, 5) == (0 if each.duration <= 3 else round(each.duration) - 1)
        estimates.learn(each)
    assert estimates.of(done[0], 5) == 9
    assert estimates.of(job("new", user="ann", kind="gpt"), 5) == 9, "then all of the user's"
    assert estimates.of(job("new", user="bob", kind="bert"), 5) == 0


class Greedy:
    """Grows each job into what is idle; shrinks all to their least while others wait."""

    def plan(self, jobs: Sequence[ElasticDemand], cluster: Cluster, now: float) -> Plan:
        if not all(cluster.room.place(claim.key, 1) for claim in cluster.claims):
            return Plan({each.key: each.least for each in jobs})
        found = {}
        for each in jobs:
            found[each.key] = each.size
            while found[each.key] < each.wish and cluster.room.place(each.key, 1):
                found[each.key] += 1
        return Plan(found)


def test_an_elastic_job_grows_into_idle_gpus_and_shrinks_on_demand() -> None:
    history, simulation = simulate(
        [make.node(gpus=4)],
        job("elastic", duration=1000, elastic=Elastic(least=1, most=4)),
        job("other", make.spec(whole=3), at=100, duration=200),
        elastic=Greedy(),
    )
    # At 4 times its speed until 100 and from 300 on, alone between.
    assert stays(history, "other")[0].begin == 100
    assert history.jobs["elastic"].finished == pytest.approx(300 + (1000 - 400 - 200) / 4)
    assert simulation.work[1] == 0, "an elastic job loses no work"


def test_an_elastic_job_speeds_up_as_its_curve_says() -> None:
    history, _ = simulate(
        [make.node(gpus=4)],
        job("elastic", duration=1000, elastic=Elastic(least=1, most=8, speeds=(1.0, 1.6, 2.0))),
        elastic=Greedy(),
    )
    assert history.jobs["elastic"].finished == pytest.approx(500)


def test_pods_that_run_at_the_begin_are_taken_over() -> None:
    node = make.node(gpus=2)
    [gpu, _] = node.gpus
    pod = make.pod(
        "old",
        make.spec(whole=1),
        node="node",
        bound_at=-400.0,
        assignment=(("main", (make.share(gpu),)),),
    )
    history, _ = simulate(
        [node],
        job("new", make.spec(whole=2)),
        running=(Job(name="old", submitted=0.0, pods=(pod,), duration=500),),
    )
    assert history.jobs["old"].finished == 100
    assert stays(history, "new")[0].begin == 100


def test_what_agents_measure_reaches_the_scheduler() -> None:
    """Two busy pods leave a GPU alone that a third could share, by the loads of its node."""
    node = make.node(gpus=2)
    some = make.spec(slice_mib=8000, compute=30, soft=True)
    _, simulation = simulate(
        [node],
        job("one", some, util=95, duration=math.inf),
        job("two", some, at=600, util=95, duration=math.inf),
        options=SimulationOptions(loads=True, profile=make.names.UTILSCHED, until=1000),
        interference=Proportional(),
    )
    used = [share.uuid for pod in simulation.api.pods.values() for _, (share,) in pod.assignment]
    assert len(set(used)) == 2
    assert [load.util for load in simulation.api.nodes["node"].loads] == [95, 95]
    assert not simulation.engine.view.cluster.loads.stale(0), "the agents are alive"


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_nothing_is_over_committed_and_no_work_is_lost_from_sight(
    seed: int,
) -> None:
    scenario = random_scenario(seed, jobs=40)
    options = SimulationOptions(
        seed=seed,
        durations=("exact", "learned", "none")[seed % 3],
        checkpoint=0 if seed % 2 else 300,
        loads=seed % 2 == 0,
        profile=make.names.UTILSCHED if seed % 2 == 0 else "",
    )
    simulation = Simulation(scenario, profiles(), options, interference=measured())
    room = World(check=False)
    room.pods, room.nodes = simulation.api.pods, simulation.api.nodes
    while simulation.advance(10):
        invariants.check(simulation.engine)
        room.check_room()
    history = simulation.history()
    for found in history.jobs.values():
        assert found.finished is not None or any(history.pods[uid].refused for uid in found.pods)
    for pod in history.pods.values():
        assert pod.gone is not None or pod.refused or pod.stays[-1].how
    # Work is conserved: all that was done counts or was lost.
    executed, lost = simulation.work
    tasks = [
        found.duration * (1 if found.gang is not None else len(found.pods))
        for found in scenario.jobs
        if history.jobs[found.name].finished is not None
    ]
    if simulation.progress.finished == simulation.progress.submitted:
        assert executed == pytest.approx(sum(tasks) + lost)
    assert len(tasks) > 30
