"""The agent's process: everything that runs on a GPU node, started together, ended together."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.model import names
from alnair.node.gpu_driver import GpuDriver
from alnair.node.isolation import Isolation
from alnair.node.mps import MpsDaemon, MpsOptions
from alnair.node.vgpu.context_costs import ContextCosts
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.server import VgpuServer
from alnair.processes.agent.admin_socket import Admin
from alnair.processes.agent.endpoints import application
from alnair.processes.agent.enforcement import Enforcement
from alnair.processes.agent.metrics import metrics
from alnair.processes.agent.node_label import tell_node
from alnair.serving.lifecycle import run_until_stopped
from alnair.serving.server import Server
from alnair.sharing.tiers import Offer
from alnair.sharing.violations import Policy

_log = logging.getLogger(__name__)


class Settings(msgspec.Struct, frozen=True):
    """What the process can be told; see the options of the command."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    policy: Literal["warn", "throttle", "evict"] = "warn"
    node: str = ""
    kubeconfig: Path | None = None
    in_cluster: bool = False
    mps: bool = False
    mps_percent: int = 100
    mps_memory_mib: int = 0
    context_mib: int = 0
    probes: bool = True


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; the containers go on by what their pages say.

    Raises:
        OSError: The folder cannot be used.
        ServeError: The address of the metrics is taken.
    """
    await run_until_stopped(_serve(settings))
    _log.info("stopped; containers keep their limits")


async def _serve(settings: Settings) -> None:
    async with _agent(settings) as url:
        # Scripts and tests wait for this line.
        print(f"ready: folder {settings.folder}, metrics {url}/metrics", flush=True)
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def _agent(settings: Settings) -> AsyncIterator[str]:
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(VgpuServer(settings.folder))
        client = None
        if settings.kubeconfig is not None or settings.in_cluster:
            found = (
                client_config.in_cluster()
                if settings.in_cluster
                else client_config.load(settings.kubeconfig)
            )
            client = await stack.enter_async_context(Client(found, user_agent=names.AGENT))
        enforcement = Enforcement(client, settings.node)
        enforcement.take_over(c.assignment.pod for c in server.containers.values())
        await stack.enter_async_context(_beside(enforcement.run()))
        driver = GpuDriver()
        stack.callback(driver.close)
        # What is served first shall know the GPUs, if there is a driver already.
        await driver.look()
        await stack.enter_async_context(_beside(driver.run()))
        inspection = Inspection(server, driver, Policy(settings.policy), enforcement.tell)
        await stack.enter_async_context(_beside(_inspect(inspection, driver)))
        costs = ContextCosts(server, given_mib=settings.context_mib, probes=settings.probes)
        await stack.enter_async_context(_beside(costs.follow(driver)))
        tell = partial(_tell_node, client, settings.node) if client is not None else None
        isolation = Isolation(server, driver=driver, tell=tell)
        if settings.mps:
            isolation.mps_missing = "the GPUs are not known yet"
            await stack.enter_async_context(_beside(_give_mps(isolation, settings, driver)))
        await stack.enter_async_context(_beside(isolation.run()))
        figures = partial(metrics, server, driver, inspection, enforcement, isolation, costs)
        http = Server(application(figures), settings.host, settings.port)
        await stack.enter_async_context(http)
        admin = Admin(settings.folder / "admin.sock", server, driver, isolation, costs)
        await stack.enter_async_context(admin)
        yield http.url


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
    options = MpsOptions(
        folder=settings.folder / "mps",
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
