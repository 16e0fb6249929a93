"""What pods ask of a host beside resources: its ports, and images that it may have already."""

import functools
import sys
from typing import TypedDict

from alnair.kube.objects import wire
from alnair.kube.objects.start_order import running_together
from alnair.model.nodes import Image
from alnair.model.workload import HostPort


class PodImages(TypedDict):
    """The fields of `PodSpec` that tell its images."""

    images: tuple[str, ...]
    image_containers: int


def host_ports(spec: wire.PodSpecWire) -> tuple[HostPort, ...]:
    """Return the host ports of all that runs at the same time, containers and sidecars."""
    found = set()
    for container in running_together(spec):
        for port in container.ports or ():
            # The API server fills in the host port of pods on the host's network; manifests that
            # never met one get the same here.
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number > 0:
                found.add(HostPort(number, port.protocol or "TCP", port.host_ip or "0.0.0.0"))
    return tuple(sorted(found, key=lambda p: (p.port, p.protocol, p.address)))


def pod_images(spec: wire.PodSpecWire) -> PodImages:
    """Return the images of a pod and of its image volumes, and how many containers there are."""
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    names = [c.image for c in containers if c.image]
    names += [v.image.reference for v in spec.volumes or () if v.image and v.image.reference]
    return {
        "images": tuple(sorted(map(tagged, names))),
        "image_containers": len(containers) if names else 0,
    }


def tagged(name: str) -> str:
    """Return the name of an image with its tag, `latest` where there is none."""
    return sys.intern(name if name.rfind(":") > name.rfind("/") else f"{name}:latest")


def node_images(status: wire.NodeStatusWire | None) -> tuple[Image, ...]:
    """Return the images on a node; nodes that have the same one share it."""
    return tuple(
        _image(tuple(image.names), image.size_bytes or 0)
        for image in (status.images if status else None) or ()
        if image.names
    )


@functools.lru_cache(maxsize=50_000)
def _image(names: tuple[str, ...], size: int) -> Image:
    return Image(tuple(map(sys.intern, dict.fromkeys(names))), size)
