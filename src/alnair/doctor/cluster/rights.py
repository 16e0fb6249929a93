"""May each component do what the chart gives it? The API server's own authorizer is asked."""

import asyncio
from collections.abc import Iterable
from typing import Final

from alnair.doctor.cluster.chart_rights import Right, rights_by_component
from alnair.doctor.cluster.look import INSTALL, ClusterLook, manifests
from alnair.doctor.finding import Finding, error, ok, warning
from alnair.kube.errors import Forbidden, KubeError
from alnair.kube.resources import CLUSTER_ROLE_BINDINGS, SERVICE_ACCOUNTS, grouped
from alnair.model.names import NAMESPACE
from alnair.model.plurals import counted

_GROUP: Final = "authorization.k8s.io"
_REVIEWS: Final = grouped(
    _GROUP, "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_SELF_REVIEWS: Final = grouped(
    _GROUP, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
_WHO: Final = grouped(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
#: Questions under way at once.
_AT_ONCE: Final = 16
#: Of more missing rights only so many are named.
_NAMED: Final = 4
_WHAT: Final = "asking for rights"
#: Roles that depend on a value: controller.history.enabled, controller.rebalancing.every.
_BY_VALUE: Final = ("alnair-controller-history", "alnair-controller-rebalancing")


async def rights(look: ClusterLook) -> list[Finding]:
    """Each component's service account, or user, has every right that the chart gives."""
    off = await _switched_off(look)
    every_role = manifests("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    every_right = rights_by_component(
        [one for one in every_role if one["metadata"]["name"] not in off]
    )
    wanted = {name: every for name, every in every_right.items() if name not in look.without}
    total, done = sum(map(len, wanted.values())), 0
    found: list[Finding] = []
    for component, every in sorted(wanted.items()):
        who = await _who(look, component)
        found.append(await _of(look, component, who, sorted(every)))
        done += len(every)
        look.progress(_WHAT, done, total)
    return found


async def _switched_off(look: ClusterLook) -> set[str]:
    """The roles that the chart gives only to who asks for them, and has not given here."""
    off = set(_BY_VALUE)
    for name in _BY_VALUE:
        try:
            if await look.get(CLUSTER_ROLE_BINDINGS, name) is not None:
                off.discard(name)
        except KubeError:
            continue  # who may not see it does not miss it
    return off


async def _who(look: ClusterLook, component: str) -> dict[str, object]:
    """The subject that the component is: a service account, or in a local cluster a user."""
    name = f"alnair-{component}"
    account: dict[str, object] = {
        "user": f"system:serviceaccount:{NAMESPACE}:{name}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}"],
    }
    try:
        if await look.get(SERVICE_ACCOUNTS, name, NAMESPACE) is None:
            binding = await look.get(CLUSTER_ROLE_BINDINGS, name) or {}
            kinds = {one["kind"]: one["name"] for one in binding.get("subjects", [])}
            if "User" in kinds:
                return {"user": kinds["User"]}
            if "Group" in kinds:
                return {"user": f"{name}:NODE", "groups": [kinds["Group"]]}
    except KubeError:
        pass  # then it is the usual one
    return account


async def _of(
    look: ClusterLook, component: str, who: dict[str, object], every: list[Right]
) -> Finding:
    where = str(who["user"])
    try:
        missing = await _missing(look, every, who)
    except Forbidden as refusal:
        me = await _me(look)
        if me in (where, f"alnair-{component}"):
            where, missing = me, await _missing(look, every, None)
        else:
            return warning(
                f"the {component}'s rights could not be asked: {refusal.message}",
                where,
                fix="kubectl auth can-i create subjectaccessreviews",
            )
    if not missing:
        return ok(f"the {component} has its {counted(len(every), 'right')}", where)
    if len(missing) == len(every):
        fix = f"{INSTALL} --set {component}.enabled=true"
        if not await _was_there(look, component):
            return warning(f"no {component} is installed", where, fix=fix)
        return error(f"the {component} has no rights at all", where, fix=fix)
    named = ", ".join(f"{one.verb} {one.resource}" for one in missing[:_NAMED])
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    text = f"the {component} may not {named}{more}"
    return error(text, where, fix=f"{INSTALL} --set rbac.create=true")


async def _was_there(look: ClusterLook, component: str) -> bool:
    """Whether the component has a lease, or one for each node."""
    return any(name.startswith(f"alnair-{component}") for name in await look.leases())


async def _missing(
    look: ClusterLook, every: Iterable[Right], who: dict[str, object] | None
) -> list[Right]:
    """Those that a subject, or the caller, has not."""
    limit = asyncio.Semaphore(_AT_ONCE)
    kind = _SELF_REVIEWS if who is None else _REVIEWS

    async def has(right: Right) -> bool:
        spec = {**(who or {}), "resourceAttributes": right.attributes}
        review = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": ""}}
        async with limit:
            answer = await look.client.create(kind, {**review, "spec": spec})
        return bool(answer["status"]["allowed"])

    rights_ = list(every)
    answers = await asyncio.gather(*map(has, rights_))
    return [right for right, has_it in zip(rights_, answers, strict=True) if not has_it]


async def _me(look: ClusterLook) -> str:
    """The caller; of an agent without its node."""
    review = {"apiVersion": _WHO.api_version, "kind": _WHO.kind, "metadata": {"name": ""}}
    try:
        answer = await look.client.create(_WHO, review)
    except KubeError:
        return ""
    user = str(answer["status"]["userInfo"].get("username", ""))
    return user.partition(":")[0] if user.startswith("alnair-agent:") else user
