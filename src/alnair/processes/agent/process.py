"""The agent's process: everything that runs on a GPU node, started together, ended together."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.model import names
from alnair.node import driver_root
from alnair.node.gpu_driver import GpuDriver
from alnair.node.gpu_looks import GpuLooks
from alnair.node.health import GpusHealth
from alnair.node.isolation import Isolation
from alnair.node.kubelet.driver_files import DriverPlaces
from alnair.node.load import GpusLoad
from alnair.node.mps import MpsDaemon, MpsOptions
from alnair.node.vgpu import installed_library
from alnair.node.vgpu.context_costs import ContextCosts
from alnair.node.vgpu.driver_mappings import DriverMappings, file_id
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.installed_library import Installed
from alnair.node.vgpu.server import VgpuServer
from alnair.node.vgpu.stray_processes import StrayProcesses
from alnair.processes.agent import uninstall
from alnair.processes.agent.admin_socket import Admin
from alnair.processes.agent.agent_lease import AgentLease
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
from alnair.processes.agent.metrics import metrics
from alnair.processes.agent.node_label import tell_node
from alnair.processes.agent.plugin_metrics import plugin_metrics
from alnair.processes.agent.settings import Settings
from alnair.serving.server import Secured, Server
from alnair.sharing.strays import StrayPolicy, stray_policy
from alnair.sharing.tiers import Offer
from alnair.sharing.violations import Policy

#: Seconds for which the driver is waited for at the start: one that hangs keeps nothing else.
_FIRST_LOOK: Final = 10.0

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def agent(settings: Settings, early: EarlyPlugins | None = None) -> AsyncIterator[str]:
    """Be the agent; yields the URL of its metrics.

    Args:
        settings: What it was told.
        early: Serves the kubelet, perhaps already; None: no kubelet.

    Raises:
        OSError: The folder cannot be used.
        ServeError: The address of the metrics is taken.
    """
    async with contextlib.AsyncExitStack() as stack:

        async def beside(work: Coroutine[None, None, None]) -> None:
            await stack.enter_async_context(_beside(work))

        server = await stack.enter_async_context(VgpuServer(settings.folder))
        client = await _client(settings, stack)
        if settings.in_cluster and client is not None:
            stack.push_async_callback(uninstall.clean_up, client, server, settings.plugin)
        enforcement = Enforcement(client, settings.node)
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
        if client is not None:
            for work in _told(settings, client, driver, health, load):
                await beside(work)
        await beside(GpuLooks(driver, (health.take, load.take)).run())
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
        inspection = Inspection(
            server, driver, policy, enforcement.tell, strays=strays, mappings=mappings
        )
        await beside(_inspect(inspection, driver))
        costs = ContextCosts(server, given_mib=settings.context_mib, probes=settings.probes)
        await beside(costs.follow(driver))
        if settings.mps:
            isolation.mps_missing = "the GPUs are not known yet"
            await beside(_give_mps(isolation, settings, driver))
        await beside(isolation.run())
        figures = partial(metrics, server, driver, inspection, enforcement, isolation, costs)
        http = Server(
            application(
                lambda: chain(figures(), gpu_metrics(health, load), plugin_metrics(served))
            ),
            settings.host,
            settings.port,
            Secured(client, settings.certificate) if settings.secure and client else None,
        )
        await stack.enter_async_context(http)
        admin = Admin(settings.folder / "admin.sock", server, driver, isolation, costs)
        await stack.enter_async_context(admin)
        yield http.url


async def _client(settings: Settings, stack: contextlib.AsyncExitStack) -> Client | None:
    if settings.in_cluster:
        found = client_config.in_cluster()
    elif settings.kubeconfig is not None:
        found = client_config.load(settings.kubeconfig)
    else:
        return None
    return await stack.enter_async_context(Client(found, user_agent=names.AGENT))


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


def _told(
    settings: Settings, client: Client, driver: GpuDriver, health: GpusHealth, load: GpusLoad
) -> list[Coroutine[None, None, None]]:
    """What tells the cluster of this node."""
    inventory = InventoryPublisher(
        client,
        settings.node,
        driver,
        soft_factor=settings.soft_factor,
        serves_mig=settings.plugin is not None and settings.plugin.whole != "never",
        problems=lambda: health.unhealthy,
    )
    found = [
        inventory.run(),
        AgentLease(client, settings.node, driver).run(),
        HealthEvents(client, settings.node, health).run(),
        LoadAnnotations(client, settings.node, lambda: driver.gpus, load).run(),
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


async def _inspect(inspection: Inspection, driver: GpuDriver) -> None:
    await driver.reopened(0)
    await inspection.run()


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
