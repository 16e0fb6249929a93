"""What is learned of pods as they arrive, and when plugins get to see it."""

import random

import msgspec

from alnair.model import names
from alnair.model.workload import NodeAffinity, PodSpec, Requirement, Term
from alnair.scheduler.plugins.opportunity_cost.workload_mix import (
    FIRST,
    MEMORY,
    Ask,
    MixState,
    WorkloadMix,
    asked,
)
from kit import make

HALF = make.spec(slice_mib=500)
PAIR = make.spec(whole=2)


def feed(mix: WorkloadMix, *specs: PodSpec, start: float = 0.0) -> list[bool]:
    changed = []
    for number, spec in enumerate(specs):
        mix.gather(make.pod(f"p{number}", spec, created=start + number))
        changed.append(mix.learn())
    return changed


def test_the_copy_is_made_at_growing_distances() -> None:
    changed = feed(WorkloadMix(), *[HALF] * 100)
    made = [number for number, new in enumerate(changed, 1) if new]
    assert made == [FIRST, 24, 36, 54, 81]


def test_what_was_read_stays_as_it_was() -> None:
    mix = WorkloadMix()
    feed(mix, *[HALF] * FIRST)
    read = mix.demand
    feed(mix, *[PAIR] * FIRST)
    assert dict(read) == {asked(HALF): FIRST}
    assert dict(mix.demand) == {asked(HALF): FIRST, asked(PAIR): 8}


def test_old_pods_are_forgotten_bit_by_bit() -> None:
    mix = WorkloadMix()
    feed(mix, *[HALF] * 2 * MEMORY)
    feed(mix, *[PAIR] * 4 * MEMORY)
    counts = dict(mix.state().counts)
    assert sum(counts.values()) < 2 * MEMORY
    assert counts[asked(PAIR)] > 4 * counts[asked(HALF)]


def test_at_a_restart_pods_count_in_the_order_of_their_creation() -> None:
    pods = [make.pod(f"p{n}", HALF if n % 3 else PAIR, created=float(n)) for n in range(3 * MEMORY)]
    live, again = WorkloadMix(), WorkloadMix()
    for pod in pods:
        live.gather(pod)
        live.learn()
    random.Random(1).shuffle(pods)
    for pod in pods:
        again.gather(pod)
    assert again.learn()
    assert dict(again.state().counts) == dict(live.state().counts)


def test_a_mix_can_be_saved_and_restored() -> None:
    mix, copy = WorkloadMix(), WorkloadMix()
    feed(mix, *[HALF, PAIR] * 20)
    copy.restore(msgspec.json.decode(msgspec.json.encode(mix.state()), type=MixState))
    assert (copy.demand, copy.state()) == (mix.demand, mix.state())
    assert feed(copy, *[PAIR] * 30, start=100.0) == feed(mix, *[PAIR] * 30, start=100.0)
    assert copy.demand == mix.demand


def model_in(*models: str) -> NodeAffinity:
    requirement = Requirement(names.GPU_MODEL_LABEL, "In", models)
    return NodeAffinity((Term((requirement,)),))


def test_models_are_read_from_the_annotation_the_selector_and_the_affinity() -> None:
    both = make.spec(whole=1, models="A100,T4", affinity=model_in("T4", "P100"))
    assert asked(both).models == ("T4",)
    assert asked(make.spec(whole=1, affinity=model_in("T4", "P100"))).models == ("P100", "T4")
    selected = make.spec(whole=1, selector={names.GPU_MODEL_LABEL: "T4"})
    assert asked(selected).models == ("T4",)
    elsewhere = Term((Requirement("zone", "In", ("a",)),))
    either = NodeAffinity((*(model_in("T4").required or ()), elsewhere))
    assert asked(make.spec(whole=1, affinity=either)).models == (), "any model will do in zone a"


def test_pods_that_no_cluster_could_take_are_not_in_the_mix() -> None:
    mix = WorkloadMix()
    feed(mix, make.spec(slice_mib=8))
    assert mix.state().counts == ()
    feed(mix, *[make.spec(cpu=500)] * FIRST)
    assert dict(mix.demand) == {Ask(500, 100): FIRST}
