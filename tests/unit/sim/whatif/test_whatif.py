"""Questions about small clusters: what would be placed, where, when, and what stands in the way."""

import msgspec
import pytest
from msgspec.structs import replace

from alnair.cli.text.whatif_answer import lines
from alnair.model.durations import seconds, span
from alnair.model.nodes import Node
from alnair.model.workload import Gang, Pod
from alnair.scheduler.engine import events
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.disruption_budgets import KIND as BUDGETS
from alnair.sim.virtual_api import VirtualApi
from alnair.sim.whatif.answer import Answer, PodResult
from alnair.sim.whatif.changes import ChangeError, Changes
from alnair.sim.whatif.new_nodes import ShapeError, nodes
from alnair.sim.whatif.plans import Freeing
from alnair.sim.whatif.question import ask
from kit import make

NOW = 1_000_000.0
HOUR = 3600.0
NOTHING = Changes()


def on(node: str, *slots: int, name: str = "", **fields: object) -> Pod:
    """A pod that holds these GPUs of a node, whole; a controller owns it unless said otherwise."""
    shares = tuple(make.share(make.gpu(node, slot)) for slot in slots)
    pod = make.pod(
        name or f"{node}-{'-'.join(map(str, slots))}",
        make.spec(whole=len(slots)),
        node=node,
        bound_at=NOW - HOUR,
        owned=True,
    )
    return replace(pod, assignment=(("main", shares),), **fields)


def question(
    there: list[Node | Pod | Gang],
    changes: Changes = NOTHING,
    *,
    horizon: float = 24 * HOUR,
    freeing: Freeing | None = None,
    budgets: tuple[object, ...] = (),
) -> Answer:
    api = VirtualApi(NOW)
    for one in there:
        match one:
            case Node():
                api.put(one)
            case Pod():
                api.set_pod(one)
            case Gang():
                api.declare(one)
    for budget in budgets:
        api.set_object(BUDGETS, "budget", budget, "default")
    known: list[events.Event] = list(api.known())
    return ask(known, profiles(), changes, now=NOW, horizon=horizon, freeing=freeing)


def by_name(answer: Answer) -> dict[str, PodResult]:
    return {fate.pod.partition("/")[2]: fate for fate in answer.fates}


def test_a_submitted_pod_that_fits_is_told_its_node_and_gpus() -> None:
    answer = question(
        [make.node("a", gpus=4), on("a", 0, 1)], Changes(pods=(make.pod("p", make.spec(whole=2)),))
    )
    (fate,) = answer.fates
    assert (fate.pod, fate.node, fate.gpus, fate.after) == ("default/p", "a", (2, 3), 0.0)
    assert fate.now
    assert answer.satisfied
    assert (answer.before.allocated, answer.after.allocated) == (2.0, 4.0)
    assert (answer.before.whole_free, answer.after.whole_free) == (2, 0)


def test_of_a_pod_that_does_not_fit_the_reason_and_what_would_help_are_told() -> None:
    answer = question([make.node("a", gpus=4)], Changes(pods=(make.pod("p", make.spec(whole=5)),)))
    (fate,) = answer.fates
    assert not answer.satisfied
    assert fate.node == ""
    assert "0/1 nodes are available" in fate.why
    assert [c.text for c in fate.changes] == ["ask for 4 of nvidia.com/gpu instead of 5"]
    assert fate.note == "not within 1d: no running pod has a time limit"


def test_where_no_single_change_helps_a_pair_is_told_and_shown() -> None:
    asked = make.spec(whole=5, selector={"disk": "sssd"})
    there = make.node("a", gpus=4, labels={"disk": "ssd"})
    answer = question([there], Changes(pods=(make.pod("p", asked),)))
    (fate,) = answer.fates
    assert not fate.changes
    text = "select disk=ssd instead of disk=sssd; and ask for 4 of nvidia.com/gpu instead of 5"
    assert fate.pairs[0].text == text
    assert f"it would fit at once: {text} (to a)" in "\n".join(lines(answer))


def test_a_mistyped_scheduler_name_is_told_with_who_decides_instead() -> None:
    pod = make.pod("p", make.spec(whole=1), scheduler="alnair-cost-savng")
    (fate,) = question([make.node("a", gpus=4)], Changes(pods=(pod,))).fates
    assert fate.node == "a"
    assert "'alnair-cost-savng' (did you mean alnair-cost-saving?)" in fate.note
    assert fate.note.endswith("this is what alnair-scheduler would do")


def test_new_nodes_take_what_did_not_fit() -> None:
    gang, pods = make.gang("g", 2), make.members("g", 2, make.spec(whole=4))
    there: list[Node | Pod | Gang] = [make.node("a", gpus=4), on("a", 0)]
    submitted = Changes(gangs=(gang,), pods=tuple(pods))
    assert not question(there, submitted).satisfied
    more = replace(submitted, add=tuple(make.node(n, gpus=4) for n in "bc"))
    answer = question(there, more)
    assert {f.node for f in answer.fates} == {"b", "c"}
    assert all(f.now and f.gang == "g" for f in answer.fates)
    assert (answer.before.largest_gang, answer.after.nodes) == (0, 3)


def test_a_gang_starts_when_the_pods_that_are_in_its_way_have_ended() -> None:
    soon = on("a", 0, 1, time_limit=2 * 3600)  # it runs for an hour already
    late = on("b", 0, time_limit=5 * 3600)
    gang, pods = make.gang("g", 2), make.members("g", 2, make.spec(whole=4))
    changes = Changes(gangs=(gang,), pods=tuple(pods))
    there = [make.node("a", gpus=4), make.node("b", gpus=4), soon, late]
    answer = question(there, changes)
    assert [round(f.after or 0) for f in answer.fates] == [4 * 3600, 4 * 3600]
    assert not any(f.now for f in answer.fates)
    assert all("gang" in f.why for f in answer.fates)
    assert answer.satisfied
    short = question(there, changes, horizon=3 * HOUR)
    assert short.fates[0].after is None
    assert short.fates[0].note == "not within 3h, by the time limits of 2 running pods"


def test_a_pod_that_has_outlived_its_limit_is_not_counted_on() -> None:
    answer = question(
        [make.node("a", gpus=1), on("a", 0, time_limit=60)],
        Changes(pods=(make.pod("p", make.spec(whole=1)),)),
    )
    assert not answer.satisfied
    assert answer.notes == (
        "1 running pods have outlived their time limit: they are taken not to end",
    )


def test_pods_that_are_being_deleted_make_room_soon() -> None:
    going = on("a", 0, deleting=True)
    answer = question(
        [make.node("a", gpus=1), going], Changes(pods=(make.pod("p", make.spec(whole=1)),))
    )
    assert [(f.node, f.after, f.now) for f in answer.fates] == [("a", 30.0, True)]
    assert question([make.node("a", gpus=1), going], Changes(drain=("a",))).satisfied


def test_a_drained_node_gets_rid_of_what_may_be_moved_and_the_rest_is_named() -> None:
    answer = question(
        [
            make.node("a", gpus=4),
            make.node("b", gpus=4),
            on("a", 0, name="web"),
            on("a", 1, name="bare", owned=False),
            on("a", 2, name="kept", evictable=False),
            on("a", 3, name="guarded", labels=(("app", "guarded"),)),
            make.pod("agent", node="a", daemon=True),
        ],
        Changes(drain=("a",)),
        budgets=(make.budget(app="guarded"),),
    )
    assert [(f.pod, f.role, f.source, f.node) for f in answer.fates] == [
        ("default/web", "drained", "a", "b")
    ]
    assert [(s.pod, s.why) for s in answer.staying] == [
        ("default/bare", "no controller would replace it"),
        ("default/kept", "annotation ai.centaurus.io/evictable is false"),
        ("default/guarded", "its disruption budget budget allows no eviction"),
    ]
    assert (answer.before.nodes, answer.after.nodes) == (2, 1)
    assert not answer.satisfied


def test_a_budget_that_allows_one_at_a_time_lets_a_drain_go_on_when_the_replacement_runs() -> None:
    guarded = [on("a", i, labels=(("app", "guarded"),)) for i in range(3)]
    there = [make.node("a", gpus=4), make.node("b", gpus=2), *guarded]
    answer = question(
        there, Changes(drain=("a",)), budgets=(make.budget(allowed=1, app="guarded"),)
    )
    # The third is evicted once the second runs; that it finds no room is told.
    assert [f.node for f in answer.fates] == ["b", "b", ""]
    assert not answer.staying


def test_a_removed_node_loses_what_nobody_replaces() -> None:
    answer = question(
        [
            make.node("a", gpus=2),
            make.node("b", gpus=2),
            on("a", 0, name="web"),
            on("a", 1, name="bare", owned=False),
        ],
        Changes(remove=("a",)),
    )
    fates = by_name(answer)
    assert (fates["web"].node, fates["web"].role) == ("b", "removed")
    assert fates["bare"].note == "no controller replaces it: it is lost"
    assert not answer.satisfied


def test_who_is_evicted_for_a_submitted_pod_is_told_and_where_it_goes() -> None:
    low = on("a", 0, 1, name="low", priority=0)
    bare = on("b", 0, 1, name="bare", priority=50, owned=False)
    spare = make.node("c", gpus=2)
    high = make.pod(
        "high", make.spec(whole=2, selector={"kubernetes.io/hostname": "a"}), priority=9
    )
    answer = question(
        [make.node("a", gpus=2), make.node("b", gpus=2), spare, low, bare], Changes(pods=(high,))
    )
    fates = by_name(answer)
    assert fates["high"].node == "a"
    assert (fates["low"].role, fates["low"].source, fates["low"].node) == ("evicted", "a", "c")
    assert fates["low"].why.startswith("Preempted: ")
    assert "bare" not in fates
    assert answer.satisfied


def test_a_pod_that_waited_before_is_told_if_the_change_lets_it_start() -> None:
    there = [make.node("a", gpus=1), on("a", 0), make.pod("p", make.spec(whole=1))]
    assert question(there).fates == ()
    answer = question(there, Changes(add=(make.node("b", gpus=1),)))
    assert [(f.pod, f.role, f.node) for f in answer.fates] == [("default/p", "waiting", "b")]
    assert (answer.before.waiting, answer.after.waiting) == (1, 0)


def test_a_plan_that_frees_gpus_is_made_on_the_changed_cluster_and_its_effect_is_told() -> None:
    there = [
        make.node("a", gpus=4),
        make.node("b", gpus=4),
        make.node("c", gpus=4),
        on("a", 0),
        on("b", 0, 1),
        on("c", 0, 1, 2, owned=False),
    ]
    answer = question(there, freeing=Freeing(4, moves=3))
    assert answer.plan is not None
    assert answer.moved is not None
    assert [(m.source, m.source_gpus) for m in answer.plan.moves] == [("a", (0,))]
    assert (answer.after.largest_gang, answer.moved.largest_gang) == (0, 1)
    assert answer.moved.whole_free == answer.after.whole_free
    assert answer.moved.fragmentation <= answer.after.fragmentation
    drained = question(there, Changes(drain=("a",)), freeing=Freeing(4, moves=3))
    assert drained.plan is not None
    assert (
        drained.plan.problem == "4 whole GPUs cannot be freed on any node by moving at most 3 pods"
    )


def test_members_of_gangs_are_not_moved_and_named() -> None:
    members = [on("a", 0, name="g-0", group="g"), on("b", 0, name="g-1", group="g")]
    there = [make.node("a", gpus=2), make.node("b", gpus=2), make.gang("g", 2), *members]
    answer = question(there, freeing=Freeing(2, moves=1))
    assert answer.plan is not None
    assert {(s.name, s.why) for s in answer.plan.staying} == {
        ("g-0", "it is a member of a gang"),
        ("g-1", "it is a member of a gang"),
    }


def test_the_same_question_has_the_same_answer() -> None:
    there = [
        *(make.node(f"n{i}", gpus=4) for i in range(5)),
        *(on(f"n{i}", 0, time_limit=7200 + 60 * i) for i in range(5)),
    ]
    pods = make.members("g", 5, make.spec(whole=4))
    changes = Changes(gangs=(make.gang("g", 5),), pods=tuple(pods), drain=("n3",))
    one = question(there, changes, freeing=Freeing(4, 2))
    assert msgspec.json.encode(one) == msgspec.json.encode(
        question(there, changes, freeing=Freeing(4, 2))
    )


def test_all_that_is_wrong_with_the_changes_is_told_before_any_is_made() -> None:
    there = [make.node("gpu-1", gpus=1), make.pod("p")]
    changes = Changes(
        add=(make.node("gpu-1"),), drain=("gpu-2",), remove=("elsewhere",), pods=(make.pod("p"),)
    )
    with pytest.raises(ChangeError) as error:
        question(there, changes)
    assert str(error.value).splitlines() == [
        "--remove-node elsewhere: there is no such node; there are gpu-1",
        "--drain gpu-2: there is no such node; did you mean gpu-1?",
        "--add-nodes: there is a node gpu-1 already: give the new one another name",
        "--submit: there is a pod default/p already: rename the one in the file",
    ]


@pytest.mark.parametrize(
    ("text", "names", "gpus", "model", "cpu"),
    [
        ("2x8xH100", ["new-h100x8-0000", "new-h100x8-0001"], 8, "H100", 96_000),
        ("1x4xa100:cpu=32,memory=64Gi", ["new-a100x4-0000"], 4, "A100", 32_000),
        ("1x0:cpu=64", ["new-cpu-0000"], 0, "", 64_000),
        ("2=old", ["old-new-0", "old-new-1"], 2, "A100", 7000),
    ],
)
def test_nodes_are_described_in_a_word(
    text: str, names: list[str], gpus: int, model: str, cpu: int
) -> None:
    old = make.node("old", gpus=2, cpu=7000, unschedulable=True)
    found = nodes(text, {"old": old})
    assert [n.name for n in found] == names
    for node in found:
        assert len(node.gpus) == gpus
        assert {g.model for g in node.gpus} <= {model}
        assert node.allocatable["cpu"] == cpu
        assert not node.unschedulable
        assert node.labels["kubernetes.io/hostname"] == node.name
    uuids = [g.uuid for n in found for g in n.gpus]
    assert len(set(uuids)) == len(uuids)
    again = nodes(text, {"old": old}, names)
    assert {n.name for n in again}.isdisjoint(names)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("4x8", "is no shape of nodes"),
        ("4x8xH100:gpu=3", "write cpu=… or memory=…"),
        ("4x8xH100:cpu=0", "must be more than 0"),
        ("4x8xH1000", "known are"),
        ("0x8xH100", "0 nodes cannot be"),
        ("1x99xH100", "cannot have 99 GPUs"),
        ("4=nowhere", "there is no node nowhere"),
        ("0=old", "0 nodes cannot be added"),
        ("four", "4=NODE for four like a node of the cluster"),
    ],
)
def test_of_a_word_that_describes_no_nodes_is_said_what_to_write(text: str, says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        nodes(text, {})


def test_spans_of_time_are_read_and_written_as_people_do() -> None:
    assert [seconds(t) for t in ("90s", "1d12h", "1.5h")] == [90, 129_600, 5400]
    assert [span(s) for s in (0.2, 59, 60, 3725, 90_000, 172_800)] == [
        "0s",
        "59s",
        "1m",
        "1h 2m",
        "1d 1h",
        "2d",
    ]
    for wrong in ("", "24", "h", "1h 2m", "-1h"):
        with pytest.raises(ValueError, match="write a number"):
            seconds(wrong)
