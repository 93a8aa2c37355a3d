"""`[audit]`: off unless it is there, no input recorded unless it is named."""

from __future__ import annotations

import pytest

from bespeak.documents.deployment.server_toml import parse_server
from bespeak.state.audit.settings import AuditSettings

SERVER = '[server]\nserver_id = "rooms"\noperator = "Acme"\ncontact = "ops@acme.example"\n'
KEY = 'signing_key = "server.pem"\n'


def read(text: str) -> tuple[AuditSettings, list[tuple[str, str]]]:
    document, findings = parse_server(SERVER + text, "bespeak.toml")
    return document.audit, [(finding.rule, finding.pointer) for finding in findings]


def test_without_the_table_nothing_is_recorded() -> None:
    assert read("") == (AuditSettings(enabled=False), [])


def test_table_enables_the_audit_trail() -> None:
    assert read("[audit]\ndiscovery = true\n") == (AuditSettings(enabled=True, discovery=True), [])
    assert read("[audit]\n") == (AuditSettings(enabled=True), [])
    assert read("[audit.fields]\n") == (AuditSettings(enabled=True), [])


def test_every_setting_is_read() -> None:
    text = (
        KEY + '[audit]\nenabled = true\nsign = "checkpoints"\ncheckpoint_every = 50\n'
        '[audit.fields]\n"BOOK /room/{number}" = ["guest_id", "number"]\n"quote /room" = []\n'
    )
    settings, found = read(text)
    assert found == []
    assert settings == AuditSettings(
        enabled=True,
        sign="checkpoints",
        checkpoint_every=50,
        fields={("BOOK", "/room/{number}"): ("guest_id", "number"), ("QUOTE", "/room"): ()},
    )


@pytest.mark.parametrize(
    ("text", "rule", "pointer"),
    [
        ('[audit]\nsign = "each"', "Y871", "/audit/sign"),
        (KEY + '[audit]\nsign = "all"', "D106", "/audit/sign"),
        ("[audit]\nenabled = 1", "D104", "/audit/enabled"),
        (KEY + "[audit]\ncheckpoint_every = 0", "D104", "/audit/checkpoint_every"),
        (KEY + "[audit]\ncheckpoint_every = 1000001", "Y872", "/audit/checkpoint_every"),
        ("[audit]\ncheckpoint_every = 10", "Y874", "/audit/checkpoint_every"),
        ("[audit]\nenabled = false\ndiscovery = true", "Y874", "/audit"),
        ('[audit.fields]\nroom = ["a"]', "Y870", "/audit/fields/room"),
        ('[audit.fields]\n"BOOK room" = ["a"]', "Y870", "/audit/fields/BOOK room"),
        ('[audit.fields]\n"BOOK /a" = ["a"]\n"book /a" = ["b"]', "D109", "/audit/fields/book ~1a"),
        ('[audit.fields]\n"BOOK /a" = "a"', "D104", "/audit/fields/BOOK ~1a"),
        ('[audit]\nfields = ["BOOK /a: b"]', "D104", "/audit/fields"),
        ("[audit]\nenable = true", "D105", "/audit/enable"),
        ('[audit]\npath = "stderr"\nattribution_records_enabled = true', "Y821", "/audit/path"),
    ],
)
def test_wrong_value_is_reported(text: str, rule: str, pointer: str) -> None:
    _, found = read(text)
    assert found == [(rule, pointer)]


@pytest.mark.parametrize("name", ["password", "card_number", "apiKey", "api_key", "access_token", "pin", "user_pin"])
def test_field_named_like_a_secret_is_a_warning(name: str) -> None:
    _, found = read(f'[audit.fields]\n"PAY /invoice" = ["{name}", "invoice_id", "pinned"]\n')
    assert found == [("Y873", "/audit/fields/PAY ~1invoice")]


@pytest.mark.parametrize(("switch", "enabled"), [("", False), ("= false", False), ("= true", True)])
def test_the_switch_of_the_reference_implementation_enables_the_trail(switch: str, enabled: bool) -> None:
    line = f"attribution_records_enabled {switch}\n" if switch else ""
    settings, _ = read(f'[audit]\npath = "stderr"\n{line}')
    assert settings == AuditSettings(enabled=enabled)
