"""No node stays cordoned that a rebalancing has cordoned."""

from typing import Any, cast

import pytest

from alnair.kube.errors import ConnectionFailed
from alnair.live.rebalancing import carry_out


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
