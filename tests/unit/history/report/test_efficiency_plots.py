"""Who wasted GPU hours and when is drawn, also of nothing, and of names that look like markup."""

import pytest

from alnair.history.database.efficiency import DayShare, Share
from alnair.history.report import efficiency_files, efficiency_plots


def share(name: str, wasted: float, unmeasured: float = 0.0) -> Share:
    return Share(name=name, jobs=1, held=wasted + 1 + unmeasured, measured=wasted + 1, used=1.0)


def day(number: int, name: str, wasted: float) -> DayShare:
    return DayShare(day=number, name=name, jobs=1, held=wasted + 1, measured=wasted + 1, used=1.0)


TEAMS = [share(f"team-{number}", 50.0 - number) for number in range(30)]


def test_the_worst_have_their_names_and_colours_and_the_rest_is_one() -> None:
    days = [day(20_000 + at, one.name, one.wasted) for at in (0, 3) for one in TEAMS[:9]]
    hours, wasted = efficiency_plots.plots("namespace", TEAMS, days)
    assert "team-19" in hours.inline
    assert "team-20" not in hours.inline
    assert "10 that wasted less are left out" in hours.inline
    assert "team-4" in wasted.inline
    assert "team-5" not in wasted.inline
    assert "all others" in wasted.inline
    assert "2024-10-04 to 2024-10-07" in wasted.inline
    assert wasted.files["png"].startswith(b"\x89PNG")


@pytest.mark.parametrize("shares", [[], [share("<b>$x", 0.0)], [share("x", 0.0, unmeasured=3.0)]])
def test_a_report_of_little_is_one_too_and_the_same_bytes_each_time(shares: list[Share]) -> None:
    files = efficiency_files.render("user", shares, [], {"v": 1})
    assert files == efficiency_files.render("user", shares, [], {"v": 1})
    assert files.keys() == {
        *("index.html", "summary.json", "users.csv", "days.csv"),
        *("hours.svg", "hours.png", "wasted.svg", "wasted.png"),
    }
    assert b"no job has ended yet" in files["wasted.svg"]
    assert b"<b>" not in files["index.html"]
