"""Quantities: the grammar, the rounding and the caps of apimachinery, in exact integers."""

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model import quantity
from alnair.model.quantity import MAX, NANO, QuantityError

UNITS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{s: Fraction(10) ** (3 * (i + 1)) for i, s in enumerate("kMGTPE")},
    **{s + "i": Fraction(2) ** (10 * (i + 1)) for i, s in enumerate("KMGTPE")},
}
numbers = st.one_of(
    st.integers(0, 10**20).map(str),
    st.tuples(st.integers(0, 10**12), st.text("0123456789", max_size=24)).map(
        lambda t: f"{t[0]}.{t[1]}"
    ),
    st.text("0123456789", min_size=1, max_size=24).map(lambda t: "." + t),
)
suffixes = st.one_of(
    st.sampled_from(sorted(UNITS)),
    st.tuples(st.sampled_from("eE"), st.integers(-30, 30)).map(lambda t: f"{t[0]}{t[1]}"),
)


def exact(number: str, suffix: str) -> Fraction:
    """The value without any rounding."""
    unit = UNITS[suffix] if suffix in UNITS else Fraction(10) ** int(suffix[1:])
    whole, _, rest = number.partition(".")
    return Fraction(int((whole + rest) or "0"), 10 ** len(rest)) * unit


@given(numbers, suffixes)
def test_a_quantity_is_the_exact_value_rounded_up_to_a_nano_and_capped(
    number: str, suffix: str
) -> None:
    want = min(ceil(min(exact(number, suffix), Fraction(MAX)) * NANO), MAX * NANO)
    assert quantity.nanos(number + suffix) == want
    assert quantity.nanos("-" + number + suffix) == -want
    assert quantity.nanos("+" + number + suffix) == want


@given(numbers, suffixes)
def test_coarser_units_never_promise_less_than_was_asked(number: str, suffix: str) -> None:
    text = number + suffix
    asked = min(exact(number, suffix), Fraction(MAX))
    assert asked <= quantity.value(text) < asked + 1 + Fraction(1, NANO)
    assert asked * 1000 <= quantity.milli_value(text) < asked * 1000 + 1 + Fraction(1, 10**6)
    assert quantity.value(text) == -(-quantity.milli_value(text) // 1000)


@given(numbers, suffixes, numbers, suffixes)
def test_order_is_kept(number: str, suffix: str, other: str, other_suffix: str) -> None:
    low, high = sorted([(number, suffix), (other, other_suffix)], key=lambda q: exact(*q))
    assert quantity.value("".join(low)) <= quantity.value("".join(high))
    assert quantity.milli_value("".join(low)) <= quantity.milli_value("".join(high))


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_an_integer_and_its_text_are_the_same(amount: int) -> None:
    assert quantity.nanos(amount) == quantity.nanos(str(amount)) == amount * NANO


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        # The suffixes (docs: reference/kubernetes-api/common-definitions/quantity).
        ("1n", 1, 1),
        ("1u", 1, 1),
        ("1m", 1, 1),
        ("1", 1, 1000),
        ("1k", 10**3, 10**6),
        ("1M", 10**6, 10**9),
        ("1G", 10**9, 10**12),
        ("1T", 10**12, 10**15),
        ("1P", 10**15, 10**18),
        ("1E", 10**18, 10**21),
        ("1Ki", 2**10, 1000 * 2**10),
        ("1Mi", 2**20, 1000 * 2**20),
        ("1Gi", 2**30, 1000 * 2**30),
        ("1Ti", 2**40, 1000 * 2**40),
        ("1Pi", 2**50, 1000 * 2**50),
        ("1Ei", 2**60, 1000 * 2**60),
        # Exponents, also where they could be read as suffixes.
        ("1e3", 1000, 10**6),
        ("1E3", 1000, 10**6),
        ("1e+3", 1000, 10**6),
        ("1e-3", 1, 1),
        ("12E-1", 2, 1200),
        # Numbers without digits on one side, and signs.
        (".5", 1, 500),
        ("5.", 5, 5000),
        (".5Gi", 2**29, 500 * 2**30),
        ("+1", 1, 1000),
        ("-1", -1, -1000),
        ("-1.5", -2, -1500),
        ("0", 0, 0),
        ("-0", 0, 0),
        ("0.0000", 0, 0),
        # Of the docs: 1.5 is 1500m, and 123 MB in four ways.
        ("1.5", 2, 1500),
        ("128974848", 128974848, 128974848000),
        ("129e6", 129000000, 129000000000),
        ("129M", 129000000, 129000000000),
        ("128974848000m", 128974848, 128974848000),
        ("123Mi", 128974848, 128974848000),
        # What is finer than the unit rounds up.
        ("0.1n", 1, 1),
        ("1e-50", 1, 1),
        ("1.1m", 1, 2),
        ("100.0001m", 1, 101),
        ("1.0000000001", 2, 1001),
        # The cap.
        ("9223372036854775807", MAX, MAX * 1000),
        ("9223372036854775808", MAX, MAX * 1000),
        ("8Ei", MAX, MAX * 1000),
        ("1e400", MAX, MAX * 1000),
        ("-10E", -MAX, -MAX * 1000),
    ],
)
def test_quantities_of_the_documentation(text: str, value: int, milli: int) -> None:
    assert quantity.value(text) == value
    assert quantity.milli_value(text) == milli


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", " 1", "1 ", "1 Gi", "1ki", "1KB", "1K", "1mi", "1i", "1Gib", "0x1", "1_000"],
        *["NaN", "inf", "1e", "1e+", "e3", "1e3k", "1e3.5", ".", "-", "--1", "+-1", "1,5", "1.2.3"],
        *[
            "\u0661",
            "1\u0661",
            "1e\u0661",
            "\uff11",
            "1\n",
            "1e" + "9" * 19,
        ],  # digits, but not ASCII
        *[True, None, 1.5],
    ],
)
def test_what_is_no_quantity_is_refused_with_the_text_and_the_grammar(text: Any) -> None:
    for read in (quantity.nanos, quantity.value, quantity.milli_value):
        with pytest.raises(QuantityError, match="is not a quantity: write a number"):
            read(text)


def test_long_numbers_stay_exact() -> None:
    assert quantity.nanos("0." + "0" * 5000 + "1") == 1
    assert quantity.nanos("1." + "0" * 5000 + "1") == NANO + 1
    assert quantity.value("9" * 5000) == MAX
    assert quantity.value("0" * 5000 + "7") == 7
