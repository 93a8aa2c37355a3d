"""Whether the documents of one live host say the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.agent.discovery.live import AGIS, AI, AI_PATH, OPENAPI, OPENAPI_PATH, SUMMARY, SUMMARY_PATH, host, look
from tests.agent.discovery.web import always
from tests.cases import rows

from bespeak.agent.discovery.live_check import MEMBERS, check_agreement
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections import agis_document
from bespeak.text.diagnostics.diagnostic import Diagnostic

pytestmark = pytest.mark.anyio

ONE: dict[str, Any] = AI["capabilities"][0]


async def found(pages: dict[str, Any] | None = None) -> list[Diagnostic]:
    return list(check_agreement(await look(host(pages))))


def ai(*capabilities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {**AI, "capabilities": [{**ONE, **each} for each in capabilities] or AI["capabilities"], **members}


def openapi(**members: Any) -> dict[str, Any]:
    return {**OPENAPI, **members}


@rows(
    "rule, pages, said",
    ("W936", {SUMMARY_PATH: {**SUMMARY, "service": "Trains"}}, "'Trains' here but 'Flights' in"),
    ("W936", {OPENAPI_PATH: openapi(info={"title": "Flights API", "version": "1"})}, "'Flights API'"),
    ("W936", {"/": {**AGIS, "service": "flights"}}, "'flights'"),
    ("W942", {SUMMARY_PATH: {"agis": "1.0", "agis_document": "/", "service": "Flights"}}, "agtp, methods"),
    ("W941", {SUMMARY_PATH: {**SUMMARY, "agis_document": None}}, "is missing"),
    ("W941", {"/": always(404)}, "404"),
    ("W938", {SUMMARY_PATH: {**SUMMARY, "methods": ["FIND", "BOOK"]}}, "'BOOK'"),
    ("W938", {SUMMARY_PATH: {**SUMMARY, "methods": []}}, "'FIND'"),
    ("W109", {AI_PATH: ai({}, {"id": "x", "endpoint": "https://api.test/x"})}, "https://api.test"),
    ("W934", {"/.well-known/agtp": {"endpoint": "other.test:4480"}}, "'other.test' in this document"),
    ("W934", {"/": {**AGIS, "agtp": "agtp://other.test"}}, "'flights.test' in https://flights.test"),
    ("W935", {OPENAPI_PATH: openapi(servers=[{"url": "http://flights.test"}])}, "http://flights.test"),
    ("W937", {OPENAPI_PATH: openapi(paths={})}, "GET /flight:find"),
    ("W937", {AI_PATH: ai({}, {"id": "gone", "endpoint": "/gone"})}, "1 of 2 capabilities"),
    ("W940", {AI_PATH: ai({}, {"id": "book", "endpoint": "/flight:book", "method": "POST"})}, "BOOK /flight"),
    ("W939", {AI_PATH: ai(auth={"type": "none"})}, "no credential"),
    ("W939", {AI_PATH: ai(auth={"type": "apikey", "header": "X-Key"})}, "'header'"),
    ("D160", {OPENAPI_PATH: {"hello": 1}}, ""),
    ("D102", {SUMMARY_PATH: b"{"}, ""),
    ("D102", {"/.well-known/agtp": b"["}, ""),
)
async def test_differing_documents_are_reported(rule: str, pages: dict[str, Any], said: str) -> None:
    findings = [finding for finding in await found(pages) if finding.rule == rule]
    assert len(findings) == 1
    assert said in findings[0].message
    assert findings[0].location.file.startswith("https://flights.test")


@rows(
    "pages",
    {OPENAPI_PATH: always(404)},
    {SUMMARY_PATH: always(404)},
    {AI_PATH: always(404)},
    {OPENAPI_PATH: openapi(security=[])},
    {OPENAPI_PATH: openapi(security=[{}, {"token": []}])},
    {OPENAPI_PATH: openapi(servers=[{"url": "http://localhost:1/"}], paths=OPENAPI["paths"])},
    {SUMMARY_PATH: {**SUMMARY, "service": "  Flights "}},
    {AI_PATH: {k: v for k, v in AI.items() if k != "auth"}},
)
async def test_unverifiable_differences_are_not_reported(pages: dict[str, Any]) -> None:
    assert {finding.rule for finding in await found(pages)} <= {"W937"}


ONE_FLIGHT = {"/flights/{flightId}": {"get": {"responses": {"200": {"description": "One"}}}}}
BELOW = {"/api/flight:find": OPENAPI["paths"]["/flight:find"]}


@rows(
    "pages",
    None,
    # Parameters of a path may be named differently, and a path may have a prefix that the contract does not name.
    {AI_PATH: ai({"endpoint": "/flights/:id"}), OPENAPI_PATH: openapi(paths=ONE_FLIGHT)},
    {AI_PATH: ai({"endpoint": "/api/flight:find"}), OPENAPI_PATH: openapi(paths=BELOW)},
)
async def test_documents_that_agree_have_no_finding(pages: dict[str, Any] | None) -> None:
    assert await found(pages) == []


async def test_members_are_those_bespeak_publishes_and_many_differences_are_counted() -> None:
    pages = {AI_PATH: ai(*({"id": f"c{number}", "endpoint": f"/c{number}"} for number in range(500)))}
    [finding] = await found(pages)
    assert "and 495 more" in finding.message
    assert len(finding.message) < 400
    service = Service(identity=ServerIdentity(server_id="rooms.example", operator="Acme", contact="ops@rooms.example"))
    assert tuple(agis_document.project_summary(service, (), HttpSettings(), version="1")) == MEMBERS
