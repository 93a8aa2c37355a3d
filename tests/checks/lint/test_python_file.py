"""Endpoints of a Python file as the subject of a check."""

from __future__ import annotations

from dataclasses import replace

from tests.checks.evolution.contracts import BOOK
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.document import check
from bespeak.checks.lint.reading import python_subject
from bespeak.text.source.tree import Location

TEXT = 'x = 1\r\n@app.endpoint("BOOK", "/found")\r\ndef book():\r\n    """Book."""\r\n'


def test_a_finding_is_at_the_argument_of_the_decorator() -> None:
    endpoint = replace(BOOK, path="/found", location=Location("/somewhere/app.py", 2))
    subject = python_subject(TEXT, "app.py", [endpoint])
    found = [finding for finding in check(subject, CONTEXT) if finding.rule == "P330"]
    assert [str(finding.location) for finding in found] == ["app.py:2:23"]
    assert [finding.pointer for finding in found] == ["/endpoints/0/path"]
