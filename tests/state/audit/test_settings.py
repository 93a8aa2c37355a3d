"""`[audit]`: what governance needs unless it says otherwise, and no input unless it is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_target
from bespeak.documents.deployment.server_toml import parse_server
from bespeak.state.audit.settings import AuditSettings, unknown_fields

SERVER = '[server]\nserver_id = "rooms"\noperator = "Acme"\ncontact = "ops@acme.example"\n'
KEY = 'signing_key = "server.pem"\n'
BOOK = make_endpoint("BOOK", "/room/{number}", echo, properties={"number": {}, "guest_id": {}})


def read(text: str) -> tuple[AuditSettings, list[tuple[str, str]]]:
    document, findings = parse_server(SERVER + text, "bespeak.toml")
    return document.audit, [(finding.rule, finding.pointer) for finding in findings]


def test_without_the_table_a_lasting_store_has_what_governance_needs_and_with_it_all_records() -> None:
    settings, found = read("")
    assert (settings, found) == (AuditSettings(), [])
    assert (settings.recording(lasting=True), settings.recording(lasting=False)) == ("governance", "off")
    assert read("[audit]\ndiscovery = true\n") == (AuditSettings(records="all", discovery=True), [])
    assert read("[audit]\n") == (AuditSettings(records="all"), [])
    assert read("[audit.fields]\n") == (AuditSettings(records="all"), [])


@pytest.mark.parametrize("records", ["governance", "all", "off"])
def test_what_is_recorded_is_said_by_its_name(records: str) -> None:
    settings, found = read(f'[audit]\nrecords = "{records}"\n')
    assert (settings, found) == (AuditSettings(records=records), [])
    assert {settings.recording(lasting=lasting) for lasting in (True, False)} == {records}


def test_every_setting_is_read() -> None:
    text = (
        KEY + '[audit]\nenabled = true\nsign = "checkpoints"\ncheckpoint_every = 50\n'
        '[audit.fields]\n"BOOK /room/{number}" = ["guest_id", "number"]\n"quote /room" = []\n'
    )
    settings, found = read(text)
    assert found == []
    assert settings == AuditSettings(
        records="all",
        sign="checkpoints",
        checkpoint_every=50,
        fields={("BOOK", "/room/{number}"): ("guest_id", "number"), ("QUOTE", "/room"): ()},
    )


@rows(
    "text, rule, pointer",
    ('[audit]\nsign = "each"', "Y871", "/audit/sign"),
    (KEY + '[audit]\nsign = "all"', "D106", "/audit/sign"),
    ("[audit]\nenabled = 1", "D104", "/audit/enabled"),
    (KEY + "[audit]\ncheckpoint_every = 0", "D104", "/audit/checkpoint_every"),
    (KEY + "[audit]\ncheckpoint_every = 1000001", "Y872", "/audit/checkpoint_every"),
    ("[audit]\ncheckpoint_every = 10", "Y874", "/audit/checkpoint_every"),
    ("[audit]\nenabled = false\ndiscovery = true", "Y874", "/audit"),
    ('[audit]\nrecords = "off"\ndiscovery = true', "Y874", "/audit"),
    ('[audit]\nrecords = "all"\nenabled = false', "Y874", "/audit"),
    ('[audit]\nrecords = "some"', "D106", "/audit/records"),
    ('[audit.fields]\nroom = ["a"]', "Y870", "/audit/fields/room"),
    ('[audit.fields]\n"BOOK room" = ["a"]', "Y870", "/audit/fields/BOOK room"),
    ('[audit.fields]\n"BOOK /a" = ["a"]\n"book /a" = ["b"]', "D109", "/audit/fields/book ~1a"),
    ('[audit.fields]\n"BOOK /a" = "a"', "D104", "/audit/fields/BOOK ~1a"),
    ('[audit]\nfields = ["BOOK /a: b"]', "D104", "/audit/fields"),
    ("[audit]\nenable = true", "D105", "/audit/enable"),
    ('[audit]\npath = "stderr"\nattribution_records_enabled = true', "Y821", "/audit/path"),
    *[
        (f'[audit.fields]\n"PAY /x" = ["{name}", "invoice_id", "pinned"]\n', "Y873", "/audit/fields/PAY ~1x")
        for name in ("password", "card_number", "apiKey", "api_key", "access_token", "pin", "user_pin")
    ],
)
def test_wrong_value_is_reported(text: str, rule: str, pointer: str) -> None:
    _, found = read(text)
    assert found == [(rule, pointer)]


@pytest.mark.parametrize(("switch", "records"), [("", None), ("= false", "off"), ("= true", "all")])
def test_the_switch_of_the_reference_implementation_decides(switch: str, records: str | None) -> None:
    line = f"attribution_records_enabled {switch}\n" if switch else ""
    settings, _ = read(f'[audit]\npath = "stderr"\n{line}')
    assert settings == AuditSettings(records=records)


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
