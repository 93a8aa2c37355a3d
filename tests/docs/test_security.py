"""The threat model speaks of settings that there are."""

from __future__ import annotations

import re
from dataclasses import fields

import click
import pytest
from tests.process import ROOT

from bespeak.app.cli.main import bespeak
from bespeak.contract.policy import Policies
from bespeak.contract.rate import RateLimits
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import AgentSettings, LimitSettings, ListenSettings
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.identity.settings import AuthSettings, MtlsSettings, SignedSettings, TokenSettings
from bespeak.state.store.session_settings import CaseSettings, SessionSettings
from bespeak.state.store.settings import IdempotencySettings, StoreSettings

TEXT = (ROOT / "SECURITY.md").read_text("utf-8")

TABLES: dict[str, type] = {
    "agents": AgentSettings,
    "audit": AuditSettings,
    "auth": AuthSettings,
    "auth.mtls": MtlsSettings,
    "auth.signed": SignedSettings,
    "auth.token": TokenSettings,
    "cases": CaseSettings,
    "http": HttpSettings,
    "idempotency": IdempotencySettings,
    "limits": LimitSettings,
    "limits.rate": RateLimits,
    "listen": ListenSettings,
    "policies": Policies,
    "sessions": SessionSettings,
    "store": StoreSettings,
}


@pytest.mark.parametrize(("table", "key"), sorted(set(re.findall(r"`\[([a-z.]+)\] ([a-z_]+)`", TEXT))))
def test_every_setting_named_is_there(table: str, key: str) -> None:
    assert key in {field.name for field in fields(TABLES[table])}


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)`", TEXT))))
def test_every_option_named_is_one_of_serve(option: str) -> None:
    serve = bespeak.get_command(click.Context(bespeak), "serve")
    assert serve is not None
    assert option in {name for parameter in serve.params for name in parameter.opts}


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`bespeak ([a-z]+ [a-z]+)`", TEXT))))
def test_every_command_named_is_there(command: str) -> None:
    group, name = command.split()
    found = bespeak.get_command(click.Context(bespeak), group)
    assert isinstance(found, click.Group)
    assert name in found.commands
