"""The rules for /.well-known/ai documents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cases import rows
from tests.checks.lint.contexts import CONTEXT
from tests.documents.ai.test_document import FLIGHTS

from bespeak.checks.lint.document import check_text

CAPABILITY: dict[str, Any] = FLIGHTS["capabilities"][0]


def found(**changes: Any) -> list[str]:
    checked = check_text(json.dumps({**FLIGHTS, **changes}, indent=2), "ai.json", CONTEXT)
    return [f"{finding.rule} {finding.pointer}" for finding in checked.findings]


def with_capability(**changes: Any) -> list[str]:
    return found(capabilities=[{**CAPABILITY, **changes}])


@pytest.mark.requirement("AI-6.2-3")
@rows(
    "changes",
    {},
    {"auth": {"type": "none"}},
    {"capabilities": [{**CAPABILITY, "endpoint": "https://api.flights.example/v1/flights"}]},
)
def test_complete_document_is_clean(changes: dict[str, Any]) -> None:
    assert found(**changes) == []


@pytest.mark.requirement("AI-3.2-5", "AI-3.2-6", "AI-3.2-8", "AI-3.2-9", "AI-6.2-1", "AI-6.2-3")
@rows(
    "changes, expected",
    ({"aiendpoint": "2.0"}, "D170 /aiendpoint"),
    ({"service": {**FLIGHTS["service"], "name": "x" * 101}}, "D171 /service/name"),
    ({"service": {**FLIGHTS["service"], "name": " "}}, "D171 /service/name"),
    ({"service": {**FLIGHTS["service"], "description": "x" * 301}}, "D171 /service/description"),
    ({"service": {**FLIGHTS["service"], "description": "x" * 250}}, "D184 /service/description"),
    ({"service": {**FLIGHTS["service"], "category": ["ai"]}}, "D176 /service/category/0"),
    ({"service": {**FLIGHTS["service"], "category": ["data", "data"]}}, "D177 /service/category"),
    ({"service": {**FLIGHTS["service"], "language": ["en", "en"]}}, "D177 /service/language"),
    ({"service": {**FLIGHTS["service"], "language": []}}, "D177 /service/language"),
    ({"service": {**FLIGHTS["service"], "language": ["English (UK)"]}}, "D178 /service/language/0"),
    ({"auth": {"type": "apikey", "header": "Bearer abcdef"}}, "D180 /auth/header"),
    ({"meta": {"last_updated": "2026-13-01"}}, "D183 /meta/last_updated"),
    ({"meta": {"last_updated": "2026-11-15T08:00:00+01:00"}}, "D183 /meta/last_updated"),
    ({"x-more": 1}, "D187 /x-more"),
    ({"capabilities": [CAPABILITY, CAPABILITY]}, "D173 /capabilities/1/id"),
    ({"auth": {"type": "none"}, "capabilities": [{**CAPABILITY, "method": "POST"}]}, "D179 /auth/type"),
    ({"capabilities": [{**CAPABILITY, "id": f"a_{n}", "description": "x" * 150} for n in range(300)]}, "D182 "),
)
def test_a_document_that_breaks_one_rule_is_found(changes: dict[str, Any], expected: str) -> None:
    assert found(**changes) == [expected]


@pytest.mark.requirement("AI-3.2-8")
def test_an_empty_list_of_categories_is_found() -> None:
    assert "D177 /service/category" in found(service={**FLIGHTS["service"], "category": []})


@pytest.mark.requirement("AI-6.1-2")
@rows(
    "changes, expected",
    ({"id": "Search-Flights"}, "D172 /capabilities/0/id"),
    ({"id": "x" * 65}, "D171 /capabilities/0/id"),
    ({"description": "x" * 201}, "D171 /capabilities/0/description"),
    ({"returns": "x" * 301}, "D171 /capabilities/0/returns"),
    ({"endpoint": "api/flights"}, "D174 /capabilities/0/endpoint"),
    ({"endpoint": "http://flights.example/api"}, "D174 /capabilities/0/endpoint"),
    ({"endpoint": "/admin/flights"}, "D181 /capabilities/0/endpoint"),
    ({"endpoint": "/api/internal/flights"}, "D181 /capabilities/0/endpoint"),
    ({"endpoint": "/dev/flights"}, "D181 /capabilities/0/endpoint"),
    ({"endpoint": "https://flights.example/staging/flights"}, "D181 /capabilities/0/endpoint"),
    ({"params": {"from": "the airport"}}, "D175 /capabilities/0/params/from"),
)
def test_a_capability_that_breaks_one_rule_is_found(changes: dict[str, Any], expected: str) -> None:
    assert with_capability(**changes) == [expected]


def test_credential_is_not_repeated_in_the_finding_and_missing_authentication_is_a_warning() -> None:
    text = json.dumps({**FLIGHTS, "auth": {"type": "apikey", "header": "sk-abcdefghijklmnopqrstuvwxyz0123456789"}})
    [finding] = check_text(text, "ai.json", CONTEXT).findings
    assert finding.rule == "D180"
    assert "abcdef" not in f"{finding.message} {finding.help}"
    bare = {key: value for key, value in FLIGHTS.items() if key != "auth"}
    [finding] = check_text(json.dumps(bare), "ai.json", CONTEXT).findings
    assert (finding.rule, finding.severity) == ("D185", "warning")


def test_missing_optional_members_are_one_finding() -> None:
    bare = {key: FLIGHTS[key] for key in ("aiendpoint", "service", "capabilities", "auth")}
    checked = check_text(json.dumps(bare), "ai.json", CONTEXT)
    [finding] = checked.findings
    assert (finding.rule, finding.severity) == ("D186", "info")
    assert "token_hints" in finding.message
