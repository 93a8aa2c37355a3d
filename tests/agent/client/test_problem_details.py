"""Problem details turned back into errors of AGTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.agent.client.http_transport import agtp_status, error_body
from bespeak.faces.http.translation import problem
from bespeak.protocol.status import to_http

PROBLEM = {"content-type": "application/problem+json; charset=utf-8"}


def turned(body: Any, status: int = 422) -> Any:
    return json.loads(error_body(status, PROBLEM, json.dumps(body).encode()))


@pytest.mark.parametrize(
    "error",
    [
        {"code": "method-violation", "message": "No.", "suggestions": ["BOOK"]},
        {"code": "authorization-required", "message": "No.", "type": "scope-required", "title": "x", "status": 7},
        {"code": "x", "message": "", "details": {"a": [1]}, "detail": "y"},
    ],
)
def test_problem_of_the_face_becomes_the_original_error(error: dict[str, Any]) -> None:
    whole = {"error": error, "task_id": "t-1"}
    number, body = problem(459, json.dumps(whole).encode())
    assert json.loads(error_body(number, PROBLEM, body)) == whole


def test_foreign_problem_is_named_by_its_type() -> None:
    told = {"type": "https://api.example/problems/out-of-credit", "title": "Out of credit", "balance": 3}
    assert turned(told) == {"error": {"code": "out-of-credit", "message": "Out of credit", "balance": 3}}
    assert turned({"title": "x"})["error"]["code"] == "unprocessable-entity"
    assert turned({}, 418)["error"] == {"code": "status-418", "message": ""}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_other_bodies_are_unchanged(body: bytes) -> None:
    assert error_body(500, PROBLEM, body) == body
    assert error_body(500, {"content-type": "text/html"}, b"{}") == b"{}"


@pytest.mark.parametrize("number", [200, 262, 405, 455, 459, 503])
def test_the_number_is_the_one_that_agtp_has(number: int) -> None:
    assert agtp_status(to_http(number), {"agtp-status": str(number)}) == number


@given(st.text(max_size=5))
def test_no_other_text_is_believed(text: str) -> None:
    assert agtp_status(500, {"agtp-status": text}) == 500 or text.isdigit()


@given(
    st.dictionaries(
        st.sampled_from(["type", "title", "status", "detail", "code", "x"]), st.none() | st.text() | st.integers()
    )
)
def test_no_problem_raises(told: dict[str, Any]) -> None:
    assert isinstance(turned(told)["error"]["code"], str)
