"""What the agents say just now, asked through the API server, as `alnair explain` asks a leader."""

import asyncio
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, KubeError
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import PODS
from alnair.live.leader import AskError, token
from alnair.model import names
from alnair.model.usage import PodUsage

#: Agents that are asked at most: of more, what they wrote on objects will do.
MOST: Final = 64
_AT_ONCE: Final = 16
_SELECTOR: Final = "app.kubernetes.io/name=alnair,app.kubernetes.io/component=agent"
_PORT: Final = "http"


class _Probe(msgspec.Struct, rename="camel"):
    scheme: str = "HTTP"


class _Handler(msgspec.Struct, rename="camel"):
    http_get: _Probe | None = None


class _Port(msgspec.Struct, rename="camel"):
    name: str = ""
    container_port: int = 0


class _Container(msgspec.Struct, rename="camel"):
    ports: list[_Port] = []
    liveness_probe: _Handler | None = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container] = []


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)

    @property
    def page(self) -> str:
        """Path of its pages at the API server; "" if it serves none."""
        for container in self.spec.containers:
            probe = container.liveness_probe
            for port in container.ports:
                if port.name == _PORT and probe is not None and probe.http_get is not None:
                    scheme = probe.http_get.scheme.lower()
                    name = f"{scheme}:{self.metadata.name}:{port.container_port}"
                    return PODS.item(name, names.NAMESPACE, "proxy")
        return ""


class _Answer(msgspec.Struct):
    running: list[PodUsage] = []


class Agents:
    """Those that can be asked; found once in a while, asked each time.

    Args:
        client: An open client.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._headers: dict[str, str] = {}
        self._refused = ""

    async def ask(self) -> tuple[dict[str, PodUsage], list[str]]:
        """Return pod's uid → what is known of it, and what went wrong, for people."""
        if self._refused:
            return {}, [self._refused]
        try:
            pods = await self._client.list(
                PODS.typed(_Pod),
                names.NAMESPACE,
                label_selector=_SELECTOR,
                field_selector="status.phase=Running",
            )
            pages = {pod.metadata.name: pod.page for pod in pods.items if pod.page}
            if not pages:
                return {}, []
            if len(pages) > MOST:
                return {}, [f"{len(pages)} agents are too many to ask: figures are of annotations"]
            if not self._headers and any("/https:" in page for page in pages.values()):
                self._headers = await token(self._client, "the agents")
        except (KubeError, AskError) as error:
            return {}, [self._refuse(error)]
        slots = asyncio.Semaphore(_AT_ONCE)
        answers = await asyncio.gather(*(self._one(slots, page) for page in pages.values()))
        usages = {one.uid: one for found, _ in answers for one in found}
        refusal = next((error for _, error in answers if isinstance(error, Forbidden)), None)
        if refusal is not None:
            return usages, [self._refuse(refusal)]
        return usages, [
            f"{agent} cannot be asked: {error}"
            for agent, (_, error) in zip(pages, answers, strict=True)
            if error is not None
        ]

    def _refuse(self, error: Exception) -> str:
        """Who may not ask now may not in a second: say so from now on, and ask no more."""
        self._refused = f"figures are of annotations, up to a minute old: {error}"
        return self._refused

    async def _one(
        self, slots: asyncio.Semaphore, page: str
    ) -> tuple[list[PodUsage], Exception | None]:
        async with slots:
            try:
                data = await self._client.raw("GET", f"{page}/v1/usage", headers=self._headers)
                return msgspec.json.decode(data, type=_Answer).running, None
            except (KubeError, msgspec.MsgspecError) as error:
                self._headers = {}  # the token may have run out
                return [], error
