"""The kinds that say which pods belong together: default spread constraints read them."""

from collections.abc import Callable
from typing import Any, Final

from alnair.kube import peers, resources
from alnair.kube.resources import Resource

#: Where they are, with their narrow type, and their projector.
PEERS: Final[tuple[tuple[Resource[Any], Callable[[Any], Any]], ...]] = (
    (resources.SERVICES.typed(peers.MapSelecting), peers.project_map_selecting),
    (resources.REPLICATION_CONTROLLERS.typed(peers.MapSelecting), peers.project_map_selecting),
    (resources.REPLICA_SETS.typed(peers.Selecting), peers.project_selecting),
    (resources.STATEFUL_SETS.typed(peers.Selecting), peers.project_selecting),
)
