"""For every rule, objects that break it."""

import json

from kit.checker.objects import (
    NIC,
    TIME,
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
    A10,
    BAD_PART,
    BORROW,
    LEGACY,
    MIG,
    NOT_T4,
    RACK,
    RWOP,
    SOFT,
    SWAP,
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

#: rule → (what is said, objects that break it)
BAD: dict[str, list[tuple[str, Objects]]] = {
    "readable": [
        ("a request is no quantity", world(pod("p", container(cpu="lots")))),
        ("a request is negative", world(pod("p", container(cpu="-1")))),
        ("the node's capacity", world(pod(), nodes=[node(allocatable={"cpu": "4 cores"})])),
        ("the GPU description is no JSON", world(pod(), nodes=[node(static="{")])),
        ("it is nested without end", world(pod(), nodes=[node(static="[" * 20_000)])),
        (
            "a number of it has no end",
            world(
                pod(), nodes=[node(static='{"v": 1, "gpus": [{"uuid": "u", "index": Infinity}]}')]
            ),
        ),
        ("it is of another version", world(pod(), nodes=[node(static='{"v": 2, "gpus": []}')])),
        (
            "a GPU is described twice",
            world(
                pod(),
                nodes=[
                    node(
                        static=json.dumps(
                            {
                                "v": 1,
                                "gpus": [
                                    {"uuid": "u", "index": i, "model": "T4", "memory_mib": 1}
                                    for i in (0, 1)
                                ],
                            }
                        )
                    )
                ],
            ),
        ),
    ],
    "node-capacity": [
        (
            "cpu by one thousandth",
            world(pod("a", container(cpu="3999m")), pod("b", container(cpu="2m"))),
        ),
        ("memory by one byte", world(pod("p", container(memory=8 * 2**30 + 1)))),
        ("storage", world(pod("p", container(more={"ephemeral-storage": "11Gi"})))),
        ("pods", world(*(pod(f"p{i}") for i in range(6)))),
        (
            "slices beside a GPU that became unhealthy",
            world(
                slice_pod("a", 16000, 50),
                slice_pod("b", 16000, 60, "n-1"),
                slice_pod("c", 64, 50, "n-1"),
                nodes=[node(gpus=2, unhealthy=(0,))],
            ),
        ),
        (
            "whole GPUs beside one that became unhealthy",
            world(
                whole_pod("a", "n-0"),
                whole_pod("b", "n-1", "n-2"),
                nodes=[node(gpus=2, unhealthy=(0,))],
            ),
        ),
        ("an extended resource", world(pod("p", container(whole=3), assigned="-"))),
        (
            "a resource that the node lacks",
            world(pod("p", container(more={NIC: "1"}))),
        ),
        (
            "more devices than there were before their plugin went",
            world(
                pod("p", container(more={NIC: "2"})),
                nodes=[node(allocatable={NIC: "0"}, capacity={NIC: "1"})],
            ),
        ),
        (
            "MIG devices, also of foreign pods",
            world(
                pod("a", container(more=MIG)),
                pod("b", container(more=MIG), scheduler="default-scheduler"),
                nodes=[node(allocatable=MIG)],
            ),
        ),
        ("a foreign pod counts", world(pod("p", container(cpu=5), scheduler="default-scheduler"))),
        (
            "the peak of an init container",
            world(pod("p", container(cpu=1), spec={"initContainers": [container("i", cpu=5)]})),
        ),
        (
            "a sidecar runs beside the others",
            world(
                pod(
                    "p",
                    container(cpu=3),
                    spec={"initContainers": [container("s", cpu=2, always=True)]},
                )
            ),
        ),
        ("overhead", world(pod("p", container(cpu=4), spec={"overhead": {"cpu": "1m"}}))),
        (
            "pod-level requests stand above the sum",
            world(pod("p", container(cpu=1), spec={"resources": {"requests": {"cpu": "5"}}})),
        ),
    ],
    "gpu-memory": [
        ("by one MiB", world(slice_pod("a", 15000, 10), slice_pod("b", 1001, 10))),
    ],
    "gpu-compute": [
        (
            "beyond the factor that the node publishes",
            world(
                slice_pod("a", 64, 100, annotations=SOFT),
                slice_pod("b", 64, 100, annotations=SOFT),
                slice_pod("c", 64, 1, annotations=SOFT),
                nodes=[node(gpus=2, factor=2)],
            ),
        ),
    ],
    "gpu-compute-hard": [
        (
            "hard shares add up to more than the GPU, soft factor or not",
            world(slice_pod("a", 64, 60), slice_pod("b", 64, 41), nodes=[node(gpus=2, factor=2)]),
        ),
    ],
    "gpu-exclusive": [
        ("two pods have the same whole GPU", world(whole_pod("a", "n-0"), whole_pod("b", "n-0"))),
        ("a slice of a whole GPU", world(whole_pod("a", "n-0"), slice_pod("b", 64, 1))),
        (
            "two containers of a pod have the same whole GPU",
            world(
                pod(
                    "p",
                    container("a", whole=1),
                    container("b", whole=1),
                    assigned=assignment(a=[whole("n-0")], b=[whole("n-0")]),
                )
            ),
        ),
    ],
    "gpu-count": [
        (
            "a foreign pod needs a GPU and none is left",
            world(
                slice_pod("a", 64, 1, "n-0"),
                slice_pod("b", 64, 1, "n-1"),
                pod("f", container(whole=1), scheduler="default-scheduler"),
            ),
        ),
    ],
    "node-exists": [("there is no such node", world(pod(on="elsewhere")))],
    "node-selector": [
        ("another value", world(pod(spec={"nodeSelector": {"zone": "b"}}))),
        ("no such label", world(pod(spec={"nodeSelector": {"rack": "1"}}))),
        (
            "of a foreign pod",
            world(pod(spec={"nodeSelector": {"zone": "b"}}, scheduler="default-scheduler")),
        ),
    ],
    "node-affinity": [
        ("In", world(affine(needs("zone", "In", "b", "c")))),
        ("In without the label", world(affine(needs("rack", "In", "b")))),
        ("NotIn", world(affine(needs("zone", "NotIn", "a")))),
        ("Exists", world(affine(needs("rack", "Exists")))),
        ("DoesNotExist", world(affine(needs("zone", "DoesNotExist")))),
        ("Gt at the limit", world(affine(needs("size", "Gt", "10")))),
        ("Lt at the limit", world(affine(needs("size", "Lt", "10")))),
        ("Gt of a word", world(affine(needs("zone", "Gt", "1")))),
        (
            "one of two requirements",
            world(affine(needs("zone", "Exists"), needs("size", "Lt", "5"))),
        ),
        ("a field", world(affine(fields=(needs("metadata.name", "In", "m"),)))),
        ("an empty term", world(affine())),
    ],
    "node-taints": [
        ("NoSchedule", world(pod(), nodes=tainted())),
        ("NoExecute", world(pod(), nodes=tainted("NoExecute"))),
        ("another value", world(tolerant(key="team", value="b"), nodes=tainted())),
        (
            "another effect",
            world(tolerant(key="team", value="a", effect="NoExecute"), nodes=tainted()),
        ),
        ("another key", world(tolerant(key="x", operator="Exists"), nodes=tainted())),
    ],
    "gpu-model": [
        ("of a slice", world(slice_pod("p", 64, 1, annotations=A10))),
        ("of a refused model", world(slice_pod("p", 64, 1, annotations=NOT_T4))),
        ("of a whole GPU", world(whole_pod("p", "n-1", annotations=A10))),
        ("of a node, without an assignment", world(pod("p", container(whole=1), annotations=A10))),
    ],
    "gpu-exists": [
        ("a GPU of nobody", world(slice_pod("p", 64, 1, "x-0"))),
        (
            "another index",
            world(
                pod(
                    "p",
                    container(mib=64, percent=1),
                    assigned=assignment(main=[part("n-0", 64, 1) | {"index": 1}]),
                )
            ),
        ),
    ],
    "assignment-present": [
        ("of a slice", world(pod("p", container(mib=64, percent=1)))),
        ("of a whole GPU", world(pod("p", container(whole=1)))),
        (
            "of an init container",
            world(pod("p", spec={"initContainers": [container("i", whole=1)]})),
        ),
    ],
    "assignment-readable": [
        (said, world(pod("p", container(mib=100, percent=10), assigned=text)))
        for said, text in {
            "no JSON": "{",
            "nested without end": "[" * 20_000,
            "a list": "[]",
            "another version": json.dumps({"v": 2, "t": TIME, "containers": {}}),
            "no time": json.dumps({"v": 1, "containers": {"main": [BAD_PART]}}),
            "no zone": json.dumps({"v": 1, "t": TIME[:-1], "containers": {"main": [BAD_PART]}}),
            "no containers": json.dumps({"v": 1, "t": TIME}),
            "no list": json.dumps({"v": 1, "t": TIME, "containers": {"main": BAD_PART}}),
            "no GPU in the list": json.dumps({"v": 1, "t": TIME, "containers": {"main": []}}),
            "a word for a GPU": json.dumps({"v": 1, "t": TIME, "containers": {"main": ["n-0"]}}),
            "a field is missing": assignment(main=[{"uuid": "n-0", "index": 0}]),
            "true is no number": assignment(main=[BAD_PART | {"compute": True}]),
            "a negative amount": assignment(main=[BAD_PART | {"compute": -1}]),
        }.items()
    ],
    "assignment-amounts": [
        (said, world(pod("p", container(mib=100, percent=10), assigned=text)))
        for said, text in {
            "less memory": assignment(main=[part("n-0", 99, 10)]),
            "more compute": assignment(main=[part("n-0", 100, 11)]),
            "a whole GPU for a slice": assignment(main=[whole("n-0")]),
            "nothing": assignment(),
            "twice": assignment(main=[part("n-0", 100, 10), part("n-0", 100, 10)]),
            "another container": assignment(main=[part("n-0", 100, 10)], other=[whole("n-1")]),
        }.items()
    ]
    + [
        (
            "one GPU of two",
            world(pod("p", container(whole=2), assigned=assignment(main=[whole("n-0")]))),
        ),
        (
            "the same GPU twice",
            world(pod("p", container(whole=2), assigned=assignment(main=[whole("n-0")] * 2))),
        ),
        (
            "a whole GPU without all its memory",
            world(
                pod(
                    "p",
                    container(whole=1),
                    assigned=assignment(main=[part("n-0", 15999, 100, whole=True)]),
                )
            ),
        ),
        (
            "a slice for a container that asked for none",
            world(pod("p", container(cpu=1), assigned=assignment(main=[part("n-0", 64, 1)]))),
        ),
    ],
    "slices-together": [
        (
            "two containers on two GPUs",
            world(
                pod(
                    "p",
                    container("a", mib=64, percent=1),
                    container("b", mib=64, percent=1),
                    assigned=assignment(a=[part("n-0", 64, 1)], b=[part("n-1", 64, 1)]),
                )
            ),
        ),
    ],
    "claims-allocated": [
        (
            "a claim from a template, and one by name",
            world(
                pod(
                    "p",
                    spec={
                        "resourceClaims": [
                            {"name": "gpu", "resourceClaimTemplateName": "one"},
                            {"name": "nic", "resourceClaimName": "shared"},
                        ]
                    },
                )
            ),
        ),
    ],
    "possible-request": [
        ("whole and a slice in a container", world(pod("p", container(whole=1, mib=64)))),
        ("compute without memory", world(pod("p", container(percent=10)))),
        ("130 percent of a GPU", world(pod("p", container(mib=64, percent=130)))),
        ("memory in GiB, it seems", world(pod("p", container(mib=63, percent=10)))),
        (
            "containers together more than the GPU",
            world(pod("p", container("a", mib=64, percent=60), container("b", mib=64, percent=41))),
        ),
        ("a model without GPUs", world(pod(annotations=T4))),
        (
            "models that are none",
            world(slice_pod("p", 64, 1, annotations={"ai.centaurus.io/gpu-models": ", "})),
        ),
        (
            "a model that it takes and refuses",
            world(slice_pod("p", 64, 1, annotations={**T4, **NOT_T4})),
        ),
        (
            "a policy that is none",
            world(slice_pod("p", 64, 1, annotations={"ai.centaurus.io/vgpu-policy": "firm"})),
        ),
        (
            "a priority that is none",
            world(slice_pod("p", 64, 1, annotations={"ai.centaurus.io/vgpu-priority": "high"})),
        ),
        (
            "an isolation that is none",
            world(slice_pod("p", 64, 1, annotations={"ai.centaurus.io/vgpu-isolation": "mig"})),
        ),
        (
            "a policy of memory that is none",
            world(slice_pod("p", 64, 1, annotations={"ai.centaurus.io/vgpu-memory-policy": "no"})),
        ),
        (
            "memory of the host without the policy",
            world(slice_pod("p", 64, 1, annotations={"ai.centaurus.io/vgpu-host-memory": "64"})),
        ),
        (
            "memory of the host that is none",
            world(
                slice_pod(
                    "p", 64, 1, annotations={**SWAP, "ai.centaurus.io/vgpu-host-memory": "8Gi"}
                )
            ),
        ),
        ("loans and no slice", world(whole_pod("p", "n-0", annotations=BORROW))),
        ("memory of the host and no slice", world(whole_pod("p", "n-0", annotations=SWAP))),
    ],
    "gang-whole": [
        ("one of two", world(member("a", "n"), member("b", ""), groups=[group(2)])),
        ("the other label", world(member("a", "n", LEGACY), member("b", ""), groups=[group(2)])),
        (
            "the other group",
            world(
                member("a", "n", LEGACY),
                groups=[group(2, api="scheduling.sigs.k8s.io/v1alpha1")],
            ),
        ),
        ("one has ended", world(member("a", "n", phase="Succeeded"), groups=[group(2)])),
        (
            "one of two bound ones leaves",
            world(
                member("a", "n", deleting=True),
                member("b", "n"),
                member("c", ""),
                groups=[group(3)],
            ),
        ),
    ],
    "host-ports": [
        ("the same port", world(serving("a"), serving("b"))),
        ("every address and one", world(serving("a"), serving("b", 80, "10.0.0.1"))),
        ("one address and every", world(serving("a", 80, "10.0.0.1"), serving("b"))),
        ("the same address", world(serving("a", 80, "10.0.0.1"), serving("b", 80, "10.0.0.1"))),
        (
            "of a sidecar",
            world(
                serving("a"),
                pod(
                    "b",
                    spec={
                        "initContainers": [
                            {**container("s", always=True), "ports": [{"hostPort": 80}]}
                        ]
                    },
                ),
            ),
        ),
        ("one is on its way out", world(serving("a"), serving("b", deleting=True))),
    ],
    "gang-topology": [
        (
            "two racks",
            world(
                member("a", "n0"),
                member("b", "n1"),
                groups=[group(2, topology="rack")],
                nodes=racks("r", "s"),
            ),
        ),
        (
            "a label that is written out",
            world(
                member("a", "n0"),
                member("b", "n1"),
                groups=[group(2, topology="topology.kubernetes.io/rack")],
                nodes=racks("r", "s"),
            ),
        ),
    ],
    "pod-anti-affinity": [
        ("each other, on a node", world(apart("a", labels=A), apart("b", labels=A), nodes=RACK)),
        ("one the other", world(apart("a"), pod("b", labels=A), nodes=RACK)),
        (
            "in a rack",
            world(apart("a", on="n0"), pod("b", on="n1", labels=A), nodes=racks("r", "r")),
        ),
        (
            "in all namespaces",
            world(
                apart("a", term={"namespaceSelector": {}, "labelSelector": {}}),
                pod("b", namespace="other"),
                nodes=RACK,
            ),
        ),
        (
            "in a named namespace",
            world(
                apart("a", term={"namespaces": ["other"], "labelSelector": {}}),
                pod("b", namespace="other"),
                nodes=RACK,
            ),
        ),
        (
            "of the same version",
            world(
                *(
                    apart(
                        name,
                        term={"labelSelector": {}, "matchLabelKeys": ["v"]},
                        labels={"v": "1"},
                    )
                    for name in "ab"
                ),
                nodes=RACK,
            ),
        ),
    ],
    "claim-exclusive": [
        (
            "two pods",
            world(storing("a", "c"), storing("b", "c"), claims=[claim("c", "", RWOP)]),
        ),
    ],
    "volume-node": [
        (
            "of another node",
            world(storing("a", "c"), claims=[claim("c", "v")], volumes=[volume("v", zone="b")]),
        ),
    ],
}
