"""Who may read what a process says of itself: asked of the API server, as the kubelet asks.

A request brings a token. TokenReview says whose it is, SubjectAccessReview whether its owner may
get the path; the answer is kept for ten seconds, the time that Kubernetes' own components keep
theirs. Where the API server does not answer, nobody may. Health is open: who probes has no token.
"""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from alnair.kube.client import Client
from alnair.kube.errors import ConnectionFailed, Forbidden, KubeError
from alnair.kube.resources import ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from alnair.model import names

#: Paths that are open to all.
HEALTH: Final = frozenset({"/healthz", "/readyz", "/livez"})
#: Seconds for which an answer is kept, as in kube-scheduler and kube-controller-manager.
KEPT: Final = 10.0
#: Answers that are kept, at most: some hundred bytes each.
_MOST: Final = 1000
#: Questions under way at once: strangers with made-up tokens shall not keep the API server busy.
_AT_ONCE: Final = 8
#: Seconds for which a request waits for the API server.
_PATIENCE: Final = 10.0

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Verdict(msgspec.Struct, frozen=True):
    """Whether a request may be answered: 200, or how and why it is refused."""

    status: int
    text: str = ""


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _Known(msgspec.Struct):
    authenticated: bool = False
    user: _User | None = None
    audiences: list[str] = []


class _TokenReview(msgspec.Struct):
    status: _Known = msgspec.field(default_factory=_Known)


class _Allowed(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _Allowed = msgspec.field(default_factory=_Allowed)


_ALLOWED: Final = Verdict(200)
_NO_TOKEN: Final = Verdict(
    401,
    "say who you are by a token of the cluster: the header 'Authorization: Bearer TOKEN', or"
    f" {names.TOKEN_HEADER} with one for the audience {names.TOKEN_AUDIENCE!r}",
)
_BAD_TOKEN: Final = Verdict(
    401, "the API server does not take this token: it has ended, or is no token, or is for others"
)


class Access:
    """The gate before a process's pages.

    Args:
        client: An open client, which may create TokenReviews and SubjectAccessReviews.
        kept: Seconds for which an answer holds.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        client: Client,
        *,
        kept: float = KEPT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._for = kept
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, Verdict]] = OrderedDict()
        self._asked: dict[bytes, asyncio.Task[Verdict]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        # Tokens are not kept, nor what they could be guessed from.
        self._secret = secrets.token_bytes(32)

    def guard(self, app: web.Application) -> None:
        """Let in from now on, past the health, only whom the API server allows."""

        @web.middleware
        async def ask(request: web.Request, handler: Handler) -> web.StreamResponse:
            resource = request.match_info.route.resource
            # The path as it is routed, however it was written.
            path = request.path if resource is None else resource.canonical
            if path in HEALTH:
                return await handler(request)
            verdict = await self._judge_request(request, path)
            if verdict.status == 200:
                return await handler(request)
            headers = {"WWW-Authenticate": "Bearer"} if verdict.status == 401 else {}
            return web.Response(status=verdict.status, text=verdict.text, headers=headers)

        app.middlewares.append(ask)

    async def _judge_request(self, request: web.Request, path: str) -> Verdict:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        audience = ""
        if not scheme:
            token, audience = request.headers.get(names.TOKEN_HEADER, ""), names.TOKEN_AUDIENCE
        elif scheme.lower() != "bearer":
            return _NO_TOKEN
        token = token.strip()
        if not token:
            return _NO_TOKEN
        if not token.isascii():
            return _BAD_TOKEN
        return await self.judge(token, audience, request.method.lower(), path)

    async def judge(self, token: str, audience: str, verb: str, path: str) -> Verdict:
        """Say whether who has the token may do this to the path.

        Args:
            token: As it came.
            audience: Whom it must be for; empty: the API server itself.
            verb: Such as get.
            path: Such as /metrics.
        """
        said = f"{token}\0{audience}\0{verb}\0{path}"
        key = hashlib.blake2b(said.encode(), key=self._secret, digest_size=32).digest()
        if (found := self._kept.get(key)) is not None and self._clock() < found[0]:
            return found[1]
        if (asked := self._asked.get(key)) is None:
            asked = asyncio.create_task(self._ask(key, token, audience, verb, path))
            self._asked[key] = asked
            asked.add_done_callback(lambda _: self._asked.pop(key))
        # Several may wait for one answer: none of them ends it by going away.
        return await asyncio.shield(asked)

    async def _ask(self, key: bytes, token: str, audience: str, verb: str, path: str) -> Verdict:
        try:
            async with asyncio.timeout(_PATIENCE), self._turns:
                # An answer is as old as its question.
                until = self._clock() + self._for
                user = await self._owner(token, audience)
                verdict = _BAD_TOKEN if user is None else await self._may(user, verb, path)
        except Forbidden as error:
            return Verdict(
                503,
                "this process may not ask the API server who you are: bind its account to the"
                f" ClusterRole system:auth-delegator ({error})",
            )
        except (KubeError, TimeoutError) as error:
            why = str(error) or f"no answer in {_PATIENCE:g} s"
            return Verdict(503, f"the API server cannot be asked who you are: {why}; try again")
        self._kept[key] = (until, verdict)
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return verdict

    async def _owner(self, token: str, audience: str) -> _User | None:
        spec: dict[str, object] = {"token": token}
        if audience:
            spec["audiences"] = [audience]
        review = TOKEN_REVIEWS.typed(_TokenReview)
        status = (await self._create(review, spec)).status
        # A server that knows no audiences would take a token for anybody: it names none.
        if not status.authenticated or (audience and audience not in status.audiences):
            return None
        return status.user

    async def _may(self, user: _User, verb: str, path: str) -> Verdict:
        spec: dict[str, object] = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        review = ACCESS_REVIEWS.typed(_AccessReview)
        if (await self._create(review, spec)).status.allowed:
            return _ALLOWED
        return Verdict(
            403,
            f"{user.username} may not {verb} {path}: a ClusterRole bound to it needs"
            f' nonResourceURLs: ["{path}"], verbs: ["{verb}"]',
        )

    async def _create(self, review: Resource[T], spec: dict[str, object]) -> T:
        body = {"apiVersion": review.api_version, "kind": review.kind, "spec": spec}
        try:
            return await self._client.create(review, body)
        except ConnectionFailed:
            # A connection that was kept may be dead. A review changes nothing: ask again.
            return await self._client.create(review, body)
