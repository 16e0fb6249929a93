"""Asking the agents for the last second, through the API server."""

from typing import Any, cast

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, NotFound
from alnair.live.usage import agents
from alnair.live.usage.agents import Agents
from alnair.model import names

_RUNNING = msgspec.json.encode(
    {
        "v": 1,
        "running": [
            {"v": 1, "node": "n", "namespace": "a", "pod": "p", "uid": "u", "started": 1.0}
        ],
        "ended": [],
    }
)


def _pod(name: str, scheme: str = "HTTPS") -> dict[str, Any]:
    container = {
        "ports": [{"name": "http", "containerPort": 9464}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "scheme": scheme}},
    }
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


class _ApiServer:
    """Has these agents' pods; answers for each with bytes or a refusal."""

    def __init__(
        self, answers: dict[str, bytes | Exception], pods: list[Any] | None = None
    ) -> None:
        self.pods = [_pod(name) for name in answers] if pods is None else pods
        self.answers = answers
        self.tokens = 0
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def list(self, resource: Any, *_: object, **__: object) -> Any:
        class Listing:
            items = msgspec.convert(self.pods, list[resource.type])

        return Listing

    async def create(self, resource: Any, *_: object, **__: object) -> Any:
        self.tokens += 1
        return msgspec.convert({"status": {"token": f"token-{self.tokens}"}}, resource.type)

    async def raw(self, _: str, path: str, headers: dict[str, str]) -> bytes:
        self.asked.append((path, headers))
        answer = self.answers[path.split("/")[6].split(":")[1]]
        if isinstance(answer, Exception):
            raise answer
        return answer


def _agents(server: _ApiServer) -> Agents:
    return Agents(cast("Client", server))


async def test_agents_are_asked_through_the_api_server_with_one_token() -> None:
    server = _ApiServer({"one": _RUNNING, "two": _RUNNING})
    asked = _agents(server)
    for _ in range(2):
        found, notes = await asked.ask()
        assert found["u"].pod == "p"
        assert notes == []
    assert server.tokens == 1
    path = "/api/v1/namespaces/alnair-system/pods/https:one:9464/proxy/v1/usage"
    assert server.asked[0] == (path, {names.TOKEN_HEADER: "token-1"})


async def test_without_tls_no_token_is_made() -> None:
    server = _ApiServer({"one": _RUNNING}, [_pod("one", "HTTP")])
    found, _ = await _agents(server).ask()
    assert list(found) == ["u"]
    assert server.tokens == 0


async def test_an_agent_that_does_not_answer_hides_no_other() -> None:
    server = _ApiServer({"one": _RUNNING, "two": NotFound(404, "NotFound", "no such page")})
    found, notes = await _agents(server).ask()
    assert list(found) == ["u"]
    assert notes == ["two cannot be asked: 404 NotFound: no such page"]


async def test_who_may_not_ask_is_told_and_asks_no_more() -> None:
    server = _ApiServer({"one": Forbidden(403, "Forbidden", "no"), "two": _RUNNING})
    asked = _agents(server)
    _, (first,) = await asked.ask()
    assert first.startswith("figures are of annotations")
    assert await asked.ask() == ({}, [first])
    assert len(server.asked) == 2


async def test_too_many_agents_are_not_asked() -> None:
    server = _ApiServer({}, [_pod(f"a{n}") for n in range(agents.MOST + 1)])
    found, (note,) = await _agents(server).ask()
    assert found == {}
    assert "65 agents are too many" in note
