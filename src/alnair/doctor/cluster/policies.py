"""Are the admission policies there, bound, and in force?"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec

from alnair.doctor.cluster import versions
from alnair.doctor.cluster.look import INSTALL, ClusterLook, manifests
from alnair.doctor.finding import Finding, error, ok, warning
from alnair.kube.errors import Forbidden, Invalid
from alnair.kube.resources import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    PODS,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    Manifest,
    Resource,
)
from alnair.model.names import NAMESPACE, VGPU, VGPU_COMPUTE, VGPU_MEMORY

#: Refuses a slice of compute without one of memory.
_REFUSING: Final = "vgpu-requests.alnair"
#: Adds a slot to a slice.
_ADDING: Final = "vgpu.alnair"
_LOG: Final = "kubectl get validatingadmissionpolicy"


async def there_and_bound(look: ClusterLook) -> list[Finding]:
    """Each policy is there, of this version, bound, and without a fault that its types show."""
    at = await versions.mutating(look)
    kinds = [(VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS)]
    if at:
        kinds.append(
            (replace(MUTATING_POLICIES, version=at), replace(MUTATING_POLICY_BINDINGS, version=at))
        )
    found: list[Finding] = []
    for policies, bindings in kinds:
        wanted = manifests(policies.kind)
        bound = [*manifests(bindings.kind)]
        names = [one["metadata"]["name"] for one in wanted]
        there = await asyncio.gather(*(look.get(policies, name) for name in names))
        ties = await asyncio.gather(*(look.get(bindings, b["metadata"]["name"]) for b in bound))
        for policy, one in zip(wanted, there, strict=True):
            pairs = [
                pair
                for pair in zip(bound, ties, strict=True)
                if pair[0]["spec"]["policyName"] == policy["metadata"]["name"]
            ]
            found += _judged(policies, policy, one, pairs)
    return found


def _judged(
    kind: Resource[Manifest],
    wanted: Manifest,
    there: Manifest | None,
    bindings: list[tuple[Manifest, Manifest | None]],
) -> Iterator[Finding]:
    where = f"{kind.kind.lower()}/{wanted['metadata']['name']}"
    fix = f"{INSTALL} --set admission.enabled=true"
    if there is None:
        # Those that mutate may be left out (admission.mutating), and users write what they add.
        said = warning if kind.kind == MUTATING_POLICIES.kind else error
        yield said("the policy is not there", where, fix=fix)
        return
    missing = [one["metadata"]["name"] for one, tie in bindings if tie is None]
    if missing:
        yield error(f"the policy is not bound: {', '.join(missing)} is missing", where, fix=fix)
        return
    for one, tie in bindings:
        assert tie is not None
        actions = one["spec"].get("validationActions", [])
        lacks = {*actions} - {*tie["spec"].get("validationActions", [])}
        if tie["spec"].get("policyName") != wanted["metadata"]["name"] or lacks:
            text = f"its binding {one['metadata']['name']} was changed: it does not {actions}"
            yield error(text, where, fix=fix)
            return
    status = there.get("status", {})
    if faults := status.get("typeChecking", {}).get("expressionWarnings"):
        yield warning(f"the API server warns: {faults[0]['warning']}", where, fix=f"{_LOG} -o yaml")
    elif _expressions(wanted) != _expressions(there):
        yield warning("the policy is that of another version of Alnair", where, fix=INSTALL)
    else:
        yield ok("there, and bound", where)


def _expressions(policy: Manifest) -> list[str]:
    """What it says, without what the server adds."""
    spec = policy["spec"]
    parts = ("matchConditions", "variables", "validations")
    return [" ".join(one["expression"].split()) for part in parts for one in spec.get(part) or ()]


async def in_force(look: ClusterLook) -> list[Finding]:
    """The API server refuses what cannot be meant, and adds a slot to a slice: two dry runs."""
    found = [await _refuses(look)]
    at = await versions.mutating(look)
    if at and await look.get(replace(MUTATING_POLICIES, version=at), _ADDING):
        found.append(await _adds(look))
    return found


async def _refuses(look: ClusterLook) -> Finding:
    where = f"validatingadmissionpolicy/{_REFUSING}"
    try:
        await _probe(look, {VGPU_COMPUTE: "1"})
    except Invalid as refusal:
        if _REFUSING in str(refusal):
            return ok("in force: it refused a pod that cannot be meant", where)
        return warning(f"another refused the pod of the dry run: {refusal}", where)
    except Forbidden as refusal:
        return _not_asked(where, refusal)
    text = "not in force: the API server would take a pod that cannot be meant"
    return error(text, where, fix=f"{_LOG}bindings")


async def _adds(look: ClusterLook) -> Finding:
    where = f"mutatingadmissionpolicy/{_ADDING}"
    try:
        answer = await _probe(look, {VGPU_MEMORY: "64"})
    except Forbidden as refusal:
        return _not_asked(where, refusal)
    except Invalid as refusal:
        return warning(f"another refused the pod of the dry run: {refusal}", where)
    spec = msgspec.json.decode(answer)["spec"]
    if spec["containers"][0]["resources"]["limits"].get(VGPU) == "1":
        return ok("in force: it added alnair/vgpu to a pod with a slice", where)
    text = "not in force: a pod with a slice gets no alnair/vgpu, and so no GPU on its node"
    return error(text, where, fix=f"{INSTALL} --set admission.mutating=true")


def _not_asked(where: str, refusal: Forbidden) -> Finding:
    return warning(
        f"could not be asked by a dry run: {refusal.message}",
        where,
        fix=f"kubectl auth can-i create pods --namespace {NAMESPACE}",
    )


async def _probe(look: ClusterLook, limits: dict[str, str]) -> bytes:
    """Ask what the API server would make of a pod; nothing is made."""
    container = {"name": "c", "image": "none", "resources": {"limits": limits}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "doctor-probe"},
        "spec": {"containers": [container]},
    }
    path, query = PODS.collection(NAMESPACE), {"dryRun": "All"}
    return await look.client.raw("POST", path, query=query, body=msgspec.json.encode(pod))
