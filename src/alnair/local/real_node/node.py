"""A real node, brought up, repaired and removed: what the other modules plan is done here."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
from aiohttp import TCPConnector

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import NODES
from alnair.local.access.certificates import Pki
from alnair.local.components import health, processes, supervision
from alnair.local.components.locks import exclusive
from alnair.local.components.supervision import Supervised
from alnair.local.errors import LocalClusterError
from alnair.local.layout import Layout, cache_folder, write_atomically
from alnair.local.real_node import (
    cgroups,
    cluster_objects,
    configuration,
    fake_gpu,
    forwarder,
    image_archive,
    images,
    inhabitants,
    init_script,
    network,
    programs,
)
from alnair.local.real_node.settings import NodeSettings, cgroup_name, link_name
from alnair.local.report import NO_REPORT, ProgressReport

_READY_SECONDS = 60.0


class RealNode:
    """The real node of a cluster; making this object does nothing yet.

    Args:
        node: What it is.
        pki: The cluster's certificates.
        found: Where the programs are.
        report: Told what is going on.
    """

    def __init__(
        self, node: NodeSettings, pki: Pki, found: Mapping[str, Path], report: ProgressReport
    ) -> None:
        self._node = node
        self._pki = pki
        self._programs = found
        self._report = report

    @property
    def static_pods(self) -> Path:
        """Where the kubelet looks for pods from files."""
        return self._node.static_pods

    @property
    def pod_logs(self) -> Path:
        """Where the kubelet keeps what containers write."""
        return self._node.pod_logs

    def beside(self, node: NodeSettings, pki: Pki) -> "RealNode":
        """Another one with the same programs; making this object does nothing yet, either."""
        return RealNode(node, pki, self._programs, self._report)

    async def up(self, client: Client) -> None:
        """Starts what does not run, and waits until the node is Ready.

        Args:
            client: Of the cluster's administrator.

        Raises:
            LocalClusterError: It cannot be done; the message says why.
        """
        node = self._node
        await asyncio.to_thread(self._write_files)
        before = self._pid()
        await self._ensure(self._namespaces())
        pid = self._running_pid()
        if pid != before:
            # The kubelet would wait 3 s for each container of the former node, one after the other.
            await asyncio.to_thread(cgroups.remove, node.cgroup)
        await asyncio.to_thread(cgroups.make, node.cgroup)
        await asyncio.to_thread(network.ensure, node, pid)
        await asyncio.to_thread(self._switch_gpus_on, pid)
        await self._ensure(self._forwarder(pid))
        await cluster_objects.install(client, node)
        await self._ensure(self._inside(programs.CONTAINERD, pid))
        await asyncio.to_thread(self._import_images, pid)
        for name in self._names:
            await self._ensure(self._inside(name, pid))
        await self._ready(client)

    def components(self) -> list[Supervised]:
        """All components, as they should run; those in the node only while it is there."""
        found = [self._namespaces()]
        if pid := self._pid():
            found.append(self._forwarder(pid))
            found += [self._inside(name, pid) for name in self._names]
        return found

    @property
    def _names(self) -> list[str]:
        """The programs in the node, in the order of starting."""
        return [
            name
            for name in programs.NAMES[2:]
            if not (self._node.installed and name == programs.AGENT)
        ]

    def _write_files(self) -> None:
        node = self._node
        for folder in (node.kubelet, node.containerd, node.folder / "opt", node.static_pods):
            folder.mkdir(parents=True, exist_ok=True)
        texts = configuration.files(node, self._pki, self._programs)
        texts[self._script] = init_script.text(node)
        for path, text in texts.items():
            if not path.exists() or path.read_text() != text:
                write_atomically(path, text.encode())
        fake_gpu.install(node.driver)

    @property
    def _script(self) -> Path:
        return self._node.configuration / "init.sh"

    async def _ensure(self, wanted: Supervised) -> None:
        await supervision.ensure(wanted, self._node.layout, self._report)

    def _pid(self) -> int | None:
        """The node's PID 1, as the machine has it; None when it does not run."""
        found = processes.components(processes.find(self._node.layout.folder))
        running = found.get(programs.NODE)
        if running is not None:
            with contextlib.suppress(psutil.Error):
                for child in running.process.children():
                    return int(child.pid)
        return None

    def _running_pid(self) -> int:
        """The same.

        Raises:
            LocalClusterError: It does not run.
        """
        pid = self._pid()
        if pid is None:
            raise LocalClusterError(
                f"the real node ended: look into {self._node.layout.log(programs.NODE)},"
                " then run the same command again"
            )
        return pid

    def _is_set_up(self) -> bool:
        return Path(f"/proc/{self._running_pid()}/root{init_script.READY}").exists()

    def _namespaces(self) -> Supervised:
        async def probe() -> str | None:
            try:
                there = await asyncio.to_thread(self._is_set_up)
            except (LocalClusterError, OSError):
                return "not running"
            return None if there else "still setting up its namespaces"

        node = self._node
        command = init_script.command(self._script)
        # None of these can change under a node that has mounted or announced them.
        fixed = [node.gpu_model, str(node.gpus), node.address]
        driver = [node.driver / name for name in fake_gpu.LIBRARIES]
        digest = _digest([*command, *fixed], [self._script, *driver])
        return Supervised(programs.NODE, command, digest, self._environment(), probe)

    def _forwarder(self, pid: int) -> Supervised:
        node = self._node
        addresses = ("127.0.0.1", node.address)

        async def probe() -> str | None:
            try:
                _, writer = await asyncio.open_connection(node.address, node.api_port)
            except OSError as error:
                return str(error)
            writer.close()
            return None

        command = forwarder.command(pid, node.api_port, addresses)
        digest = _digest(command, [Path(forwarder.__file__)])
        return Supervised(programs.FORWARDER, command, digest, self._environment(), probe)

    def _inside(self, name: str, pid: int) -> Supervised:
        program = programs.program(name, self._node, self._programs)

        async def probe() -> str | None:
            if program.health:
                return await health.ask(program.health, TCPConnector())
            return await asyncio.to_thread(self._ask_containerd, pid)

        reads = [*program.reads, self._pki.ca.certificate]
        if name == "kubelet":
            reads.append(self._pki.pair("kubelet-server").certificate)
        digest = _digest(program.command, reads)
        return Supervised(
            name, program.command, digest, self._environment(), probe, enter=programs.enter(pid)
        )

    def _run_inside(
        self, pid: int, command: Sequence[str], seconds: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program in the node's namespaces; subprocess.TimeoutExpired: not in time."""
        return subprocess.run(
            [*programs.enter(pid), *command],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )

    def _environment(self) -> dict[str, str]:
        path = os.environ.get("PATH", "")
        return {
            **processes.go_settings(),
            "PATH": f"{path}:/usr/sbin:/sbin:/usr/bin:/bin",
            "HOME": str(self._node.folder),
        }

    def _ask_containerd(self, pid: int) -> str | None:
        # A socket may be left by a dead one; and it answers before it can run pods.
        # Who stands still takes connections, and never answers. What asks it ends by itself, too:
        # the process that is killed for being late is only the one that entered the namespaces.
        late = f"--timeout={2 * health.ONCE_SECONDS:g}s"
        plugins = programs.ctr(self._programs, late, "plugins", "ls")
        try:
            result = self._run_inside(pid, plugins, health.ONCE_SECONDS)
        except subprocess.TimeoutExpired:
            return f"{health.NO_ANSWER} {health.ONCE_SECONDS:g} s"
        lines = [line.split() for line in result.stdout.splitlines()]
        if any(line[1] == "cri" and line[-1] == "ok" for line in lines if len(line) > 1):
            return None
        return result.stderr.strip() or "its part for Kubernetes (cri) is not ready"

    def _switch_gpus_on(self, pid: int) -> None:
        model, gpus = self._node.gpu_model, self._node.gpus
        result = self._run_inside(pid, fake_gpu.switch_on(model, gpus))
        if result.returncode != 0:
            raise LocalClusterError(
                f"{gpus} fake GPUs of model {model} cannot be made: {result.stderr.strip()[-500:]}"
            )

    def _import_images(self, pid: int) -> None:
        """Has the images of the workloads in containerd, from an archive in the cache."""
        made_from = (fake_gpu.BUILT / "workload", fake_gpu.SOURCES / "workload")
        key = images.key(*made_from)
        archive = cache_folder(os.environ) / "images" / f"{key}.tar"
        # Another cluster's node may be making the same, for the first time here, or, of another
        # clone, be about to put its own in the place of this one before containerd has read it.
        with exclusive(archive.parent / "lock", lambda: None):
            if not archive.exists():
                self._report.step("making the images of the real node")
                for old in archive.parent.glob("*.tar"):
                    old.unlink()
                partial = archive.with_suffix(".partial")
                image_archive.write(images.images(*made_from), partial)
                partial.replace(archive)
            self._import(pid, archive, key, self._node.folder / "images")

    def import_archive(self, archive: Path, key: str) -> None:
        """Has the images of an archive in containerd.

        Args:
            archive: In the form of OCI or Docker.
            key: Tells its content from other archives of the same name.

        Raises:
            LocalClusterError: containerd does not take it.
        """
        self._import(self._running_pid(), archive, key, self._node.folder / f"image-{archive.stem}")

    def _import(self, pid: int, archive: Path, key: str, mark: Path) -> None:
        if mark.exists() and mark.read_text() == key:
            return
        self._report.step(f"importing images into the real node ({archive.name})")
        command = programs.ctr(self._programs, "images", "import", str(archive))
        result = self._run_inside(pid, command)
        if result.returncode != 0:
            raise LocalClusterError(f"{archive} cannot be imported: {result.stderr.strip()[-500:]}")
        write_atomically(mark, key.encode())

    async def _ready(self, client: Client) -> None:
        until = time.monotonic() + _READY_SECONDS
        said = "the kubelet did not register it"
        while time.monotonic() < until:
            with contextlib.suppress(NotFound):
                found = await client.get(NODES, self._node.name)
                conditions = found["status"].get("conditions") or []
                ready = [one for one in conditions if one["type"] == "Ready"]
                if ready and ready[0]["status"] == "True":
                    return
                said = ready[0]["message"] if ready else said
            await asyncio.sleep(0.2)
        raise LocalClusterError(
            f"node {self._node.name} is not Ready after {_READY_SECONDS:g} s ({said}): look into"
            f" {self._node.layout.log('kubelet')}, then run the same command again"
        )


async def remove(layout: Layout, *, keep_data: bool, report: ProgressReport = NO_REPORT) -> None:
    """Ends a node with all that is in it; there may be none, or parts of one.

    Args:
        layout: The cluster.
        keep_data: Whether its images and configuration stay.
        report: Told when images are deleted: large ones take half a minute on a busy disk.

    Raises:
        LocalClusterError: Something of it does not end.
    """
    running = processes.find(layout.folder)
    found = [one.process for one in running if one.component in programs.NODE_COMPONENTS]
    nodes = [one.pid for one in running if one.component == programs.NODE]
    its_own = await asyncio.to_thread(inhabitants.of_node, nodes)
    # All at once: the kernel ends what is in the node with its PID 1, containers too.
    await processes.stop(found, signal.SIGKILL, 0.0)
    await asyncio.to_thread(network.remove, link_name(layout))
    if cgroups.ROOT.exists():
        await asyncio.to_thread(cgroups.remove, cgroup_name(layout))
    await inhabitants.gone(its_own)
    if not keep_data:
        await forget(layout, report)


async def forget(layout: Layout, report: ProgressReport) -> None:
    """Deletes what a node has kept: images, containers, configuration; there may be nothing."""
    kept = layout.folder / "node"
    if kept.exists():
        report.step("deleting the images and containers of the real node")
        await asyncio.to_thread(shutil.rmtree, kept, ignore_errors=True)


def _digest(command: Sequence[str], files: Sequence[Path]) -> str:
    sha = hashlib.sha256("\0".join(command).encode())
    for path in files:
        sha.update(path.read_bytes() if path.exists() else b"")
    return sha.hexdigest()[:16]
