"""What must hold of an engine after every step, recomputed from its records in plain Python."""

from collections import Counter

from alnair.model.nodes import Gpu
from alnair.model.workload import Labels, PodTerm
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.queue.queue import Queue
from alnair.scheduler.queue.unit import Place, Unit
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.objects.volume_index import VolumeIndex
from alnair.scheduler.state.pods.label_selectors import matches
from alnair.scheduler.state.pods.pod_index import TERM_KINDS


def check(engine: Engine) -> None:
    """Fail unless books, queue and counters agree with the records."""
    check_books(engine._accounts)
    check_queue(engine)
    check_hopes(engine)


def check_hopes(engine: Engine) -> None:
    """Fail if a class that waits is taken to fit nowhere, and a node would take it."""
    hopes = engine._quick_check._hopes
    hopes.follow()
    for waiting in engine._queue._parked.values():
        hopeful = hopes.of([waiting])
        lacking = [row for row in range(engine.view.cluster.columns.n) if hopes.lacks(waiting, row)]
        if waiting.class_key is None:
            assert hopeful, "any change may help it"
            continue
        hopes_on = bool(hopeful) and hopes.found(waiting)
        if hopes_on and not lacking:
            continue
        scheduler, spec = waiting.class_key
        evaluation = Evaluation(spec, engine._profiles[scheduler], engine.view.cluster)
        if evaluation.refusal is None:
            evaluation.refresh()
            assert not evaluation.possible()[lacking].any(), spec
            assert hopes_on or evaluation.best() is None, spec


def check_books(accounts: Accounts) -> None:
    """Fail unless columns and device table are what the records say."""
    columns, devices = accounts.columns, accounts.devices
    by_row: dict[int, list[Record]] = {}
    for record in accounts.records.values():
        held = record.state in (State.ASSUMED, State.BOUND)
        assert held == bool(record.node), "a pod has a node exactly while it holds something"
        row = columns.row_of.get(record.node, -1) if held else -1
        assert record.row == row, "a pod is booked exactly where its node is"
        if row >= 0:
            by_row.setdefault(row, []).append(record)
    assert {r: set(p) for r, p in accounts.on_row.items() if p} == {
        r: {x.pod.uid for x in records} for r, records in by_row.items()
    }
    check_pods(accounts)
    check_volumes(accounts)
    assert columns.n == len(columns.nodes)
    for row, node in enumerate(columns.nodes):
        records = by_row.get(row, [])
        assert bool(columns.alive[row]) == (node is not None)
        used: Counter[str] = Counter()
        for record in records:
            used.update(dict(record.pod.spec.requests))
        for name, column in columns.resources.items():
            there = node.allocatable.get(name, 0) if node else 0
            assert columns.allocatable[column, row] == there
            assert columns.free[column, row] == there - used[name], (node, name)
        assert columns.scored[0, row] == sum(r.pod.spec.scored_cpu for r in records)
        assert columns.scored[1, row] == sum(r.pod.spec.scored_memory for r in records)
        _check_devices(accounts, row, records)
        _check_neighbours(accounts, row, records)
    assert devices.slice_memory.shape[1] >= columns.n or not columns.n


def _check_neighbours(accounts: Accounts, row: int, records: list[Record]) -> None:
    """Fail unless the kind of a GPU's only tenant is told, and no other."""
    on_gpu: dict[int, list[str]] = {}
    for record in records:
        for booking in record.bookings:
            if not booking.whole:
                assert record.vector is not None
                on_gpu.setdefault(booking.slot, []).append(record.vector.spec.workload)
    kinds = list(accounts.neighbours.number)
    told = accounts.neighbours.kinds(slice(row, row + 1))[:, 0]
    for slot, number in enumerate(told):
        tenants = on_gpu.get(slot, [])
        assert kinds[number] == (tenants[0] if len(tenants) == 1 else "")


def check_pods(accounts: Accounts) -> None:
    """Fail unless the pod index counts just the pods that are booked, on their rows."""
    index = accounts.pods
    booked = [r for r in accounts.records.values() if r.row >= 0]
    rows: Counter[tuple[str, Labels, bool, bool, int]] = Counter()
    for record in booked:
        pod = record.indexed
        rows[pod.namespace, pod.labels, pod.deleting, record.expected, record.row] += 1
    found = {
        (*key, row): count
        for key, identity in index._identities.items()
        for row, count in identity.rows()
    }
    assert found == dict(rows)
    for query, count in index._counts.items():
        for row in range(accounts.columns.n):
            here = [
                r.indexed
                for r in booked
                if r.row == row
                and query.selector is not None
                and matches(query.selector, dict(r.indexed.labels))
                and (query.namespaces is None or r.indexed.namespace in query.namespaces)
                and not (query.skip_deleting and r.indexed.deleting)
            ]
            assert count.column[row] == len(here), (query, row)
    for kind in TERM_KINDS:
        holders: dict[tuple[PodTerm, str], Counter[int]] = {}
        for record in booked:
            affinity = record.indexed.spec.pod_affinity
            for term in getattr(affinity, kind) if affinity else ():
                rows_of = holders.setdefault((term, record.indexed.namespace), Counter())
                rows_of[record.row] += 1
        terms = {(held.term, held.namespace): held.rows for held in index.held(kind)}
        assert terms == holders


def check_volumes(accounts: Accounts) -> None:
    """Fail unless the volumes in use and the promises are those of the booked pods."""
    index, again = accounts.volumes, VolumeIndex()
    for record in accounts.records.values():
        if record.row >= 0:
            pod = record.pod
            again.add(record.row, record.node, pod.namespace, pod.spec.volumes, record.claims)
    assert index._on_row == again._on_row
    assert index._users == again._users
    assert index._promised == again._promised
    assert index._provisioned == again._provisioned
    assert all(len(claims) == 1 for claims in index._promised.values()), "a volume is shared"


def _check_devices(accounts: Accounts, row: int, records: list[Record]) -> None:
    devices = accounts.devices
    gpus: tuple[Gpu, ...] = devices.gpus[row]
    bookings = [b for record in records for b in record.bookings]
    free = 0
    for slot, gpu in enumerate(gpus):
        here = [b for b in bookings if b.slot == slot]
        slices = [b for b in here if not b.whole]
        held = any(b.whole for b in here)
        free += not here and not gpu.problem
        memory = gpu.memory_mib - sum(b.memory_mib for b in slices)
        assert devices.slice_memory[slot, row] == (-1 if held or gpu.problem else memory)
        hard = 100 - sum(b.compute for b in slices if not b.soft)
        assert devices.hard_free[slot, row] == hard
        assert bool(devices.free_slots(row)[slot]) == (not here and not gpu.problem)
    assert devices.whole_free[row] == free
    assert (devices.model[len(gpus) :, row] == -1).all()


def check_queue(engine: Engine) -> None:
    """Fail if a pod that should be tried is in no place, or in two, or a counter is wrong."""
    records = engine.view.pods
    flying = [r for r in records.values() if r.in_flight]
    assert all(r.state is State.ASSUMED for r in flying)
    assert engine.in_flight == sum(not r.awaits_storage for r in flying)
    units: dict[int, Unit] = {}
    for record in records.values():
        pod = record.pod
        if pod.scheduler not in engine.view.profiles:
            continue
        unit = engine.view.unit_of(record)
        queued = unit is not None and pod.uid in unit.pods
        wanted = record.state is State.PENDING and not (pod.deleting or pod.gated)
        assert queued == wanted, (pod.name, record.state, queued)
        if unit is None:
            continue
        units[id(unit)] = unit
        state = engine.view.gang_of(record)
        waits = state is not None and (state.planning or state.clearing)
        if queued and not waits:
            assert unit.place is not Place.NOT_QUEUED, f"{pod.name} is forgotten"
        if state is not None:
            assert state.members[pod.uid] is record
            if not state.planning:
                assert not state.awaiting_plan(), f"{pod.name} waits for no plan"
    places = Counter(u.place for u in units.values() if u.place is not Place.NOT_QUEUED)
    for place in (Place.ACTIVE, Place.BACKOFF, Place.PARKED):
        assert engine.view.count(place) == places[place]
    lone = {uid for uid, r in records.items() if not r.group}
    assert set(engine._members._units) <= lone
    check_parked(engine._queue, list(units.values()))


def check_parked(queue: Queue, units: list[Unit]) -> None:
    """Fail unless each parked unit is reachable from what it waits for."""
    waiting = Counter(id(u.waiting) for u in units if u.waiting)
    assert len(queue._parked) == len(waiting)
    for entry in queue._parked.values():
        assert entry.count == waiting[id(entry)] > 0
    for unit in units:
        if unit.waiting:
            entries = [(ticket, u) for _, _, ticket, u in unit.waiting.heap]
            assert (unit.ticket, unit) in entries


def check_evaluations(engine: Engine) -> None:
    """Fail unless every cached evaluation equals one made from scratch."""
    kept = engine.view._context.evaluations._kept
    for scheduler, spec in list(kept):
        profile = engine.view.profiles[scheduler]
        current = engine.view.evaluate(spec, profile)
        if current.refusal is not None:
            continue
        fresh = Evaluation(spec, profile, engine.view.cluster)
        fresh.refresh()
        assert (current.rank == fresh.rank).all(), (scheduler, spec)
        assert current.best() == fresh.best()
