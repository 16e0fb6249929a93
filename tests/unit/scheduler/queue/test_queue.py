"""The queue alone: order, back-off, parking and waking, and that nothing is ever forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from alnair.scheduler.queue.queue import LOOKS, Queue
from alnair.scheduler.queue.unit import ClassKey, Place, Unit
from alnair.scheduler.state.accounts import Record
from kit import invariants, make


def unit(name: str, *sort: float, gang: bool = False, cls: str = "a", created: float = 0.0) -> Unit:
    made = Unit(name, gang=gang)
    made.sort = sort or (0.0, created)
    made.pods[name] = Record(make.pod(name))
    return made


def key(cls: str) -> ClassKey:
    return ("scheduler", make.spec(selector={"class": cls}))


def popped(queue: Queue) -> list[str]:
    out = []
    while one := queue.pop():
        out.append(one.key)
    return out


def test_the_smallest_sort_key_goes_first_and_ties_go_to_who_came_first() -> None:
    queue = Queue()
    first, second = unit("first", 0.0, 5.0), unit("second", 0.0, 5.0)
    for one in (first, second, unit("urgent", -10.0, 9.0), unit("older", 0.0, 1.0)):
        queue.activate(one)
    queue.park(first, key("a"), 0.0)
    queue.activate(first)  # coming back does not cost its place
    assert popped(queue) == ["urgent", "older", "first", "second"]


def test_who_backs_off_is_tried_when_its_time_is_over() -> None:
    queue = Queue()
    one = unit("one")
    one.attempts = 2
    queue.back_off(one, 100.0)
    assert queue.next_release() == 102.0
    queue.release(101.9)
    assert queue.pop() is None
    queue.release(102.0)
    assert popped(queue) == ["one"]
    assert queue.next_release() is None


def test_moving_on_leaves_only_one_entry_behind() -> None:
    queue = Queue()
    one = unit("one")
    queue.activate(one)
    queue.back_off(one, 0.0)
    queue.activate(one)
    queue.park(one, key("a"), 0.0)
    queue.activate(one)
    assert len(queue) == queue.count(Place.ACTIVE) == 1
    queue.release(1000.0)
    assert popped(queue) == ["one"]
    assert len(queue) == 0


def test_a_change_wakes_the_first_pod_of_a_class_that_may_fit_and_then_the_next() -> None:
    queue = Queue()
    units = [unit(f"u{i}", 0.0, float(-i)) for i in range(10_000)]
    for one in units:
        queue.park(one, key("a"), 0.0)
    queue.changed()
    assert not queue.wake(0.0, lambda *_: True)
    assert queue.count(Place.ACTIVE) == 1
    for expected in ("u9999", "u9998", "u9997"):
        woken = queue.pop()
        assert woken is not None
        assert woken.key == expected
        queue.wake_next(key("a"))
    failed = queue.pop()
    assert failed is not None
    queue.park(failed, key("a"), 0.0)  # no room any more: the others stay
    assert queue.pop() is None
    assert queue.count(Place.PARKED) == 9997


def test_a_class_that_comes_back_keeps_its_number_unless_another_has_it_now() -> None:
    queue = Queue()
    one, other = unit("one"), unit("other")
    queue.park(one, key("a"), 0.0)
    waiting = one.waiting
    queue.activate(one)
    assert queue.pop() is one
    queue.park(one, key("a"), 0.0)
    assert one.waiting is waiting
    queue.activate(one)
    queue.park(other, key("b"), 0.0)
    queue.park(one, key("a"), 0.0)
    assert waiting is not None
    assert one.waiting is not None
    assert other.waiting is not None
    assert other.waiting.number == waiting.number
    assert one.waiting.number != waiting.number
    assert [w.count for w in (one.waiting, other.waiting)] == [1, 1]


def test_the_next_is_woken_when_the_one_that_was_to_try_goes_away() -> None:
    queue = Queue()
    first, second = unit("first"), unit("second")
    for one in (first, second):
        queue.park(one, key("a"), 0.0)
    queue.changed()
    queue.wake(0.0, lambda *_: True)
    queue.drop(first)
    assert popped(queue) == ["second"]


def test_a_step_looks_at_a_bounded_number_of_classes_and_the_rest_follow() -> None:
    queue = Queue()
    for number in range(1000):
        queue.park(unit(f"u{number}"), key(str(number)), 0.0)
    queue.changed()
    looked: list[ClassKey] = []

    def helps(class_key: ClassKey, _: Unit) -> bool:
        looked.append(class_key)
        return False

    steps = 0
    more = True
    while more:
        before = len(looked)
        more = queue.wake(0.0, helps)
        assert len(looked) - before <= LOOKS
        steps += 1
    assert len(looked) == len(set(looked)) == 1000
    assert steps == -(-1000 // LOOKS)


def test_changes_at_every_step_starve_no_class() -> None:
    queue = Queue()
    for number in range(5 * LOOKS):
        queue.park(unit(f"u{number}"), key(str(number)), 0.0)
    looked = set()

    def helps(class_key: ClassKey, _: Unit) -> bool:
        looked.add(class_key)
        return False

    for _ in range(5):
        queue.changed()
        queue.wake(0.0, helps)
    assert len(looked) == 5 * LOOKS


def test_a_gang_waits_out_its_back_off_when_it_is_woken() -> None:
    queue = Queue()
    gang = unit("gang", gang=True)
    gang.attempts = 3
    queue.park(gang, None, 100.0)
    queue.changed()
    queue.wake(101.0, lambda *_: True)
    assert queue.count(Place.BACKOFF) == 1
    assert queue.next_release() == 104.0
    queue.release(104.0)
    assert popped(queue) == ["gang"]


def test_a_gang_and_lone_pods_of_its_class_do_not_wait_for_each_other() -> None:
    queue = Queue()
    gang, lone = unit("gang", 0.0, 0.0, gang=True), unit("lone", 0.0, 1.0)
    queue.park(gang, key("a"), 0.0)
    queue.park(lone, key("a"), 0.0)
    queue.changed()
    queue.wake(50.0, lambda *_: True)
    assert popped(queue) == ["gang", "lone"]


def test_what_is_held_is_woken_by_no_change() -> None:
    queue = Queue()
    one = unit("one")
    queue.hold(one)
    queue.changed()
    assert not queue.wake(0.0, lambda *_: True)
    assert queue.count(Place.PARKED) == len(queue) == 1
    queue.activate(one)
    assert popped(queue) == ["one"]


class Simulated:
    """Pods of few classes, each of which has so many free places; tried as the engine does."""

    def __init__(self) -> None:
        self.queue = Queue()
        self.units: dict[str, tuple[Unit, str]] = {}
        self.room = dict.fromkeys("abc", 0)
        self.looking = False
        self.now = 0.0

    def add(self, cls: str) -> None:
        one = unit(f"u{len(self.units)}", 0.0, self.now)
        self.units[one.key] = (one, cls)
        self.queue.activate(one)

    def free(self, cls: str) -> None:
        self.room[cls] += 1
        self.looking = True
        self.queue.changed()

    def drop(self, number: int) -> None:
        waiting = [k for k, (u, _) in self.units.items() if u.place is not Place.NOT_QUEUED]
        if waiting:
            self.queue.drop(self.units[waiting[number % len(waiting)]][0])

    def step(self, limit: int) -> None:
        names = {key(c): c for c in "abc"}
        if self.looking:
            self.looking = self.queue.wake(self.now, lambda k, _: self.room[names[k]] > 0)
        for _ in range(limit):
            one = self.queue.pop()
            if one is None:
                return
            cls = self.units[one.key][1]
            if self.room[cls]:
                self.room[cls] -= 1
                self.queue.wake_next(key(cls))
            else:
                self.queue.park(one, key(cls), self.now)


operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abc")),
        st.tuples(st.just("free"), st.sampled_from("abc")),
        st.tuples(st.just("drop"), st.integers(0, 20)),
        st.tuples(st.just("step"), st.integers(0, 3)),
    ),
    max_size=60,
)


@given(operations)
def test_nothing_is_forgotten(done: list[tuple[str, object]]) -> None:
    simulated = Simulated()
    for name, argument in done:
        getattr(simulated, name)(argument)
        simulated.now += 1.0
        invariants.check_parked(simulated.queue, [u for u, _ in simulated.units.values()])
    for _ in range(100):
        simulated.step(10)
    waiting = {cls for one, cls in simulated.units.values() if one.place is not Place.NOT_QUEUED}
    assert not [cls for cls in waiting if simulated.room[cls]], "these could have been placed"
    assert simulated.queue.count(Place.ACTIVE) == 0
