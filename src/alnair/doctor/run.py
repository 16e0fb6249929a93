"""Makes all checks, one after the other; one that may not ask says so and ends no other."""

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any, Final

from alnair.doctor import registry
from alnair.doctor.cluster.look import ClusterLook, Progress
from alnair.doctor.finding import Finding, Found, Level, error, ok, warning
from alnair.doctor.registry import ClusterCheck, NodeCheck
from alnair.kube.client import Client
from alnair.kube.errors import ApiError, Forbidden, Unauthorized
from alnair.node.own_thread import in_own_thread

#: Finds out what a caller may do.
_RIGHTS: Final = "kubectl auth can-i --list"


async def of_cluster(
    client: Client,
    progress: Progress,
    checks: Mapping[str, ClusterCheck] = registry.CLUSTER,
    without: Collection[str] = (),
) -> AsyncIterator[Found]:
    """Yield what the checks of a cluster find; parts that are left out on purpose are not missed.

    Raises:
        KubeError: The cluster cannot be reached, or does not know the caller.
    """
    look = ClusterLook(client, progress, without)
    for done, (name, check) in enumerate(checks.items()):
        progress("asking the cluster", done, len(checks))
        part = registry.OF_A_PART.get(name, "")
        left_out = [ok(f"not asked: without {part}")] if part in look.without else None
        for finding in left_out or await _asked(look, check):
            yield Found(name, finding)
    progress("asking the cluster", len(checks), len(checks))


async def _asked(look: ClusterLook, check: ClusterCheck) -> list[Finding]:
    try:
        return await check(look)
    except Unauthorized:
        raise
    except Forbidden as refusal:
        return [warning(f"could not be asked: {refusal.message}", fix=_RIGHTS)]
    except ApiError as refusal:
        return [warning(f"could not be asked: {refusal}", fix="kubectl get --raw /readyz?verbose")]


async def of_node(
    look: Any, progress: Progress, checks: Mapping[str, NodeCheck] | None = None
) -> AsyncIterator[Found]:
    """Yield what the checks of a node find.

    Args:
        look: A `NodeLook`.
        progress: Told how many checks are made.
        checks: By name; None: all.
    """
    wanted = registry.node_checks() if checks is None else checks
    for done, (name, check) in enumerate(wanted.items()):
        progress("looking at the node", done, len(wanted))
        try:
            # A driver that hangs must not keep the process from being interrupted.
            found = await in_own_thread(check, look)
        except OSError as problem:
            found = [error(f"could not be looked at: {problem}", fix="sudo alnair doctor --node")]
        for finding in found:
            yield Found(name, finding)
    progress("looking at the node", len(wanted), len(wanted))


def is_well(found: list[Found]) -> bool:
    """Whether nothing is an error."""
    return all(one.finding.level is not Level.ERROR for one in found)
