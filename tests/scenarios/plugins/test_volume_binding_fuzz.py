"""Random claims, volumes, pods, faults and crashes: storage is never given away twice."""

import random
from collections import Counter

import pytest

from alnair.model.action import Action, Bind
from alnair.model.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass, StorageNode
from alnair.scheduler.state.objects import storage_objects
from kit import make
from kit.world import World

NODES = [f"n{i}" for i in range(6)]
LIMIT = 3
WAITS = "WaitForFirstConsumer"


class Chaos:
    """A world with storage in which anything may happen."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(*(make.node(n, cpu=2000) for n in NODES), seed=seed)
        self.made = 0
        for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "csi.x")):
            found = StorageClass(name, provisioner, WAITS)
            self.world.set_object(storage_objects.CLASSES, name, found)
        for node in NODES:
            limits = StorageNode(node, (("csi.x", LIMIT),))
            self.world.set_object(storage_objects.CSI_NODES, node, limits)
        self.world.fault = self._fault

    def _fault(self, action: Action) -> str:
        """Fail some Bindings: before anything was written, or after the storage was bound."""
        if not isinstance(action, Bind) or self.random.random() > 0.2:
            return ""
        if self.random.random() < 0.5:
            for binding in action.claims:
                self.world.bind_claim(binding, action.node)
        return "the answer is no"

    def claims(self) -> dict[str, PersistentVolumeClaim]:
        """Claims by name."""
        return {k[2]: v for k, v in self.world.objects.items() if k[0] == storage_objects.CLAIMS}

    def volumes(self) -> dict[str, PersistentVolume]:
        """Persistent volumes by name."""
        return {k[2]: v for k, v in self.world.objects.items() if k[0] == storage_objects.VOLUMES}

    def happen(self) -> None:
        """Let something happen."""
        here, chance = self.world, self.random
        self.made += 1
        name = f"x{self.made}"
        match chance.randrange(10):
            case 0 | 1:
                node = chance.choice([*NODES, None])
                size = chance.randint(1, 4)
                here.set_object(storage_objects.VOLUMES, name, make.local_volume(name, node, size))
            case 2 | 3 | 4:
                found = make.claim(
                    name,
                    chance.randint(1, 4),
                    storage_class=chance.choice(["local", "made"]),
                    modes=[chance.choice(["ReadWriteOnce", "ReadWriteOncePod"])],
                )
                here.set_object(storage_objects.CLAIMS, name, found, "default")
            case 5 | 6 | 7:
                known = [*self.claims(), "not-there-yet"]
                wanted = chance.sample(known, min(len(known), chance.choice([1, 1, 2])))
                here.create(make.pod(name, make.spec(cpu=500, claims=wanted)))
            case 8 if here.pods:
                here.delete_uid(chance.choice(list(here.pods)))
            case 9:
                here.crash(chance.sample(range(len(here.outbox)), len(here.outbox) // 2))
        here.now += chance.random()
        here.step(deliver=chance.choice([None, 1]))
        while here.outbox and chance.random() < 0.7:
            here.carry_out(chance.randrange(len(here.outbox)))

    def check(self) -> None:
        """Fail if storage is shared that must not be, or out of its pod's reach."""
        every, volumes = self.claims(), self.volumes()
        single: Counter[str] = Counter()
        attached: dict[str, set[str]] = {}
        for pod in (p for p in self.world.pods.values() if p.node):
            for used in pod.spec.volumes:
                claim = every[used.name]
                assert claim.bound, f"{pod.name} runs without its claim {claim.name}"
                volume = volumes[claim.volume]
                assert volume.claim == ("default", claim.name)
                places = [t.labels[0].values[0] for t in volume.nodes or ()]
                assert not places or pod.node in places, f"{pod.name} cannot reach {volume.name}"
                single[claim.name] += "ReadWriteOncePod" in claim.modes
                if volume.disk:
                    attached.setdefault(pod.node, set()).add(volume.name)
        assert max(single.values(), default=0) <= 1, single
        assert all(len(disks) <= LIMIT for disks in attached.values()), attached


@pytest.mark.parametrize("seed", range(6))
def test_storage_is_never_given_away_twice(seed: int) -> None:
    chaos = Chaos(seed)
    for _ in range(150):
        chaos.happen()
        chaos.check()
    chaos.world.fault = lambda action: ""
    chaos.world.settle()
    chaos.check()
    assert chaos.world.placed()
    waiting = [p for p in chaos.world.pods.values() if not p.node]
    # Nobody waits who could run: a new scheduler, which tries everyone, finds nothing to do.
    chaos.world.restart()
    chaos.world.settle()
    assert [p for p in chaos.world.pods.values() if not p.node] == waiting
