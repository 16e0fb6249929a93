"""HTTP answers as typed errors."""

import json

import pytest

from alnair.kube import errors
from alnair.kube.errors import ApiError, from_answer


def status(code: int, reason: str, **details: object) -> bytes:
    return json.dumps(
        {"kind": "Status", "code": code, "reason": reason, "message": "no", "details": details}
    ).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind", "is_transient"),
    [
        (400, "BadRequest", errors.BadRequest, False),
        (401, "Unauthorized", errors.Unauthorized, False),
        (403, "Forbidden", errors.Forbidden, False),
        (404, "NotFound", errors.NotFound, False),
        (409, "AlreadyExists", errors.AlreadyExists, False),
        (409, "Conflict", errors.Conflict, False),
        (410, "Gone", errors.Gone, True),
        (410, "Expired", errors.Gone, True),
        (405, "MethodNotAllowed", ApiError, False),
        (422, "Invalid", errors.Invalid, False),
        (429, "TooManyRequests", errors.TooManyRequests, True),
        (500, "InternalError", errors.ServerUnavailable, True),
        (500, "ServerTimeout", errors.ServerTimeout, True),
        (503, "ServiceUnavailable", errors.ServerUnavailable, True),
        (504, "Timeout", errors.ServerTimeout, True),
    ],
)
def test_a_refusal_has_the_type_of_its_reason(
    code: int, reason: str, kind: type[ApiError], is_transient: bool
) -> None:
    error = from_answer(code, status(code, reason))
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (code, reason, "no")
    assert error.is_transient is is_transient


def test_the_header_says_when_to_try_again_and_the_status_only_without_it() -> None:
    body = status(429, "TooManyRequests", retryAfterSeconds=3)
    assert from_answer(429, body, "7").retry_after == 7.0
    assert from_answer(429, body).retry_after == 3.0
    assert from_answer(429, b"").retry_after is None
    assert from_answer(503, b"", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after is None


def test_the_causes_of_an_invalid_object_are_kept() -> None:
    cause = {"reason": "FieldValueInvalid", "message": "must be positive", "field": "spec.n"}
    error = from_answer(422, status(422, "Invalid", name="x", kind="Thing", causes=[cause]))
    assert error.details is not None
    assert error.details.causes[0].field == "spec.n"


@pytest.mark.parametrize("body", [b"<h1>Bad gateway</h1>", b"", b"\xff", b"[]", b'{"code":"x"}'])
def test_an_answer_that_is_no_status_still_has_the_type_of_its_code(body: bytes) -> None:
    error = from_answer(502, body)
    assert type(error) is errors.ServerUnavailable
    assert error.message


def test_the_tree_is_as_drawn() -> None:
    drawn = [word for word in (errors.__doc__ or "").split() if word[0].isupper()]
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.KubeError)
    }
    assert classes <= set(drawn)
