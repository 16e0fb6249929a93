"""A local cluster: brought up, repaired, asked and taken down.

Every start looks at what is there (files, processes) and does what is missing, so a start that was
interrupted anywhere, and a component that died, are nothing special.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import os
import shutil
import signal
import ssl
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path

import msgspec

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.local import installation, own_pods, preflight, simnodes, state
from alnair.local.access import kubeconfigs
from alnair.local.access.certificates import Pki
from alnair.local.components import components, health, locks, ports, processes, supervision
from alnair.local.components.components import COMPONENTS, OURS
from alnair.local.components.supervision import Supervised
from alnair.local.errors import InvalidArgumentError, LocalClusterError
from alnair.local.layout import DEFAULT_NAME, Layout, clusters_folder
from alnair.local.real_node import choice, cluster_objects, fake_gpu, network, node, requirements
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.real_node.node import RealNode
from alnair.local.real_node.programs import AGENT, NODE_COMPONENTS, PROGRAMS
from alnair.local.real_node.settings import NodeSettings, link_name
from alnair.local.release import Release
from alnair.local.report import NO_REPORT, ProgressReport
from alnair.traces.openb import TraceNode

#: Time for a process that is alive but not well before a start replaces it.
_PATIENCE_SECONDS = 10.0
_AS_BEFORE = RealNodeWish()


class LocalCluster:
    """One cluster of this user, by its name; making this object does nothing yet.

    Args:
        name: The cluster's name.
        components: What shall run (see `components.FULL` and `components.BARE`); None: as before,
            or all but our own processes at the first time.
        scheduler: Whether our own scheduler and controller run, whatever `components` says; None:
            as that says.
        extra_args: Further flags per component, which override ours; None: as before.
        port: The API server's port; None: as before, or a free one.
        real_node: Which real node it has beside the simulated ones.
        root: The folder of all clusters; None: as the environment says.
        report: Told what is going on.
    """

    def __init__(
        self,
        name: str = DEFAULT_NAME,
        *,
        components: Sequence[str] | None = None,
        scheduler: bool | None = None,
        extra_args: Mapping[str, Sequence[str]] | None = None,
        port: int | None = None,
        real_node: RealNodeWish = _AS_BEFORE,
        root: Path | None = None,
        report: ProgressReport = NO_REPORT,
    ) -> None:
        self.layout = Layout((root or clusters_folder(os.environ)).resolve(), name)
        self.pki = Pki(self.layout.pki)
        self._given = None if components is None else tuple(components)
        self._scheduler = scheduler
        self._extra_args = extra_args
        self._port = port
        real_node.check()
        self._real_node = real_node
        self._wanted(None)
        self._report = report
        self._programs: dict[str, Path] = {}

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.layout.name

    def kubeconfig(self, identity: str = "admin") -> Path:
        """The kubeconfig of an identity: admin, or the name of a component that has one."""
        return self.layout.kubeconfig(identity)

    def real_node(self) -> RealNode | None:
        """The cluster's real node, as it is remembered; None: it has none."""
        settings = self._node_settings(self.remembered())
        if settings is None:
            return None
        self._have(PROGRAMS)
        return RealNode(settings, self.pki, self._programs, self._report)

    def remembered(self) -> state.ClusterState | None:
        """What is remembered of the cluster; None when it is not there, or damaged."""
        return state.load(self.layout.state)

    def running(self) -> dict[str, processes.Running]:
        """The live components."""
        return processes.components(processes.find(self.layout.folder))

    def pid(self, component: str) -> int | None:
        """The process id of a component; None when it does not run."""
        found = self.running().get(component)
        return found.pid if found else None

    def prepare(self) -> None:
        """Checks the machine and builds missing programs, which takes minutes the first time.

        Raises:
            LocalClusterError: A cluster cannot run here; nothing has been begun.
        """
        remembered = self.remembered()
        wanted = self._wanted(remembered)
        preflight.check(os.environ)
        has_node = self._choose_node(remembered) is not None
        if has_node:
            requirements.check(self.layout, os.environ, wanted)
        self._choose_ports(remembered)
        self._have((*wanted, *PROGRAMS) if has_node else wanted)
        if has_node:
            fake_gpu.build(self._report)

    def _have(self, wanted: Sequence[str]) -> None:
        """Has the programs of these components at hand."""
        missing = [name for name in wanted if name not in {*self._programs, *OURS}]
        if missing:
            self._programs |= preflight.programs(missing, os.environ, self._report)

    async def up(self) -> None:
        """Starts what does not run, restarts what is not well, and installs what the cluster needs.

        Raises:
            LocalClusterError: It cannot be done; the message says why.
        """
        await asyncio.to_thread(self.prepare)
        async with self._changing():
            before = self.remembered()
            was_installed = bool(before and before.real_node and before.real_node.installed)
            settled, at = await asyncio.to_thread(self._settle)
            context = health.trust(self.layout, self.pki)
            await self._stop_unwanted(settled)
            for name in components.BARE:
                await self._ensure(name, at, settled, context)
            async with Client(client_config.load(self.kubeconfig())) as client:
                # Permissions first: nobody shall start with refusals.
                is_installed = at.node is not None and at.node.installed
                if was_installed and not is_installed:
                    former = Release(self.kubeconfig(), self._report)
                    await former.uninstall(waits=at.node is not None)
                beside = installation.BESIDE_THE_CHART
                await installation.install(client, *([beside] if is_installed else []))
                others = [name for name in settled.components if name not in components.BARE]
                ensured = (self._ensure(name, at, settled, context) for name in others)
                in_force = [] if is_installed else [installation.in_force(client)]
                await _all(*ensured, *in_force)
                if at.node is not None:
                    real = RealNode(at.node, self.pki, self._programs, self._report)
                    await real.up(client)
                    if is_installed:
                        only = "kube-scheduler" not in settled.components
                        await own_pods.ensure(
                            client, real, self.kubeconfig(), self._report, only=only
                        )
                else:
                    await cluster_objects.remove(client)

    async def add_nodes(self, nodes: Sequence[TraceNode]) -> int:
        """Has these simulated nodes in the running cluster, and no node removed.

        Returns:
            How many were made.
        """
        async with Client(client_config.load(self.kubeconfig())) as client:
            return await simnodes.ensure(client, nodes, dt.datetime.now(dt.UTC), self._report)

    async def down(self, *, keep_data: bool = False) -> None:
        """Stops everything, and forgets the cluster unless its data shall be kept."""
        async with self._changing():
            await self._remove_node(keep_data=keep_data)
            await self._stop_all()
            if not keep_data:
                if self.layout.folder.exists():
                    await asyncio.to_thread(shutil.rmtree, self.layout.folder)
                self.layout.lock.unlink()

    async def start(self, component: str, extra_args: Sequence[str] | None = None) -> None:
        """Starts one component and waits until it is well.

        It need not be one of the cluster's components; then the next `up` stops it again.

        Args:
            component: Which one.
            extra_args: Its further flags this time; None: those of the cluster.

        Raises:
            LocalClusterError: The cluster is not up, or the component cannot start.
        """
        settled = self.remembered()
        if settled is None:
            raise LocalClusterError(
                f"cluster {self.name} is not up: run 'alnair up --name {self.name}'"
            )
        if extra_args is not None:
            flags = {**settled.extra_args, component: tuple(extra_args)}
            settled = msgspec.structs.replace(settled, extra_args=flags)
        await asyncio.to_thread(self._have, [component])
        at = self._situation(settled)
        await self._ensure(component, at, settled, health.trust(self.layout, self.pki))

    async def stop(self, component: str, number: int = signal.SIGTERM) -> None:
        """Ends one component by a signal; one that does not obey in its time is killed."""
        known = COMPONENTS.get(component)
        # Of those in the node, the agent waits for pods that are bound to it.
        seconds = known.stop_seconds if known else 15.0
        await supervision.stop(self.layout, component, number, seconds)

    async def restart(self, component: str, number: int = signal.SIGTERM) -> None:
        """Stops one component and starts it again."""
        await self.stop(component, number)
        await self.start(component)

    async def _ensure(
        self,
        name: str,
        at: components.ClusterSettings,
        remembered: state.ClusterState,
        context: ssl.SSLContext,
    ) -> None:
        """Has one component running and well."""
        at = self._with_its_port(name, at)
        command = components.command(name, at, remembered.extra_args.get(name, ()))
        port = at.ports.get(name)
        wanted = Supervised(
            name,
            command,
            components.digest(name, at, command),
            components.environment(name, at),
            lambda: health.probe(name, self.layout, port, context),
            COMPONENTS[name].stop_seconds,
        )
        await supervision.ensure(wanted, self.layout, self._report, _PATIENCE_SECONDS)

    def _with_its_port(
        self, name: str, at: components.ClusterSettings
    ) -> components.ClusterSettings:
        """Chooses another port where somebody took a component's since it was chosen."""
        port, known = at.ports.get(name), self.remembered()
        # Others were told where etcd and the API server are.
        if port is None or known is None or name in components.BARE:
            return at
        if self.pid(name) or ports.is_free(port):
            return at
        taken = frozenset(
            port for one in (known, *self._neighbours()) for port in one.ports.values()
        )
        chosen = ports.choose(self.layout.folder, [name], {}, api_port=None, ours={}, taken=taken)
        state.save(
            self.layout.state, msgspec.structs.replace(known, ports={**known.ports, **chosen})
        )
        return dataclasses.replace(at, ports={**at.ports, **chosen})

    def _changing(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Keeps other commands from changing the cluster at the same time."""
        return locks.exclusive_async(
            self.layout.lock,
            lambda: self._report.step(f"waiting: another command is changing cluster {self.name}"),
        )

    def _settle(self) -> tuple[state.ClusterState, components.ClusterSettings]:
        """Decides components, flags and ports; writes all files, or refuses before the first."""
        before = self.remembered()
        wanted = self._wanted(before)
        chosen = self._choose_ports(before)
        real_node = self._choose_node(before)
        extra = self._extra_args
        if extra is None:
            extra = before.extra_args if before else {}
        settled = state.ClusterState(
            self.name,
            wanted,
            chosen,
            {name: tuple(flags) for name, flags in extra.items() if flags},
            real_node,
        )
        self.layout.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if before is None:
            state.set_aside(self.layout.state)
        state.save(self.layout.state, settled)
        at = self._situation(settled)
        self.pki.ensure(dt.datetime.now(dt.UTC), at.node.address if at.node else None)
        port = chosen[ports.API_SERVER]
        kubeconfigs.write_all(self.layout, self.pki, port, real_node=real_node is not None)
        return settled, at

    def _wanted(self, before: state.ClusterState | None) -> tuple[str, ...]:
        """The components that shall run, given what was remembered."""
        names = set(self._given or (before.components if before else components.FULL))
        if choice.is_installed(self._real_node, before.real_node if before else None):
            if self._scheduler:
                raise InvalidArgumentError(
                    "--scheduler runs beside the cluster what --install runs in it: choose one"
                )
            names -= {*OURS}
        if self._scheduler is not None:
            names -= {*OURS}
            names |= {*OURS} if self._scheduler else set()
        return components.checked(sorted(names))

    def _choose_ports(self, before: state.ClusterState | None) -> dict[str, int]:
        def listening() -> dict[str, int | None]:
            found = self.running()
            return {name: ports.listening(one.process) for name, one in found.items()}

        ours = listening()
        return ports.choose(
            self.layout.folder,
            [name for name in COMPONENTS if COMPONENTS[name].has_port],
            before.ports if before else {},
            api_port=self._port,
            ours={name: port for name, port in ours.items() if port is not None},
            taken=frozenset(port for other in self._neighbours() for port in other.ports.values()),
            listens=lambda port: listening().get(ports.API_SERVER) == port,
        )

    def _situation(self, settled: state.ClusterState) -> components.ClusterSettings:
        return components.ClusterSettings(
            self.layout,
            self.pki,
            settled.ports,
            self._programs,
            settled.components,
            self._node_settings(settled),
        )

    def _node_settings(self, settled: state.ClusterState | None) -> NodeSettings | None:
        """The real node that is remembered."""
        if settled is None or settled.real_node is None:
            return None
        chosen = settled.real_node
        port = settled.ports[ports.API_SERVER]
        return NodeSettings(
            self.layout, chosen.slot, chosen.gpus, chosen.gpu_model, port, chosen.installed
        )

    def _choose_node(self, before: state.ClusterState | None) -> state.RealNodeState | None:
        taken = [other.real_node.slot for other in self._neighbours() if other.real_node]
        return choice.choose(
            self._real_node,
            before.real_node if before else None,
            lambda present: network.free_slot(link_name(self.layout), present, taken),
        )

    def _neighbours(self) -> list[state.ClusterState]:
        """What other clusters in the same folder remember: they may be down now."""
        paths = self.layout.root.glob("*/state.json")
        others = (state.load(path) for path in paths if path != self.layout.state)
        return [other for other in others if other is not None]

    async def _stop_unwanted(self, settled: state.ClusterState) -> None:
        if settled.real_node is None:
            await self._remove_node(keep_data=False)
        wanted = {*settled.components, *NODE_COMPONENTS}
        if settled.real_node is not None and settled.real_node.installed:
            wanted.remove(AGENT)
        for name in self.running():
            if name not in wanted:
                self._report.step(f"stopping {name}")
                await self.stop(name)

    async def _remove_node(self, *, keep_data: bool) -> None:
        """Has no real node; there may never have been one."""
        if any(name in NODE_COMPONENTS for name in self.running()):
            self._report.step("removing the real node")
        await node.remove(self.layout, keep_data=keep_data, report=self._report)

    async def _stop_all(self) -> None:
        """Stops in an order that lets each part say goodbye to those that it depends on."""
        found = processes.find(self.layout.folder)
        for stage in (
            [running for running in found if running.component not in components.BARE],
            # Before etcd: without it, the API server would wait for it instead of ending.
            [running for running in found if running.component == "kube-apiserver"],
            [running for running in found if running.component == "etcd"],
        ):
            if stage:
                self._report.step(f"stopping {', '.join(sorted({r.component for r in stage}))}")
                await processes.stop([running.process for running in stage], signal.SIGTERM, 5.0)


async def _all(*tasks: Coroutine[object, object, None]) -> None:
    """Awaits all at the same time; the first failure ends the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
