"""`[semantic]` in a configuration."""

from __future__ import annotations

from bespeak.documents.deployment.server_toml import parse_server
from bespeak.extensions.semantics.settings import SemanticSettings


def test_semantic_layer_is_off_without_its_table_and_its_base_is_checked() -> None:
    assert parse_server("", "bespeak.toml")[0].extension_tables == {}
    document, findings = parse_server("[semantic]\nregistry = true\n", "bespeak.toml")
    assert document.extension_tables.get("semantic") == SemanticSettings(registry=True)
    assert [finding for finding in findings if "semantic" in finding.pointer] == []
    document, _ = parse_server('[semantic]\nbase = "https://acme.example/m/"\n', "bespeak.toml")
    namespace = document.extension_tables["semantic"].namespace
    assert namespace("Agent") == "https://acme.example/m/ioa/semantic#Agent"
    _, findings = parse_server('[semantic]\nbase = "acme"\n', "bespeak.toml")
    assert any(finding.pointer == "/semantic/base" for finding in findings)
