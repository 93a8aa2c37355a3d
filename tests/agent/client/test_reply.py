"""Replies and their typed errors: what servers give, and what an agent needs to recover."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.agent.client import errors
from bespeak.agent.client.errors import Advisory, InventoryEntry, Reply, parse_inventory
from bespeak.contract.schema.validation import Violation
from bespeak.errors import BespeakError, RemoteProtocolError


def reply(status: int, body: Any = None, **headers: str) -> Reply:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, "Reason", names, b"" if body is None else json.dumps(body).encode())


@pytest.mark.parametrize("status", [200, 202, 204, 261, 263])
def test_other_2xx_are_successes_without_an_error(status: int) -> None:
    assert reply(status, {}).ok
    assert reply(status, {}).error is None


@pytest.mark.parametrize("status", [262, 304, 400, 422, 459, 500])
def test_262_and_everything_outside_2xx_is_a_refusal(status: int) -> None:
    assert not reply(status).ok
    assert reply(status).error is not None


@pytest.mark.parametrize("name", ["message", "detail", "explanation"])
def test_the_message_is_read_under_all_names_servers_use(name: str) -> None:
    error = reply(404, {"error": {"code": "endpoint-not-found", name: "No such path."}}).error
    assert (error.code, error.message) == ("endpoint-not-found", "No such path.")


@pytest.mark.parametrize("body", [None, [], "x", {"error": 7}, {"error": {"code": 7, "details": []}}, {}])
def test_a_refusal_that_says_nothing_has_the_code_of_its_status(body: Any) -> None:
    error = reply(459, body).error
    assert (error.code, error.message, error.details) == ("method-violation", "Reason", {})


def test_refusals_and_outputs_are_read_in_every_form() -> None:
    error = Reply(503, "", {}, b"<html>").error
    assert (error.code, error.message) == ("unavailable", "Unavailable")
    assert reply(499).error.code == "status-499"
    error = reply(422, {"error": {"code": "room_unavailable", "details": {"next": 3}, "path": "/room"}}).error
    assert (error.details, error.members["path"]) == ({"next": 3}, "/room")
    assert reply(200, {"reservation_id": "r"}).output == {"reservation_id": "r"}
    assert reply(200, {"status": 200, "task_id": "t", "result": {"a": 1}}).output == {"a": 1}
    assert reply(200, [1]).output == [1]
    assert reply(204).output == {}
    for body in ({"status": "paid", "result": {}}, {"status": 200, "result": {}, "more": 1}, {"status": 200}):
        assert reply(200, body).output == body
    with pytest.raises(RemoteProtocolError, match="not JSON"):
        Reply(200, "OK", {}, b"{").json()


def test_replies_have_warnings_and_say_whether_they_were_kept_or_unchanged() -> None:
    kept = Reply(200, "OK", {"idempotency-replayed": "true", "audit-id": "aud-1"}, b"{}")
    assert (kept.replayed, kept.audit_id) == (True, "aud-1")
    assert (reply(200, {}).replayed, reply(200, {}).audit_id) == (False, None)
    assert reply(304).unchanged
    assert not reply(200, {}).unchanged
    warned = reply(
        200,
        {},
        agtp_catalog_warning="deprecated; successor=AUDIT; removed_in=2.0.0",
        agtp_endpoint_warning="deprecated; successor=RESERVE /rooms",
    )
    assert warned.warnings == [
        Advisory("catalog", "deprecated", "AUDIT", "2.0.0"),
        Advisory("endpoint", "deprecated", "RESERVE /rooms", None),
    ]
    assert reply(200, {}).warnings == []


@given(st.text(max_size=60), st.binary(max_size=60))
@settings(max_examples=100)
def test_whatever_a_server_says_it_can_be_read(header: str, body: bytes) -> None:
    strange = Reply(422, header, {"agtp-catalog-warning": header}, body)
    assert strange.error is not None
    assert len(strange.warnings) == 1


ENTRY = {"method": "BOOK", "path": "/room", "description": "Book a room."}
READ = [InventoryEntry("BOOK", "/room", "Book a room.")]


@rows(
    "answer",
    *([ENTRY], {"items": [ENTRY], "item_count": 1}, {"methods": [ENTRY]}),
    {"agtp_version": "1.0", "endpoints": [{**ENTRY, "semantic": {}}], "methods": "x"},
    [ENTRY, 7, {"path": "/no-method"}],
)
def test_every_form_is_read(answer: Any) -> None:
    assert parse_inventory(answer) == READ


def test_a_method_without_a_path_is_at_the_root() -> None:
    assert parse_inventory([{"name": "QUERY"}]) == [InventoryEntry("QUERY", "/", "")]


@pytest.mark.parametrize("answer", [{}, {"items": 3}, "x", None, 7])
def test_anything_else_is_a_fault_of_the_peer(answer: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        parse_inventory(answer)


def error_of(status: int, code: str = "x", **members: Any) -> errors.ServiceError:
    return errors.error_of(Reply(status, "", {}, json.dumps({"error": {"code": code, **members}}).encode()))


@rows(
    "status, expected",
    (262, errors.AuthorityMissingError),
    (400, errors.BadRequestError),
    (401, errors.UnauthorizedError),
    (403, errors.ForbiddenError),
    (404, errors.NotFoundError),
    (405, errors.MethodNotAllowedError),
    (409, errors.ServiceError),
    (410, errors.GoneError),
    (422, errors.BusinessError),
    (429, errors.RateLimitedError),
    (455, errors.AuthorityMissingError),
    (459, errors.MethodViolationError),
    (460, errors.EndpointViolationError),
    (463, errors.ProposalRejectedError),
    (500, errors.ServerFaultError),
    (503, errors.UnavailableError),
    (551, errors.ServerFaultError),
)
def test_each_status_has_its_class(status: int, expected: type[errors.ServiceError]) -> None:
    error = error_of(status, message="Because.")
    assert type(error) is expected
    assert isinstance(error, BespeakError)
    assert (str(error), error.reply.status) == (f"{status} x: Because.", status)


@pytest.mark.requirement("CORE-10.2-4")
def test_refusals_tell_what_to_try_or_fix_instead() -> None:
    assert error_of(455, missing_scopes=["a:b"]).missing_scopes == ("a:b",)  # type: ignore[attr-defined]
    assert error_of(262, type="credentials-missing").condition == "credentials-missing"  # type: ignore[attr-defined]
    error = error_of(405, allowed_methods_for_path=["QUERY", 7], redirects_for_path={"BOOK": "RESERVE"})
    assert isinstance(error, errors.MethodNotAllowedError)
    assert (error.allowed_methods, error.redirects) == (("QUERY",), {"BOOK": "RESERVE"})
    verb = error_of(459, suggestions=["QUERY"], catalog_version="1.1.0")
    assert isinstance(verb, errors.MethodViolationError)
    assert (verb.suggestions, verb.catalog_version) == (("QUERY",), "1.1.0")
    path = error_of(460, segment="get")
    assert isinstance(path, errors.EndpointViolationError)
    assert path.segment == "get"
    proposal = error_of(463, reason="synthesis-disabled", counter_proposal={"method": "QUERY"})
    assert isinstance(proposal, errors.ProposalRejectedError)
    assert (proposal.rejection, proposal.counter_proposal) == ("synthesis-disabled", {"method": "QUERY"})


def test_422_carries_violations_or_the_name_and_details_of_a_declared_error() -> None:
    raw = {"pointer": "/a", "schema_pointer": "/required", "keyword": "required", "message": "missing"}
    error = error_of(422, "input-validation-failed", violations=[raw, raw])
    assert isinstance(error, errors.InvalidInputError)
    assert error.violations == (Violation("/a", "/required", "required", "missing"),) * 2
    error = error_of(422, "input-validation-failed", field="/room", schema_path="enum", detail="not one of them")
    assert isinstance(error, errors.InvalidInputError)
    assert error.violations == (Violation("/room", "enum", "", "not one of them"),)
    missing = error_of(422, "missing-required-params", missing=["intent"])
    assert isinstance(missing, errors.InvalidInputError)
    assert missing.violations == ()
    error = error_of(422, "room_unavailable", message="Taken.", details={"next_free": "2026-12-03"})
    assert isinstance(error, errors.BusinessError)
    assert (error.name, error.message, error.details) == ("room_unavailable", "Taken.", {"next_free": "2026-12-03"})


@pytest.mark.parametrize("status", [262, 405, 422, 459, 460, 463])
def test_members_of_the_wrong_type_do_no_harm(status: int) -> None:
    names = ("allowed_methods_for_path", "redirects_for_path", "violations", "suggestions", "segment", "type", "reason")
    for code in ("input-validation-failed", "x"):
        error = error_of(status, code, **dict.fromkeys(names, 7))
        for name in dir(error):
            if not name.startswith("_"):
                getattr(error, name)
