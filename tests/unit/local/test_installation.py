"""Waiting until what was installed is in force, with an API server that loads it in pieces."""

import asyncio
import re
from pathlib import Path
from typing import cast

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, Forbidden, Invalid
from alnair.local import installation
from alnair.model.names import USER

_NAMES = Path(__file__).parents[3] / "docs" / "reference" / "names.md"
_PREFIX = "ai.centaurus.io/"
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


def test_a_pod_is_warned_of_just_those_annotations_that_the_reference_lacks() -> None:
    rows = re.findall(rf"^\| (`{_PREFIX}.*?) \| (.*?) \|", _NAMES.read_text(), re.MULTILINE)
    for_pods = {
        name
        for cell, where in rows
        for name in re.findall(rf"`{_PREFIX}(.*?)`", cell)
        # The user is a label alone.
        if where.startswith("pod") and _PREFIX + name != USER
    }
    [policy] = [
        one
        for one in installation.documents()
        if one["metadata"]["name"] == "gpu-warnings.alnair" and "Binding" not in one["kind"]
    ]
    [unknown] = [one for one in policy["spec"]["variables"] if one["name"] == "unknown"]
    assert set(re.findall(r'"([a-z-]+)"', unknown["expression"])) == for_pods
