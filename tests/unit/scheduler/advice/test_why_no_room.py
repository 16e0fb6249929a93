"""Why workers that nobody has made yet find no room, and whether they ever will."""

from alnair.model.workload import Pod
from alnair.scheduler.advice.why_no_room import NoRoom, why_no_room
from kit import make
from kit.world import World


def world() -> World:
    """Two nodes with four GPUs each, of which one is taken on the first."""
    made = World(make.node("a", gpus=4), make.node("b", gpus=4))
    made.create(make.pod("other", make.spec(whole=1)))
    made.step()
    return made


def why(worker: Pod, count: int) -> NoRoom:
    """The answer, which is the same when asked again: nothing stays on the books."""
    cluster = world()
    found = why_no_room(cluster.engine.view, worker, count, cluster.now)
    assert why_no_room(cluster.engine.view, worker, count, cluster.now) == found
    return found


def test_what_fits_has_no_reason() -> None:
    assert why(make.pod("w", make.spec(whole=2)), 3) == NoRoom()


def test_how_many_would_fit_is_told_with_what_the_next_one_lacks() -> None:
    found = why(make.pod("w", make.spec(whole=2)), 4)
    assert found.words.startswith("3 of 4 would fit, and then: 0/2 nodes are available: ")
    assert not found.never


def test_more_gpus_than_any_node_has_never_fit() -> None:
    found = why(make.pod("w", make.spec(whole=5)), 1)
    assert found.never
    assert "0/2 nodes are available" in found.words


def test_a_model_that_no_node_has_never_fits() -> None:
    found = why(make.pod("w", make.spec(whole=1, models="H200")), 1)
    assert found.never
    assert "no GPU of an accepted model" in found.words
