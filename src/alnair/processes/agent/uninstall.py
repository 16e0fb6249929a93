"""What the agent's pod leaves on its node when Alnair is uninstalled: nothing, if no slice runs.

A pod is not told why it ends. Where its DaemonSet is there, it is an upgrade, and whoever comes
next goes on with the files. Rights go with the DaemonSet, so who may not look knows as much.
"""

import contextlib
import logging
import shutil
from pathlib import Path
from typing import Final

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, KubeError, NotFound, Unauthorized
from alnair.kube.resources import DAEMON_SETS
from alnair.model import names
from alnair.node.vgpu.server import VgpuServer
from alnair.processes.agent.settings import PluginSettings

#: The folder of ours in /run, and in /var/lib.
_OURS: Final = "alnair"
#: A pod with the node's process ids sees its first process, whose files are the node's.
HOST: Final = Path("/proc/1/root")

_log = logging.getLogger(__name__)


async def clean_up(
    client: Client,
    server: VgpuServer,
    plugin: PluginSettings | None,
    usage: Path | None = None,
    host: Path = HOST,
) -> None:
    """Remove the agent's files, if its DaemonSet is gone and no container has a slice.

    Args:
        client: As the agent.
        server: Has been told to end.
        plugin: Of the kubelet; None: it is not served.
        usage: Where figures of ended pods are; None: in the server's folder.
        host: The node's files, where the pod's own mounts do not lie over them.
    """
    if not await _is_uninstalled(client):
        return
    if server.containers or server.damaged:
        _log.info("%s stays: containers run by what is in it", server.folder)
        return
    _log.info("uninstalled: removing %s", server.folder)
    for folder in filter(None, (server.folder, usage)):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.name == _OURS:
            _remove_empty(host / folder.parent.relative_to("/"))
    if plugin is not None:
        for note in (plugin.kubelet / "device-plugins").glob("alnair-*.served"):
            _remove(note)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _remove_empty(folder: Path) -> None:
    """Remove what the kubelet made to mount it, if there is nothing else in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


async def _is_uninstalled(client: Client) -> bool:
    try:
        found = await client.get(DAEMON_SETS, names.AGENT, names.NAMESPACE)
    except (NotFound, Forbidden, Unauthorized):
        return True
    except KubeError:
        return False  # nobody can say: what is left does no harm
    return bool(found["metadata"].get("deletionTimestamp"))
