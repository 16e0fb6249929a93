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
#: Rights that no recorded run uses, and why they are given all the same.
EXCUSED = {
    ("agent", Right("create", "gpuassignments.ai.centaurus.io")): "asked for by a policy only",
    ("scheduler", Right("create", "gpuassignments.ai.centaurus.io")): "asked for by a policy only",
    ("agent", Right("get", "daemonsets.apps", "alnair-system")): "asked once, when its pod ends",
    **{
        (component, Right("create", review)): "asked where pages are served securely"
        for component in ("scheduler", "controller", "agent")
        for review in (
            "tokenreviews.authentication.k8s.io",
            "subjectaccessreviews.authorization.k8s.io",
        )
    },
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
    return rights_by_component(one for one in yaml.safe_load_all(_DEPLOY.read_text()) if one)


def recorded() -> dict[str, set[Right]]:
    """What each component asked a real API server for, as the file says."""
    found: dict[str, set[Right]] = {}
    for line in RECORDED.read_text().removeprefix(_HEAD).splitlines():
        component, *right = line.split("\t")
        found.setdefault(component, set()).add(Right(*right))
    return found


def unknown(seen: Iterable[tuple[str, Right]]) -> set[tuple[str, Right]]:
    """Return those requests that are neither recorded nor excused."""
    known = {(name, right) for name, found in recorded().items() for right in found} | set(EXCUSED)
    return {one for one in seen if not {one, (one[0], one[1]._replace(namespace=""))} & known}


def write(seen: Iterable[tuple[str, Right]]) -> None:
    """Write what has been asked for into the file; a request anywhere stands for one in ours."""
    every = set(seen)
    lines = (
        "\t".join((component, *right))
        for component, right in sorted(every)
        if not right.namespace or (component, right._replace(namespace="")) not in every
    )
    RECORDED.write_text(_HEAD + "".join(f"{line}\n" for line in lines))
