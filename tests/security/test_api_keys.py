"""API keys over real sockets, on every face of a server with two workers."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cases import rows
from tests.process import Served, bespeak
from tests.security.guarded import AGENT, SCOPE, Guarded, Line, ask, bearer

import bespeak as client

pytestmark = pytest.mark.process
PATIENCE = 30.0
DERIVED = "722f5df09bd90e3ff637fd07574398f76264d28a0329c1e3159689e5c1b16e2e"  # the Agent-ID of `--as ann`
TOOL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "book_seat", "arguments": {}}}
SKILL = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "SendMessage",
    "params": {
        "message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"skill": "book_seat", "input": {}}}]}
    },
}


class Desk:
    def __init__(self, guarded: Guarded, served: Served) -> None:
        self.guarded = guarded
        self.served = served

    def run(self, *words: str) -> Any:
        done = bespeak("keys", "api", *words, str(self.guarded.folder), "--store", self.guarded.store)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def new(self, *options: str, scope: str = SCOPE) -> str:
        return str(json.loads(self.run("new", "--agent", "ann", "--scope", scope, "--json", *options))["key"])

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.post(f"{self.served.url}{path}", json={} if body is None else body, headers=given, timeout=20)

    def until(self, key: str, status: int) -> None:
        """Wait until every worker answers with a status; each connection may be another one's."""
        end = time.monotonic() + PATIENCE
        same = 0
        while same < 12:
            assert time.monotonic() < end, f"not every worker answers {status}"
            same = same + 1 if ask(self.served, bearer(key)).status == status else 0


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("keys")
    guarded = Guarded(folder, "key", more='[http]\nurl = "https://rooms.example"\n')
    with guarded.serving("--http", "127.0.0.1:0", "--mcp", "--a2a", "--workers", "2") as served:
        yield Desk(guarded, served)


@pytest.fixture(scope="module")
def key(desk: Desk) -> str:
    return desk.new()


def test_a_new_key_is_accepted_at_once_by_every_worker(desk: Desk) -> None:
    fresh = desk.new()
    for _ in range(4):
        answer = ask(desk.served, bearer(fresh))
        assert (answer.status, answer.json["agent"], answer.json["verified"]) == (200, DERIVED, "key")


def test_a_key_authenticates_on_every_face(desk: Desk, key: str) -> None:
    assert desk.post("/seat:book", Authorization=f"Bearer {key}").json()["agent"] == DERIVED
    assert desk.post("/seat:book", X_API_Key=key).json()["agent"] == DERIVED
    for headers in ({"Authorization": f"Bearer {key}"}, {"X-API-Key": key}):
        called = desk.post("/mcp", TOOL, Accept="application/json, text/event-stream", **headers)
        # A person has to confirm what cannot be undone: nobody is asked for a caller without the scope.
        assert "confirmation-required" in called.text, called.text
        told = desk.post("/a2a", SKILL, A2A_Version="1.0", **headers)
        assert "confirmation-required" in told.text, told.text
    with client.connect_sync(desk.served.uri, key=key) as service:
        assert service.call("BOOK", "/seat")["agent"] == DERIVED
    with client.connect_sync(desk.served.url, key=key) as service:
        assert service.call("BOOK", "/seat")["agent"] == DERIVED


def test_a_key_is_read_from_a_file_or_the_environment(desk: Desk, key: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{key}\n")
    for options, env in ((("--key-file", str(file)), {}), ((), {"BESPEAK_KEY": key})):
        done = bespeak("call", desk.served.uri, "BOOK", "/seat", *options, env=env)
        assert json.loads(done.stdout)["agent"] == DERIVED, done.stderr


def test_a_key_has_only_its_scopes_and_speaks_only_for_its_agent(desk: Desk, key: str) -> None:
    poorer = ask(desk.served, bearer(desk.new(scope="booking:room")))
    assert (poorer.status, poorer.json["error"].get("missing_scopes")) == (455, [SCOPE]), poorer.json
    assert "get a key with them" in poorer.json["error"]["message"]
    wider = ask(desk.served, bearer(key, Authority_Scope="booking:*"))
    assert (wider.status, wider.code) == (262, "scope-claim-invalid")
    assert ask(desk.served, bearer(key, Agent_ID=AGENT)).code == "agent-id-mismatch"


@rows(
    "headers, status, code",
    ({}, 401, "authorization-required"),
    ({"Authorization": "Bearer bsk_0123456789ab_" + "0" * 48}, 401, "key-unknown"),
    ({"Authorization": "Bearer bsk_short"}, 401, "key-malformed"),
    ({"Authorization": "Bearer a.b.c"}, 401, "credential-not-accepted"),
    ({"Authorization": "Basic YTpi"}, 401, "credential-not-accepted"),
    ({"X-API-Key": "bsk_0123456789ab_" + "0" * 48}, 401, "key-unknown"),
    ({"X-API-Key": "bsk_0123456789ab_" + "0" * 48, "Authorization": "Bearer other"}, 400, "invalid-header"),
    ({"X-API-Key": "for-a-gateway"}, 401, "authorization-required"),
)
def test_other_credentials_are_refused(desk: Desk, headers: dict[str, str], status: int, code: str) -> None:
    answer = desk.post("/seat:book", **headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    if status == 401:
        assert answer.headers["www-authenticate"] == 'Bearer realm="rooms.example"'


def test_a_revoked_key_ends_for_every_worker_and_every_open_connection(desk: Desk) -> None:
    key = desk.new()
    with Line(desk.served.port) as line, httpx.Client() as web:
        assert line.ask(headers=bearer(key)).status == 200
        place = f"{desk.served.url}/mcp"
        sent = {"Accept": "application/json, text/event-stream", "X-API-Key": key}
        assert web.post(place, json=TOOL, headers=sent).status_code == 200
        desk.run("revoke", key)
        desk.until(key, 401)
        # On a busy machine the worker of an open connection may be the last one that hears of it.
        end = time.monotonic() + PATIENCE
        while (again := line.ask(headers=bearer(key))).status == 200:
            assert time.monotonic() < end, "the connection stays open to the key"
        assert (again.status, again.code) == (401, "key-revoked")
        while (refused := web.post(place, json=TOOL, headers=sent)).status_code == 200:
            assert time.monotonic() < end, "MCP stays open to the key"
        assert refused.status_code == 401
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]


def test_a_key_ends_at_its_time(desk: Desk) -> None:
    key = desk.new("--expires", "1s")
    desk.until(key, 401)
    assert ask(desk.served, bearer(key)).code == "key-expired"


def test_documents_name_the_scheme(desk: Desk) -> None:
    def read(path: str) -> Any:
        return httpx.get(f"{desk.served.url}{path}").json()

    document = read("/openapi.json")
    assert document["components"]["securitySchemes"]["ApiKey"]["name"] == "X-API-Key"
    assert document["paths"]["/seat:book"]["post"]["security"] == [{"ApiKey": [SCOPE]}]
    assert read("/.well-known/ai")["auth"] == {"type": "apikey", "header": "X-API-Key"}
    card = read("/.well-known/agent-card.json")
    assert card["securitySchemes"]["ApiKey"]["apiKeySecurityScheme"]["name"] == "X-API-Key"


def test_uses_are_listed_and_records_name_the_key_by_its_id_alone(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path, "key")
    with guarded.serving("--log", "debug") as served:
        desk = Desk(guarded, served)
        key = desk.new()
        _, key_id, secret = key.split("_")
        ask(served, bearer(key))
        wrong = f"bsk_{key_id}_{secret[::-1]}"
        ask(served, bearer(wrong))
        served.stop()
        assert served.process.stderr is not None
        log = served.process.stderr.read()
    [row] = json.loads(desk.run("list", "--json"))
    assert row["last_used"] is not None
    exported = bespeak("audit", "export", str(tmp_path), "--store", guarded.store).stdout
    records = "".join(_decoded(part) for part in re.findall(r"\.([\w-]+)\.", exported))
    assert "key-unknown" in log
    assert f"key:{key_id}" in records
    for text in (log, exported, records):
        assert secret not in text
        assert secret[::-1] not in text


def _decoded(part: str) -> str:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode(errors="replace")
