"""`alnair agent`: what runs on a GPU node."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from alnair.cli.agent.slice_options import DEFAULT_FOLDER, FolderOption
from alnair.cli.failures import expected
from alnair.cli.serving_options import (
    SecureServing,
    TlsCertificate,
    TlsKey,
    certificate_files,
)

if TYPE_CHECKING:
    from alnair.node.kubelet.driver_files import DriverPlaces
    from alnair.processes.agent.settings import Alignment, PluginSettings, WholeGpusMode

#: `CONTEXT_DEFAULT` of `alnair.node.vgpu.pages.abi`, which the help must not import: that is slow.
CONTEXT_DEFAULT_MIB: Final = 512


def agent(
    context: typer.Context,
    folder: FolderOption = DEFAULT_FOLDER,
    metrics: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where to serve metrics; port 0 takes a free one."),
    ] = "127.0.0.1:9464",
    secure_serving: SecureServing = None,
    tls_cert_file: TlsCertificate = None,
    tls_private_key_file: TlsKey = None,
    policy: Annotated[
        Literal["warn", "throttle", "evict"],
        typer.Option(help="What happens to a container that is found beyond its slice."),
    ] = "warn",
    stray_policy: Annotated[
        Literal["", "warn", "evict"],
        typer.Option(
            metavar="[warn|evict]",
            help="What happens to a pod that uses a GPU without having been given any of it; "
            "default as --policy.",
        ),
    ] = "",
    node: Annotated[
        str, typer.Option(metavar="NAME", help="This node; default the host's name.")
    ] = "",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of the cluster that hears of it; default none: log."),
    ] = None,
    in_cluster: Annotated[
        bool, typer.Option("--in-cluster", help="The cluster is the one that this pod runs in.")
    ] = False,
    kubelet: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Serve GPUs and slices to the kubelet of this folder; default none.",
        ),
    ] = None,
    whole_gpus: Annotated[
        Literal["auto", "always", "never"],
        typer.Option(
            help="Serve whole GPUs and MIG devices too; auto: where no other plugin does."
        ),
    ] = "auto",
    topology_policy: Annotated[
        Literal["none", "best-effort", "restricted", "single-numa-node"],
        typer.Option(help="The kubelet's topologyManagerPolicy."),
    ] = "none",
    topology_scope: Annotated[
        Literal["container", "pod"], typer.Option(help="The kubelet's topologyManagerScope.")
    ] = "container",
    driver_root: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Where a container sees the node's root; other paths are the node's.",
        ),
    ] = Path("/"),
    driver_libraries: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The driver's libraries; default the usual folders."),
    ] = None,
    driver_devices: Annotated[
        Path, typer.Option(metavar="DIR", help="The driver's devices, nvidia0 and so on.")
    ] = Path("/dev"),
    driver_capabilities: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the driver tells of MIG instances.")
    ] = Path("/proc/driver/nvidia/capabilities"),
    driver_also: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="A file or folder that GPU programs need; several: repeat it."
        ),
    ] = None,
    sample_every: Annotated[
        float,
        typer.Option(
            min=0.2, max=5.0, metavar="SECONDS", help="How often GPUs are looked at and measured."
        ),
    ] = 1.0,
    mps: Annotated[
        bool, typer.Option("--mps", help="Run an MPS daemon for containers that share SMs.")
    ] = False,
    mps_percent: Annotated[
        int, typer.Option(min=1, max=100, metavar="PERCENT", help="SMs of any MPS client, at most.")
    ] = 100,
    mps_memory: Annotated[
        int,
        typer.Option(min=0, metavar="MIB", help="Memory of any MPS client on each GPU; 0: all."),
    ] = 0,
    context_mib: Annotated[
        int,
        typer.Option(
            min=0,
            max=8192,
            metavar="MIB",
            help="Cost of a CUDA context on each GPU; 0: measured at the first start.",
        ),
    ] = 0,
    no_probe: Annotated[
        bool,
        typer.Option(
            "--no-probe",
            help=f"Do not measure: contexts that are not known cost {CONTEXT_DEFAULT_MIB} MiB.",
        ),
    ] = False,
    soft_factor: Annotated[
        float,
        typer.Option(
            min=1.0,
            max=10.0,
            metavar="FACTOR",
            help="How far soft compute shares may be promised beyond a GPU's time.",
        ),
    ] = 1.0,
    usage_folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where what ended pods used waits to be fetched, best on a disk; "
            "default usage/ in --folder.",
        ),
    ] = None,
    suspend: Annotated[
        bool,
        typer.Option(
            "--suspend",
            help="Suspend slices into the host's memory where pods or people ask for it (driver "
            "570 and newer).",
        ),
    ] = False,
    legacy_metrics: Annotated[
        bool,
        typer.Option("--legacy-metrics", help="Add the metrics of the original Alnair's exporter."),
    ] = False,
    pod_logs: Annotated[
        Path, typer.Option(metavar="DIR", help="The kubelet's logs of pods: they tell progress.")
    ] = Path("/var/log/pods"),
    no_logs_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE", help="Do not read logs of its pods; '*': of none; repeat it."
        ),
    ] = None,
    dcgm_exporter: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Read SM, tensor, DRAM and link activity from this dcgm-exporter where the driver "
            "does not tell them.",
        ),
    ] = "",
    idle_after: Annotated[
        str,
        typer.Option(metavar="SPAN", help="Tell of GPUs that are held and not used for so long."),
    ] = "10m",
    kubelet_page: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where no control groups of pods can be read: the kubelet's page of cAdvisor, "
            "https://127.0.0.1:10250/metrics/cadvisor.",
        ),
    ] = "",
    kubelet_token: Annotated[
        Path, typer.Option(metavar="FILE", help="The token for it; with ca.crt beside.")
    ] = Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
    stand_by: Annotated[
        bool,
        typer.Option(
            "--stand-by",
            help="Where another agent serves the folder, wait for its end, and go on in its place.",
        ),
    ] = False,
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="Log lines, or JSON objects.")
    ] = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve the slices of this node's GPUs to its containers. Needs root.

    It tells each container its limits, lets in only processes that the kernel says are of it, keeps
    account of what they use, and finds those that use more than theirs. Stopped and started again,
    or killed, it takes over the containers that run.

    Examples:
      alnair agent
      alnair agent --policy evict --node gpu-7 --kubeconfig agent.kubeconfig
      alnair agent --kubelet /var/lib/kubelet --in-cluster --policy evict
      alnair agent --mps --mps-percent 50
      alnair agent status
    """
    if context.invoked_subcommand:
        _check_folder(context.invoked_subcommand, folder)
        return
    import asyncio
    import platform

    from alnair.processes.agent.settings import Alignment, Settings
    from alnair.processes.agent.start import expected_errors, serve
    from alnair.serving import logs

    host, port = _address(metrics)
    has_cluster = kubeconfig is not None or in_cluster
    alignment = Alignment(topology_policy, topology_scope)
    _check_cluster(kubelet, has_cluster, alignment != Alignment(), bool(secure_serving))
    logs.set_up(log_format, "debug" if verbose else "info")
    node = node or platform.node()
    found = driver_libraries, driver_devices, driver_also, driver_capabilities, driver_root
    settings = Settings(
        folder=folder,
        host=host,
        port=port,
        secure=bool(secure_serving),
        certificate=certificate_files(bool(secure_serving), tls_cert_file, tls_private_key_file),
        policy=policy,
        stray_policy=stray_policy,
        node=node,
        kubeconfig=kubeconfig,
        in_cluster=in_cluster,
        sample_every=sample_every,
        mps=mps,
        mps_percent=mps_percent,
        mps_memory_mib=mps_memory,
        suspends=suspend,
        context_mib=context_mib,
        probes=not no_probe,
        plugin=_plugin(kubelet, node, found, whole_gpus, alignment),
        soft_factor=soft_factor,
        usage_folder=usage_folder,
        dcgm_exporter=_url(dcgm_exporter),
        legacy_metrics=legacy_metrics,
        pod_logs=pod_logs.absolute(),
        no_logs_of=tuple(no_logs_of or ()),
        idle_after=_span(idle_after, "--idle-after"),
        kubelet_page=_page(kubelet_page),
        kubelet_token=kubelet_token.absolute(),
        stands_by=stand_by,
    )
    try:
        asyncio.run(serve(settings))
    except Exception:
        # Named only now: to import them takes as long as the start.
        with expected(*expected_errors(), prefix="error: "):
            raise


def _check_folder(verb: str, folder: Path) -> None:
    """Raise where a folder is said before the verb that shall use it."""
    if folder != DEFAULT_FOLDER:
        raise typer.BadParameter(
            f"give it after the command: alnair agent {verb} ...", param_hint="--folder"
        )


def _span(text: str, option: str) -> float:
    from alnair.model import durations

    try:
        return durations.seconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _plugin(
    kubelet: Path | None,
    node: str,
    found: tuple[Path | None, Path, Sequence[Path] | None, Path, Path],
    whole: "WholeGpusMode",
    alignment: "Alignment",
) -> "PluginSettings | None":
    if kubelet is None:
        return None
    from alnair.processes.agent.settings import PluginSettings

    return PluginSettings(node, kubelet, _places(*found), whole, alignment)


def _places(
    libraries: Path | None,
    devices: Path,
    also: Sequence[Path] | None,
    capabilities: Path,
    root: Path,
) -> "DriverPlaces":
    from alnair.node.kubelet.driver_files import DriverPlaces

    return DriverPlaces(
        libraries.absolute() if libraries else None,
        devices.absolute(),
        tuple(path.absolute() for path in also or ()),
        capabilities.absolute(),
        root.absolute(),
    )


def _address(text: str) -> tuple[str, int]:
    """Return host and port."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--metrics")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _url(text: str) -> str:
    """Return it, if it can be one of dcgm-exporter's metrics."""
    from urllib.parse import urlsplit

    with contextlib.suppress(ValueError):
        found = urlsplit(text)
        if not text or (found.scheme in ("http", "https") and found.hostname and found.port != 0):
            return text
    raise typer.BadParameter(
        f"{text!r} is no URL: give one such as http://dcgm-exporter.gpu-operator:9400/metrics",
        param_hint="--dcgm-exporter",
    )


def _page(url: str) -> str:
    if url and not url.startswith("https://"):
        raise typer.BadParameter(
            f"{url!r} does not begin with https://: the agent's token must not be read by others",
            param_hint="--kubelet-page",
        )
    return url


def _check_cluster(kubelet: Path | None, has_cluster: bool, aligns: bool, secure: bool) -> None:
    """Raise where options miss what they are about."""
    if secure and not has_cluster:
        raise typer.BadParameter(
            "the cluster is asked who may read: add --kubeconfig FILE or --in-cluster",
            param_hint="--secure-serving",
        )
    if kubelet is not None and not has_cluster:
        raise typer.BadParameter(
            "the plugin reads the pods of its node: add --kubeconfig FILE or --in-cluster",
            param_hint="--kubelet",
        )
    if kubelet is None and aligns:
        raise typer.BadParameter(
            "it is what a kubelet does: add --kubelet DIR", param_hint="--topology-policy"
        )
