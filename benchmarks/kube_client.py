"""What a watch event and a cached pod cost our client, beside two others, over TLS.

    python benchmarks/kube_client.py [--repeat R] [--events N] [--pods P]

One server process writes prepared watch lines as HTTP chunks, one TLS record each, as
kube-apiserver flushes them. Each client runs in its own process against it and reads every field
that a scheduler reads. Ours is the whole way: informer, decoding into `PodWire`, projection into
`model.Pod`, cache and callback. What is counted is the client's own CPU time (user and system) from
the first event after a warm-up to the last; the server's is not. `paced` is ours with one event per
wake-up, at most 1,000 a second: then the kernel's wake-up costs more than the event, and no client
can share it among events. Pods: see `lib/kube_client_pods.py`.

The table goes to stderr, one line of JSON to stdout. The other clients come with
`requirements/bench.txt`; without them only ours is measured, and the run says so.
"""

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import platform
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lib.kube_client_pods import make_lines, make_pods

#: Events that are read before counting begins: imports, first connections, caches of the decoders.
WARM_UP = 500
#: Different pods in the watch; their events come round and round with new resourceVersions.
WATCHED = 1000
#: Seconds between two events of the paced stream; more than any event takes.
PACE = 0.001
#: Share of the events that the slow clients get, so that the run stays near a minute.
SHARES = {"alnair": 1.0, "lightkube": 0.5, "kubernetes_asyncio": 0.125}


# ---- the server ---------------------------------------------------------------------------------


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, for as long as the run lasts."""
    import datetime as dt
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    alternative = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    )
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, secret = folder / "cert.pem", folder / "key.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return chain, secret


class Server:
    """Answers a list of pods and a watch of them, and nothing else."""

    def __init__(self, pods: int, events: int) -> None:
        self.pods = list(make_pods(pods))
        self.lines = list(make_lines(self.pods[:WATCHED], events))

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until the client hangs up."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                target = urlsplit(head.split(b" ", 2)[1].decode())
                query = {name: values[0] for name, values in parse_qs(target.query).items()}
                if query.get("watch", "").lower() in ("1", "true"):
                    await self.watch(writer, PACE if "labelSelector" in query else 0.0)
                    await reader.read()
                    return
                self.page(writer, query)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    def page(self, writer: asyncio.StreamWriter, query: dict[str, str]) -> None:
        """Answer one page of the list."""
        begin = int(query.get("continue", "0"))
        end = begin + int(query.get("limit", "500"))
        meta = {"resourceVersion": "10000000"}
        if end < len(self.pods):
            meta["continue"] = str(end)
        body = b'{"kind":"PodList","apiVersion":"v1","metadata":%s,"items":[%s]}' % (
            json.dumps(meta).encode(),
            b",".join(self.pods[begin:end]),
        )
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(body)
            + body
        )

    async def watch(self, writer: asyncio.StreamWriter, pause: float) -> None:
        """Write all events, each flushed by itself."""
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for line in self.lines:
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await writer.drain()
            if pause:
                await asyncio.sleep(pause)


def quietly(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Tell all but what Python 3.11 itself gets wrong when a TLS client hangs up in mid-stream."""
    if "connection_lost" not in context["message"]:
        loop.default_exception_handler(context)


async def serve(folder: Path, pods: int, events: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder))
    one = Server(pods, events)
    asyncio.get_running_loop().set_exception_handler(quietly)
    server = await asyncio.start_server(one.handle, "127.0.0.1", 0, ssl=context, limit=1 << 20)
    port = server.sockets[0].getsockname()[1]
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [
            {
                "name": "bench",
                "cluster": {
                    "server": f"https://127.0.0.1:{port}",
                    "certificate-authority": str(folder / "cert.pem"),
                },
            }
        ],
        "users": [{"name": "bench", "user": {"token": "none"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    size = round(statistics.fmean(len(pod) for pod in one.pods[:WATCHED]))
    print(json.dumps({"pod_bytes": size}), flush=True)
    async with server:
        await server.serve_forever()


# ---- the clients --------------------------------------------------------------------------------


class Meter:
    """CPU seconds of this process between the event after the warm-up and the last."""

    def __init__(self, events: int) -> None:
        self.left = events
        self.counted = events - WARM_UP
        self.begin = 0.0
        self.begin_wall = 0.0

    def tick(self) -> bool:
        """Count one event; return whether it was the last."""
        self.left -= 1
        if self.left == self.counted:
            self.begin, self.begin_wall = time.process_time(), time.perf_counter()
        return self.left == 0

    def report(self) -> dict[str, float]:
        """Return microseconds of CPU per event, and events per second."""
        cpu = time.process_time() - self.begin
        wall = time.perf_counter() - self.begin_wall
        return {"us": cpu / self.counted * 1e6, "events_per_s": self.counted / wall}


async def alnair_client(
    kubeconfig: str, events: int, selector: str | None = None
) -> dict[str, float]:
    from alnair.kube.access import client_config
    from alnair.kube.client import Client
    from alnair.kube.informer import Change, ChangeKind, Informer
    from alnair.kube.objects.pod_projection import PodProjector
    from alnair.kube.objects.wire import PodWire
    from alnair.kube.resources import PODS
    from alnair.model.workload import Pod

    meter = Meter(events)
    done = asyncio.Event()

    def on_change(change: Change[Pod]) -> None:
        if change.kind is ChangeKind.MODIFIED and meter.tick():
            done.set()

    async with Client(client_config.load(kubeconfig)) as client:
        informer = Informer(
            client, PODS.typed(PodWire), PodProjector(), on_change, label_selector=selector
        )
        task = asyncio.create_task(informer.run())
        await done.wait()
        report = meter.report()
        task.cancel()
        await asyncio.wait([task])
    return report


async def alnair_paced(kubeconfig: str, events: int) -> dict[str, float]:
    return await alnair_client(kubeconfig, events, "paced=true")


async def lightkube_client(kubeconfig: str, events: int) -> dict[str, float]:
    from lightkube import AsyncClient, KubeConfig
    from lightkube.resources.core_v1 import Pod

    meter = Meter(events)
    client = AsyncClient(config=KubeConfig.from_file(kubeconfig), trust_env=False)
    async for kind, pod in client.watch(Pod, namespace="*", resource_version="10000000"):
        read_attributes(kind, pod.metadata, pod.spec, pod.status, "Name")
        if meter.tick():
            break
    return meter.report()


async def kubernetes_asyncio_client(kubeconfig: str, events: int) -> dict[str, float]:
    from kubernetes_asyncio import client, config, watch

    meter = Meter(events)
    await config.load_kube_config(kubeconfig)
    async with client.ApiClient() as api, watch.Watch() as watcher:
        stream = watcher.stream(
            client.CoreV1Api(api).list_pod_for_all_namespaces, resource_version="10000000"
        )
        async for event in stream:
            pod = event["object"]
            read_attributes(event["type"], pod.metadata, pod.spec, pod.status, "_name")
            if meter.tick():
                break
    return meter.report()


def read_attributes(kind: str, metadata: Any, spec: Any, status: Any, name: str) -> tuple[Any, ...]:
    """Read what `PodProjector` reads, from models with attributes in either spelling."""
    camel = name == "Name"
    node = spec.nodeName if camel else spec.node_name
    return (
        kind,
        metadata.name,
        metadata.namespace,
        metadata.uid,
        metadata.labels,
        metadata.annotations,
        metadata.creationTimestamp if camel else metadata.creation_timestamp,
        metadata.deletionTimestamp if camel else metadata.deletion_timestamp,
        [(one.name, one.resources.requests, one.resources.limits) for one in spec.containers],
        spec.nodeSelector if camel else spec.node_selector,
        [(one.key, one.operator, one.value, one.effect) for one in spec.tolerations or ()],
        spec.schedulerName if camel else spec.scheduler_name,
        spec.priority,
        node,
        status.phase,
    )


async def memory(kubeconfig: str, pods: int) -> dict[str, float]:
    """What the process grows by when an informer of ours has listed all pods."""
    from alnair.kube.access import client_config
    from alnair.kube.client import Client
    from alnair.kube.informer import Change, Informer
    from alnair.kube.objects.pod_projection import PodProjector
    from alnair.kube.objects.wire import PodWire
    from alnair.kube.resources import PODS
    from alnair.model.workload import Pod

    def ignore(change: Change[Pod]) -> None:
        pass

    async with Client(client_config.load(kubeconfig)) as client:
        informer = Informer(
            client, PODS.typed(PodWire), PodProjector(), ignore, identity=lambda pod: pod.uid
        )
        gc.collect()
        before = resident()
        begin, begin_wall = time.process_time(), time.perf_counter()
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        cpu, wall = time.process_time() - begin, time.perf_counter() - begin_wall
        if len(informer.items) != pods:
            raise RuntimeError(f"{len(informer.items)} pods instead of {pods}")
        gc.collect()
        after = resident()
        task.cancel()
        await asyncio.wait([task])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "pods": pods,
        "mb": (after - before) / 1e6,
        "peak_mb": (peak - before) / 1e6,
        "cpu_s": cpu,
        "wall_s": wall,
    }


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


ROLES: dict[str, Callable[[str, int], Any]] = {
    "alnair": alnair_client,
    "alnair_paced": alnair_paced,
    "lightkube": lightkube_client,
    "kubernetes_asyncio": kubernetes_asyncio_client,
    "memory": memory,
}


# ---- the run ------------------------------------------------------------------------------------


def ask(role: str, kubeconfig: Path, count: int) -> dict[str, float]:
    """Run one role in a process of its own and return what it reports."""
    done = subprocess.run(
        [sys.executable, __file__, "--role", role, str(kubeconfig), str(count)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(repeat: int, events: int, pods: int) -> dict[str, Any]:
    clients = [name for name in SHARES if importlib.util.find_spec(name)]
    for name in SHARES.keys() - set(clients):
        print(f"{name} is not installed: see requirements/bench.txt", file=sys.stderr)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, __file__, "--role", "server", folder, str(pods), str(events)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            ready = json.loads(server.stdout.readline())
            kubeconfig = Path(folder, "kubeconfig")
            runs: dict[str, list[dict[str, float]]] = {name: [] for name in clients}
            # Round by round, so that a noisy minute hits all clients alike.
            for _ in range(repeat):
                for name in clients:
                    count = max(int(events * SHARES[name]), 2 * WARM_UP)
                    runs[name].append(ask(name, kubeconfig, count))
            paced = [ask("alnair_paced", kubeconfig, 3 * WARM_UP) for _ in range(repeat)]
            cached = ask("memory", kubeconfig, pods)
        finally:
            server.terminate()
            server.wait()
    return {
        "benchmark": "kube_client",
        "pod_bytes": ready["pod_bytes"],
        "clients": {name: summary(one) for name, one in runs.items()},
        "alnair_paced": summary(paced),
        "memory": {key: round(value, 1) for key, value in cached.items()},
        "machine": {
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "load_before": round(load, 2),
            "python": platform.python_version(),
            "openssl": ssl.OPENSSL_VERSION,
        },
        "method": "client CPU (user+system) per MODIFIED event over TLS on loopback, after"
        f" {WARM_UP} events of warm-up, median of {repeat} runs;"
        " memory is the growth of resident memory",
    }


def summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    cpu = [one["us"] for one in runs]
    return {
        "us_per_event": round(statistics.median(cpu), 1),
        "us_min": round(min(cpu), 1),
        "us_max": round(max(cpu), 1),
        "events_per_s": round(statistics.median(one["events_per_s"] for one in runs)),
    }


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def table(result: dict[str, Any]) -> None:
    ours = result["clients"]["alnair"]["us_per_event"]
    print(
        f"{'client':<20} {'us/event':>9} {'min':>8} {'max':>8} {'times ours':>11}", file=sys.stderr
    )
    for name, one in result["clients"].items():
        print(
            f"{name:<20} {one['us_per_event']:>9} {one['us_min']:>8} {one['us_max']:>8}"
            f" {one['us_per_event'] / ours:>11.1f}",
            file=sys.stderr,
        )
    paced = result["alnair_paced"]
    print(
        f"{'alnair, paced':<20} {paced['us_per_event']:>9} {paced['us_min']:>8}"
        f" {paced['us_max']:>8}",
        file=sys.stderr,
    )
    cached = result["memory"]
    print(
        f"{cached['pods']:,.0f} pods cached: {cached['mb']} MB (peak {cached['peak_mb']} MB),"
        f" listed with {cached['cpu_s']} CPU s in {cached['wall_s']} s",
        file=sys.stderr,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each client")
    parser.add_argument("--events", type=int, default=20_000, help="events for our client")
    parser.add_argument("--pods", type=int, default=50_000, help="pods in the cache")
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role is None:
        result = measure(given.repeat, given.events, given.pods)
        table(result)
        print(json.dumps(result))
    elif given.role[0] == "server":
        asyncio.run(serve(Path(given.role[1]), int(given.role[2]), int(given.role[3])))
    else:
        role, kubeconfig, count = given.role
        print(json.dumps(asyncio.run(ROLES[role](kubeconfig, int(count)))))


if __name__ == "__main__":
    main()
