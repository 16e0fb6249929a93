"""A tenant that writes lies into its page, beside two that do not.

It is the server's own loop, on a clock of the test; NVML tells what the tenants really used.

The honest ones, and the liar's processes, launch by the library's rule (native/vgpu/compute): a
bucket at the granted rate and price, and not before `not_before_ns`. The liar's bucket is set back
at every tick, which is the strongest lie about it.
"""

import os
import random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from alnair.node.cgroups import Cgroup
from alnair.node.gpu_looks import GpuLook
from alnair.node.readings.values import Load, Usage
from alnair.node.vgpu.compute_shares import TICK_NS, Compute
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.driver_accounts import DriverAccounts
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.counters import DeviceUse, Slot
from alnair.node.vgpu.pages.totals import Totals
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.belief import BUDGET
from alnair.sharing.debts import AHEAD, MARGIN
from alnair.sharing.violations import Action, Kind, Policy, SliceViolation

GPU = "GPU-00000000-0000-0000-0000-000000000001"
MIB = 1 << 20
SECONDS = TICK_NS / 1e9
#: Twenty times a second; the look is the last of each second.
LOOK = 20


class Page:
    """The limits of one container."""

    def __init__(self, share: Share) -> None:
        row = abi.DeviceLimit(
            memory_limit=share.memory_mib * MIB,
            context_bytes=400 * MIB,
            compute_percent=share.compute_percent,
        )
        self.page = SimpleNamespace(device=[row])

    def update(self, _: int, **fields: int) -> None:
        for name, value in fields.items():
            setattr(self.page.device[0], name, value)


class Tenant:
    """One container with one process, which works when it wants to."""

    def __init__(self, pid: int, percent: int, *, soft: bool = False) -> None:
        self.name, self.pid = f"c{pid}", pid
        share = Share(GPU, 8192, percent, soft)
        self.assignment = ContainerSlices(self.name, ContainerMatch(cgroup=f"/c{pid}"), (share,))
        self.limits = Page(share)
        self.counters = SimpleNamespace(passed=1, earned_ns=lambda _: int(self.tat * 1e9))
        self.census = SimpleNamespace(pids={pid: 0}, ended={}, known_at=float("inf"))
        self.totals, self.since, self.group = Totals(1), 0.0, object()
        self.tat = self.charged = self.used = self.launches = 0.0
        self.wants, self.waits = 1.0, False
        self.memory = self.held = 1000 * MIB
        self.told = DeviceUse()
        self.slots: tuple[Slot, ...] = ()

    def has(self, place: Cgroup) -> bool:
        return place.path == f"/c{self.pid}"

    def held_bytes(self, _: int) -> int:
        return self.told.held

    def loaded(self, _: int, __: object) -> int:
        return 0

    def ready(self, now: float) -> float:
        """GPU seconds that it would launch in this tick."""
        row = self.limits.page.device[0]
        rate = row.compute_percent / 100
        if row.rate_ppm and now * 1e9 < row.rate_until_ns:
            rate = row.rate_ppm / 1e6
        self.waits = self.wants > rate
        if now * 1e9 < row.not_before_ns or self.tat > now + SECONDS:
            return 0.0
        from_ = max(self.tat, now - 0.3)
        price = row.cost_scale_ppm / 1e6 or 1.0
        most = max(0.0, (now + SECONDS - from_) * rate / price)
        return float(min(most, self.wants * SECONDS))

    def run(self, ran: float, now: float) -> None:
        """So much of it ran; it is charged that by its price."""
        row = self.limits.page.device[0]
        rate = row.compute_percent / 100
        if row.rate_ppm and now * 1e9 < row.rate_until_ns:
            rate = row.rate_ppm / 1e6
        price = row.cost_scale_ppm / 1e6 or 1.0
        self.tat = max(self.tat, now - 0.3) + ran * price / rate
        self.charged += ran * price
        self.used += ran
        self.launches += ran > 0
        self.tell(
            DeviceUse(
                held=self.held,
                charged_ns=int(self.charged * 1e9),
                launches=int(self.launches),
                waiting=int(self.waits),
                contexts=1,
            )
        )

    def tell(self, use: DeviceUse) -> None:
        """Write its slot."""
        self.told = use
        self.slots = (Slot(0, self.pid, 1, 0, 0, (use,), ()),)
        self.totals.add(self.slots)


class Node:
    """A GPU with tenants, the server's two loops, and NVML."""

    def __init__(self, *tenants: Tenant, policy: Policy = Policy.WARN, late: int = 0) -> None:
        self.tenants, self.now, self.compute = tenants, 100.0, Compute()
        self.told: list[tuple[str, Action]] = []
        for one in tenants:
            cast("Any", one).held = one.held
        containers = {one.name: cast("VgpuContainer", _Seen(one)) for one in tenants}
        server = SimpleNamespace(
            containers=containers, compute=self.compute, proc=_Proc(), is_refused=lambda _: False
        )
        self.inspection = Inspection(
            cast("VgpuServer", server),
            policy,
            lambda container, _, action: self.told.append((container.assignment.name, action)),
            clock=lambda: self.now,
        )
        self._containers = tuple(containers.values())
        self._shown: list[dict[int, float]] = [{}] * late
        self._measured = dict.fromkeys((one.pid for one in tenants), 0.0)

    @property
    def kinds(self) -> dict[str, set[Kind]]:
        """What was found, by container."""
        found: dict[str, set[Kind]] = {}
        for name, action in self.told:
            if isinstance(action, SliceViolation):
                found.setdefault(name, set()).add(action.kind)
        return found

    def tick(self, number: int) -> None:
        """A twentieth of a second; the GPU divides itself among those that want it."""
        self.now += SECONDS
        wanted = {one.pid: one.ready(self.now) for one in self.tenants}
        fits = min(1.0, SECONDS / max(1e-9, sum(wanted.values())))
        for one in self.tenants:
            one.run(wanted[one.pid] * fits, self.now)
        self.after()
        self.compute.tick(self._containers, int(self.now * 1e9))
        if number % LOOK == LOOK - 1:
            self._look()

    def after(self) -> None:
        """What a liar writes now."""

    def _look(self) -> None:
        shares = {}
        for one in self.tenants:
            # In whole percents.
            shares[one.pid] = round(100 * (one.used - self._measured[one.pid])) / 100
            self._measured[one.pid] = one.used
        self._shown.append(shares)
        shares = self._shown.pop(0)
        load = Load({one.pid: one.memory for one in self.tenants}, shares)
        usage = Usage(min(100.0, 100 * sum(shares.values())), 0)
        self.inspection.take(GpuLook(self.now, 1, {GPU: usage}, {}, loads={GPU: load}))

    def run(self, seconds: float) -> list[float]:
        """Shares of the GPU that each tenant had meanwhile."""
        before = [one.used for one in self.tenants]
        for number in range(int(seconds / SECONDS)):
            self.tick(number)
        return [(one.used - old) / seconds for one, old in zip(self.tenants, before, strict=True)]


class _Seen:
    """A tenant as the server has it: `held` is a question there."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tenant, name)

    def held(self, row: int) -> int:
        return self._tenant.held_bytes(row)


class _Proc:
    """Each process is in the group of its container, and is old."""

    def watch(self, _: int) -> int:
        return -1

    def started(self, _: int) -> int:
        return 1

    def cgroup(self, pid: int) -> Cgroup:
        return Cgroup(f"/c{pid}", "")


class Liars(Node):
    """The first tenant's page is written over at every tick.

    Args:
        lie: Given a chance and what is true, returns what the slot says.
    """

    def __init__(self, lie: Any, *tenants: Tenant) -> None:
        super().__init__(*tenants)
        self._lie, self._chance, self._lied = lie, random.Random(18), 0

    def after(self) -> None:
        liar = self.tenants[0]
        liar.tat = 0.0  # its bucket, too
        liar.tell(self._lie(self._chance, liar.told))


def hides_all(_: random.Random, true: DeviceUse) -> DeviceUse:
    return msgspec.structs.replace(true, charged_ns=0, waiting=0, held=0)


def waits(_: random.Random, true: DeviceUse) -> DeviceUse:
    return msgspec.structs.replace(true, waiting=4, launches=true.launches + 1)


class Anything:
    """Whatever a slot can hold, for a while each."""

    def __init__(self) -> None:
        self._left, self._sum = 0, 0
        self._kind = 0

    def __call__(self, chance: random.Random, true: DeviceUse) -> DeviceUse:
        if not self._left:
            self._left, self._kind = chance.randrange(1, 400), chance.randrange(5)
        self._left -= 1
        self._sum += chance.choice((0, TICK_NS // 4, TICK_NS, 100 * TICK_NS))
        if self._kind == 0:
            return true
        if self._kind == 1:
            return msgspec.structs.replace(true, charged_ns=self._sum, waiting=chance.randrange(9))
        if self._kind == 2:
            return msgspec.structs.replace(true, charged_ns=0, waiting=0)
        if self._kind == 3:
            return waits(chance, true)
        words = [chance.choice((0, 1, 1 << 20, 1 << 49, 1 << 50)) for _ in range(8)]
        return DeviceUse(*words)


class ClaimsWork:
    """Says that it is charged a quarter of all time."""

    def __init__(self) -> None:
        self._sum = 0

    def __call__(self, _: random.Random, true: DeviceUse) -> DeviceUse:
        self._sum += TICK_NS // 4
        return msgspec.structs.replace(true, charged_ns=self._sum, launches=self._sum // 1000)


LIES: dict[str, Any] = {
    "hides all": lambda: hides_all,
    "waits": lambda: waits,
    "claims work": ClaimsWork,
    "anything": Anything,
}
#: An hour by hand; here long enough for what is believed at first to be used up.
TIME = float(os.environ.get("ALNAIR_LIES_SECONDS", "120"))


def tenants(wants: float) -> list[Tenant]:
    """Who may lie, wanting so much, and two that do not."""
    made = [Tenant(1, 30, soft=True), Tenant(2, 30), Tenant(3, 40, soft=True)]
    made[0].wants = wants
    return made


@pytest.fixture(scope="module", params=[0.0, 1.0], ids=["idle", "greedy"])
def true(request: pytest.FixtureRequest) -> tuple[float, list[float]]:
    """What the first one wants, and what all have while it tells the truth."""
    node = Node(*tenants(request.param))
    shares = node.run(TIME)
    assert not node.told, "nobody who is honest is accused"
    return request.param, shares


@pytest.mark.parametrize("lie", LIES)
def test_who_lies_takes_no_more_than_two_points_and_no_byte_from_its_neighbours(
    true: tuple[float, list[float]], lie: str
) -> None:
    wants, shares = true
    node = Liars(LIES[lie](), *tenants(wants))
    lied = node.run(TIME)
    in_advance = 1.6 * BUDGET
    for honest in (1, 2):
        assert (shares[honest] - lied[honest]) * TIME <= 0.02 * TIME + in_advance, (shares, lied)
        row = node.tenants[honest].limits.page.device[0]
        assert (row.memory_limit, row.memory_overhead) == (8192 * MIB, 0)
    assert not node.kinds.keys() & {"c2", "c3"}, "the honest are accused of nothing"


def test_late_figures_and_tenants_that_come_and_go_accuse_and_stop_nobody() -> None:
    def run(late: int) -> tuple[Node, list[float]]:
        node, used = Node(*tenants(1.0), late=late), []
        for phase in range(20):
            node.tenants[phase % 3].wants = (0.0, 0.1, 1.0)[phase % 2 + phase % 3 // 2]
            used.append(node.run(7.0))
        return node, [sum(part) / len(used) for part in zip(*used, strict=True)]

    node, prompt = run(0)
    assert not node.told
    node, late = run(2)
    assert not node.told
    assert all(mine >= before - 0.02 for mine, before in zip(late, prompt, strict=True))


@pytest.mark.parametrize(
    ("usage", "used"),
    [
        (Usage(50.0, 0), {1: 0.3, 2: 0.2}),
        # A pause at the end of the second: they did not work less for it.
        (Usage(0.0, 0, is_mean=False), {1: 0.6, 2: 0.4}),
        (None, {1: 0.6, 2: 0.4}),
    ],
    ids=["mean", "last sample", "nothing"],
)
def test_what_processes_used_is_bounded_by_a_mean_and_not_by_the_last_sample(
    usage: Usage | None, used: dict[int, float]
) -> None:
    accounts = DriverAccounts(Compute(), lambda _: 1)
    assert accounts.used(GPU, Load({1: 0, 2: 0}, {1: 0.6, 2: 0.4}), usage) == pytest.approx(used)


def test_processes_that_live_for_a_second_are_not_accused_by_their_pages() -> None:
    """They end without a sync: of what they used, little was charged, and NVML loses some."""
    tenant = Tenant(1, 50, soft=True)
    node = Node(tenant, Tenant(2, 30))
    for life in range(120):
        if life % 2:
            tenant.charged, tenant.memory = 0.0, 500 * MIB
            tenant.slots = ()
        node.run(1.0)
    assert not node.told


@pytest.mark.parametrize(("lie", "wants"), [("hides all", 1.0), ("claims work", 0.0)])
def test_a_page_that_the_driver_belies_is_a_violation(lie: str, wants: float) -> None:
    node = Liars(LIES[lie](), *tenants(wants))
    node.run(90)
    assert node.kinds == {"c1": {Kind.FORGED}}


class Once:
    """Tells the truth but for one tick, that of the tenth look."""

    def __init__(self, **lie: int) -> None:
        self._ticks, self._lie = 0, lie

    def __call__(self, _: random.Random, true: DeviceUse) -> DeviceUse:
        self._ticks += 1
        is_time = self._ticks == 10 * LOOK
        return msgspec.structs.replace(true, **self._lie) if is_time else true


@pytest.mark.parametrize("lie", [{"waiting": 1 << 23}, {"charged_ns": 1 << 52}])
def test_what_cannot_be_is_found_at_the_look_that_sees_it(lie: dict[str, int]) -> None:
    node = Liars(Once(**lie), *tenants(0.5))
    node.run(9)
    assert not node.kinds
    node.run(1)
    assert node.kinds == {"c1": {Kind.FORGED}}
    assert any("the page of host pid 1 " in str(action) for _, action in node.told)


def test_a_process_that_was_charged_for_weeks_before_the_first_look_is_not_accused() -> None:
    accounts = DriverAccounts(Compute(), lambda _: 1)
    weeks = 40 * 86_400 * 10**9
    assert accounts.charging(GPU, 1, weeks, 100.0) == 0.0
    assert accounts.charging(GPU, 1, weeks + 10**9, 100.1) == 1.0
    assert accounts.charging(GPU, 1, weeks + 5 * 10**9, 102.1) == 2.0
    assert accounts.charging(GPU, 1, weeks, 103.1) < 0, "a price was settled"
    assert accounts.charging(GPU, 2, 10**9, 100.0) == 0.0
    assert accounts.charging(GPU, 2, 2**64 - 10**9, 101.0) == -2.0, "to below 0"
    accounts.keep_only(GPU, [])
    assert accounts.charging(GPU, 1, 2 * weeks, 104.1) == 0.0


def test_who_sets_its_bucket_back_has_its_share_and_no_more() -> None:
    node = Liars(hides_all, Tenant(1, 25))
    (share,) = node.run(120)
    assert share <= 0.25 + MARGIN + AHEAD / 120 + 0.02
