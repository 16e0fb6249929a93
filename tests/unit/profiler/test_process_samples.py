"""The driver's rows on processes: what is not true of them is not believed."""

import pytest

from alnair.profiler.process_samples import Believed, Row, asked_since, believed, mean_of, within

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
#: Since when the question was.
SINCE = NOW - SECOND
BORN = {7: NOW - 60 * SECOND, 8: NOW - 60 * SECOND, 9: NOW - SECOND // 10}


def sorted_out(*rows: Row, since: int = SINCE) -> Believed:
    return believed(rows, since=since, now_us=NOW, born_us=BORN.get)


def test_each_process_has_its_newest_row() -> None:
    found = sorted_out(Row(7, NOW - 3, 10, 1), Row(8, NOW - 2, 20, 2), Row(7, NOW - 1, 30, 3))
    assert found == Believed(NOW - 1, {7: (30, 3), 8: (20, 2)})


def test_what_was_told_before_is_not_told_again() -> None:
    found = sorted_out(Row(7, SINCE, 90, 9), Row(8, SINCE - SECOND, 90, 9))
    assert found == Believed(SINCE, {})


@pytest.mark.parametrize(
    "row",
    [
        Row(0, NOW, 50, 5),
        Row(7, NOW, 3_000_000_000, 5),
        Row(7, NOW, 5, 101),
        Row(7, NOW, 5, 5, others=4_294_967_295),
        Row(7, NOW + 2 * SECOND, 50, 5),
    ],
    ids=["no process", "billions", "memory over 100", "decoder over 100", "of the future"],
)
def test_garbage_is_dropped_and_does_not_move_the_next_question(row: Row) -> None:
    assert sorted_out(row, Row(8, NOW - 5, 40, 4)) == Believed(NOW - 5, {8: (40, 4)})


def test_a_process_that_has_ended_is_dropped() -> None:
    assert sorted_out(Row(77, NOW, 50, 5)).use == {}


def test_a_row_from_before_the_process_began_is_of_an_earlier_one_with_its_pid() -> None:
    assert sorted_out(Row(9, NOW - SECOND // 2, 50, 5)).use == {}
    assert sorted_out(Row(9, NOW - SECOND // 20, 50, 5)).use == {9: (50, 5)}


def test_the_first_question_is_of_now_and_later_ones_go_on() -> None:
    assert asked_since(0, NOW, SECOND) == NOW - SECOND
    assert asked_since(NOW - 3 * SECOND, NOW, SECOND) == NOW - 3 * SECOND


def test_a_clock_that_is_set_back_loses_a_second_at_most() -> None:
    assert asked_since(NOW + 3600 * SECOND, NOW, SECOND) == NOW - SECOND


def test_parts_are_never_more_than_the_whole() -> None:
    assert within({1: 60.0, 2: 60.0}, 90.0) == {1: 45.0, 2: 45.0}
    assert sum(within({1: 100.0, 2: 90.0, 3: 80.0}, None).values()) == pytest.approx(100.0)
    assert sum(within({1: 100.0, 2: 90.0}, 180.0).values()) == pytest.approx(100.0)


def test_parts_that_fit_stay_as_they_are() -> None:
    assert within({1: 30.0, 2: 20.0}, 80.0) == {1: 30.0, 2: 20.0}
    assert within({}, 80.0) == {}
    assert within({1: 0.0}, 0.0) == {1: 0.0}


def test_a_process_that_an_answer_does_not_name_did_nothing_in_it() -> None:
    answers = [(100.0, {1: (30.0, 3.0), 2: (70.0, 7.0)}), (300.0, {2: (90.0, 5.0)})]
    assert mean_of(answers) == {1: (7.5, 0.75), 2: (85.0, 5.5)}
    assert mean_of(answers[:1]) == answers[0][1]
    assert mean_of([]) == {}
