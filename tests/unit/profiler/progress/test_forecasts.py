"""Which way of forecasting a job's own past speaks for."""

from alnair.profiler.progress.forecasts import Forecasts


def told(paces: list[tuple[float, float]], true: float) -> Forecasts:
    """Forecasts of two ways, written down every ten steps of a job with a steady pace."""
    forecasts = Forecasts()
    for n, both in enumerate(paces):
        forecasts.write(10.0 * (n + 1), 10.0 * (n + 1) * true, both)
    return forecasts


def test_the_way_that_was_right_is_believed_with_its_error() -> None:
    forecasts = told([(2.0, 1.1), (1.9, 0.9), (2.1, 1.0), (2.0, 1.0)], true=1.0)
    verdict = forecasts.verdict(100, 100, 50)
    assert verdict.which == 1
    assert verdict.error is not None
    assert 0.05 < verdict.error < 0.15


def test_with_little_known_the_first_way_is_believed() -> None:
    assert told([(2.0, 1.0)], true=1.0).verdict(100, 100, 50).error is None
    assert Forecasts().verdict(0, 0, 50).which == 0


def test_forecasts_over_short_ways_do_not_count() -> None:
    forecasts = told([(1.0, 2.0)] * 3, true=1.0)
    forecasts.write(39, 39, (999.0, 1.0))
    assert forecasts.verdict(40, 40, 1000).which == 0
    assert forecasts.verdict(60, 60, 1000).which == 1


def test_few_are_written_down_and_none_outlives_a_restart() -> None:
    forecasts = Forecasts()
    written = 0
    for done in range(1, 100_000):
        if forecasts.is_due(done):
            forecasts.write(done, done, (1.0, 1.0))
            written += 1
    assert written < 150
    forecasts.forget()
    assert forecasts.verdict(100_000, 100_000, 10).error is None
