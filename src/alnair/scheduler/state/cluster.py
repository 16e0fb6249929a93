"""The cluster as plugins read it: columns of nodes, the GPUs, pods on nodes, further objects."""

import msgspec

from alnair.scheduler.state.gpus.devices import Devices
from alnair.scheduler.state.gpus.gpu_loads import Loads
from alnair.scheduler.state.gpus.gpu_neighbours import Neighbours
from alnair.scheduler.state.nodes.columns import Columns
from alnair.scheduler.state.nodes.node_images import NodeImages
from alnair.scheduler.state.numa.numa_zones import Zones
from alnair.scheduler.state.objects.api_objects import Objects
from alnair.scheduler.state.objects.volume_index import VolumeIndex
from alnair.scheduler.state.observations import Observations
from alnair.scheduler.state.pods.host_ports import HostPorts
from alnair.scheduler.state.pods.pod_index import PodIndex


class Cluster(msgspec.Struct, frozen=True):
    """What plugins read of nodes and of pods on them.

    `objects` are those of other kinds; `observations` is what plugins themselves have learned.
    """

    columns: Columns
    devices: Devices
    zones: Zones
    loads: Loads
    neighbours: Neighbours
    pods: PodIndex
    volumes: VolumeIndex
    objects: Objects
    ports: HostPorts
    images: NodeImages
    observations: Observations
