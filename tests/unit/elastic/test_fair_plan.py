"""How many workers jobs are given: by example, and by what must hold of random clusters."""

import random
from typing import Any

import msgspec
import pytest

from alnair.elastic.fair_plan import PlanOptions, plan
from alnair.model.elastic_plan import Claim, Cluster, ElasticDemand, Plan
from kit.elastic_rooms import NodesRoom, one_pool

NOW = 10_000.0


def job(key: str, least: int = 1, wish: int = 8, size: int = 0, **more: Any) -> ElasticDemand:
    """A job; if it has a size, its workers run for long."""
    given: dict[str, Any] = {"placed": size, "started": size > 0} | more
    return ElasticDemand(key=key, least=least, wish=wish, size=size, **given)


def planned(gpus: int, *jobs: ElasticDemand, claims: dict[str, int] | None = None) -> Plan:
    claims = claims or {}
    room = one_pool(gpus, list(jobs), **claims)
    waiting = [Claim(key=key, created=NOW - 1) for key in claims]
    return plan(jobs, Cluster(room, waiting), NOW)


# --- by example -----------------------------------------------------------------------------------


def test_the_originals_contract_a_job_of_2_to_5_on_8_gpus_gets_5() -> None:
    assert planned(8, job("one", 2, 5)).sizes == {"one": 5}


def test_a_job_gets_what_there_is_and_grows_when_more_is_free() -> None:
    assert planned(3, job("one", 2, 5)).sizes == {"one": 3}
    assert planned(8, job("one", 2, 5, size=3)).sizes == {"one": 5}


def test_free_gpus_are_shared_by_all_that_want_some() -> None:
    assert planned(9, *(job(key) for key in "abc")).sizes == {"a": 3, "b": 3, "c": 3}
    wide = job("wide", gpus=2)
    assert planned(9, wide, job("b")).sizes == {"wide": 2, "b": 5}


def test_a_job_that_waits_takes_no_more_from_others_than_it_needs() -> None:
    made = planned(8, job("old", 1, 8, size=8, resized=NOW - 1), job("new", 2, 4))
    assert made.sizes == {"old": 6, "new": 2}
    assert [(c.key, c.reason) for c in made.changes] == [
        ("new", "Admitted"),
        ("old", "RoomForOthers"),
    ]


def test_nobody_shrinks_for_what_does_not_fit_all_the_same() -> None:
    made = planned(8, job("old", 6, 8, size=8, resized=NOW - 1), job("new", 4, 4))
    assert (made.sizes, made.changes) == ({"old": 8, "new": 0}, ())


def test_other_pods_are_let_in_before_jobs_grow() -> None:
    made = planned(8, job("old", 1, 8, size=7, resized=NOW - 1), claims={"pod": 4})
    assert made.sizes == {"old": 4}
    assert planned(8, job("old", 1, 8, size=4), claims={"pod": 4}).changes == ()


def test_a_job_of_higher_priority_is_not_shrunk_for_one_of_lower() -> None:
    high = job("high", 1, 8, size=8, priority=10)
    assert planned(8, high, job("low", 1, 8)).sizes == {"high": 8, "low": 0}
    low = job("low", 1, 8, size=8)
    assert planned(8, low, job("high", 1, 8, priority=10)).sizes == {"high": 7, "low": 1}


def test_of_equal_jobs_who_came_first_is_let_in_first() -> None:
    late, early = job("a", 4, 4, created=2.0), job("b", 4, 4, created=1.0)
    assert planned(5, late, early).sizes == {"a": 0, "b": 4}


def test_a_rich_job_gives_to_a_poor_one_and_not_right_after_a_resize() -> None:
    rich, poor = job("rich", size=7), job("poor", size=1)
    assert planned(8, rich, poor).sizes == {"rich": 4, "poor": 4}
    fresh = msgspec.structs.replace(rich, resized=NOW - 10)
    made = planned(8, fresh, poor)
    assert (made.changes, made.again) == ((), NOW + 20)


def test_a_running_job_waits_before_it_grows_again_unless_its_user_asked() -> None:
    fresh = job("one", size=2, resized=NOW - 10)
    made = planned(8, fresh)
    assert (made.changes, made.again) == ((), NOW + 20)
    assert planned(8, msgspec.structs.replace(fresh, eager=True)).sizes == {"one": 8}


def test_a_job_that_shall_not_grow_keeps_what_it_began_with() -> None:
    assert planned(8, job("one", 2, 8, size=2, grows=False)).changes == ()


def test_the_users_bounds_hold_at_once() -> None:
    made = planned(8, job("one", 1, 3, size=6, resized=NOW))
    assert [(c.before, c.after, c.reason) for c in made.changes] == [(6, 3, "LessWanted")]
    assert planned(8, job("one", 4, 4, size=2, resized=NOW)).sizes == {"one": 4}


def test_a_gang_that_fits_nowhere_has_one_worker_less_each_time() -> None:
    stuck = ElasticDemand(key="one", least=2, wish=8, size=6, unschedulable=True, resized=NOW - 9)
    made = planned(3, stuck)
    assert [(c.after, c.reason) for c in made.changes] == [(5, "Unschedulable")]
    least = msgspec.structs.replace(stuck, size=2)
    assert planned(1, least).sizes == {"one": 2}, "never below its least"


def test_the_schedulers_word_counts_for_more_than_the_room() -> None:
    stuck = ElasticDemand(key="one", least=2, wish=8, size=6, unschedulable=True, resized=NOW - 29)
    assert planned(8, stuck).changes == ()
    made = planned(8, msgspec.structs.replace(stuck, resized=NOW - 30))
    assert made.sizes == {"one": 5}, "and it does not grow again in the same plan"


def test_the_room_of_a_lost_worker_is_not_given_to_others() -> None:
    lost, other = job("lost", 1, 4, size=4, placed=3), job("other", 1, 8, size=3)
    assert planned(7, lost, other).changes == ()
    assert planned(8, lost, other).sizes == {"lost": 4, "other": 4}


def test_a_slow_pull_is_no_reason_to_shrink() -> None:
    pulling = ElasticDemand(key="one", least=2, wish=6, size=6, placed=6, started=True)
    assert planned(6, pulling).changes == ()
    waiting = ElasticDemand(key="one", least=2, wish=6, size=6, placed=0, resized=NOW - 999)
    assert planned(3, waiting).changes == (), "the scheduler has not said that it fits nowhere"


def test_a_lost_worker_keeps_its_place_while_there_is_room_for_another() -> None:
    lost = job("one", 2, 4, size=4, placed=3)
    assert planned(4, lost).changes == ()
    made = planned(3, msgspec.structs.replace(lost, unschedulable=True))
    assert made.sizes == {"one": 3}


def test_what_leaves_is_not_asked_to_leave_again() -> None:
    leaving = job("old", 1, 8, size=6, placed=8, resized=NOW - 1)
    new = job("new", 2, 2, size=2, placed=0, started=False, resized=NOW - 1)
    assert planned(8, leaving, new).changes == ()


def test_whole_nodes_decide_and_not_sums() -> None:
    """Four free GPUs on four nodes are no place for a worker of four."""
    wide = job("wide", 1, 1, gpus=4)
    room = NodesRoom(dict.fromkeys("abcd", 1), {"wide": 4})
    assert plan([wide], Cluster(room), NOW).sizes == {"wide": 0}


# --- by what must hold ----------------------------------------------------------------------------


class World:
    """A cluster of values that carries plans out at once, with jobs that come and go."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.nodes = {f"n{i}": self.draw.choice([2, 4, 8]) for i in range(self.draw.randint(1, 6))}
        self.jobs: dict[str, ElasticDemand] = {}
        self.there: dict[str, list[str]] = {}
        self.claims: dict[str, tuple[Claim, int]] = {}
        self.held: dict[str, str] = {}
        self.now = NOW

    def room(self) -> NodesRoom:
        sizes = {key: int(one.gpus) for key, one in self.jobs.items()}
        sizes |= {key: gpus for key, (_, gpus) in self.claims.items()}
        free = dict(self.nodes)
        for key, nodes in self.there.items():
            for node in nodes:
                free[node] -= sizes[key]
        for key, node in self.held.items():
            free[node] -= sizes[key]
        return NodesRoom(free, sizes, self.there)

    def step(self) -> Plan:
        """Plan, carry it out, and let the scheduler place what fits."""
        waiting = [c for key, (c, _) in self.claims.items() if key not in self.held]
        made = plan(list(self.jobs.values()), Cluster(self.room(), waiting), self.now)
        for change in made.changes:
            one = self.jobs[change.key]
            assert one.least <= change.after <= max(one.wish, one.least)
            self.jobs[change.key] = msgspec.structs.replace(
                one, size=change.after, resized=self.now, eager=False
            )
        self._schedule()
        return made

    def _schedule(self) -> None:
        for key, one in self.jobs.items():
            del self.there.setdefault(key, [])[one.size :]
        room = self.room()
        for key in [key for key in self.claims if key not in self.held]:
            if room.place(key, 1):
                self.held[key] = room.there[key][0]
        for key, one in sorted(self.jobs.items(), key=lambda each: -each[1].priority):
            lacks = one.size - len(self.there[key])
            fits = False
            if one.started:
                while lacks and room.place(key, 1):
                    lacks -= 1
                fits = not lacks
            elif lacks:
                fits = room.place(key, lacks)
            self.there[key] = list(room.there.get(key, []))
            placed = len(self.there[key])
            self.jobs[key] = msgspec.structs.replace(
                one,
                placed=placed,
                started=one.started or (one.size > 0 and placed == one.size),
                unschedulable=bool(lacks) and not fits,
            )

    def change(self) -> None:
        """Let something happen."""
        match self.draw.choice(["job", "job", "job", "end", "claim", "gone", "scale", "lost"]):
            case "job":
                least = self.draw.randint(1, 3)
                key = f"j{self.now:g}"
                self.jobs[key] = ElasticDemand(
                    key=key,
                    created=self.now,
                    priority=self.draw.choice([0, 0, 10]),
                    least=least,
                    wish=least + self.draw.randint(0, 6),
                    gpus=self.draw.choice([1, 1, 2]),
                    grows=self.draw.random() < 0.9,
                )
            case "end" if self.jobs:
                key = self.draw.choice(list(self.jobs))
                del self.jobs[key]
                self.there.pop(key, None)
            case "claim":
                claim = Claim(key=f"c{self.now:g}", created=self.now, priority=5)
                self.claims[claim.key] = claim, self.draw.randint(1, 4)
            case "gone" if self.claims:
                key = self.draw.choice(list(self.claims))
                del self.claims[key]
                self.held.pop(key, None)
            case "scale" if self.jobs:
                key = self.draw.choice(list(self.jobs))
                one = self.jobs[key]
                wish = one.least + self.draw.randint(0, 6)
                self.jobs[key] = msgspec.structs.replace(one, wish=wish, eager=True)
            case "lost" if any(self.there.values()):
                key = self.draw.choice([key for key, nodes in self.there.items() if nodes])
                self.there[key].pop()
                one = self.jobs[key]
                self.jobs[key] = msgspec.structs.replace(one, placed=one.placed - 1)

    def check(self) -> None:
        """What must always hold."""
        for key, one in self.jobs.items():
            assert not one.size or one.least <= one.size <= one.wish
            assert len(self.there.get(key, [])) <= one.size
        assert min(self.room().free.values()) >= 0, "GPUs are used twice"


@pytest.mark.parametrize("seed", range(150))
def test_plans_keep_all_bounds_and_come_to_rest(seed: int) -> None:
    world = World(seed)
    for _ in range(30):
        world.now += world.draw.choice([1, 5, 60])
        world.change()
        world.step()
        world.check()
    for _ in range(60):
        world.now += 61
        if not world.step().changes:
            break
    else:
        pytest.fail("sizes change without end")
    world.now += 10_000
    assert not world.step().changes, "a fixed point at any later time"
    assert world.step().again is None


@pytest.mark.parametrize("seed", range(60))
def test_in_one_pool_equal_jobs_differ_by_a_worker_at_most(seed: int) -> None:
    """At rest, who wants more has at least as much as anybody else but for one worker each."""
    draw = random.Random(seed)
    world = World(seed)
    world.nodes = {"pool": draw.randint(4, 40)}
    for i in range(draw.randint(2, 8)):
        least = draw.randint(1, 2)
        world.now += draw.choice([1, 100])
        world.jobs[f"j{i}"] = job(
            f"j{i}", least, least + draw.randint(0, 10), created=world.now, gpus=draw.choice([1, 2])
        )
        world.step()
    for _ in range(60):
        world.now += 61
        world.step()
    sizes = [one for one in world.jobs.values() if one.size]
    for poor in sizes:
        for rich in sizes:
            if poor.size < poor.wish and rich.size > rich.least:
                limit = (poor.size + 1) * poor.gpus + max(poor.gpus, rich.gpus)
                assert rich.size * rich.gpus <= limit + rich.gpus - 1
    free = world.room().free["pool"]
    assert not [one for one in sizes if one.size < one.wish and one.gpus <= free]


def test_equal_input_gives_an_equal_plan_in_any_order() -> None:
    jobs = [job(f"j{i}", 1, 5, size=i % 4, created=float(i % 3)) for i in range(12)]
    shuffled = random.Random(1).sample(jobs, len(jobs))
    one, other = (plan(each, Cluster(one_pool(30, jobs)), NOW) for each in (jobs, shuffled))
    assert one == other


def test_a_thousand_jobs_cost_a_few_tries_each() -> None:
    jobs = [job(f"j{i:04}", 1, 8, size=2 + i % 3, created=float(i)) for i in range(1000)]
    room = one_pool(4000, jobs)
    plan(jobs, Cluster(room), NOW, PlanOptions(grow_after=0))
    assert room.asked < 10 * len(jobs)
