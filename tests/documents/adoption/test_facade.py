"""Files name the command that wrote them."""

from __future__ import annotations

from typing import Any

from tests.cases import rows
from tests.documents.adoption.test_deployment import entries, operation

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.adoption.facade import DANGERS, Candidate, ImportOrigin, danger_of, is_weighty, made_by


def test_files_of_an_origin_begin_with_the_command_that_made_them() -> None:
    assert ImportOrigin(command="mcp", form="a tool list").made_by == made_by("mcp") == "Made by `bespeak import mcp`"


def imported(method: str, path: str, **fields: Any) -> Endpoint:
    [(_, facade)] = entries(operation(method, path, **fields))
    return facade.endpoint


@rows(
    "method, path, fields, danger",
    ("POST", "/payments", {}, "money"),
    ("POST", "/invoices/{id}/pay", {}, "money"),
    ("DELETE", "/refunds/{id}", {}, "money"),
    ("DELETE", "/pets/{id}", {}, "deletion"),
    ("POST", "/messages", {"summary": "Send a message"}, "irreversible"),
    ("POST", "/pets/search", {"summary": "Search pets"}, "reading"),
    ("GET", "/payments", {}, ""),
    ("GET", "/pets", {}, ""),
)
def test_the_worst_danger_is_named(method: str, path: str, fields: dict[str, Any], danger: str) -> None:
    assert danger_of(imported(method, path, **fields)) == danger
    assert danger in DANGERS


@rows(
    "at, confidence, danger",
    ("/semantic/impact", 0.4, "doubt"),
    ("/handler/url", 0.3, "doubt"),
    ("/semantic/impact", 0.5, ""),
    ("/semantic/outcome", 0.1, ""),
)
def test_a_doubtful_guess_is_a_danger_if_it_decides_what_a_call_does(at: str, confidence: float, danger: str) -> None:
    assert danger_of(imported("GET", "/pets"), [(at, confidence)]) == danger
    assert is_weighty(at) == (at != "/semantic/outcome")


@rows(
    "candidate, claims_to_read",
    (Candidate(method="GET"), True),
    (Candidate(method="POST", read_only=True), False),
    (Candidate(), False),
    (Candidate(read_only=True), True),
    (Candidate(read_only=False), False),
    (Candidate(read_only=True, destructive=True), False),
)
def test_method_decides_before_hints_and_contradicting_hints_promise_nothing(
    candidate: Candidate, claims_to_read: bool
) -> None:
    assert candidate.claims_to_read is claims_to_read


def test_origin_is_the_name_used_upstream() -> None:
    assert Candidate(method="GET", path="/pets", name="listPets").origin == "GET /pets"
    assert Candidate(name="list_pets").origin == "list_pets"
