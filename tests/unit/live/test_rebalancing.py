"""A rebalancing takes off its cordons, and does not wait for rights that it lacks."""

from typing import Any, cast

import pytest

from alnair.kube.errors import ConnectionFailed, Forbidden
from alnair.live.rebalancing import carry_out, read


class Api:
    """One node; the answer to its first change is lost."""

    def __init__(self) -> None:
        self.node: dict[str, Any] = {"spec": {}}
        self.is_lost = True

    async def get(self, *_: object) -> dict[str, Any]:
        return self.node

    async def merge_patch(self, _: object, __: str, patch: dict[str, Any]) -> None:
        self.node["spec"] |= patch["spec"]
        if self.is_lost:
            self.is_lost = False
            raise ConnectionFailed("it was killed before it answered")


async def test_a_cordon_whose_answer_was_lost_is_taken_off() -> None:
    api = Api()
    with pytest.raises(ConnectionFailed):
        await carry_out(cast("Any", api), "n", (), 1.0, print)
    assert not api.node["spec"]["unschedulable"]


class Refusing:
    """Lets nobody list pods; what is asked for otherwise is not there."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def raw(self, _: str, path: str, **__: object) -> bytes:
        self.asked.append(path)
        if path.endswith("/pods"):
            raise Forbidden(403, "Forbidden", "pods is forbidden")
        return b"{}"


async def test_who_may_not_read_the_cluster_hears_it_at_once() -> None:
    api = Refusing()
    with pytest.raises(Forbidden):
        await read(cast("Any", api), ())
    assert api.asked == ["/api/v1/nodes", "/api/v1/pods"]
