"""Refusals as problem details."""

from __future__ import annotations

import json

from bespeak.faces.http.translation import problem, problem_body


def test_a_refusal_of_agtp_is_a_problem_with_its_details() -> None:
    error = {"code": "scope-violation", "message": "No.", "required": ["a:b"], "status": 7}
    number, body = problem(455, json.dumps({"status": 455, "error": error, "task_id": "t"}).encode())
    told = json.loads(body)
    assert (number, told["status"], told["agtp_status"]) == (403, 403, 455)
    assert (told["detail"], told["code"], told["required"], told["task_id"]) == ("No.", "scope-violation", ["a:b"], "t")
    assert told["error_status"] == 7


def test_a_missing_credential_is_401_and_other_conditions_403() -> None:
    for condition, expected in (("credentials-missing", 401), ("consent-required", 403)):
        body = json.dumps({"error": {"type": condition, "code": "x", "message": "y"}}).encode()
        assert problem(262, body)[0] == expected


def test_an_empty_refusal_is_a_problem_too() -> None:
    number, body = problem(404, b"")
    assert (number, json.loads(body)["title"]) == (404, "Not Found")


def test_a_status_of_http_alone_is_not_sent_as_an_agtp_status() -> None:
    assert "agtp_status" not in json.loads(problem_body(431, 431, {"code": "a", "message": "b"}))
    assert json.loads(problem_body(413, 413, {"code": "a", "message": "b"}))["agtp_status"] == 413


def test_a_title_is_the_same_under_every_python() -> None:
    for number, title in ((413, "Content Too Large"), (422, "Unprocessable Content"), (799, "")):
        assert json.loads(problem_body(number, 422, {"code": "a", "message": "b"}))["title"] == title
