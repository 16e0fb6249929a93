"""The agent's process: everything that runs on a GPU node, started together, ended together."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from prometheus_client.metrics_core import Metric

from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.node import driver_root
from alnair.node.gpu_driver import GpuDriver
from alnair.node.gpu_looks import GpuLook, GpuLooks
from alnair.node.health import GpusHealth
from alnair.node.isolation import Isolation
from alnair.node.kubelet.driver_files import DriverPlaces
from alnair.node.load import GpusLoad
from alnair.node.mps import MpsDaemon, MpsOptions
from alnair.node.pods.container_logs import ContainerLogs
from alnair.node.pods.kubelet_page import KubeletPage
from alnair.node.vgpu import installed_library
from alnair.node.vgpu.context_costs import ContextCosts
from alnair.node.vgpu.driver_mappings import DriverMappings, file_id
from alnair.node.vgpu.folder_lock import FolderLock
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.installed_library import Installed
from alnair.node.vgpu.server import VgpuServer
from alnair.node.vgpu.stray_processes import StrayProcesses
from alnair.node.vgpu.suspensions import Suspensions
from alnair.processes.agent import uninstall
from alnair.processes.agent.admin_socket import Admin
from alnair.processes.agent.agent_lease import AgentLease
from alnair.processes.agent.closing import close_node
from alnair.processes.agent.cluster_client import opened
from alnair.processes.agent.device_plugin.early import EarlyPlugins
from alnair.processes.agent.device_plugin.process import Plugins
from alnair.processes.agent.driver_events import DriverEvents
from alnair.processes.agent.driver_of_node import open_nvml
from alnair.processes.agent.endpoints import application
from alnair.processes.agent.enforcement import Enforcement
from alnair.processes.agent.gpu_metrics import gpu_metrics
from alnair.processes.agent.health_events import HealthEvents
from alnair.processes.agent.inventory import InventoryPublisher
from alnair.processes.agent.load_annotations import LoadAnnotations
from alnair.processes.agent.memory import give_back, look_for_cycles_less
from alnair.processes.agent.metrics import metrics
from alnair.processes.agent.node_label import tell_node
from alnair.processes.agent.plugin_metrics import plugin_metrics
from alnair.processes.agent.profiler.dcgm_source import DcgmSource
from alnair.processes.agent.profiler.gpu_device_metrics import gpu_device_metrics
from alnair.processes.agent.profiler.kept_usage import KeptUsage
from alnair.processes.agent.profiler.legacy_metrics import legacy_metrics
from alnair.processes.agent.profiler.pod_calls import PodCalls
from alnair.processes.agent.profiler.pod_metrics import pod_metrics
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.processes.agent.profiler.training_logs import TrainingLogs
from alnair.processes.agent.profiler.workloads import Workloads
from alnair.processes.agent.settings import Settings
from alnair.processes.agent.slice_labels import SliceLabels, nobody
from alnair.serving.server import Secured, Server
from alnair.sharing.strays import StrayPolicy, stray_policy
from alnair.sharing.tiers import Offer
from alnair.sharing.violations import Policy

#: Seconds for which the driver is waited for at the start: one that hangs keeps nothing else.
_FIRST_LOOK: Final = 10.0

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def agent(
    settings: Settings, early: EarlyPlugins | None = None, lock: FolderLock | None = None
) -> AsyncIterator[str]:
    """Be the agent; yields the URL of its metrics.

    Args:
        settings: What it was told.
        early: Serves the kubelet, perhaps already; None: no kubelet.
        lock: On its folder, held; None: it takes it itself.

    Raises:
        OSError: The folder cannot be used.
        OutboxError: Nor the one of what pods used.
        ServeError: The address of the metrics is taken.
    """
    async with contextlib.AsyncExitStack() as stack:

        async def beside(work: Coroutine[None, None, None]) -> None:
            await stack.enter_async_context(_beside(work))

        server = await stack.enter_async_context(VgpuServer(settings.folder, lock=lock))
        client = await opened(settings, stack)
        if settings.in_cluster and client is not None:
            stack.push_async_callback(
                uninstall.clean_up, client, server, settings.plugin, settings.usage_folder
            )
        enforcement = Enforcement(client, settings.node)
        server.loans.evict = enforcement.reclaim
        enforcement.take_over(c.assignment.pod for c in server.containers.values())
        await beside(enforcement.run())
        places = settings.plugin.driver if settings.plugin is not None else DriverPlaces()
        driver = GpuDriver(partial(open_nvml, places))
        stack.callback(driver.close)
        # What is served first shall know the GPUs, if there is a driver already and it answers.
        look = asyncio.create_task(driver.look())
        await asyncio.wait({look}, timeout=_FIRST_LOOK)
        await beside(driver.run())
        health = GpusHealth(driver.suspect)
        tell = partial(_tell_node, client, settings.node) if client is not None else None
        isolation = Isolation(server, driver=driver, tell=tell)
        library = None
        if early is not None:
            library = installed_library.install(settings.folder / "library")
        plugins = _plugins(
            settings, early, client, server, driver, library, enforcement, health, isolation
        )
        if plugins is not None:
            # Before all that can wait: pods wait for it to start.
            await beside(plugins.run())
        served = plugins.servers if plugins is not None else ()
        load = GpusLoad(server.containers, plugins.holders if plugins is not None else tuple)
        profiler = _profiler(settings, plugins, server, driver)
        inventory = None
        if client is not None:
            inventory = _inventory(settings, client, driver, health)
            await beside(inventory.run())
            for work in _told(settings, client, driver, health, load, profiler):
                await beside(work)
        policy = Policy(settings.policy)
        strays = StrayProcesses(
            server.proc,
            StrayPolicy(settings.stray_policy) if settings.stray_policy else stray_policy(policy),
            enforcement.tell_stray,
            whole_gpus=plugins.whole_gpus if plugins is not None else None,
            pod_of=plugins.pods.owner if plugins is not None else lambda _: None,
        )
        # Of containers that were given the library by other means, nobody knows which is theirs.
        mappings = DriverMappings([file_id(library.proxy)]) if library is not None else None
        inspection = Inspection(server, policy, enforcement.tell, strays=strays, mappings=mappings)
        takers: list[Callable[[GpuLook], None]] = [
            health.take,
            load.take,
            inspection.take,
            lambda seen: server.loans.take(seen, driver.gpus),
        ]
        if profiler is not None and plugins is not None:
            takers.append(profiler.take)
            if profiler.dcgm is not None:
                await beside(profiler.dcgm.run())
            await beside(profiler.run(plugins.pods.synced))
            if client is not None:
                await beside(_workloads(settings, client, profiler, plugins, server, load).run())
        looks = GpuLooks(
            driver, takers, settings.sample_every, finely=lambda: server.compute.shared
        )
        await beside(looks.run())
        costs = ContextCosts(server, given_mib=settings.context_mib, probes=settings.probes)
        await beside(costs.follow(driver))
        if settings.mps:
            isolation.mps_missing = "the GPUs are not known yet"
            await beside(_give_mps(isolation, settings, driver))
        await beside(isolation.run())
        labels = SliceLabels(settings.node, plugins.pods.controller if plugins else nobody)
        figures = partial(
            metrics, server, driver, inspection, enforcement, isolation, costs, labels
        )
        of_pods = partial(_of_pods, settings, profiler, server, driver)
        http = Server(
            application(
                lambda: chain(
                    figures(),
                    gpu_metrics(health, load),
                    plugin_metrics(served),
                    of_pods(),
                ),
                profiler,
            ),
            settings.host,
            settings.port,
            Secured(client, settings.certificate) if settings.secure and client else None,
        )
        await stack.enter_async_context(http)
        suspensions = Suspensions(
            server,
            enabled=settings.suspends,
            pods=plugins.pods.suspended if plugins is not None else tuple,
            tell=enforcement.tell_suspension,
        )
        await beside(suspensions.run())
        admin = Admin(settings.folder / "admin.sock", server, driver, isolation, costs, suspensions)
        await stack.enter_async_context(admin)
        await beside(give_back())
        await beside(look_for_cycles_less())
        try:
            yield http.url
        except asyncio.CancelledError:
            # It was asked to end.
            if inventory is not None and plugins is not None:
                await close_node(inventory, plugins.coming)
            raise


def _plugins(
    settings: Settings,
    early: EarlyPlugins | None,
    client: Client | None,
    server: VgpuServer,
    driver: GpuDriver,
    library: Installed | None,
    enforcement: Enforcement,
    health: GpusHealth,
    isolation: Isolation,
) -> Plugins | None:
    if settings.plugin is None or early is None or client is None or library is None:
        return None
    return Plugins(
        settings.plugin,
        early,
        client,
        server,
        driver,
        library,
        enforcement.refuse,
        health,
        isolation,
    )


def _profiler(
    settings: Settings, plugins: Plugins | None, server: VgpuServer, driver: GpuDriver
) -> PodProfiler | None:
    """Who profiles pods: without their names, from the API server, nobody."""
    if plugins is None:
        return None
    return PodProfiler(
        settings.node,
        server.proc,
        plugins.pods.by_group,
        KeptUsage(settings.usage_folder or settings.folder / "usage"),
        containers=server.containers.values,
        holders=lambda: [*plugins.holders(), *plugins.mig.holders()],
        inventory=lambda: driver.inventory,
        dcgm=DcgmSource(settings.dcgm_exporter) if settings.dcgm_exporter else None,
        every=settings.sample_every,
        page=_page(settings, server),
    )


def _page(settings: Settings, server: VgpuServer) -> KubeletPage | None:
    if not settings.kubelet_page:
        return None
    folder = None
    if (plugin := settings.plugin) is not None:
        folder = driver_root.seen(plugin.driver.root, plugin.kubelet)
    return KubeletPage(settings.kubelet_page, server.proc, settings.kubelet_token, folder)


def _workloads(
    settings: Settings,
    client: Client,
    profiler: PodProfiler,
    plugins: Plugins,
    server: VgpuServer,
    load: GpusLoad,
) -> Workloads:
    root = settings.plugin.driver.root if settings.plugin is not None else Path("/")
    logs = TrainingLogs(ContainerLogs(driver_root.seen(root, settings.pod_logs)))
    return Workloads(
        client,
        profiler,
        plugins.pods.by_group,
        logs,
        calls=PodCalls(server.containers.values),
        silent=settings.no_logs_of,
        idle_for=load.idle_for,
        idle_after=settings.idle_after,
    )


def _of_pods(
    settings: Settings, profiler: PodProfiler | None, server: VgpuServer, driver: GpuDriver
) -> Iterator[Metric]:
    if profiler is not None:
        yield from pod_metrics(profiler)
        yield from gpu_device_metrics(profiler, driver.inventory)
        if settings.legacy_metrics:
            containers = server.containers.values()
            yield from legacy_metrics(profiler, containers, driver.inventory)


def _inventory(
    settings: Settings, client: Client, driver: GpuDriver, health: GpusHealth
) -> InventoryPublisher:
    return InventoryPublisher(
        client,
        settings.node,
        driver,
        soft_factor=settings.soft_factor,
        serves_mig=settings.plugin is not None and settings.plugin.whole != "never",
        problems=lambda: health.unhealthy,
    )


def _told(
    settings: Settings,
    client: Client,
    driver: GpuDriver,
    health: GpusHealth,
    load: GpusLoad,
    profiler: PodProfiler | None,
) -> list[Coroutine[None, None, None]]:
    """What tells the cluster of this node."""
    found = [
        AgentLease(client, settings.node, driver).run(),
        HealthEvents(client, settings.node, health).run(),
        LoadAnnotations(client, settings.node, lambda: driver.gpus, load, profiler).run(),
    ]
    if settings.plugin is not None:
        places = settings.plugin.driver
        found.append(DriverEvents(client, settings.node, driver, places).run())
    return found


async def _tell_node(client: Client, node: str, offer: Offer) -> str:
    try:
        await tell_node(client, node, offer)
    except KubeError as error:
        return str(error)
    return ""


async def _give_mps(isolation: Isolation, settings: Settings, driver: GpuDriver) -> None:
    mib = settings.mps_memory_mib
    if mib:  # it is given to each GPU by its number
        await driver.reopened(0)
    root = settings.plugin.driver.root if settings.plugin is not None else Path("/")
    options = MpsOptions(
        folder=settings.folder / "mps",
        # It comes with the driver, which no image has.
        command=driver_root.command(root, "nvidia-cuda-mps-control"),
        gpus=tuple(gpu.uuid for gpu in driver.gpus),
        percent=settings.mps_percent,
        memory_mib=dict.fromkeys(range(len(driver.gpus)), mib) if mib else {},
    )
    isolation.mps = MpsDaemon(options)


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do something that never ends while the block is run; what breaks it ends the process."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as errors:
        # Of a group of one, as it is nearly always: whoever catches OSError shall see it.
        raise errors.exceptions[0] from None
