"""`[methods] enable` takes known names, and says what is wrong with others."""

from __future__ import annotations

from bespeak.documents.deployment.server_toml import parse_server


def test_unknown_methods_are_reported_with_advice() -> None:
    document, findings = parse_server('[methods]\nenable = ["LOG", "orchestrate", "nap"]', "bespeak.toml")
    assert "nap" not in document.methods.enable
    [finding] = [one for one in findings if "nap" in one.message]
    assert "must be a standard method, a category or *" in finding.message
    assert "bespeak methods list" in (finding.help or "")
