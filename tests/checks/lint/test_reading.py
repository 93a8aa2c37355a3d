"""Which kind of document a text is, and what it declares."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.cases import rows
from tests.checks.evolution.contracts import BOOK
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.document import check, check_text, python_subject, read_subject
from bespeak.checks.lint.subject import Subject
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location

ENDPOINT = """
[endpoint]
method = "QUERY"
path = "/rooms"
description = "Lists rooms."
errors = []
input = {}
output = []

[endpoint.semantic]
intent = "Lists the rooms of a property."
actor = "agent"
outcome = "The rooms of the property are returned."
confidence = 0.9
impact = "informational"
is_idempotent = true

[endpoint.handler]
type = "registered_function"
function = "rooms.query"
"""


def read(text: str, file: str) -> Subject:
    subject = read_subject(text, file)
    assert isinstance(subject, Subject)
    return subject


@rows(
    "file, text, kind",
    ("menu.agis", "service: Menu\n", "agis"),
    ("menu.agis", '{"service": "Menu"}', "agis"),
    ("menu.agis", "FIND /menu { output { dishes } }", "agis"),
    ("menu.yaml", "agis: '1.0'\n", "agis"),
    ("menu.json", '{"endpoints": [], "vocabulary": {}}', "agis"),
    ("rooms.toml", ENDPOINT, "endpoint"),
    ("agtp-recipes.toml", '[[recipe]]\nname = "a"\n', "recipes"),
    ("bespeak.toml", "", "server"),
    ("other.toml", '[server]\nserver_id = "a"\n', "server"),
    ("manifest.json", '{"agtp_version": "1.0"}', "manifest"),
    ("ai", '{"aiendpoint": "1.0"}', "ai"),
)
def test_kind_is_detected_by_name_or_content(file: str, text: str, kind: str) -> None:
    assert read(text, file).kind == kind


@rows(
    "file, text, rule",
    ("package.json", '{"name": "x"}', "D114"),
    ("notes.toml", "a = 1\n", "D114"),
    ("notes.json", "[]", "D114"),
    ("menu.agis", "a: [", "D102"),
    ("menu.agis", '{"a": }', "D102"),
    ("rooms.toml", "a = ", "D102"),
    ("menu.agis", "a: 1\na: 2\n", "D102"),
)
def test_text_that_is_not_a_document_is_one_finding(file: str, text: str, rule: str) -> None:
    finding = read_subject(text, file)
    assert isinstance(finding, Diagnostic)
    assert (finding.rule, finding.severity) == (rule, "error")
    assert finding.location is not None
    assert finding.location.file == file


def test_kind_may_be_given_and_a_faulty_document_still_declares_what_can_be_read() -> None:
    subject = read_subject("{}", "something.json", "manifest")
    assert isinstance(subject, Subject)
    assert subject.kind == "manifest"
    subject = read(ENDPOINT.replace("confidence = 0.9\n", ""), "rooms.toml")
    assert [finding.rule for finding in subject.found] == ["D103"]
    assert [str(declared.endpoint) for declared in subject.endpoints] == ["QUERY /rooms"]
    entries = '{"method": "QUERY"}, {"method": "QUERY", "path": "/rooms"}'
    subject = read(f'{{"agtp_version": "1.0", "endpoints": [{entries}]}}', "manifest.json")
    assert [declared.at for declared in subject.endpoints] == ["/endpoints/1"]


IDENTITY = {"agtp_version": "1.0", "agent_id": "1" * 64, "name": "Porter", "status": "active", "principal": "Library"}


@pytest.mark.parametrize("name", ["porter.agent.json", "porter.json"])
def test_an_agent_document_is_read_as_one(name: str) -> None:
    assert check_text(json.dumps(IDENTITY), name, CONTEXT).findings == ()
    found = check_text(json.dumps({**IDENTITY, "agent_id": "12", "status": "asleep"}, indent=1), name, CONTEXT)
    assert found.subject is not None
    assert found.subject.kind == "agent"
    places = [(one.rule, one.location.line if one.location else 0) for one in found.findings]
    assert places == [("D104", 3), ("D106", 5)]


def test_a_published_identity_is_not_a_manifest() -> None:
    served = {**IDENTITY, "document_type": "agtp-identity", "methods": ["QUERY"]}
    assert [finding.rule for finding in check_text(json.dumps(served), "porter.json", CONTEXT).findings] == ["D115"]


TEXT = 'x = 1\r\n@app.endpoint("BOOK", "/found")\r\ndef book():\r\n    """Book."""\r\n'


def test_a_finding_is_at_the_argument_of_the_decorator() -> None:
    endpoint = replace(BOOK, path="/found", location=Location("/somewhere/app.py", 2))
    subject = python_subject(TEXT, "app.py", [endpoint])
    found = [finding for finding in check(subject, CONTEXT) if finding.rule == "P330"]
    assert [str(finding.location) for finding in found] == ["app.py:2:23"]
    assert [finding.pointer for finding in found] == ["/endpoints/0/path"]
