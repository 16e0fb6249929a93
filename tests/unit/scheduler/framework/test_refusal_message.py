"""Why a pod is pending, in kube-scheduler's words and form."""

from alnair.model import names
from alnair.model.nodes import Node, Taint
from alnair.model.workload import NodeAffinity, PodSpec, Requirement, Term
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.refusal_message import refusal_message
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.accounts import Accounts, Record, State
from kit import make


def message(spec: PodSpec, *nodes: Node, used: PodSpec | None = None) -> str:
    accounts = Accounts()
    for node in nodes:
        accounts.put_node(node)
        if used:
            accounts.place(Record(make.pod(f"on-{node.name}", used)), node.name, State.BOUND, 0.0)
    return refusal_message(Evaluations(accounts.cluster).of(spec, profiles()[0]))


def test_each_reason_is_counted_once_and_they_are_sorted_as_texts() -> None:
    text = message(
        make.spec(cpu=5000),
        make.node("a", cpu=1000),
        make.node("b", taints=[Taint("k", "NoSchedule")]),
        make.node("c", taints=[Taint("other", "NoExecute", "v")]),
        make.node("d", unschedulable=True),
    )
    assert text == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable, "
        "2 node(s) had untolerated taint(s)."
    )


def test_a_node_may_lack_several_resources_at_once() -> None:
    text = message(
        make.spec(cpu=5000, memory=64 * make.GIB),
        make.node("a", cpu=1000),
        make.node("b", cpu=9000),
        make.node("full", pods=1),
        used=make.spec(cpu=0, memory=0),
    )
    assert text == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 Too many pods, 3 Insufficient memory."
    )


def test_a_node_counts_for_the_first_plugin_that_refuses_it() -> None:
    text = message(
        make.spec(cpu=5000, selector={"zone": "b"}),
        make.node("a", cpu=1000, unschedulable=True, labels={"zone": "a"}),
        make.node("b", cpu=1000, labels={"zone": "a"}),
    )
    assert text == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) were unschedulable."
    )


def test_names_of_nodes_may_be_required() -> None:
    text = message(make.spec(node_name="other"), make.node("a"))
    assert text == ("0/1 nodes are available: 1 node(s) didn't match the requested node name.")
    named = [Term((), (Requirement("metadata.name", "In", (n,)),) * 1) for n in ("x", "y")]
    both = Term((), named[0].fields + named[1].fields)
    text = message(make.spec(affinity=NodeAffinity((both,))), make.node("a"))
    assert text == "pod affinity terms conflict"


def test_without_nodes_there_is_nothing_to_count() -> None:
    assert message(make.spec()) == "no nodes available to schedule pods"


def test_what_is_free_but_in_use_and_what_is_never_there_count_together() -> None:
    text = message(
        make.spec(extended={"example.com/fpga": 1}),
        make.node("none"),
        make.node("used", extended={"example.com/fpga": 1}),
        used=make.spec(extended={"example.com/fpga": 1}),
    )
    assert text == "0/2 nodes are available: 2 Insufficient example.com/fpga."


def test_a_resource_that_no_node_has_is_compared_with_those_that_there_are() -> None:
    node = make.node("a", extended={names.GPU: 2, names.VGPU: 200})
    asked = {"nvidia.com/gpus": 1}
    assert message(make.spec(extended=asked), node) == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpus. "
        "No node has nvidia.com/gpus: is nvidia.com/gpu meant?"
    )
    unlike = message(make.spec(extended={"example.com/fpga": 1}), node)
    assert unlike == "0/1 nodes are available: 1 Insufficient example.com/fpga."
    # Without its agent a node has no GPUs, but they are asked for by the right name.
    silent = make.node("a", extended={"nvidia.com/mig-1g.10gb": 2})
    assert "meant" not in message(make.spec(extended={names.GPU: 1}), silent)
