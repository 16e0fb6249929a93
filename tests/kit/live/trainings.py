"""Real trainings on the real node: what they say of their steps, and their processes."""

import contextlib
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import psutil

from alnair.kube.client import Client
from alnair.kube.resources import PODS
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live.agent_in_node import agent_status
from kit.live.real_pods import NAMESPACE, until

#: On the real node, where containers that ask for no processor get next to none if it is busy.
ON_REAL_NODE = {
    "nodeSelector": {names.REAL_NODE: "true"},
    "resources": {"requests": {"cpu": "200m"}},
}


class Training:
    """A training whose first process says each step as a line of JSON.

    Args:
        client: Of an administrator.
        cluster: With a real node.
        kind: Of the job.
        name: Of the job, in the namespace `default`.
    """

    def __init__(self, client: Client, cluster: LocalCluster, kind: str, name: str) -> None:
        self.client = client
        self.kind = kind
        self.name = name
        self._cluster = cluster
        node = cluster.real_node()
        assert node is not None
        self._logs = node.pod_logs

    def log(self) -> str:
        """What the launcher wrote: read from the node's files, also while no kubelet runs."""
        text = ""
        folders = self._logs.glob(f"{NAMESPACE}_{self.kind.lower()}-{self.name}-launcher-*")
        for folder in sorted(folders):
            with contextlib.suppress(FileNotFoundError):  # of a launcher that has just gone
                for path in sorted((folder / "launcher").glob("*.log")):
                    text += _plain(path)
        return text

    def steps(self) -> list[dict[str, Any]]:
        """All steps that it has said: `step`, `loss`, `workers`, `time`."""
        lines = (line[line.find("{") :] for line in self.log().splitlines() if '"step"' in line)
        return [json.loads(line) for line in lines if line.endswith("}")]

    def parameters(self) -> dict[str, float]:
        """The norms of its parameters, which it says at its end."""
        (line,) = (one for one in self.log().splitlines() if '"parameters"' in one)
        found: dict[str, float] = json.loads(line[line.find("{") :])["parameters"]
        return found

    async def trains(
        self, workers: int, steps: int = 2, seconds: float = 90, since: int | None = None
    ) -> None:
        """Wait until so many workers have trained for some more steps.

        Args:
            workers: How many.
            steps: As many, one after the other. Others may have come or gone when they are seen.
            seconds: To wait at most.
            since: Steps that were there when it began to count; None: those that are there now.
        """
        before = len(self.steps()) if since is None else since

        async def do() -> bool:
            found = [one["workers"] for one in self.steps()[before:]]
            return any(
                found[at : at + steps] == [workers] * steps for at in range(len(found) - steps + 1)
            )

        try:
            await until(do, f"{workers} workers train", seconds)
        except BaseException:
            print(self.log()[-4000:])
            raise

    def slices(self) -> dict[str, tuple[int, int]]:
        """MiB and percent of each of its pods that the agent holds to a slice."""
        known = [one["assignment"] for one in agent_status(self._cluster)["containers"]]
        return {
            one["pod"]["name"]: (share["memory_mib"], share["compute_percent"])
            for one in known
            if one["pod"]["name"].startswith(f"{self.kind.lower()}-{self.name}-")
            for share in one["shares"]
        }

    async def has_slices(self, workers: int, slice_: tuple[int, int]) -> None:
        """Wait until its first so many workers have slices like this, and nobody else of it."""
        pods = [f"{self.kind.lower()}-{self.name}-workers-{i}" for i in range(workers)]

        async def do() -> bool:
            return self.slices() == dict.fromkeys(pods, slice_)

        await until(do, f"{workers} workers have slices")

    async def pods(self) -> list[str]:
        """The names of its pods that have not ended."""
        found = (await self.client.list(PODS, NAMESPACE, label_selector=self.selector)).items
        ended = ("Succeeded", "Failed")
        return sorted(p["metadata"]["name"] for p in found if p["status"]["phase"] not in ended)

    @property
    def selector(self) -> str:
        """Its pods' label."""
        return f"{self.kind}={self.name}"

    async def kill(self, worker: int) -> None:
        """Kill the first process of a worker's container, with which all others there end."""
        name = f"{self.kind.lower()}-{self.name}-workers-{worker}"
        uid = (await self.client.get(PODS, name, NAMESPACE))["metadata"]["uid"]
        first = [pid for pid in psutil.pids() if _is_first(pid, uid)]
        assert len(first) == 1, f"{name}: {first}"
        os.kill(first[0], signal.SIGKILL)


def _is_first(pid: int, uid: str) -> bool:
    """Whether a process is the first one of a pod's container, and not of its sandbox."""
    try:
        folder = Path("/proc", str(pid))
        if f"/pod{uid}/" not in (folder / "cgroup").read_text():
            return False
        names = re.search(r"^NSpid:.*\t1$", (folder / "status").read_text(), re.MULTILINE)
        return names is not None and (folder / "comm").read_text() != "pause\n"
    except OSError:
        return False  # it has just ended


def _plain(path: Path) -> str:
    """A log without what containerd writes before each line."""
    lines = (line.split(" ", 3) for line in path.read_text().splitlines())
    return "\n".join(parts[3] for parts in lines if len(parts) == 4) + "\n"
