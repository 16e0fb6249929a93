"""The kubelet's page in place of control groups."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from alnair.node.cgroups import Proc
from alnair.node.pods.kubelet_page import EVERY, SELF_SIGNED, KubeletPage
from alnair.profiler.samples import ContainerKey
from alnair.serving.tls import self_signed
from kit.fake_cgroups import ID, UID, FakeCgroups

LINE = 'container_cpu_usage_seconds_total{{id="/kubepods/pod{}/{}"}} {} 1700000000000\n'


class _Kubelet(BaseHTTPRequestHandler):
    status = 200
    seconds = 1.0
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("Authorization", ""))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(LINE.format(UID, ID, self.seconds).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def kubelet() -> Iterator[tuple[str, type[_Kubelet]]]:
    """Its URL, without TLS here, and what it answers."""
    handler = type("Kubelet", (_Kubelet,), {"asked": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/metrics/cadvisor", handler
        server.shutdown()
        thread.join()


def test_it_is_asked_as_often_as_it_is_made_and_shows_the_token(
    kubelet: tuple[str, type[_Kubelet]], tmp_path: Path
) -> None:
    url, says = kubelet
    now = [100.0]
    token = tmp_path / "token"
    token.write_text("secret\n")
    proc = Proc(FakeCgroups(tmp_path / "machine").proc)
    page = KubeletPage(url, proc, token, clock=lambda: now[0])
    first = page.read()
    assert first is not None
    assert first.containers[ContainerKey(UID, ID)].cpu_ns == 1_000_000_000
    assert first.pods == {UID}
    says.seconds = 2.0
    now[0] += EVERY - 1
    assert page.read() is not None
    assert says.asked == ["Bearer secret"]
    now[0] += 1
    later = page.read()
    assert later is not None
    assert later.containers[ContainerKey(UID, ID)].cpu_ns == 2_000_000_000


def test_a_page_that_is_refused_keeps_what_it_said_and_says_why(
    kubelet: tuple[str, type[_Kubelet]], tmp_path: Path
) -> None:
    url, says = kubelet
    now = [100.0]
    proc = Proc(FakeCgroups(tmp_path / "machine").proc)
    page = KubeletPage(url, proc, tmp_path / "none", clock=lambda: now[0])
    says.status = 403
    assert page.read() is None
    assert "right get on nodes/metrics" in page.problem
    says.status = 200
    now[0] += EVERY
    known = page.read()
    assert known is not None
    assert page.problem == ""
    says.status = 500
    now[0] += EVERY
    again = page.read()
    assert again is not None
    assert again.containers == known.containers, "a pod has not ended, because nobody answers"
    assert page.problem


def test_a_certificate_that_the_kubelet_signed_itself_is_believed_by_its_folder_alone(
    tmp_path: Path,
) -> None:
    pem = self_signed("node-1")
    own, token = tmp_path / "kubelet" / SELF_SIGNED, tmp_path / "token"
    own.parent.mkdir(parents=True)
    own.write_bytes(pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    pair = tmp_path / "pair"
    pair.write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    proc = Proc(FakeCgroups(tmp_path / "machine").proc)
    handler = type("Kubelet", (_Kubelet,), {"asked": []})
    # By another address of this machine: on 127.0.0.1 nobody else can be there.
    with HTTPServer(("127.0.0.2", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"https://127.0.0.2:{server.server_port}/metrics/cadvisor"
            stranger = KubeletPage(url, proc, token)
            assert stranger.read() is None
            assert "neither the one of the kubelet's folder" in stranger.problem
            page = KubeletPage(url, proc, token, tmp_path / "kubelet")
            assert page.read() is not None, page.problem
        finally:
            server.shutdown()
            thread.join()
