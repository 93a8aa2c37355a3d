"""`[semantic]` in a configuration."""

from __future__ import annotations

from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.documents.deployment.server_toml import parse_server


def test_semantic_layer_is_off_without_its_table() -> None:
    assert parse_server("", "bespeak.toml")[0].semantic is None
    document, findings = parse_server("[semantic]\nregistry = true\n", "bespeak.toml")
    assert document.semantic == SemanticSettings(registry=True)
    assert [finding for finding in findings if "semantic" in finding.pointer] == []


def test_base_is_checked() -> None:
    document, _ = parse_server('[semantic]\nbase = "https://acme.example/m/"\n', "bespeak.toml")
    assert document.semantic is not None
    assert document.semantic.namespace("Agent") == "https://acme.example/m/ioa/semantic#Agent"
    _, findings = parse_server('[semantic]\nbase = "acme"\n', "bespeak.toml")
    assert any(finding.pointer == "/semantic/base" for finding in findings)
