"""Bookings become assignments and back, and no two containers at once get the same whole GPU."""

from hypothesis import given
from hypothesis import strategies as st

from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.scheduler.plugins.gpu_share.plugin import GpuShare
from alnair.scheduler.state.accounts import Accounts
from alnair.scheduler.state.gpus.gpu_assignment import assign, assigned, guess, planned_bookings
from kit import make

amounts = st.one_of(
    st.integers(1, 3).map(lambda n: {names.GPU: n}),
    st.tuples(st.integers(64, 4096), st.integers(0, 40)).map(
        lambda t: {names.VGPU_MEMORY: t[0], names.VGPU_COMPUTE: t[1]}
    ),
)
roles = st.sampled_from(({"init": True}, {"init": True, "sidecar": True}, {}))


@st.composite
def pods(draw: st.DrawFn) -> list[ContainerGpus]:
    parts = draw(st.lists(st.tuples(roles, amounts), min_size=1, max_size=5))
    parts.sort(key=lambda p: not p[0])  # init containers come first
    return [ContainerGpus(f"c{i}", asked, **role) for i, (role, asked) in enumerate(parts)]


@given(pods())
def test_each_container_gets_what_it_asked_for_and_nobody_anothers(
    containers: list[ContainerGpus],
) -> None:
    demand = gpu_demand(containers, {})
    assert demand is not None
    accounts = Accounts()
    accounts.put_node(make.node("n", gpus=16))
    spec = make.spec(containers=containers)
    bookings = GpuShare().reserve(spec, 0, accounts.cluster)
    if demand.problem or demand.whole + bool(demand.memory_mib) > 16:
        return
    assert bookings is not None
    gpus = accounts.devices.gpus[0]
    assignment = assign(demand, bookings, gpus)
    given_to = dict(assignment)
    assert set(given_to) == {c.name for c in containers}
    slices = set()
    running: set[int] = set()
    for container in containers:
        shares = given_to[container.name]
        whole = {s.index for s in shares if s.whole}
        asked = container.resources
        assert len(whole) == asked.get(names.GPU, 0)
        assert not whole & running, "it is held by a container that runs at the same time"
        if asked.get(names.VGPU_MEMORY):
            (share,) = shares
            slices.add(share.index)
            assert share.memory_mib == asked[names.VGPU_MEMORY]
            assert share.compute == asked[names.VGPU_COMPUTE]
        if container.sidecar or not container.init:
            running |= whole
    assert len(slices) <= 1
    assert not slices & running
    pod = make.pod("p", spec, assignment=assignment)
    assert set(assigned(pod, 0, accounts.devices) or ()) == set(bookings)
    indices = {name: [s.index for s in shares] for name, shares in assignment}
    assert set(planned_bookings(demand, indices, gpus) or ()) == set(bookings)


def test_an_assignment_that_names_an_unknown_gpu_says_nothing() -> None:
    accounts = Accounts()
    accounts.put_node(make.node("n", gpus=2))
    elsewhere = (("main", (make.share(make.gpu("other", 0)),)),)
    pod = make.pod("p", make.spec(whole=1), assignment=elsewhere)
    assert assigned(pod, 0, accounts.devices) is None
    assert assigned(make.pod("p", make.spec(whole=1)), 0, accounts.devices) is None
    assert assigned(make.pod("p", assignment=elsewhere), 0, accounts.devices) == ()


def test_a_guess_takes_the_last_gpus_that_have_room_and_the_last_if_none_has() -> None:
    accounts = Accounts()
    accounts.put_node(make.node("n", gpus=3, gpu_memory=8192))
    devices = accounts.devices
    one = guess(make.pod("p", make.spec(whole=1)), 0, devices)
    assert [b.slot for b in one] == [2]
    devices.book(0, one)
    part = guess(make.pod("p", make.spec(slice_mib=8192)), 0, devices)
    assert [b.slot for b in part] == [1]
    devices.book(0, part)
    both = guess(make.pod("p", make.spec(whole=2)), 0, devices)
    assert [b.slot for b in both] == [0, 2], "the free one first"
    devices.book(0, both)
    assert devices.overcommitted(0)
    too_many = guess(make.pod("p", make.spec(whole=9)), 0, devices)
    assert len(too_many) == 3
    assert guess(make.pod("p"), 0, devices) == ()
