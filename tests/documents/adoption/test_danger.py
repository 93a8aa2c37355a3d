"""Endpoints that could hurt are recognised."""

from __future__ import annotations

from typing import Any

import pytest
from tests.documents.adoption.test_review import entries, operation

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.adoption.facade import DANGERS, danger_of, is_weighty


def imported(method: str, path: str, **fields: Any) -> Endpoint:
    [(_, facade)] = entries(operation(method, path, **fields))
    return facade.endpoint


@pytest.mark.parametrize(
    ("method", "path", "fields", "danger"),
    [
        ("POST", "/payments", {}, "money"),
        ("POST", "/invoices/{id}/pay", {}, "money"),
        ("DELETE", "/refunds/{id}", {}, "money"),
        ("DELETE", "/pets/{id}", {}, "deletion"),
        ("POST", "/messages", {"summary": "Send a message"}, "irreversible"),
        ("POST", "/pets/search", {"summary": "Search pets"}, "reading"),
        ("GET", "/payments", {}, ""),
        ("GET", "/pets", {}, ""),
    ],
)
def test_the_worst_danger_is_named(method: str, path: str, fields: dict[str, Any], danger: str) -> None:
    assert danger_of(imported(method, path, **fields)) == danger
    assert danger in DANGERS


@pytest.mark.parametrize(
    ("at", "confidence", "danger"),
    [
        ("/semantic/impact", 0.4, "doubt"),
        ("/handler/url", 0.3, "doubt"),
        ("/semantic/impact", 0.5, ""),
        ("/semantic/outcome", 0.1, ""),
    ],
)
def test_a_doubtful_guess_is_a_danger_if_it_decides_what_a_call_does(at: str, confidence: float, danger: str) -> None:
    assert danger_of(imported("GET", "/pets"), [(at, confidence)]) == danger
    assert is_weighty(at) == (at != "/semantic/outcome")
