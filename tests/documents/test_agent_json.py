"""Agent identity documents in both forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.contract.agent import Agent
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.documents.agent_json import parse_agent, read_agent

ID = "a1" * 32


def parse(**fields: Any) -> tuple[Agent | None, list[Diagnostic]]:
    return parse_agent(json.dumps({"agent_id": ID, "name": "Ada", **fields}), "a.json")


def agent(**fields: Any) -> Agent:
    read, _ = parse(**fields)
    assert read is not None
    return read


def test_an_agent_grants_what_its_requires_block_lists() -> None:
    read = agent(requires={"scopes": ["a:b"], "methods": ["BOOK"], "wildcards": True}, scopes_accepted=["c:d"])
    assert (read.scopes, read.methods, read.wildcards) == (("a:b",), ("BOOK",), True)


def test_without_a_requires_block_the_fields_of_the_draft_count() -> None:
    read = agent(scopes_accepted=["c:d"], methods=["QUERY"], wildcards=True)
    assert (read.scopes, read.methods, read.wildcards) == (("c:d",), ("QUERY",), True)


def test_an_empty_list_of_scopes_grants_nothing() -> None:
    assert agent(requires={"scopes": []}, scopes_accepted=["c:d"]).scopes == ()


def test_consent_to_wildcards_is_off_unless_given() -> None:
    assert agent().wildcards is False


@pytest.mark.parametrize(
    ("written", "read"), [("Active", "active"), ("Revoked", "retired"), ("suspended", "suspended")]
)
def test_lifecycle_states_are_compared_without_case(written: str, read: str) -> None:
    assert agent(status=written).status == read


def test_the_whole_document_is_kept() -> None:
    assert agent(extra={"x": [1]}).document["extra"] == {"x": [1]}


def test_a_token_that_is_no_scope_grants_nothing_and_is_named() -> None:
    read, (finding,) = parse(scopes_accepted=["ok:yes", "Everything"])
    assert read is not None
    assert read.scopes == ("ok:yes",)
    assert (finding.rule, finding.severity) == ("D104", "warning")


@pytest.mark.parametrize(
    "fields",
    [
        {"agent_id": None},
        {"agent_id": ID.upper()},
        {"agent_id": "agt-7f3a"},
        {"agent_id": 7},
        {"name": None},
        {"name": 1},
        {"status": "asleep"},
        {"requires": []},
        {"requires": {"scopes": "a:b"}},
        {"requires": {"wildcards": "yes"}},
        {"methods": [1]},
    ],
)
def test_a_document_that_cannot_be_trusted_is_refused(fields: dict[str, Any]) -> None:
    read, findings = parse(**fields)
    assert read is None
    assert [finding.severity for finding in findings] == ["error"]


def test_a_document_of_the_drafts_form_lists_what_it_lacks() -> None:
    read, (finding,) = parse(document_type="agtp-identity", status="active")
    assert read is not None
    assert finding.rule == "D115"
    assert "trust_score" in finding.message


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '{"a": \x00}', "[" * 100_000, '{"name": "\ud83d"}', '{"a": 1e999}']
)
def test_what_is_no_json_object_is_refused(text: str) -> None:
    read, findings = parse_agent(text, "a.json")
    assert read is None
    assert findings


def test_a_fault_in_the_json_has_its_place() -> None:
    _, (finding,) = parse_agent('{\n  "é": x}', "a.json")
    assert str(finding.location) == "a.json:2:8"


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    assert read_agent(tmp_path / "none.json")[1][0].rule == "D101"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["agent_id", "name", "status", "requires", "scopes_accepted", "methods", "wildcards", "document_type"]
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS, JSON), st.dictionaries(st.sampled_from(["scopes", "methods", "wildcards"]), JSON))
def test_any_object_is_read_or_refused(fields: dict[str, Any], requires: dict[str, Any]) -> None:
    read, findings = parse(**{"requires": requires, **fields})
    assert (read is None) == any(finding.severity == "error" for finding in findings)
