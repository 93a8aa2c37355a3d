"""The manifest validator of AGTP-API A.3: what it finds, and where."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from tests.cases import rows
from tests.checks.lint.contexts import CONTEXT
from tests.service import build, echo, make_endpoint

from bespeak.checks.lint.document import check_text


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    """The manifest of a running server, as a client receives it."""
    server = build(make_endpoint("QUERY", "/rooms", echo))
    manifest: dict[str, Any] = server.send("DISCOVER", "/").json
    manifest["endpoints"] = [entry for entry in manifest["endpoints"] if entry["path"] == "/rooms"]
    return manifest


def found(manifest: dict[str, Any]) -> list[str]:
    checked = check_text(json.dumps(manifest, indent=1), "manifest.json", CONTEXT)
    return [f"{finding.rule} {finding.pointer}" for finding in checked.findings if finding.severity == "error"]


def changed(manifest: dict[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    """A copy of the manifest with one value changed; None takes it away."""
    copy = deepcopy(manifest)
    *above, last = pointer.strip("/").split("/")
    place: Any = copy
    for part in above:
        place = place[int(part) if isinstance(place, list) else part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copy


def test_published_manifest_has_no_error_unless_it_is_unsigned_or_lists_private_agents(
    published: dict[str, Any],
) -> None:
    assert found(published) == []
    checked = check_text(json.dumps(published), "manifest.json", CONTEXT)
    assert "D158" in {finding.rule for finding in checked.findings if finding.severity == "warning"}
    private = changed(changed(published, "/agent_disclosure", "private"), "/hosted_agents", [{"agent_id": "a" * 64}])
    assert found(private) == ["D155 /hosted_agents"]


@pytest.mark.requirement("API-8.3-8", "API-8.5-5", "API-12-1")
@rows(
    "pointer, value, expected",
    ("/agtp_version", "2.0", "D150 /agtp_version"),
    ("/agtp_api_version", "0.9", "D150 /agtp_api_version"),
    ("/catalog_versions_supported", ["9.9.9"], "D151 /catalog_versions_supported"),
    ("/server/operator", " ", "D152 /server/operator"),
    ("/server/contact", "", "D152 /server/contact"),
    ("/server/issued", "yesterday", "D153 /server/issued"),
    ("/server/issued", "2026-02-30T00:00:00Z", "D153 /server/issued"),
    ("/server/issued", "2999-01-01T00:00:00Z", "D153 /server/updated"),
    ("/embedded_methods", ["DISCOVER"], "D154 /embedded_methods"),
    ("/embedded_methods", None, "D154 /embedded_methods"),
    ("/agent_disclosure", "secret", "D155 /agent_disclosure"),
    ("/agent_disclosure", None, "D155 /agent_disclosure"),
    ("/policies/wildcards_accepted", None, "D156 /policies/wildcards_accepted"),
    ("/policies/max_synthesis_depth", None, "D156 /policies/max_synthesis_depth"),
    ("/endpoints/0/handler", {"type": "magic"}, "D159 /endpoints/0/handler/type"),
    (
        "/endpoints/0/handler",
        {"type": "registered_function", "function": "rooms.book"},
        "D157 /endpoints/0/handler/function",
    ),
    ("/endpoints/0/path", "/rooms/", "P301 /endpoints/0/path"),
    ("/endpoints/0/method", "GET", "M203 /endpoints/0/method"),
    ("/endpoints/0/input_schema", {"type": "array"}, "J602 /endpoints/0/input_schema/type"),
)
def test_one_wrong_value_is_found_at_its_place(
    published: dict[str, Any], pointer: str, value: Any, expected: str
) -> None:
    assert expected in found(changed(published, pointer, value))


@pytest.mark.parametrize(
    "key", ["agtp_version", "document_version", "catalog_version", "server", "endpoints", "policies"]
)
def test_a_missing_block_is_an_error(published: dict[str, Any], key: str) -> None:
    text = json.dumps({**changed(published, key, None), "agtp_api_version": "1.0"})
    findings = check_text(text, "manifest.json", CONTEXT).findings
    assert f"`{key}` is missing" in [finding.message for finding in findings if finding.severity == "error"]
