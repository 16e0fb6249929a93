"""Is containerd told of devices by CDI, and are the files for it where it looks?"""

import os
import tomllib
from pathlib import Path
from typing import Any, Final

from alnair.doctor.finding import Finding, error, ok, warning
from alnair.doctor.node.look import NodeLook
from alnair.node.kubelet import cdi

_CONFIGURATION: Final = Path("/etc/containerd/config.toml")
#: Of containerd 2, and of 1.7.
_PLUGINS: Final = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")
#: Where containerd looks if it is not told.
_FOLDERS: Final = ("/etc/cdi", "/var/run/cdi")
_RESTART: Final = "systemctl restart containerd"


def container_devices(look: NodeLook) -> list[Finding]:
    """Containerd takes CDI devices, and the folder of their files can be written and read."""
    return [_configured(look), _folder()]


def _configured(look: NodeLook) -> Finding:
    where = str(_CONFIGURATION)
    text = look.read(_CONFIGURATION)
    if text is None:
        return ok("no configuration of containerd here: containerd 2 takes CDI by default", where)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        return error(f"it cannot be read: {problem}", where, fix="containerd config dump")
    version, settings = found.get("version", 1), _settings(found)
    if settings.get("enable_cdi") is False:
        fix = f"sed -i 's/enable_cdi = false/enable_cdi = true/' {where} && {_RESTART}"
        return error("enable_cdi = false: containers get no GPU", where, fix=fix)
    # containerd 2 writes version 3; 1.7, which reads 2 at most, has CDI off unless it is said.
    if version < 3 and "enable_cdi" not in settings:
        text = "enable_cdi is not said, which containerd 1.7 takes for false (2.0: true)"
        return warning(text, where, fix=f"containerd config dump | grep cdi; {_RESTART}")
    folders = settings.get("cdi_spec_dirs", list(_FOLDERS))
    if not {str(cdi.FOLDER), f"/var{cdi.FOLDER}"} & set(folders):
        text = f"cdi_spec_dirs is {folders}, and lacks {cdi.FOLDER}, where the agent writes"
        return error(text, where, fix=f"containerd config dump | grep cdi_spec_dirs; {_RESTART}")
    return ok("containerd takes CDI devices", where)


def _settings(found: dict[str, Any]) -> dict[str, Any]:
    plugins = found.get("plugins", {})
    return next((plugins[name] for name in _PLUGINS if name in plugins), {})


def _folder() -> Finding:
    where, fix = str(cdi.FOLDER), f"mkdir --parents --mode 755 {cdi.FOLDER}"
    if not cdi.FOLDER.is_dir():
        return warning("the folder is not there; the agent makes it", where, fix=fix)
    if not os.access(cdi.FOLDER, os.W_OK | os.R_OK | os.X_OK):
        return error("the folder cannot be written: run this as root", where, fix=fix)
    return ok("the folder can be written and read", where)
