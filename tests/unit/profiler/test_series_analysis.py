"""Whatever the samples are, there is an answer that is consistent, or a refusal in words."""

import itertools

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from alnair.profiler.even_grid import Refusal
from alnair.profiler.series_analysis import SeriesAnalysis, analyze

values = st.one_of(
    st.just(float("nan")),
    st.sampled_from([0.0, 1.0, 100.0]),
    st.floats(-1e18, 1e18),
    st.floats(0, 100),
)
pauses = st.one_of(
    st.sampled_from([0.0, 1.0, 1.0, 1.0, 1e-6, 500.0]), st.floats(0, 10, allow_subnormal=False)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(pauses, values), min_size=12, max_size=150), st.floats(0.5, 1e4))
def test_any_samples_have_an_answer(samples: list[tuple[float, float]], horizon: float) -> None:
    times = np.cumsum([pause for pause, _ in samples])
    series = np.array([value for _, value in samples])
    found = analyze(times, series, horizon_s=horizon)
    if isinstance(found, Refusal):
        assert found.reason
        return
    check(found, series)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 50.0, 100.0]), min_size=2, max_size=12),
    st.integers(2, 20),
    st.floats(1e-3, 1e3),
)
def test_what_is_repeated_exactly_has_an_answer(
    shape: list[float], times: int, step: float
) -> None:
    series = np.array(shape * times)
    found = analyze(step * np.arange(len(series)), series, horizon_s=10 * step)
    if isinstance(found, SeriesAnalysis):
        check(found, series)


def check(found: SeriesAnalysis, series: np.ndarray) -> None:
    assert msgspec.json.decode(msgspec.json.encode(found))["v"] == 1
    assert 0 <= found.confidence <= 1
    assert found.cyclic == (found.period_s is not None)
    if found.period_s is not None:
        assert 0 < found.period_s <= found.seconds
    for one, later in itertools.pairwise(found.phases):
        assert one.end_s == later.start_s
    if found.forecast is not None:
        ahead = found.forecast
        assert ahead.mean_low <= ahead.mean <= max(ahead.mean_high, ahead.most)
        assert 0 < ahead.coverage <= 0.9
        assert ahead.most >= np.nanmin(series)
