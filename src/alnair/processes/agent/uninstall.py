"""What the agent's pod leaves on its node when Alnair is uninstalled: nothing, if no slice runs.

A pod is not told why it ends. Where its DaemonSet is there, it is an upgrade, and whoever comes
next goes on with the files. Rights go with the DaemonSet, so who may not look knows as much.
"""

import contextlib
import logging
import shutil
from pathlib import Path

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, KubeError, NotFound, Unauthorized
from alnair.kube.resources import DAEMON_SETS
from alnair.model import names
from alnair.node.vgpu.server import VgpuServer
from alnair.processes.agent.settings import PluginSettings

_log = logging.getLogger(__name__)


async def clean_up(client: Client, server: VgpuServer, plugin: PluginSettings | None) -> None:
    """Remove the agent's files, if its DaemonSet is gone and no container has a slice."""
    if not await _is_uninstalled(client):
        return
    if server.containers or server.damaged:
        _log.info("%s stays: containers run by what is in it", server.folder)
        return
    _log.info("uninstalled: removing %s", server.folder)
    shutil.rmtree(server.folder, ignore_errors=True)
    if plugin is not None:
        for note in (plugin.kubelet / "device-plugins").glob("alnair-*.served"):
            _remove(note)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


async def _is_uninstalled(client: Client) -> bool:
    try:
        found = await client.get(DAEMON_SETS, names.AGENT, names.NAMESPACE)
    except (NotFound, Forbidden, Unauthorized):
        return True
    except KubeError:
        return False  # nobody can say: what is left does no harm
    return bool(found["metadata"].get("deletionTimestamp"))
