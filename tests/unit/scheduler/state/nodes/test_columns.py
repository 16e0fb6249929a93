"""Columns, labels, devices and logs, where their edges are."""

import numpy as np
import pytest

from alnair.model.nodes import Node
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFit
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.gpus.devices import CLOSED, Booking, Devices
from alnair.scheduler.state.nodes import columns
from alnair.scheduler.state.nodes.columns import ChangeLog, Columns
from alnair.scheduler.state.nodes.labels import ABSENT
from kit import make


def test_readers_of_a_log_get_what_they_have_not_read() -> None:
    log = ChangeLog()
    for row in (1, 2, 2):
        log.add(row)
    assert log.since(0) == [1, 2, 2]
    assert log.since(2) == [2]
    assert log.since(log.end) == []


def test_a_reader_that_is_far_behind_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_LOG_LIMIT", 3)
    log = ChangeLog()
    for row in range(3):
        log.add(row)
    current = log.end
    log.add(7)
    assert log.since(current) == [7]
    assert log.since(current - 1) is None


@pytest.mark.parametrize("log", ["booked", "nodes_changed"])
def test_an_evaluation_is_made_anew_when_either_log_overflowed(
    monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    monkeypatch.setattr(columns, "_LOG_LIMIT", 2)
    accounts = Accounts()
    for number in range(40):
        accounts.put_node(make.node(f"n{number}", cpu=1000))
    kept = Evaluations(accounts.cluster)
    spec = make.spec(cpu=600)
    best = kept.of(spec, profiles()[0]).best()
    assert best is not None
    name = f"n{best}"  # they got their rows in this order
    if log == "booked":
        accounts.place(Record(make.pod("p", spec)), name, State.BOUND, 0.0)
    else:
        accounts.put_node(make.node(name, cpu=100))
    for _ in range(4):
        getattr(accounts.columns, log).add(39)
    assert kept.of(spec, profiles()[0]).best() != best


def test_rows_of_removed_nodes_are_used_again() -> None:
    table = Columns()
    rows = [table.put(make.node(f"n{i}")) for i in range(3)]
    assert rows == [0, 1, 2]
    assert table.remove("n1") == 1
    assert table.remove("n1") is None
    assert len(table) == 2
    assert not table.alive[1]
    assert table.put(make.node("new", extended={"x/y": 3})) == 1
    assert table.free[table.resources["x/y"], 1] == 3
    assert table.n == 3


def test_an_update_keeps_what_is_booked_and_may_leave_less_than_nothing() -> None:
    table = Columns()
    row = table.put(make.node("n", cpu=1000, extended={"x/y": 2}))
    table.book(row, np.array([0]), np.array([700.0]), (700.0, 0.0))
    table.put(make.node("n", cpu=500))
    assert table.free[0, row] == -200
    assert table.free[table.resources["x/y"], row] == 0
    assert table.scored[0, row] == 700


def test_ties_are_one_permutation_of_the_names_whatever_the_order_of_arrival() -> None:
    names = [f"n{i}" for i in range(50)]

    def order(arrival: list[str], seed: int) -> list[str]:
        table = Columns(seed)
        for name in arrival:
            table.put(make.node(name))
        return sorted(names, key=lambda n: -table.tie[table.row_of[n]])

    assert order(names, 1) == order(names[::-1], 1)
    assert order(names, 1) != order(names, 2)
    assert len(set(order(names, -1))) == 50


def test_labels_are_interned_when_a_key_is_first_asked_for() -> None:
    table = Columns()
    for number in range(3):
        labels = {"zone": "ab"[number % 2]} if number else {}
        table.put(Node(f"n{number}", {}, labels))
    column = table.labels.column("zone")[:3]
    assert [ABSENT if v == ABSENT else table.labels.values("zone")[v] for v in column] == [
        ABSENT,
        "b",
        "a",
    ]
    table.put(Node("n0", {}, {"zone": "c"}))
    assert table.labels.values("zone")[table.labels.column("zone")[0]] == "c"
    assert (table.labels.column("never") == ABSENT).all()


def test_devices_grow_in_both_directions_and_keep_what_is_held() -> None:
    devices = Devices()
    devices.describe(0, [make.gpu("a", 0)])
    devices.book(0, [Booking(0, 1024, 30)])
    devices.describe(5, [make.gpu("b", i) for i in range(4)])
    assert devices.slice_memory[0, 0] == 40960 - 1024
    assert devices.whole_free[:6].tolist() == [0, 0, 0, 0, 0, 4]
    devices.book(0, [Booking(0, 1024, 30)], sign=-1)
    assert devices.whole_free[0] == 1


def test_an_unhealthy_gpu_keeps_what_is_on_it_and_is_free_for_nobody() -> None:
    devices = Devices()
    sick = make.gpu("a", 0, problem="it does not answer")
    devices.describe(0, [sick, make.gpu("a", 1)])
    assert devices.whole_free[0] == 1
    for held in (Booking(0, 1024, 30), Booking(0, whole=True)):
        devices.book(0, [held])
        assert devices.free_slots(0).tolist() == [False, True]
        assert devices.slice_memory[:, 0].tolist() == [CLOSED, 40960]
        assert not devices.overcommitted(0), "what is there is no more than what it has"
        devices.book(0, [held], sign=-1)
        assert devices.free_slots(0).tolist() == [False, True]
        assert devices.slice_memory[0, 0] == CLOSED
    devices.book(0, [Booking(0, whole=True), Booking(0, whole=True)])
    assert devices.overcommitted(0)


def test_excess_tells_how_far_a_row_is_over_committed() -> None:
    devices = Devices()
    devices.describe(0, [make.gpu("a", i, memory_mib=1000) for i in range(2)])
    assert devices.excess(0) == 0
    devices.book(0, [Booking(0, 1000, 100)])
    assert not devices.overcommitted(0)
    seen = [0.0]
    for extra in (
        Booking(0, whole=True),
        Booking(0, 10, 10),
        Booking(1, whole=True),
        Booking(1, whole=True),
    ):
        devices.book(0, [extra])
        seen.append(devices.excess(0))
    assert seen == sorted(seen)
    assert devices.overcommitted(0)


def test_a_node_that_claims_endless_gpus_is_not_believed() -> None:
    accounts = Accounts()
    accounts.put_node(make.node("n", nameless_gpus=10**18))
    assert accounts.devices.whole_free[0] == 256


def test_a_profile_has_exactly_one_order_of_the_queue() -> None:
    with pytest.raises(ValueError, match="exactly one plugin sorts the queue, found none"):
        Profile("x", [NodeResourcesFit()])
    with pytest.raises(ValueError, match="found PrioritySort, PrioritySort"):
        Profile("x", [PrioritySort(), PrioritySort()])
