"""Host ports and images, as they are read from pods and nodes."""

from typing import Any

import msgspec
import pytest

from alnair.kube.objects import wire
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.model.workload import HostPort, PodSpec


def project(**spec: Any) -> PodSpec:
    raw = {"metadata": {"name": "p"}, "spec": spec}
    return PodProjector()(msgspec.convert(raw, wire.PodWire)).spec


def test_ports_of_containers_and_sidecars_count_and_each_once() -> None:
    def container(*ports: dict[str, Any], **rest: Any) -> dict[str, Any]:
        return {"name": "c", "ports": list(ports), **rest}

    spec = project(
        containers=[
            container({"containerPort": 1, "hostPort": 80}, {"containerPort": 2}),
            container({"containerPort": 3, "hostPort": 80, "protocol": "TCP"}),
        ],
        initContainers=[
            container({"containerPort": 4, "hostPort": 81}),
            container(
                {"containerPort": 5, "hostPort": 82, "protocol": "UDP", "hostIP": "10.0.0.1"},
                restartPolicy="Always",
            ),
        ],
    )
    assert spec.ports == (HostPort(80), HostPort(82, "UDP", "10.0.0.1"))


def test_on_the_hosts_network_every_port_is_one_of_the_host() -> None:
    containers = [{"name": "c", "ports": [{"containerPort": 8080}]}]
    assert project(containers=containers, hostNetwork=True).ports == (HostPort(8080),)
    assert project(containers=containers).ports == ()


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("busybox", "busybox:latest"),
        ("busybox:1", "busybox:1"),
        ("registry:5000/busybox", "registry:5000/busybox:latest"),
        ("a/b@sha256:0", "a/b@sha256:0"),
    ],
)
def test_images_have_a_tag(image: str, name: str) -> None:
    assert project(containers=[{"name": "c", "image": image}]).images == (name,)


def test_images_of_all_containers_and_of_volumes_count_and_containers_are_counted() -> None:
    spec = project(
        containers=[{"name": "a", "image": "x:1"}, {"name": "b", "image": "x:1"}],
        initContainers=[{"name": "c", "image": "w:1"}],
        volumes=[{"name": "v", "image": {"reference": "model:1"}}, {"name": "e", "emptyDir": {}}],
    )
    assert spec.images == ("model:1", "w:1", "x:1", "x:1")
    assert spec.image_containers == 3


def test_nodes_share_the_images_that_they_have() -> None:
    def images(*raw: dict[str, Any]) -> Any:
        node = {"metadata": {"name": "n"}, "status": {"images": list(raw)}}
        return project_node(msgspec.convert(node, wire.NodeWire)).images

    raw = {"names": ["x:1", "x@sha256:0", "x:1"], "sizeBytes": 5}
    (image,) = images(raw, {"sizeBytes": 7})
    assert (image.names, image.size) == (("x:1", "x@sha256:0"), 5)
    assert images(raw)[0] is image
