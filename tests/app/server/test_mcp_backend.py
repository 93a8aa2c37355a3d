"""Replies of a client as outcomes of tool calls."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from tests.faces.mcp.tools import SCOPES, Rooms, endpoint
from tests.service import AGENT

from bespeak import Policies
from bespeak.agent.client.errors import UnreachableError
from bespeak.agent.client.reply import Reply
from bespeak.app.server.local import connect_local
from bespeak.app.server.mcp_backend import ClientBackend
from bespeak.app.server.target import load_app
from bespeak.contract.mcp_tool import make_tools
from bespeak.contract.service import ServerIdentity
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.protocol.exchange.principal import Scopes
from bespeak.protocol.exchange.refusal import Outcome

pytestmark = pytest.mark.anyio

FIND = endpoint("FIND", "/rooms", required_scopes=("rooms:read",))
ROOT = endpoint("FIND", "/")


def manifest(version: str) -> ManifestDocument:
    server = ServerIdentity(server_id="rooms.example", operator="", contact="")
    return ManifestDocument(server=server, agtp_version=version, endpoints=(FIND, ROOT), raw={})


class Client:
    """A client whose reply is given, and the requests that it got."""

    discovered: Any = None

    def __init__(self, reply: Reply | Exception, version: str = "1.0") -> None:
        self._reply = reply
        self._manifest = manifest(version)
        self.named: list[tuple[str, str]] = []

    async def discover(self, *, refresh: bool = False) -> ManifestDocument:
        return self._manifest

    async def request(self, method: str, path: str, *_: Any, **__: Any) -> Reply:
        self.named.append((method, path))
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


def backend(reply: Reply | Exception, **options: Any) -> ClientBackend:
    return ClientBackend(cast("Any", Client(reply)), manifest("1.0"), **options)


async def outcome(reply: Reply | Exception) -> Outcome:
    return await backend(reply).call(FIND, {}, {}, None)


def replied(status: int, body: bytes, **headers: str) -> Reply:
    return Reply(status, "", {name.replace("_", "-"): value for name, value in headers.items()}, body)


async def test_an_output_and_a_warning_are_passed_on() -> None:
    found = await outcome(replied(200, b'{"a": 1}', agtp_endpoint_warning="deprecated"))
    assert found == Outcome(200, {"a": 1}, warning="deprecated")


async def test_text_is_passed_on_as_text() -> None:
    assert (await outcome(replied(200, b"hello", content_type="text/plain"))).output == "hello"


async def test_a_refusal_keeps_its_members() -> None:
    body = msgspec.json.encode({"error": {"code": "busy", "message": "Busy.", "limit": 3}})
    found = await outcome(replied(429, body, retry_after="5"))
    assert found.error == {"code": "busy", "message": "Busy.", "limit": 3}
    assert found.retry_after == "5"


async def test_a_failure_to_reach_the_service_does_not_show_the_query_of_its_address() -> None:
    found = await outcome(UnreachableError("GET https://x.example/a?api_key=secret: is the server running?"))
    assert found.error == {
        "code": "service-not-reached",
        "message": "GET https://x.example/a is the server running?",
    }


@pytest.mark.parametrize(
    ("scopes", "refused"), [(None, False), (Scopes(["rooms:*"]), False), (Scopes(), True), (Scopes(["a:b"]), True)]
)
def test_a_call_whose_scopes_are_known_to_be_missing_is_refused(scopes: Scopes | None, refused: bool) -> None:
    found = backend(replied(200, b""), scopes=scopes).refuse(FIND, None)
    assert (found is not None) is refused
    assert found is None or found.error["missing_scopes"] == ["rooms:read"]


@pytest.mark.parametrize(("version", "paths"), [("1.0", ["/rooms"]), ("", ["/rooms", "/"])])
async def test_endpoints_that_every_agtp_server_has_are_left_out(version: str, paths: list[str]) -> None:
    client = Client(replied(200, b""), version)
    found = await ClientBackend(cast("Any", client), await client.discover()).endpoints()
    assert [each.path for each in found] == paths


async def test_capabilities_that_share_a_path_are_called_by_their_ids() -> None:
    first, second = (endpoint("POST", "/rpc", tool=name) for name in ("book_flight", "cancel_flight"))
    client = Client(replied(200, b"{}"))
    client.discovered = SimpleNamespace(kind="ai", capability=lambda name: name if name != "other" else None)
    serving = ClientBackend(cast("Any", client), await client.discover())
    for each in (first, second, endpoint("POST", "/rpc", tool="other")):
        await serving.call(each, {}, {}, None)
    assert client.named == [("book_flight", ""), ("cancel_flight", ""), ("POST", "/rpc")]
    assert list(make_tools([first, second])) == ["book_flight", "cancel_flight"]


async def test_the_manifest_says_which_calls_another_party_confirms() -> None:
    app = Rooms(policies=Policies(confirm_irreversible=True)).app
    async with connect_local(load_app(app, Path()), agent_id=AGENT, scopes=SCOPES) as client:
        serving = ClientBackend(client, await client.discover())
        confirmed = [str(each) for each in await serving.endpoints() if serving.is_confirmed(each)]
    assert confirmed == ["BOOK /rooms/{room_id}"]


async def test_a_confirmation_that_no_document_tells_of_is_learned_from_the_service() -> None:
    error = {"code": "confirmation-required", "message": "Wait.", "confirmation_id": "conf-1"}
    serving = backend(replied(262, msgspec.json.encode({"error": error})))
    assert not serving.is_confirmed(FIND)
    await serving.call(FIND, {}, {}, None)
    assert serving.is_confirmed(FIND)
    assert not serving.is_confirmed(ROOT)
