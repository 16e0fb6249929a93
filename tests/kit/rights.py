"""What the chart lets each component do, and what each has been seen to do, as sets of rights."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from alnair.doctor.cluster.chart_rights import Right, rights_by_component

ROOT = Path(__file__).parents[2]
#: Written by `make record-requests`.
RECORDED = ROOT / "tests" / "golden" / "requests-of-components.tsv"
#: Rendered from the chart.
_DEPLOY = ROOT / "deploy" / "alnair.yaml"
#: The same for clusters of `alnair up`, with the rights of a controller that keeps a history and
#: moves pods.
_LOCAL = ROOT / "src" / "alnair" / "local" / "manifests" / "alnair.yaml"
#: Owners that no test cluster has: kinds of other projects, and workloads without end.
_OWNERS = (
    *("statefulsets.apps", "cronjobs.batch", "jobs.batch.volcano.sh", "jobsets.jobset.x-k8s.io"),
    *("mpijobs.kubeflow.org", "paddlejobs.kubeflow.org", "pytorchjobs.kubeflow.org"),
    *("tfjobs.kubeflow.org", "xgboostjobs.kubeflow.org", "trainjobs.trainer.kubeflow.org"),
    *("leaderworkersets.leaderworkerset.x-k8s.io", "podgroups.scheduling.x-k8s.io"),
    *("rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io"),
)
#: What is asked for of them all the same, as parts of training jobs.
_PARTS = {
    ("patch", "statefulsets.apps"),
    ("get", "podgroups.scheduling.x-k8s.io"),
    ("patch", "podgroups.scheduling.x-k8s.io"),
}
#: Rights that no recorded run uses, and why they are given all the same.
EXCUSED = {
    ("agent", Right("create", "gpuassignments.ai.centaurus.io")): "asked for by a policy only",
    ("scheduler", Right("create", "gpuassignments.ai.centaurus.io")): "asked for by a policy only",
    **{
        ("controller", Right(verb, owner)): "owners of pods, of kinds that no test makes"
        for verb in ("get", "patch")
        for owner in _OWNERS
        if (verb, owner) not in _PARTS
    },
    **{
        ("controller", Right("update", f"{kind}/finalizers.ai.centauruscloud.io")): "asked for by"
        " clusters that guard who may hold up an owner's deletion"
        for kind in ("elastichorovodjobs", "horovodjobs", "elastictorchjobs")
    },
    **{
        ("controller", Right(verb, f"{kind}.ai.centauruscloud.io")): "jobs of these kinds that"
        " rebalancing moves"
        for verb, kind in (
            ("get", "horovodjobs"),
            ("get", "elastictorchjobs"),
            ("patch", "elastictorchjobs"),
        )
    },
    ("controller", Right("get", "networkpolicies.networking.k8s.io")): "of a name that is taken",
    ("controller", Right("get", "podgroups.scheduling.x-k8s.io")): "of a name that is taken",
    ("controller", Right("patch", "replicasets.apps")): "an owner without one of its own",
    ("agent", Right("patch", "events")): "a violation that is told again within minutes",
    **{
        ("agent", Right(verb, "noderesourcetopologies.topology.node.k8s.io")): "NUMA nodes, which"
        " the machine of a test need not have (tests/integration/agent/test_numa_report.py)"
        for verb in ("get", "create", "patch")
    },
}
_HEAD = "component\tverb\tresource\tnamespace\n"


def given() -> dict[str, set[Right]]:
    """The rights of each component, by the chart."""
    found: dict[str, set[Right]] = {}
    for file in (_DEPLOY, _LOCAL):
        documents = (one for one in yaml.safe_load_all(file.read_text()) if one)
        for component, rights in rights_by_component(documents).items():
            found.setdefault(component, set()).update(rights)
    return found


def recorded(path: Path = RECORDED) -> dict[str, set[Right]]:
    """What each component asked a real API server for, as the file says."""
    found: dict[str, set[Right]] = {}
    for line in path.read_text().removeprefix(_HEAD).splitlines():
        component, *right = line.split("\t")
        found.setdefault(component, set()).add(Right(*right))
    return found


def unknown(seen: Iterable[tuple[str, Right]]) -> set[tuple[str, Right]]:
    """Return those requests that are neither recorded nor excused."""
    known = {(name, right) for name, found in recorded().items() for right in found} | set(EXCUSED)
    return {one for one in seen if not {one, (one[0], one[1]._replace(namespace=""))} & known}


def write(seen: Iterable[tuple[str, Right]], path: Path = RECORDED) -> None:
    """Write what has been asked for into the file; a request anywhere stands for one in ours."""
    every = set(seen)
    lines = (
        "\t".join((component, *right))
        for component, right in sorted(every)
        if not right.namespace or (component, right._replace(namespace="")) not in every
    )
    path.write_text(_HEAD + "".join(f"{line}\n" for line in lines))


def note(seen: Iterable[tuple[str, Right]], path: Path) -> None:
    """Add what has been asked for to a file, which need not be there."""
    before = read_all([path] if path.exists() else [])
    write(before | set(seen), path)


def read_all(paths: Iterable[Path]) -> set[tuple[str, Right]]:
    """What any of these files says."""
    return {
        (name, right) for path in paths for name, found in recorded(path).items() for right in found
    }
