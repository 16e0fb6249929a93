"""Are the custom resources installed, in force, and as this version writes them?"""

from collections.abc import Iterator
from typing import Any, Final

from alnair.doctor.cluster.look import INSTALL, ClusterLook
from alnair.doctor.finding import Finding, error, ok, warning
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.crds.manifests import crd
from alnair.kube.crds.our_crds import DEFINITIONS, LEGACY_POD_GROUP
from alnair.kube.resources import CRDS, Manifest

#: What is lost without a kind.
_WITHOUT: Final = {
    "podgroups.scheduling.x-k8s.io": "no pods are placed as a gang",
    "elasticquotas.scheduling.x-k8s.io": "no namespace has a guaranteed share",
    "noderesourcetopologies.topology.node.k8s.io": "pods are placed without regard to NUMA nodes",
    **{one.name: f"no {one.kind} can be made" for one in TRAINING_JOBS},
}


async def custom_resources(look: ClusterLook) -> list[Finding]:
    """The CRDs are installed, Established, and have the fields that this version writes."""
    found = []
    for definition in DEFINITIONS:
        wanted = crd(definition)
        name = wanted["metadata"]["name"]
        there = await look.get(CRDS, name)
        if there is not None:
            found.append(judged(name, wanted, there))
        elif definition is not LEGACY_POD_GROUP:
            found.append(warning(f"not installed: {_WITHOUT[name]}", f"crd/{name}", fix=INSTALL))
    return found


def judged(name: str, wanted: Manifest, there: Manifest) -> Finding:
    """Say how a CRD that is there compares with what this version wants."""
    where = f"crd/{name}"
    conditions = there.get("status", {}).get("conditions") or []
    if not any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
        why = "; ".join(one.get("message", "") for one in conditions if one["status"] == "False")
        return error(f"not Established: {why}", where, fix=f"kubectl describe {where}")
    version = wanted["spec"]["versions"][0]
    served = [one for one in there["spec"]["versions"] if one["name"] == version["name"]]
    if not served or not served[0].get("served"):
        return error(f"version {version['name']} is not served", where, fix=_apply(name))
    schema = "openAPIV3Schema"
    less = next(_less(version["schema"][schema], served[0]["schema"][schema], ""), "")
    if less:
        text = f"another schema than this version writes, at {less}: newer fields may be dropped"
        return warning(text, where, fix=_apply(name))
    return ok("installed, Established, with this version's schema", where)


def _apply(name: str) -> str:
    return f"kubectl apply --server-side --filename charts/alnair/files/crds/{name}.yaml"


def _less(wanted: Any, there: Any, path: str) -> Iterator[str]:
    """Yield where a schema lacks, or has otherwise, what is wanted; words are no matter."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        for key, value in wanted.items():
            is_word = key == "description" and isinstance(value, str)
            if not is_word:
                yield from _less(value, there.get(key), f"{path}.{key}")
    elif wanted != there:
        yield path.lstrip(".")
