"""Recorded fields that no endpoint has."""

from __future__ import annotations

from pathlib import Path

from tests.service import echo, make_endpoint

from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_target
from bespeak.state.audit.settings import unknown_fields

BOOK = make_endpoint("BOOK", "/room/{number}", echo, properties={"number": {}, "guest_id": {}})


def test_input_fields_of_an_endpoint_can_be_recorded() -> None:
    assert unknown_fields({("BOOK", "/room/{number}"): ("guest_id", "number")}, [BOOK]) == []


def test_unknown_endpoint_or_field_is_a_warning() -> None:
    fields = {("BOOK", "/room/{number}"): ("guest", "number"), ("BOOK", "/room/{id}"): ("guest_id",)}
    findings = unknown_fields(fields, [BOOK])
    assert [(finding.rule, finding.severity) for finding in findings] == [("Y874", "warning")] * 2
    assert "'guest' of BOOK /room/{number}" in findings[0].message
    assert findings[0].help == "It takes number, guest_id."
    assert "BOOK /room/{id}" in findings[1].message


def test_unknown_field_is_reported_at_start(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "rooms"\noperator = "Acme"\ncontact = "ops@acme.example"\n'
        '[audit.fields]\n"BOOK /rom" = ["guest_id"]\n'
    )
    findings = assemble_target(load_target(str(tmp_path)), "2026-05-01T00:00:00Z").findings
    assert "audit.fields names BOOK /rom" in "".join(finding.message for finding in findings if finding.rule == "Y874")
