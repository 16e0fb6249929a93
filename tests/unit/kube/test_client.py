"""Requests to a server that refuses, stalls or hangs up; the rest is tested with a real one."""

import asyncio
import datetime as dt
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from alnair.kube import transport
from alnair.kube.access.connection import Connection
from alnair.kube.access.credentials import Certificate, Credential, Fixed
from alnair.kube.client import Client
from alnair.kube.errors import (
    ConfigError,
    ConnectionFailed,
    ProtocolError,
    ServerTimeout,
    ServerUnavailable,
    TooManyRequests,
    Unauthorized,
)
from alnair.kube.resources import PODS
from kit.fault_server import THINGS, FaultServer, refuse, send, silence, status

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    scheme = "http" if tls is None else "https"
    try:
        yield f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_refusal_with_retry_after_is_repeated_by_itself(
    server: FaultServer, client: Client
) -> None:
    server.list_faults += [
        refuse(429, "TooManyRequests", retry_after=0),
        refuse(503, "ServiceUnavailable", retry_after=0),
    ]
    assert (await client.list(THINGS)).items == []
    assert len(server.requests) == 3


async def test_a_refusal_without_retry_after_is_the_callers_matter(
    server: FaultServer, client: Client
) -> None:
    server.list_faults.append(refuse(503, "ServiceUnavailable"))
    with pytest.raises(ServerUnavailable):
        await client.list(THINGS)
    assert len(server.requests) == 1


async def test_a_request_that_may_have_acted_is_not_repeated(
    server: FaultServer, client: Client
) -> None:
    server.list_faults.append(refuse(504, "Timeout", retry_after=0))
    with pytest.raises(ServerTimeout):
        await client.list(THINGS)
    assert len(server.requests) == 1


async def test_a_wait_beyond_the_calls_time_is_not_begun(server: FaultServer) -> None:
    server.list_faults.append(refuse(429, "TooManyRequests", retry_after=60))
    async with Client(server.connection, timeout=30) as client:
        with pytest.raises(TooManyRequests) as caught:
            await client.list(THINGS)
    assert caught.value.retry_after == 60


async def test_a_server_that_refuses_for_ever_is_given_up(
    server: FaultServer, client: Client
) -> None:
    client.transport._jitter = lambda: 0.0
    server.list_faults += [refuse(429, "TooManyRequests", retry_after=0)] * 20
    with pytest.raises(TooManyRequests):
        await client.list(THINGS)
    assert len(server.requests) == 11


async def test_an_eviction_that_a_budget_refuses_is_not_repeated() -> None:
    asked = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.json_response(
            status(429, "TooManyRequests"), status=429, headers={"Retry-After": "0"}
        )

    async with answering(handler) as url, Client(Connection(url)) as client:
        with pytest.raises(TooManyRequests):
            await client.evict("n", "p")
    assert asked == 1


async def test_a_server_that_does_not_answer_fails_the_call_in_time(server: FaultServer) -> None:
    server.list_faults.append(silence())
    async with Client(server.connection, timeout=0.1) as client:
        with pytest.raises(ConnectionFailed, match=r"GET http://.*/things: no answer in 0.1 s"):
            await client.list(THINGS)


async def test_a_connection_cut_in_the_answer_is_a_network_error_with_its_cause(
    server: FaultServer, client: Client
) -> None:
    server.list_faults.append(send(b'{"items":['))
    with pytest.raises(ConnectionFailed) as caught:
        await client.list(THINGS)
    assert caught.value.__cause__ is not None


async def test_nobody_listening_is_a_network_error() -> None:
    async with Client(Connection("http://127.0.0.1:1")) as client:
        with pytest.raises(ConnectionFailed, match=r"GET http://127\.0\.0\.1:1/readyz"):
            await client.raw("GET", "/readyz")


async def test_an_answer_that_is_no_list_is_a_protocol_error(
    server: FaultServer, client: Client
) -> None:
    server.list_faults.append(send(b"<html>", then_cut=False))
    with pytest.raises(ProtocolError, match="is no list"):
        await client.list(THINGS)


async def test_a_listed_object_that_does_not_fit_is_named(
    server: FaultServer, client: Client
) -> None:
    server.things["bad"] = server.make("bad", "text")
    with pytest.raises(ProtocolError, match="n/bad: does not fit our type"):
        await client.list(THINGS)


async def test_expired_pages_are_read_again_in_one_piece(
    server: FaultServer, client: Client
) -> None:
    for name in "abc":
        await server.put(name, 1)

    async def first_page(server: FaultServer, request: web.Request) -> web.StreamResponse:
        return server.page(request)

    server.list_faults += [first_page, refuse(410, "Expired")]
    listing = await client.list(THINGS, page_size=2)
    assert [thing.metadata.name for thing in listing.items] == ["a", "b", "c"]


class Rotating:
    """Credentials that change when refused."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def current(self) -> Credential:
        return Credential(f"Bearer {self.tokens[0]}")

    def invalidate(self) -> bool:
        del self.tokens[0]
        return bool(self.tokens)


async def guarded(request: web.Request) -> web.Response:
    if request.headers.get("Authorization") != "Bearer good":
        return web.json_response(status(401, "Unauthorized"), status=401)
    return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})


async def test_a_refused_credential_is_renewed_once() -> None:
    async with answering(guarded) as url:
        async with Client(Connection(url, Rotating("old", "good"))) as client:
            assert (await client.list(PODS)).resource_version == "1"
        async with Client(Connection(url, Rotating("old", "older", "good"))) as client:
            with pytest.raises(Unauthorized):
                await client.list(PODS)
        async with Client(Connection(url, Rotating("old", "good"))) as client:
            async for _ in client.watch(PODS, resource_version="1"):
                pass


async def test_headers_say_who_and_what_we_are() -> None:
    seen: list[dict[str, list[str]]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append({name: request.headers.getall(name) for name in request.headers})
        return web.Response(text="ok")

    async with answering(handler) as url:
        connection = Connection(url, headers={"Impersonate-Group": ["a", "b"]})
        async with Client(connection, user_agent="alnair-test/1") as client:
            await client.raw("GET", "/readyz")
    assert seen[0]["User-Agent"] == ["alnair-test/1"]
    assert seen[0]["Accept-Encoding"] == ["identity"]
    assert seen[0]["Impersonate-Group"] == ["a", "b"]


async def test_requests_go_through_the_proxy_of_the_connection() -> None:
    asked: list[str] = []

    async def proxy(request: web.Request) -> web.Response:
        asked.append(str(request.url))
        return web.Response(text="through the proxy")

    async with (
        answering(proxy) as url,
        Client(Connection("http://far.example", proxy=url)) as client,
    ):
        assert await client.raw("GET", "/readyz") == b"through the proxy"
    assert asked == ["http://far.example/readyz"]


async def test_what_a_call_lacks_is_said_before_any_request() -> None:
    client = Client(Connection("http://127.0.0.1:1"))
    with pytest.raises(RuntimeError, match="async with"):
        await client.raw("GET", "/")
    pod = {"metadata": {"name": "p", "namespace": "a"}}
    with pytest.raises(ValueError, match="says namespace 'a', not 'b'"):
        await client.create(PODS, pod, "b")
    with pytest.raises(ValueError, match="neither the object nor the call"):
        await client.create(PODS, {"metadata": {"name": "p"}})
    with pytest.raises(ValueError, match="in which namespace"):
        await client.delete_collection(PODS, None)


def sign(name: str) -> tuple[bytes, bytes]:
    """A self-signed certificate for one DNS name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


async def test_the_server_is_verified_by_the_given_name_and_client_certificates_rotate(
    tmp_path: Path,
) -> None:
    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        return web.json_response(dict(part[0] for part in peer["subject"]))

    (tmp_path / "chain").write_bytes(sign("inner")[0])
    chain, key = sign("inner")
    (tmp_path / "chain").write_bytes(chain)
    (tmp_path / "key").write_bytes(key)
    jane, john = Certificate(*sign("jane")), Certificate(*sign("john"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "chain", tmp_path / "key")
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(cadata=(jane.chain + john.chain).decode())

    async with answering(who, tls) as url:
        good = Connection(
            url, Fixed(Credential(None, jane)), authorities=chain, tls_server_name="inner"
        )
        async with Client(good) as client:
            answer = json.loads(await client.raw("GET", "/"))
            assert answer == {"commonName": "jane"}
            # What a plug-in or a rotated file does: the same source, another certificate.
            object.__setattr__(good, "credentials", Fixed(Credential(None, john)))
            await client.transport.close()
            await client.transport.open()
            answer = json.loads(await client.raw("GET", "/"))
            assert answer == {"commonName": "john"}
        async with Client(replace(good, tls_server_name=None)) as client:
            with pytest.raises(ConnectionFailed, match="certificate verify failed"):
                await client.raw("GET", "/")
        async with Client(
            replace(good, authorities=None, tls_server_name=None, insecure=True)
        ) as client:
            await client.raw("GET", "/")
        mixed = Fixed(Credential(None, Certificate(jane.chain, john.key)))
        async with Client(replace(good, credentials=mixed)) as client:
            with pytest.raises(ConfigError, match="cannot be used together"):
                await client.raw("GET", "/")


async def test_a_watch_can_be_left_in_the_middle(server: FaultServer, client: Client) -> None:
    before = str(server.version)
    await server.put("a", 1)
    await server.put("b", 1)
    async for event in client.watch(THINGS, resource_version=before):
        assert event.object.metadata.name == "a"
        break


async def test_a_watch_left_in_the_middle_ends_although_the_server_says_no_goodbye(
    tmp_path: Path,
) -> None:
    chain, key = sign("inner")
    (tmp_path / "chain").write_bytes(chain)
    (tmp_path / "key").write_bytes(key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "chain", tmp_path / "key")
    after_the_goodbye: list[bytes | str] = []

    def serve(listener: socket.socket) -> None:
        """Answer one watch; read the client's TLS goodbye, give none, and wait for its end."""
        accepted, _ = listener.accept()
        secured = tls.wrap_socket(accepted, server_side=True)
        secured.recv(4096)
        line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}\n'
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        secured.sendall(head + b"%x\r\n%s\r\n" % (len(line), line))
        secured.recv(4096)
        with socket.socket(fileno=secured.detach()) as plain:
            plain.settimeout(20)  # less than the 30 s that a TLS goodbye is waited for
            try:
                after_the_goodbye.append(plain.recv(4096))
            except OSError as error:
                after_the_goodbye.append(type(error).__name__)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            Client(Connection(address, authorities=chain, tls_server_name="inner")) as client,
            client.transport.stream("/things", {"watch": "1"}, None) as content,
        ):
            assert b"BOOKMARK" in await content.readline()
        await asyncio.to_thread(thread.join)
    assert after_the_goodbye in ([b""], ["ConnectionResetError"])


async def test_who_waits_for_an_answer_is_told_once_and_still_gets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "OVERDUE", 0.01)
    told: list[str] = []
    said = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await said.wait()
        return web.json_response({"metadata": {"name": "a", "namespace": "b", "uid": "c"}})

    def overdue(what: str) -> None:
        told.append(what)
        said.set()

    async with answering(slow) as url, Client(Connection(url), overdue=overdue) as client:
        await client.get(PODS, "a", "b")
    assert told == [f"GET {url}/api/v1/namespaces/b/pods/a"]
