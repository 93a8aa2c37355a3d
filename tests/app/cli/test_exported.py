"""Test opening services for export."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process import HOTEL, serving

from bespeak.app.cli.export import open_exported
from bespeak.app.cli.main import CommandFailedError
from bespeak.state.identity.settings import AuthSettings

CALLER = {
    "agent_id": None,
    "scopes": (),
    "tls": False,
    "ca_file": None,
    "insecure": False,
    "signing_key": None,
    "timeout": 10.0,
}
CONFIGURATION = """
[server]
server_id = "a.example"
operator = "A"
contact = "a@a.example"
app = "exported_rooms"

[http]
url = "https://a.example/rooms"

[auth]
modes = ["signed"]

[idempotency]
require = true
"""
APP = """
from bespeak import App
app = App("Rooms", server_id="a.example", operator="A", contact="a@a.example")

@app.endpoint("FIND", "/room", impact="informational", {more})
def find() -> dict:
    '''Find a room.

    Outcome: A room is found.
    '''
    return {{}}
"""


def deployment(folder: Path, module: str, more: str = "") -> str:
    (folder / "bespeak.toml").write_text(CONFIGURATION.replace("exported_rooms", module))
    (folder / f"{module}.py").write_text(APP.format(more=more))
    return str(folder)


def test_deployment_includes_its_configuration(tmp_path: Path) -> None:
    found = open_exported(deployment(tmp_path, "exported_rooms"), {})
    assert found.http.url == "https://a.example/rooms"
    assert found.auth == AuthSettings(modes=("signed",))
    assert found.keys_required
    assert open_exported(str(tmp_path), {}, url="https://b.example/").http.url == "https://b.example"


def test_endpoints_are_those_that_are_served_with_inherited_values() -> None:
    found = open_exported(str(HOTEL), {})
    assert all(endpoint.semantic.capability for endpoint in found.service.endpoints)
    assert found.catalog_warnings.keys() == {"AUDITLOG"}
    assert found.version.startswith("v-")


def test_service_with_only_internal_endpoints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="no endpoints"):
        open_exported(deployment(tmp_path, "exported_hidden", "internal=True"), {})


@pytest.mark.process
def test_live_web_service_keeps_the_name_in_its_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_CACHE", "off")
    here = open_exported(str(HOTEL), {}).service
    with serving(HOTEL, "--http", "127.0.0.1:0") as live:
        there = open_exported(f"{live.url}/.well-known/ai", CALLER)
        by_agtp = open_exported(live.uri, CALLER)
    assert (there.service.identity.name, there.service.description) == (here.identity.name, here.description)
    assert there.http.url == live.url
    assert (by_agtp.service.identity.name, by_agtp.http.url) == ("", None)
