"""In which order the containers of a pod start, and which of them keep running.

Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/. What follows from it
for requests is in `alnair.model.pod_requests`.
"""

from collections.abc import Iterator

from alnair.kube.objects import wire


def in_start_order(spec: wire.PodSpecWire) -> Iterator[tuple[wire.Container, bool, bool]]:
    """Yield each container, whether it is an init container, and whether it is a sidecar."""
    for container in spec.init_containers or ():
        yield container, True, container.restart_policy == "Always"
    for container in spec.containers or ():
        yield container, False, False


def running_together(spec: wire.PodSpecWire) -> Iterator[wire.Container]:
    """Yield all that runs at the same time once the pod has started: sidecars and containers."""
    for container, init, sidecar in in_start_order(spec):
        if sidecar or not init:
            yield container
