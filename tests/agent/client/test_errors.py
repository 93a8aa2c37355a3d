"""Typed errors: each status has its class, and each class what the agent needs to recover."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bespeak.agent.client import errors
from bespeak.agent.client.reply import Reply
from bespeak.contract.schema.validation import Violation
from bespeak.errors import BespeakError


def error_of(status: int, code: str = "x", **members: Any) -> errors.ServiceError:
    return errors.error_of(Reply(status, "", {}, json.dumps({"error": {"code": code, **members}}).encode()))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
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
    ],
)
def test_each_status_has_its_class(status: int, expected: type[errors.ServiceError]) -> None:
    error = error_of(status, message="Because.")
    assert type(error) is expected
    assert isinstance(error, BespeakError)
    assert str(error) == f"{status} x: Because."
    assert error.reply.status == status


def test_missing_authority_names_scopes_and_condition() -> None:
    assert error_of(455, missing_scopes=["a:b"]).missing_scopes == ("a:b",)  # type: ignore[attr-defined]
    assert error_of(262, type="credentials-missing").condition == "credentials-missing"  # type: ignore[attr-defined]


def test_405_tells_what_to_try_instead() -> None:
    error = error_of(405, allowed_methods_for_path=["QUERY", 7], redirects_for_path={"BOOK": "RESERVE"})
    assert isinstance(error, errors.MethodNotAllowedError)
    assert error.allowed_methods == ("QUERY",)
    assert error.redirects == {"BOOK": "RESERVE"}


def test_422_for_the_schema_carries_all_violations() -> None:
    raw = {"pointer": "/a", "schema_pointer": "/required", "keyword": "required", "message": "missing"}
    error = error_of(422, "input-validation-failed", violations=[raw, raw])
    assert isinstance(error, errors.InvalidInputError)
    assert error.violations == (Violation("/a", "/required", "required", "missing"),) * 2


def test_the_single_violation_of_the_reference_implementation_is_read() -> None:
    error = error_of(422, "input-validation-failed", field="/room", schema_path="enum", detail="not one of them")
    assert isinstance(error, errors.InvalidInputError)
    assert error.violations == (Violation("/room", "enum", "", "not one of them"),)
    missing = error_of(422, "missing-required-params", missing=["intent"])
    assert isinstance(missing, errors.InvalidInputError)
    assert missing.violations == ()


def test_422_for_a_declared_error_carries_its_name_and_details() -> None:
    error = error_of(422, "room_unavailable", message="Taken.", details={"next_free": "2026-12-03"})
    assert isinstance(error, errors.BusinessError)
    assert (error.name, error.message, error.details) == ("room_unavailable", "Taken.", {"next_free": "2026-12-03"})


@pytest.mark.requirement("CORE-10.2-4")
def test_structural_refusals_tell_what_to_fix() -> None:
    verb = error_of(459, suggestions=["QUERY"], catalog_version="1.1.0")
    assert isinstance(verb, errors.MethodViolationError)
    assert (verb.suggestions, verb.catalog_version) == (("QUERY",), "1.1.0")
    path = error_of(460, segment="get")
    assert isinstance(path, errors.EndpointViolationError)
    assert path.segment == "get"
    proposal = error_of(463, reason="synthesis-disabled", counter_proposal={"method": "QUERY"})
    assert isinstance(proposal, errors.ProposalRejectedError)
    assert (proposal.rejection, proposal.counter_proposal) == ("synthesis-disabled", {"method": "QUERY"})


@pytest.mark.parametrize("status", [262, 405, 422, 459, 460, 463])
def test_members_of_the_wrong_type_do_no_harm(status: int) -> None:
    names = ("allowed_methods_for_path", "redirects_for_path", "violations", "suggestions", "segment", "type", "reason")
    for code in ("input-validation-failed", "x"):
        error = error_of(status, code, **dict.fromkeys(names, 7))
        for name in dir(error):
            if not name.startswith("_"):
                getattr(error, name)
