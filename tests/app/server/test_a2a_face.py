"""A2A beside the HTTP face: its settings, and servers that are mounted, stopped and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from a2a.types import AgentCard, GetTaskRequest
from google.protobuf.json_format import ParseDict
from tests.faces.a2a.agent import calling, connected, output, send, state
from tests.process import serving
from tests.service import build

import bespeak
from bespeak.app.server.a2a_face import make_a2a
from bespeak.app.server.settings import plan_settings
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.documents.deployment.server_toml import ServerDocument, parse_server
from bespeak.errors import ConfigError
from bespeak.state.identity.settings import AuthSettings

pytestmark = pytest.mark.anyio

APP = '''
import asyncio

from bespeak import App, Policies

app = App(
    "Rooms",
    server_id="rooms.example",
    operator="Tests",
    contact="ops@rooms.example",
    policies=Policies(scope_required_for_invocation=False),
)

@app.endpoint("QUERY", "/rooms", impact="informational")
def rooms(beds: int = 1) -> dict[str, list[str]]:
    """Find rooms with enough beds.

    Outcome: The rooms are returned.
    """
    return {"rooms": ["12"]}

@app.endpoint("WATCH", "/rooms", impact="informational")
async def watch() -> None:
    """Watch the rooms.

    Outcome: The rooms have changed.
    """
    await asyncio.Event().wait()
'''


def test_a2a_needs_the_http_face() -> None:
    with pytest.raises(ConfigError, match="A2A is served on the HTTP face: give --http"):
        plan_settings("rooms.py", ServerDocument(), a2a=True, store="memory")


def test_the_table_of_the_configuration_enables_it() -> None:
    document, findings = parse_server("[a2a]\nenabled = true\nmost_skills = 7\nretention = 60\n", "bespeak.toml")
    assert findings == []
    settings = plan_settings("x", document, http="127.0.0.1:0", store="memory").a2a
    assert (settings.enabled, settings.most_skills, settings.retention) == (True, 7, 60)
    assert not plan_settings("x", ServerDocument(), http="127.0.0.1:0", store="memory").a2a.enabled


@pytest.mark.parametrize(("mode", "warned"), [("signed", True), ("mtls", False), ("open", False)])
def test_credentials_that_cannot_be_used_are_warned_of(
    mode: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    dispatcher = build().dispatcher
    dispatcher.server.store = cast("Any", object())
    make_a2a(dispatcher, HttpSettings(), AuthSettings(modes=(mode,)), A2aSettings())
    assert ("A2A takes no signatures" in caplog.text) is warned


async def test_a_mounted_service_has_a_card_if_its_url_is_known(tmp_path: Path) -> None:
    # A name of its own: modules are imported once.
    (tmp_path / "a2a_rooms.py").write_text(APP)
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "rooms.example"\noperator = "T"\ncontact = "a@t.example"\napp = "a2a_rooms:app"\n'
        "[policies]\nscope_required_for_invocation = false\n[a2a]\nenabled = true\n"
    )
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "query_rooms"}}]}},
    }
    found: list[Any] = []
    for url in (None, "https://rooms.example"):
        service = bespeak.asgi(tmp_path, store="memory", **({} if url is None else {"url": url}))
        async with service.running():
            transport = httpx.ASGITransport(app=cast("Any", service))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                called = await client.post("/a2a", json=body, headers={"A2A-Version": "1.0"})
                found.append(await client.get("/.well-known/agent-card.json"))
        assert called.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [card.status_code for card in found] == [404, 200]
    assert ParseDict(found[1].json(), AgentCard()).supported_interfaces[0].url == "https://rooms.example/a2a"


@pytest.mark.process
async def test_a_task_whose_server_is_killed_does_not_work_for_ever(tmp_path: Path) -> None:
    (tmp_path / "rooms.py").write_text(APP)
    options = ("--http", "127.0.0.1:0", "--a2a", "--store", str(tmp_path / "store.db"))
    with serving(tmp_path / "rooms.py", *options) as server:
        assert "A2A at /a2a" in server.announcement
        async with connected(server.url) as client:
            task = await send(client, calling("watch_rooms"), return_immediately=True)
            done = await send(client, calling("query_rooms"))
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(20)
    with serving(tmp_path / "rooms.py", *options) as server:
        async with connected(server.url) as client:
            later = [await client.get_task(GetTaskRequest(id=one.id)) for one in (task, done)]
    assert (state(task), [state(each) for each in later]) == ("working", ["failed", "completed"])
    assert output(later[1]) == {"rooms": ["12"]}


@pytest.mark.process
def test_the_sdk_is_loaded_only_if_it_is_needed() -> None:
    code = (
        "import sys, bespeak.app.cli.serve, bespeak.app.server.lifecycle, bespeak.app.server.http_pages;"
        "sys.exit(any(name.partition('.')[0] in ('a2a', 'google') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
