"""The nodes that take no pods while others leave them, marked as ours, so that no cordon stays."""

import contextlib
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import NODES
from alnair.model import names
from alnair.model.rebalancing import RebalancePlan


class _Spec(msgspec.Struct, frozen=True):
    unschedulable: bool = False


class _Node(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


_NODES: Final = NODES.typed(_Node)


class Cordons:
    """Cordons nodes, and takes no cordon off but its own: that which has our annotation.

    Args:
        client: An open client.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        #: As this process has left them: whether it is cordoned.
        self._left: dict[str, bool] = {}

    async def release_others(self, plan: RebalancePlan | None) -> None:
        """Take off all our cordons but those of a plan, whoever left them.

        Raises:
            KubeError: The API server refuses something.
        """
        self._left.clear()
        kept = plan.cordoned if plan is not None else set()
        for node in (await self._client.list(_NODES)).items:
            if _is_ours(node) and node.metadata.name not in kept:
                await self._set(node.metadata.name, None)

    async def keep(self, plan: RebalancePlan) -> None:
        """Have just those nodes cordoned that a plan wants so.

        Raises:
            KubeError: The API server refuses something.
        """
        wanted = plan.cordoned
        for name in sorted(plan.touched):
            if self._left.get(name) is (name in wanted):
                continue
            with contextlib.suppress(NotFound):  # then no pod comes there
                node = await self._client.get(_NODES, name)
                if name in wanted and not node.spec.unschedulable:
                    await self._set(name, f"for {plan.name}")
                elif name not in wanted and _is_ours(node):
                    await self._set(name, None)
            self._left[name] = name in wanted

    async def _set(self, name: str, mark: str | None) -> None:
        patch = {
            "metadata": {"annotations": {names.REBALANCING: mark}},
            "spec": {"unschedulable": True if mark else None},
        }
        await self._client.merge_patch(NODES, name, patch)


def _is_ours(node: _Node) -> bool:
    return names.REBALANCING in (node.metadata.annotations or {})
