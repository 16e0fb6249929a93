"""Waiting until what was installed is in force, with an API server that loads it in pieces."""

import asyncio
from typing import cast

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, Forbidden, Invalid
from alnair.local import installation

_ESTABLISHED = {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
_COMPLETED = msgspec.json.encode(
    {"spec": {"containers": [{"resources": {"limits": {"alnair/vgpu": "1"}}}]}}
)
_UNCHANGED = msgspec.json.encode(
    {"spec": {"containers": [{"resources": {"limits": {"alnair/vgpu-memory": "64"}}}]}}
)


class _ApiServer:
    """Serves every kind, and answers the probes of the policies from a list."""

    def __init__(self, *answers: bytes | ApiError) -> None:
        self.answers = list(answers)

    async def get(self, *_: object) -> object:
        return _ESTABLISHED

    async def raw(self, *_: object, **__: object) -> bytes:
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def test_policies_that_come_into_force_one_by_one_are_waited_for() -> None:
    refused = Invalid(422, "Invalid", "policy 'vgpu-requests.alnair' denied request")
    server = _ApiServer(
        Forbidden(403, "Forbidden", "service account default not found"),
        _UNCHANGED,
        refused,  # the policy that completes the pod is not loaded, the one that refuses is
        _COMPLETED,
        _UNCHANGED,
        refused,
    )
    asyncio.run(installation.in_force(cast("Client", server)))
    assert not server.answers
