"""For every rule, objects at its limit that break nothing."""

from kit.checker.objects import (
    NIC,
    assignment,
    claim,
    container,
    group,
    node,
    part,
    pod,
    volume,
    whole,
)
from kit.checker.worlds import (
    MIG,
    RACK,
    RWOP,
    SOFT,
    T4,
    A,
    Objects,
    affine,
    apart,
    member,
    needs,
    racks,
    serving,
    slice_pod,
    storing,
    tainted,
    tolerant,
    whole_pod,
    world,
)

NICS = {NIC: "2"}
CLAIMING = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]}

#: rule → objects at the limit, or just outside of what the rule is about: nothing is wrong
GOOD: dict[str, list[tuple[str, Objects]]] = {
    "readable": [
        ("all suffixes", world(pod("p", container(cpu="1e0", memory="1.5Gi")))),
        ("an unreadable node without pods", world(nodes=[node(static="{")])),
    ],
    "node-capacity": [
        ("just full", world(pod("a", container(cpu="3999m")), pod("b", container(cpu="1m")))),
        (
            "all its MIG devices, without an assignment",
            world(pod("p", container(more=MIG)), nodes=[node(gpus=1, allocatable=MIG)]),
        ),
        ("all its memory", world(pod("p", container(memory=8 * 2**30)))),
        ("five pods", world(*(pod(f"p{i}") for i in range(5)))),
        ("an ended pod holds nothing", world(pod("a", container(cpu=9), phase="Failed"))),
        ("a pending pod holds nothing", world(pod("a", container(cpu=9), on=""))),
        (
            "init containers run one after the other",
            world(
                pod(
                    "p",
                    container(cpu=2),
                    container("q", cpu=2),
                    spec={"initContainers": [container("i", cpu=4), container("j", cpu=4)]},
                )
            ),
        ),
        (
            "a sidecar that starts after an init container",
            world(
                pod(
                    "p",
                    container(cpu=1),
                    spec={
                        "initContainers": [
                            container("i", cpu=4),
                            container("s", cpu=3, always=True),
                        ]
                    },
                )
            ),
        ),
        (
            "devices whose plugin is away",
            world(
                pod("p", container(more=NICS)), nodes=[node(allocatable={NIC: "0"}, capacity=NICS)]
            ),
        ),
        (
            "devices whose plugin has not come back to a kubelet that restarted",
            world(
                pod("p", container(more=NICS)),
                nodes=[node(allocatable={NIC: "0"}, capacity={NIC: "0"})],
            ),
        ),
        (
            "what is on a GPU that became unhealthy",
            world(
                slice_pod("a", 16000, 100),
                whole_pod("b", "n-1"),
                slice_pod("c", 16000, 100, "n-2"),
                nodes=[node(gpus=3, unhealthy=(0, 1))],
            ),
        ),
        (
            "pod-level requests stand below the sum",
            world(pod("p", container(cpu=5), spec={"resources": {"requests": {"cpu": "4"}}})),
        ),
    ],
    "gpu-memory": [
        ("just full", world(slice_pod("a", 15000, 10), slice_pod("b", 1000, 10))),
        (
            "an init container's slice is free again",
            world(
                pod(
                    "p",
                    container(mib=16000, percent=10),
                    spec={"initContainers": [container("i", mib=16000, percent=10)]},
                    assigned=assignment(i=[part("n-0", 16000, 10)], main=[part("n-0", 16000, 10)]),
                )
            ),
        ),
    ],
    "gpu-compute": [
        (
            "the factor is used up",
            world(
                slice_pod("a", 64, 100, annotations=SOFT),
                slice_pod("b", 64, 100),
                nodes=[node(gpus=2, factor=2)],
            ),
        ),
        (
            "the factor of the healthy GPUs",
            world(
                slice_pod("a", 64, 100, "n-1", annotations=SOFT),
                slice_pod("b", 64, 100, "n-1"),
                nodes=[node(gpus=2, factor=2, unhealthy=(0,))],
            ),
        ),
    ],
    "gpu-compute-hard": [("just full", world(slice_pod("a", 64, 60), slice_pod("b", 64, 40)))],
    "gpu-exclusive": [
        ("one each", world(whole_pod("a", "n-0"), whole_pod("b", "n-1"))),
        (
            "an init container had it before",
            world(
                pod(
                    "p",
                    container(whole=1),
                    spec={"initContainers": [container("i", whole=1)]},
                    assigned=assignment(i=[whole("n-0")], main=[whole("n-0")]),
                )
            ),
        ),
    ],
    "gpu-count": [
        (
            "one is left",
            world(
                slice_pod("a", 64, 1),
                pod("f", container(whole=1), scheduler="default-scheduler"),
            ),
        ),
    ],
    "node-exists": [("it is there", world(pod()))],
    "node-selector": [
        ("both labels", world(pod(spec={"nodeSelector": {"zone": "a", "size": "10"}})))
    ],
    "node-affinity": [
        ("In", world(affine(needs("zone", "In", "b", "a")))),
        ("NotIn without the label", world(affine(needs("rack", "NotIn", "a")))),
        ("Exists", world(affine(needs("zone", "Exists")))),
        ("DoesNotExist", world(affine(needs("rack", "DoesNotExist")))),
        ("Gt", world(affine(needs("size", "Gt", "9")))),
        ("Lt", world(affine(needs("size", "Lt", "11")))),
        ("a field", world(affine(fields=(needs("metadata.name", "In", "n"),)))),
    ],
    "node-taints": [
        ("PreferNoSchedule", world(pod(), nodes=tainted("PreferNoSchedule"))),
        ("Equal", world(tolerant(key="team", value="a"), nodes=tainted())),
        ("Exists", world(tolerant(key="team", operator="Exists"), nodes=tainted())),
        ("everything", world(tolerant(operator="Exists"), nodes=tainted("NoExecute"))),
        ("a cordoned node", world(pod(), nodes=tainted(key="node.kubernetes.io/unschedulable"))),
        (
            "a static pod",
            world(pod(annotations={"kubernetes.io/config.mirror": "x"}), nodes=tainted()),
        ),
    ],
    "gpu-model": [("one of the models", world(slice_pod("p", 64, 1, annotations=T4)))],
    "gpu-exists": [("the second GPU", world(slice_pod("p", 64, 1, "n-1")))],
    "assignment-present": [
        ("no GPUs asked", world(pod("p", container(cpu=1)))),
        (
            "the node does not describe its GPUs",
            world(
                pod("p", container(mib=64)), nodes=[node(allocatable={"alnair/vgpu-memory": "64"})]
            ),
        ),
        ("not ours", world(pod("p", container(whole=1), scheduler="default-scheduler"))),
        ("not bound", world(pod("p", container(whole=1), on=""))),
    ],
    "assignment-readable": [
        ("not ours", world(pod("p", scheduler="default-scheduler", assigned="{"))),
    ],
    "assignment-amounts": [
        ("two whole GPUs", world(whole_pod("p", "n-0", "n-1"))),
        ("a slice without compute", world(slice_pod("p", 64, 0))),
        (
            "whole GPUs and a slice in two containers",
            world(
                pod(
                    "p",
                    container("a", whole=1),
                    container("b", mib=64, percent=1),
                    assigned=assignment(a=[whole("n-0")], b=[part("n-1", 64, 1)]),
                )
            ),
        ),
    ],
    "slices-together": [
        (
            "two containers on one GPU",
            world(
                pod(
                    "p",
                    container("a", mib=64, percent=1),
                    container("b", mib=64, percent=1),
                    assigned=assignment(a=[part("n-0", 64, 1)], b=[part("n-0", 64, 1)]),
                )
            ),
        ),
    ],
    "claims-allocated": [
        ("not ours", world(pod("p", scheduler="default-scheduler", spec=CLAIMING))),
        ("not bound", world(pod("p", on="", spec=CLAIMING))),
        ("an empty list", world(pod("p", spec={"resourceClaims": []}))),
    ],
    "possible-request": [
        ("all of a GPU", world(slice_pod("p", 16000, 100))),
        ("the least memory", world(slice_pod("p", 64, 1))),
        ("impossible, and so pending", world(pod("p", container(percent=10), on=""))),
    ],
    "gang-whole": [
        ("both", world(member("a", "n"), member("b", "n"), groups=[group(2)])),
        ("none", world(member("a", ""), member("b", ""), groups=[group(2)])),
        (
            "enough of three",
            world(member("a", "n"), member("b", "n"), member("c", ""), groups=[group(2)]),
        ),
        ("all bound ones leave", world(member("a", "n", deleting=True), groups=[group(2)])),
        ("another scheduler's", world(member("a", "n", scheduler="x"), groups=[group(2)])),
        ("no such group", world(member("a", "n"))),
    ],
    "host-ports": [
        ("another port", world(serving("a"), serving("b", 81))),
        ("another protocol", world(serving("a"), serving("b", protocol="UDP"))),
        ("another address", world(serving("a", 80, "10.0.0.1"), serving("b", 80, "10.0.0.2"))),
        ("another scheduler's", world(serving("a"), serving("b", scheduler="x"))),
        ("one has ended", world(serving("a"), serving("b", phase="Failed"))),
        ("not a host port", world(serving("a"), serving("b", 0))),
    ],
    "gang-topology": [
        (
            "one rack",
            world(
                member("a", "n0"),
                member("b", "n1"),
                groups=[group(2, topology="rack")],
                nodes=racks("r", "r", "s"),
            ),
        ),
        (
            "no topology",
            world(
                member("a", "n0"),
                member("b", "n1"),
                groups=[group(2)],
                nodes=racks("r", "s"),
            ),
        ),
        (
            "the one in the other rack leaves",
            world(
                member("a", "n0"),
                member("b", "n0"),
                member("c", "n1", deleting=True),
                groups=[group(2, topology="rack")],
                nodes=racks("r", "s"),
            ),
        ),
        (
            "somebody else bound the other",
            world(
                member("a", "n0"),
                member("b", "n1", scheduler="x"),
                groups=[group(2, topology="rack")],
                nodes=racks("r", "s"),
            ),
        ),
        (
            "a node that lost its label",
            world(
                member("a", "n0"),
                member("b", "n1"),
                groups=[group(2, topology="rack")],
                nodes=racks("r", ""),
            ),
        ),
    ],
    "pod-anti-affinity": [
        ("itself", world(apart("a", labels=A), nodes=RACK)),
        ("other labels", world(apart("a"), pod("b", labels={"app": "b"}), nodes=RACK)),
        ("another namespace", world(apart("a"), pod("b", labels=A, namespace="x"), nodes=RACK)),
        (
            "another rack",
            world(apart("a", on="n0"), pod("b", on="n1", labels=A), nodes=racks("r", "s")),
        ),
        ("no racks", world(apart("a", on="n0"), pod("b", on="n0", labels=A), nodes=racks(""))),
        ("a foreign pod", world(apart("a"), pod("b", labels=A, scheduler="x"), nodes=RACK)),
        ("it leaves", world(apart("a"), pod("b", labels=A, deleting=True), nodes=RACK)),
        ("it has ended", world(apart("a"), pod("b", labels=A, phase="Succeeded"), nodes=RACK)),
        ("no selector", world(apart("a", term={"labelSelector": None}), pod("b"), nodes=RACK)),
        (
            "of another version",
            world(
                *(
                    apart(
                        name,
                        term={"labelSelector": {}, "matchLabelKeys": ["v"]},
                        labels={"v": name},
                    )
                    for name in "ab"
                ),
                nodes=RACK,
            ),
        ),
        (
            "of chosen namespaces, which are not known",
            world(
                apart("a", term={"namespaceSelector": {"matchLabels": A}, "labelSelector": {}}),
                pod("b"),
                nodes=RACK,
            ),
        ),
    ],
    "claim-exclusive": [
        ("one pod", world(storing("a", "c"), claims=[claim("c", "", RWOP)])),
        ("of a node", world(storing("a", "c"), storing("b", "c"), claims=[claim("c")])),
        (
            "one leaves",
            world(
                storing("a", "c", deleting=True), storing("b", "c"), claims=[claim("c", "", RWOP)]
            ),
        ),
        (
            "another namespace",
            world(
                storing("a", "c"), storing("b", "c", namespace="x"), claims=[claim("c", "", RWOP)]
            ),
        ),
    ],
    "volume-node": [
        (
            "of this node",
            world(storing("a", "c"), claims=[claim("c", "v")], volumes=[volume("v", zone="a")]),
        ),
        (
            "of every node",
            world(storing("a", "c"), claims=[claim("c", "v")], volumes=[volume("v")]),
        ),
        (
            "not bound",
            world(storing("a", "c"), claims=[claim("c")], volumes=[volume("v", zone="b")]),
        ),
        ("a claim that is not there", world(storing("a", "c"))),
    ],
}
