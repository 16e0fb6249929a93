"""A container's log through the real API server and kubelet, over connections that are cut."""

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.pod_logs.follow import follow
from kit.live.real_pods import NAMESPACE, RealPods, pod, python

#: Lines in quick succession, with a pause of more than the reader's patience after each ten.
WRITES = """
import time
for n in range(60):
    print(f"step {n + 1}/60 loss={1 / (n + 1):.4f}", flush=True)
    time.sleep(1.2 if n % 10 == 9 else 0.01)
print("x" * 50000)
print("end", end="")
"""


async def test_each_line_of_a_container_comes_once_though_connections_are_cut(
    client: Client, pods: RealPods
) -> None:
    made = await pods.create(pod("talks", python(WRITES)))
    got: list[bytes] = []
    found = follow(
        client,
        NAMESPACE,
        "talks",
        "main",
        uid=made["metadata"]["uid"],
        silence=0.4,
        most_bytes=2000,
        backoff=Backoff(first=0.05, most=0.1),
    )
    async for lines in found:
        got += [line.text for line in lines]
    steps = [line.partition(b"/")[0] for line in got if line.startswith(b"step")]
    assert steps == [f"step {n}".encode() for n in range(1, 61)]
    assert got[60].startswith(b"xxx")
    assert len(got[60]) <= 2000
    assert got[61:] == [b"end"]
