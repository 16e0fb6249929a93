"""Does the kubelet listen where the agent asks it?"""

import socket
from pathlib import Path
from typing import Final

from alnair.doctor.finding import Finding, error, ok
from alnair.doctor.node.look import NodeLook

#: Socket → what it is for.
_SOCKETS: Final = {
    "device-plugins/kubelet.sock": "device plugins register there",
    "pod-resources/kubelet.sock": "it says which container holds which devices",
}
#: Seconds for an answer.
_PATIENCE: Final = 5.0


def sockets(look: NodeLook) -> list[Finding]:
    """The kubelet answers on its sockets for device plugins and pod resources."""
    return [_judged(look.kubelet / name, purpose) for name, purpose in _SOCKETS.items()]


def _judged(path: Path, purpose: str) -> Finding:
    fix = "systemctl status kubelet  # elsewhere: alnair doctor --node --kubelet DIR"
    if not path.is_socket():
        return error(f"no socket of the kubelet is there: {purpose}", str(path), fix=fix)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_PATIENCE)
        try:
            client.connect(str(path))
        except OSError as problem:
            text = f"the kubelet does not answer ({problem}): {purpose}"
            return error(text, str(path), fix="systemctl restart kubelet")
    return ok(f"the kubelet listens: {purpose}", str(path))
