"""Settings, options and commands exist that SECURITY.md and the threats page name; each threat is listed once."""

from __future__ import annotations

import re

import click
import pytest
from tests.process import ROOT

from bespeak.app.cli.main import bespeak
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.text.reading.settings import declared, nested_tables

POLICY = (ROOT / "SECURITY.md").read_text("utf-8")
THREATS = (ROOT / "docs" / "explanation" / "security.md").read_text("utf-8")
TEXT = POLICY + THREATS


def test_security_settings_are_those_the_threat_model_names() -> None:
    marked = {
        (table, key)
        for table, setting in nested_tables(ServerDocument)
        for _, key, inner in declared(setting.of)
        if inner.security
    }
    limits = {("limits", key) for key in re.findall(r"\| `([a-z_]+)` \| [^|]+ \|$", POLICY, re.MULTILINE)}
    assert {*re.findall(r"`\[([a-z0-9.]+)\] ([a-z_]+)`", TEXT)} | limits == marked


def test_every_threat_is_listed_once_with_a_defence() -> None:
    rows = [re.split(r"\s*\|\s*", line.strip("|").strip()) for line in THREATS.splitlines() if line.startswith("| ")]
    threats = [row[0] for row in rows if row[0] != "threat"]
    assert threats
    assert [row for row in rows if len(row) < 2 or not row[1]] == []
    assert [threat for threat in threats if threats.count(threat) > 1 or f"| {threat} |" in POLICY] == []


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)`", TEXT))))
def test_every_named_option_belongs_to_serve(option: str) -> None:
    serve = bespeak.get_command(click.Context(bespeak), "serve")
    assert serve is not None
    assert option in {name for parameter in serve.params for name in parameter.opts}


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`bespeak ([a-z]+ [a-z]+)`", TEXT))))
def test_every_named_command_exists(command: str) -> None:
    group, name = command.split()
    found = bespeak.get_command(click.Context(bespeak), group)
    assert isinstance(found, click.Group)
    assert found.get_command(click.Context(found), name) is not None
