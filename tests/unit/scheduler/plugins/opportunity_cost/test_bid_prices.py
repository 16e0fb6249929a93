"""Bid prices: what only some nodes can give is kept for those who can go nowhere else."""

import msgspec
import pytest

from alnair.model.nodes import Node
from alnair.model.workload import PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.plugins.opportunity_cost.bid_prices import EVERY, BidPrices, BidState
from alnair.scheduler.plugins.opportunity_cost.demand_observer import DemandObserver
from kit import make
from kit.make import GIB
from kit.stream import Stream, share

ONE = make.spec(whole=1, cpu=1000)
FOUR = make.spec(whole=4, cpu=4000)
T4 = make.spec(whole=1, cpu=1000, models="T4")


def node(name: str, gpus: int = 4, model: str = "A100", cpu: int = 64000) -> Node:
    return make.node(name, cpu=cpu, memory=512 * GIB, gpus=gpus, model=model, gpu_memory=10000)


def bids_of(stream: Stream) -> BidPrices:
    learned: DemandObserver = stream.engine.view.cluster.observations.of("OpportunityCost")
    return learned.bids


def priced(stream: Stream) -> dict[tuple[str, int], float]:
    """Prices by model and number of GPUs, 1 being the highest."""
    steps = bids_of(stream).state().steps
    return {(group.model, k): step / 4 for group, k, step in steps}


def test_gpus_that_many_pods_name_are_left_to_them() -> None:
    nodes = [node("t", model="T4"), *(node(f"a{i}") for i in range(6))]
    even, scarce = Stream(*nodes), Stream(*nodes)
    even.hear_of(*[ONE] * 64)
    scarce.hear_of(*[ONE] * 32, *[T4] * 32)
    assert priced(even) == {}
    assert priced(scarce) == {("T4", 1): 1.0}
    assert even.place(ONE)[0] == "t", "the first in order"
    assert scarce.place(ONE)[0] == "a0"
    assert scarce.place(T4)[0] == "t"


def test_pods_that_find_no_room_leave_more_to_come_of_the_others() -> None:
    nodes = [node("t", model="T4"), node("p", model="P100"), *(node(f"a{i}") for i in range(6))]
    p100 = make.spec(whole=1, cpu=1000, models="P100")
    t4_or_p100 = make.spec(whole=1, cpu=1000, models="T4,P100")
    even, crowded, either = Stream(*nodes), Stream(*nodes), Stream(*nodes)
    even.hear_of(*[ONE] * 60, *[p100] * 4)
    crowded.hear_of(*[ONE] * 28, *[p100] * 4, *[T4] * 32)
    either.hear_of(*[ONE] * 28, *[t4_or_p100] * 4, *[T4] * 32)
    assert priced(even) == {("P100", 1): 0.25}
    assert priced(crowded) == {("P100", 1): 1.0, ("T4", 1): 1.0}
    assert priced(either) == priced(crowded), "the T4 are gone first"


def test_a_pod_goes_to_scarce_gpus_rather_than_nowhere() -> None:
    stream = Stream(node("t", model="T4", gpus=1), node("a", gpus=2))
    stream.hear_of(*[T4] * 64)
    assert [stream.place(ONE)[0] for _ in range(3)] == ["a", "a", "t"]


@pytest.mark.parametrize(
    ("asked", "taken"), [(FOUR, "part"), (ONE, "idle")], ids=["sets are wanted", "sets are not"]
)
def test_a_set_of_gpus_is_not_broken_while_pods_want_sets(asked: PodSpec, taken: str) -> None:
    stream = Stream(node("idle"), node("part"))
    pinned = msgspec.structs.replace(ONE, node_selector=(("kubernetes.io/hostname", "part"),))
    assert stream.place(pinned)[0] == "part"
    stream.hear_of(*[asked] * 64)
    assert stream.place(ONE)[0] == "part", "no idle node is opened at the same price either"
    assert stream.place(share(50))[0] == taken


def test_pods_with_many_cores_make_nodes_scarce_that_have_them() -> None:
    stream = Stream(node("rich", cpu=96000), *(node(f"n{i}", cpu=16000) for i in range(5)))
    stream.hear_of(*[ONE] * 20, *[make.spec(whole=1, cpu=24000)] * 44)
    prices = bids_of(stream).state().steps
    assert {group.cores for group, _, _ in prices} == {96}


def test_the_first_pod_leaves_rare_gpus_alone_though_nobody_named_them_yet() -> None:
    stream = Stream(node("t", model="T4"), *(node(f"a{i}") for i in range(6)))
    assert stream.place(ONE)[0] == "a0", "t is the first in order"
    stream.hear_of(*[ONE] * 64)
    assert priced(stream) == {}, "nobody names them, so they are as good as others"


def test_gpus_are_kept_for_who_uses_up_the_cores_beside_them() -> None:
    nodes = [node("t", model="T4", cpu=16000), *(node(f"a{i}", cpu=32000) for i in range(6))]
    few, many = Stream(*nodes), Stream(*nodes)
    few.hear_of(*[ONE] * 60, *[T4] * 4)
    many.hear_of(*[ONE] * 60, *[make.spec(whole=1, cpu=12000, models="T4")] * 4)
    assert priced(few) == {("T4", 1): 0.25}
    assert priced(many) == {("T4", 1): 1.0}, "16 cores are there for one of them, not four"


def test_cores_that_run_out_all_over_make_no_gpus_scarce() -> None:
    stream = Stream(node("t", model="T4", cpu=16000), *(node(f"a{i}", cpu=16000) for i in range(6)))
    many = make.spec(whole=1, cpu=12000)
    stream.hear_of(*[many] * 60, *[make.spec(whole=1, cpu=12000, models="T4")] * 4)
    assert priced(stream) == {("T4", 1): 0.25}, "as where all have enough"


def test_prices_are_reviewed_at_growing_distances_up_to_a_limit() -> None:
    stream = Stream(node("a"))
    due = []
    for _ in range(3 * EVERY):
        stream.hear_of(ONE)
        due.append(bids_of(stream).state().due)
    assert sorted(set(due)) == [2, 4, 8, 16, 32, 64, EVERY, 256, 384, 512]


def test_a_price_follows_only_a_clear_change() -> None:
    stream = Stream(node("t", model="T4"), *(node(f"a{i}") for i in range(6)))
    stream.hear_of(*[ONE] * 32, *[T4] * 32)
    before = priced(stream)
    stream.hear_of(*[ONE] * 80)
    assert priced(stream) == before, "29 % still name T4, of which there are 14 %"
    stream.hear_of(*[ONE] * 2000)
    assert priced(stream) == {}


def test_prices_can_be_saved_and_restored() -> None:
    nodes = [node("t", model="T4"), *(node(f"a{i}") for i in range(6))]
    one, other = Stream(*nodes), Stream(*nodes)
    one.hear_of(*[ONE] * 32, *[T4] * 32, *[FOUR] * 32)
    state = bids_of(one).state()
    assert state.steps
    assert state.whole
    bids_of(other).restore(msgspec.json.decode(msgspec.json.encode(state), type=BidState))
    bids, again = bids_of(one), bids_of(other)
    assert again.state() == state
    assert again.share.tolist() == bids.share.tolist()
    assert again.whole.tolist() == bids.whole.tolist()
    assert {k: v.tolist() for k, v in again.sets.items()} == {
        k: v.tolist() for k, v in bids.sets.items()
    }


def wanted_whole(stream: Stream) -> dict[str, float]:
    """Prices of nodes that are wanted whole, by name."""
    bids, rows = bids_of(stream), stream.engine.view.cluster.columns.row_of
    return {name: bids.whole[row] for name, row in rows.items()}


def test_nodes_are_wanted_whole_by_pods_that_take_more_than_half_of_one() -> None:
    stream = Stream(node("eight", gpus=8), node("rich", gpus=8, cpu=96000), node("four"))
    stream.hear_of(*[ONE] * 64)
    assert wanted_whole(stream) == {"eight": 0, "rich": 0, "four": 0}
    eight = make.spec(whole=8, cpu=80000)
    stream.hear_of(*[ONE] * 62, *[eight] * 2)
    assert wanted_whole(stream) == {"eight": 0, "rich": 0.4375, "four": 0}, "16 of 142, 8 of 20"
    stream.hear_of(*[FOUR] * 128)
    found = wanted_whole(stream)
    assert found == {"eight": 0, "rich": 0.09375, "four": 0.78125}, "four are not most of eight"
    stream.hear_of(*[eight] * 1000)
    assert wanted_whole(stream)["rich"] == 1.0, "no more than a GPU"


def test_a_node_that_joins_has_the_price_of_its_like() -> None:
    stream = Stream(node("t", model="T4"), *(node(f"a{i}") for i in range(6)))
    stream.hear_of(*[ONE] * 32, *[T4] * 32)
    columns = stream.engine.view.cluster.columns
    stream.engine.learn([events.NodeChanged(node("late", model="T4"))], 0.0)
    assert bids_of(stream).share[columns.row_of["late"]] == 2.0
    stream.engine.learn([events.NodeGone("late"), events.NodeChanged(node("plain"))], 0.0)
    assert bids_of(stream).share[columns.row_of["plain"]] == 0.0
