"""Why jobs wait is asked now and then, and told when it is news."""

from alnair.processes.controller.elastic.waiting import WaitingJobs
from alnair.scheduler.advice.why_no_room import NoRoom
from alnair.scheduler.engine.view import View
from kit import make
from kit.world import World

KEY = ("ElasticTorchJob", "team", "a")


def one_node() -> View:
    """A node with four GPUs."""
    world = World(make.node("a", gpus=4))
    world.step()
    return world.engine.view


def test_why_a_job_waits_is_told_once_and_forgotten_when_it_waits_no_more() -> None:
    view = one_node()
    jobs = WaitingJobs()
    waiting = [(KEY, make.pod("w", make.spec(whole=5)), 1)]
    assert jobs.ask(view, waiting, 1000.0) == [KEY]
    assert jobs.why(KEY).never
    # What is asked again within the minute, and found the same after it, is no news.
    assert jobs.ask(view, [(KEY, make.pod("w", make.spec(whole=1)), 1)], 1059.0) == []
    assert jobs.ask(view, waiting, 1060.0) == []
    assert jobs.ask(view, [(KEY, make.pod("w", make.spec(whole=1)), 1)], 1120.0) == [KEY]
    assert jobs.ask(view, [], 1121.0) == []
    assert jobs.why(KEY) == NoRoom()


def test_many_that_wait_are_asked_about_a_few_at_a_time() -> None:
    view = one_node()
    pod, jobs = make.pod("w", make.spec(whole=5)), WaitingJobs()
    many = [(("ElasticTorchJob", "team", f"j{n}"), pod, 1) for n in range(40)]
    found = [len(jobs.ask(view, many, 1000.0 + n)) for n in range(4)]
    assert sum(found) == 40
    assert max(found) < 40
