"""What an API server answers of who asks and what they may, as values."""

import asyncio
from typing import Any

import msgspec

from alnair.kube.resources import Resource


class Reviews:
    """What an API server would answer, as values; counts what it is asked."""

    def __init__(self) -> None:
        self.known = {"t": "ann"}
        #: Who may do what to a path: (user, path), or (user, path, verb).
        self.allowed: set[tuple[str, ...]] = {("ann", "/metrics")}
        self.asked: list[str] = []
        self.failures: list[Exception] = []
        self.open = asyncio.Event()
        self.open.set()

    async def create(self, resource: Resource[Any], body: dict[str, Any]) -> Any:
        self.asked.append(resource.kind)
        await self.open.wait()
        if self.failures:
            raise self.failures.pop()
        spec = body["spec"]
        if resource.kind == "TokenReview":
            user = self.known.get(spec["token"])
            audiences = spec.get("audiences", ["api"])
            status: dict[str, Any] = {"authenticated": user is not None, "audiences": audiences}
            if user is not None:
                status["user"] = {"username": user, "uid": "1", "groups": ["g"]}
        else:
            user, asked = spec["user"], spec["nonResourceAttributes"]
            of_verb = (user, asked["path"], asked["verb"])
            status = {"allowed": bool({of_verb, of_verb[:2]} & self.allowed)}
        return msgspec.convert({"status": status}, resource.type)
