"""Pods in NUMA zones: the columns agree with a plain walk over zones, and lag is accounted for."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.numa_topology import SINGLE_NUMA, NumaTopology, NumaZone
from alnair.model.pods_fingerprint import pods_fingerprint
from alnair.model.workload import ContainerPart, PodSpec
from alnair.scheduler.framework.arguments import ArgumentError, made
from alnair.scheduler.framework.extension_points import Reason
from alnair.scheduler.plugins.gpu_share.plugin import GpuShare
from alnair.scheduler.plugins.node_resource_topology_match.plugin import NodeResourceTopologyMatch
from alnair.scheduler.state.accounts import Accounts, Record, State
from kit import make

GUEST = "example.com/nic"


def put(accounts: Accounts, name: str, topology: NumaTopology | None, **node: Any) -> None:
    accounts.put_node(make.node(name, cpu=64_000, extended={GUEST: 8}, **node))
    if topology:
        accounts.objects.put("NodeResourceTopology", ("", name), topology)


def zones(*amounts: dict[str, int], **rest: Any) -> NumaTopology:
    return NumaTopology(
        tuple(NumaZone(i, tuple(sorted(a.items()))) for i, a in enumerate(amounts)),
        **{"policy": SINGLE_NUMA, **rest},
    )


def asking(*parts: dict[str, int], guaranteed: bool = True, init: int = 0) -> PodSpec:
    """A pod of such containers, the first `init` of them init containers."""
    containers = tuple(
        ContainerPart(tuple(sorted(p.items())), init=i < init) for i, p in enumerate(parts)
    )
    totals = {name: 0 for p in parts for name in p}
    for name in totals:
        apps = sum(p.get(name, 0) for p in parts[init:])
        totals[name] = max([apps, *(p.get(name, 0) for p in parts[:init])])
    return PodSpec(
        requests=tuple(sorted({**totals, "pods": 1}.items())),
        guaranteed=guaranteed,
        containers=containers,
    )


def verdicts(accounts: Accounts, spec: PodSpec) -> dict[str, str]:
    """Why each node is refused, empty where it is not; all rows at once and one by one."""
    compiled = NodeResourceTopologyMatch().filter(spec, accounts.cluster)
    found = {}
    rows = slice(0, accounts.columns.n)
    for name, row in accounts.columns.row_of.items():
        if compiled is None:
            found[name] = ""
            continue
        one = slice(row, row + 1)
        texts = [reason.text for reason, mask in compiled.reasons(one) if mask[0]]
        assert bool(compiled(one)[0]) == bool(compiled(rows)[row]) == (not texts)
        found[name] = texts[0] if texts else ""
    return found


# --- against a plain walk -------------------------------------------------------------------------


def lowest(wanted: dict[str, int], there: Sequence[dict[str, int]], guaranteed: bool) -> int | None:
    for number, zone in enumerate(there):
        for name, amount in wanted.items():
            if name == GUEST and not any(GUEST in z for z in there):
                continue
            shared = not guaranteed and name in ("cpu", "memory")
            if name not in zone or (zone[name] < amount and not shared):
                break
        else:
            return number
    return None


def walk(spec: PodSpec, topology: NumaTopology) -> str:
    there = [dict(z.available) for z in topology.zones]
    if topology.pod_scope:
        total = {n: a for n, a in spec.requests if n != "pods"}
        return "" if lowest(total, there, spec.guaranteed) is not None else "cannot align pod"
    for part in spec.containers:
        wanted = dict(part.requests)
        number = lowest(wanted, there, spec.guaranteed)
        if number is None:
            return "cannot align init container" if part.init else "cannot align container"
        for name, amount in wanted.items():
            shared = not spec.guaranteed and name in ("cpu", "memory")
            if not part.init and name in there[number] and not shared:
                there[number][name] -= amount
    return ""


amounts = st.fixed_dictionaries(
    {"cpu": st.sampled_from((1000, 2000, 3000))},
    optional={"memory": st.sampled_from((1, 2, 3)), GUEST: st.sampled_from((1, 2))},
)
supplies = st.fixed_dictionaries(
    {"memory": st.sampled_from((1, 3, 5))},
    optional={"cpu": st.sampled_from((0, 2000, 4000)), GUEST: st.sampled_from((0, 1, 3))},
)
topologies = st.builds(
    lambda supply, pod: zones(*supply, pod_scope=pod),
    st.lists(supplies, min_size=1, max_size=4),
    st.booleans(),
)
specs = st.builds(
    lambda parts, guaranteed, init: asking(*parts, guaranteed=guaranteed, init=init % len(parts)),
    st.lists(amounts, min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 1),
)


@given(spec=specs, described=st.lists(topologies, min_size=1, max_size=5))
def test_the_columns_refuse_what_a_walk_over_the_zones_refuses(
    spec: PodSpec, described: list[NumaTopology]
) -> None:
    accounts = Accounts()
    for number, topology in enumerate(described):
        put(accounts, f"n{number}", topology)
    put(accounts, "silent", None)
    want = {f"n{i}": walk(spec, topology) for i, topology in enumerate(described)}
    assert verdicts(accounts, spec) == {**want, "silent": ""}


# --- reports --------------------------------------------------------------------------------------


def bind(accounts: Accounts, name: str, spec: PodSpec, now: float) -> Record:
    record = Record(make.pod(name, spec))
    accounts.records[record.pod.uid] = record
    accounts.place(record, "n", State.BOUND, now, ())
    return record


FIVE = asking({"cpu": 5000, "memory": 1})
TWO_ZONES = ({"cpu": 8000, "memory": 9}, {"cpu": 8000, "memory": 9})


@pytest.mark.parametrize("pod_scope", [False, True])
def test_what_a_report_cannot_count_yet_is_taken_from_the_zone_that_the_kubelet_chooses(
    pod_scope: bool,
) -> None:
    accounts = Accounts()
    nobody = pods_fingerprint([])
    put(
        accounts,
        "n",
        zones(*TWO_ZONES, reported=1000.0, pod_scope=pod_scope, fingerprint=nobody),
    )
    first = bind(accounts, "first", FIVE, 1000.4)
    assert verdicts(accounts, FIVE) == {"n": ""}, "the other zone is whole"
    bind(accounts, "second", FIVE, 1001.0)
    assert verdicts(accounts, FIVE)["n"].startswith("cannot align")
    accounts.release(first, State.FINISHED)
    assert verdicts(accounts, FIVE) == {"n": ""}


def test_a_later_report_counts_the_pods_itself() -> None:
    accounts = Accounts()
    put(accounts, "n", zones(*TWO_ZONES, reported=1000.0))
    bind(accounts, "first", FIVE, 1000.4)
    small = ({"cpu": 3000, "memory": 8}, {"cpu": 8000, "memory": 9})
    accounts.objects.put("NodeResourceTopology", ("", "n"), zones(*small, reported=1002.0))
    free = accounts.zones.free[accounts.zones.resources["cpu"], :, 0]
    assert free.tolist() == [3000, 8000]
    bind(accounts, "second", FIVE, 1003.0)
    assert verdicts(accounts, FIVE)["n"] == "cannot align container"


def test_a_first_report_may_count_pods_that_left_so_lower_zones_are_taken_too() -> None:
    """The kubelet may find room in a lower zone than we know of."""
    accounts = Accounts()
    small = ({"cpu": 3000, "memory": 9}, {"cpu": 8000, "memory": 9}, {"cpu": 9000, "memory": 9})
    put(accounts, "n", zones(*small, reported=1000.0))
    bind(accounts, "first", FIVE, 1001.0)
    cpu = accounts.zones.resources["cpu"]
    assert accounts.zones.free[cpu, :, 0].tolist() == [0, 3000, 9000]


def fingerprinted(reported: float, *pods: str, cpu: tuple[int, int] = (3000, 8000)) -> NumaTopology:
    amounts = [{"cpu": amount, "memory": 8} for amount in cpu]
    fingerprint = pods_fingerprint(("default", name) for name in pods)
    return zones(*amounts, reported=reported, fingerprint=fingerprint)


def test_a_fingerprint_tells_better_than_the_time_which_pods_are_counted() -> None:
    accounts = Accounts()
    put(accounts, "n", zones(*TWO_ZONES, reported=1000.0))

    def free(report: NumaTopology) -> list[float]:
        accounts.objects.put("NodeResourceTopology", ("", "n"), report)
        return list(accounts.zones.free[accounts.zones.resources["cpu"], :, 0].tolist())

    bind(accounts, "first", FIVE, 1000.4)
    assert free(fingerprinted(1000.0, "first")) == [3000, 8000], "in the same second"
    second = bind(accounts, "second", FIVE, 1001.0)
    assert free(fingerprinted(1005.0, "first", "old")) == [3000, 3000], "not the second one yet"
    both = fingerprinted(1006.0, "first", "second", cpu=(3000, 3000))
    assert free(both) == [3000, 3000]
    accounts.release(second, State.FINISHED)
    assert free(fingerprinted(1007.0, "first")) == [3000, 8000]
    bind(accounts, "third", FIVE, 1008.0)
    assert free(fingerprinted(1020.0, "other")) == [3000, 3000]
    assert free(fingerprinted(1040.0, "other")) == [3000, 8000], "nothing waits for ever"


def test_pods_that_leave_may_leave_those_that_the_report_counts() -> None:
    accounts = Accounts()
    put(accounts, "n", zones(*TWO_ZONES, reported=1000.0))
    bind(accounts, "first", FIVE, 1000.4)
    gone = bind(accounts, "gone", FIVE, 1000.6)
    accounts.objects.put("NodeResourceTopology", ("", "n"), fingerprinted(1000.0, "first"))
    accounts.release(gone, State.FINISHED)
    assert accounts.zones.free[accounts.zones.resources["cpu"], :, 0].tolist() == [3000, 8000]


def test_a_fingerprint_may_be_of_exclusive_pods_only() -> None:
    accounts = Accounts()
    put(accounts, "n", zones(*TWO_ZONES, reported=1000.0))
    bind(accounts, "first", FIVE, 1000.4)
    bind(accounts, "shared", make.spec(), 1000.5)
    report = msgspec.structs.replace(fingerprinted(1000.0, "first"), exclusive_only=True)
    accounts.objects.put("NodeResourceTopology", ("", "n"), report)
    assert accounts.zones.free[accounts.zones.resources["cpu"], :, 0].tolist() == [3000, 8000]


def test_only_reports_of_more_room_help_pods_that_wait() -> None:
    """After each binding comes a report that says what we know."""
    accounts = Accounts()
    put(accounts, "n", fingerprinted(1000.0, cpu=(8000, 8000)))
    first = bind(accounts, "first", asking({"cpu": 5000}), 1001.0)
    put_ = accounts.objects.put
    known = fingerprinted(1002.0, "first", cpu=(3000, 8000))
    assert not put_("NodeResourceTopology", ("", "n"), known)
    less = fingerprinted(1003.0, "first", cpu=(3000, 7000))
    assert not put_("NodeResourceTopology", ("", "n"), less)
    accounts.release(first, State.FINISHED)
    assert put_("NodeResourceTopology", ("", "n"), fingerprinted(1004.0, cpu=(8000, 7000)))
    relaxed = msgspec.structs.replace(less, policy="none")
    assert put_("NodeResourceTopology", ("", "n"), relaxed)
    assert not put_("NodeResourceTopology", ("", "of nobody"), less)
    assert accounts.objects.remove("NodeResourceTopology", ("", "n"))


def test_a_pod_that_fits_no_zone_is_counted_in_all_of_them() -> None:
    accounts = Accounts()
    put(accounts, "n", zones(*TWO_ZONES, reported=1000.0))
    bind(accounts, "foreign", asking({"cpu": 9000, "memory": 1}), 1001.0)
    assert accounts.zones.free[accounts.zones.resources["cpu"], :, 0].tolist() == [0, 0]


def test_reports_that_come_first_go_or_cannot_be_read() -> None:
    accounts = Accounts()
    accounts.objects.put("NodeResourceTopology", ("", "n"), zones({"cpu": 1000, "memory": 9}))
    accounts.put_node(make.node("n"))
    assert verdicts(accounts, FIVE)["n"] == "cannot align container"
    broken = NumaTopology(policy=SINGLE_NUMA, problem="zone node-0: x")
    accounts.objects.put("NodeResourceTopology", ("", "n"), broken)
    assert verdicts(accounts, FIVE)["n"] == "invalid node topology data"
    broken = msgspec.structs.replace(broken, policy="none")
    accounts.objects.put("NodeResourceTopology", ("", "n"), broken)
    assert verdicts(accounts, FIVE)["n"] == ""
    accounts.objects.remove("NodeResourceTopology", ("", "n"))
    assert verdicts(accounts, FIVE) == {"n": ""}
    accounts.remove_node("n")
    put(accounts, "n", zones({"cpu": 1000, "memory": 9}, policy="restricted"))
    assert verdicts(accounts, FIVE) == {"n": ""}, "only single-numa-node refuses"


def test_a_report_without_zones_has_no_room_and_breaks_nothing() -> None:
    accounts = Accounts()
    accounts.put_node(make.node("n", gpus=2))
    accounts.objects.put("NodeResourceTopology", ("", "n"), zones())
    assert verdicts(accounts, FIVE)["n"] == "cannot align container"
    two = make.spec(whole=2)
    assert GpuShare().reserve(two, 0, accounts.cluster)
    score = NodeResourceTopologyMatch().score(FIVE, accounts.cluster)
    assert score is not None
    assert score(slice(0, 1)).tolist() == [0]


def test_nodes_with_very_many_zones_are_not_searched_for_ever() -> None:
    accounts = Accounts()
    put(accounts, "n", zones(*[{"cpu": 1000, "memory": 1}] * 64, policy="none"))
    score = scoring("LeastNUMANodes").score(FIVE, accounts.cluster)
    assert score is not None
    assert score(slice(0, 1)).tolist() == [0]


def test_sidecars_keep_their_zone() -> None:
    accounts = Accounts()
    put(accounts, "n", zones(*TWO_ZONES))
    part = ContainerPart((("cpu", 5000), ("memory", 1)))
    sidecar = ContainerPart(part.requests, init=True, sidecar=True)
    init = ContainerPart(part.requests, init=True)
    requests = (("cpu", 5000), ("memory", 1), ("pods", 1))

    def pod(*parts: ContainerPart) -> PodSpec:
        return PodSpec(requests, guaranteed=True, containers=parts)

    assert verdicts(accounts, pod(init, init, part, part)) == {"n": ""}
    assert verdicts(accounts, pod(sidecar, part)) == {"n": ""}
    assert verdicts(accounts, pod(sidecar, part, part))["n"] == "cannot align container"


def test_nothing_is_compiled_where_nothing_can_be_refused() -> None:
    accounts = Accounts()
    put(accounts, "n", None)
    plugin = NodeResourceTopologyMatch()
    assert plugin.filter(FIVE, accounts.cluster) is plugin.score(FIVE, accounts.cluster) is None
    put(accounts, "m", zones(*TWO_ZONES))
    assert plugin.filter(FIVE, accounts.cluster) is not None
    quiet = PodSpec(requests=(("pods", 1),))
    assert plugin.filter(quiet, accounts.cluster) is None


# --- scores ---------------------------------------------------------------------------------------


def scoring(strategy: str = "LeastAllocated", **rest: Any) -> NodeResourceTopologyMatch:
    arguments = {"scoringStrategy": {"type": strategy, **rest}}
    plugin: NodeResourceTopologyMatch = made(NodeResourceTopologyMatch, arguments)
    return plugin


@pytest.mark.parametrize(
    ("strategy", "want"),
    [
        ("LeastAllocated", [37, 68, 0]),
        ("MostAllocated", [62, 31, 0]),
        ("BalancedAllocation", [71, 92, 0]),
        ("LeastNUMANodes", [94, 94, 82]),
    ],
)
def test_strategies_score_zones(strategy: Any, want: list[int]) -> None:
    accounts = Accounts()
    put(accounts, "tight", zones({"cpu": 5000, "memory": 4}))
    put(accounts, "wide", zones({"cpu": 10000, "memory": 8}))
    put(accounts, "split", zones(*[{"cpu": 3000, "memory": 1}] * 2, policy="best-effort"))
    put(accounts, "silent", None)
    score = scoring(strategy).score(FIVE, accounts.cluster)
    assert score is not None
    assert score(slice(0, 4)).tolist() == [*want, 0]
    assert score(np.array([3, 1])).tolist() == [0, want[1]]
    assert score(slice(2, 3)).tolist() == [want[2]]


def test_other_qos_classes_are_well_off_anywhere() -> None:
    accounts = Accounts()
    put(accounts, "n", zones(*TWO_ZONES))
    score = NodeResourceTopologyMatch().score(make.spec(), accounts.cluster)
    assert score is not None
    assert score(slice(0, 1)).tolist() == score(np.array([0])).tolist() == [100]


def test_arguments_are_checked() -> None:
    with pytest.raises(ArgumentError, match="Invalid enum value 'Worst'"):
        scoring("Worst")
    with pytest.raises(ArgumentError, match="weight: 0 is out of range"):
        scoring(resources=[{"name": "cpu", "weight": 0}])


def test_weights_of_resources_count() -> None:
    accounts = Accounts()
    put(accounts, "n", zones({"cpu": 10000, "memory": 8}))
    score = scoring(resources=[{"name": "cpu", "weight": 3}]).score(FIVE, accounts.cluster)
    assert score is not None
    assert score(slice(0, 1)).tolist() == [(3 * 50 + 87) // 4]


def test_reasons_are_those_of_the_plugin() -> None:
    accounts = Accounts()
    put(accounts, "n", zones({"cpu": 1000}))
    compiled = NodeResourceTopologyMatch().filter(FIVE, accounts.cluster)
    assert compiled is not None
    assert Reason("cannot align container") in [r for r, _ in compiled.reasons(slice(0, 1))]
