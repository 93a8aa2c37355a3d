"""`bespeak serve --http`, as a process: two faces of one service, workers, TLS, proofs of identity, a kill."""

from __future__ import annotations

import json
import signal
import sqlite3
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process import Served, refused, serving
from tests.security.guarded import AGENT, SCOPE, Guarded, Line, bearer, trusting
from tests.state.identity.certificates import Authority

pytestmark = pytest.mark.process

APP = '''
import os
import uuid
from bespeak import App, Context, Policies, Refusal

app = App("Rooms", server_id="rooms.example", operator="Acme", contact="ops@acme.example")
runs = []

@app.endpoint("BOOK", "/room", impact="irreversible", confidence=1.0, scopes=["room:book"],
              errors={"taken": "The room is taken."})
def book_room(room_id: str) -> dict[str, str]:
    """Reserve a room.

    Outcome: The room is reserved and a ticket is returned.
    """
    if room_id == "dies":
        os.kill(os.getpid(), 9)
    if room_id == "taken":
        raise Refusal("taken", "Somebody was faster.", next_free="2027-01-01")
    return {"ticket": str(uuid.uuid4()), "worker": str(os.getpid())}

@app.endpoint("FIND", "/rooms", impact="informational", confidence=1.0, scopes=["room:book"],
              intent="Find rooms.", outcome="The rooms that match are returned.")
def find_rooms(text: str = "", most: int = 1) -> dict[str, str | int]:
    return {"text": text, "most": most}

@app.endpoint("CANCEL", "/booking", impact="irreversible", confidence=1.0, scopes=["room:book"], confirm=True,
              intent="Cancel a booking.", outcome="The booking is cancelled.")
def cancel_booking(ticket: str) -> dict[str, str]:
    return {"cancelled": ticket}
'''

CALLER = {"Agent-ID": "a" * 64, "Authority-Scope": "room:book"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = tmp_path_factory.mktemp("web") / "web_rooms.py"
    module.write_text(APP)
    return module


@pytest.fixture(scope="module")
def served(app: Path) -> Iterator[Served]:
    with serving(app, "--http", "127.0.0.1:0") as running:
        yield running


def ask(served: Served, method: str, target: str, **options: Any) -> httpx.Response:
    headers = {**CALLER, **options.pop("headers", {})}
    return httpx.request(method, served.url + target, headers=headers, timeout=20, **options)


def agtp(served: Served, *lines: str, method: str = "BOOK", target: str = "/room", body: object = None) -> Any:
    with Line(served.port) as line:
        given = {**CALLER, **dict(text.split(": ") for text in lines)}
        return line.ask(method, target, given, json.dumps(body or {}, separators=(",", ":")).encode())


@pytest.mark.requirement("API-8.6-1")
def test_each_face_is_announced_and_the_manifest_names_the_http_face_at_its_port(served: Served) -> None:
    assert served.url.startswith("http://127.0.0.1:")
    reply = ask(served, "POST", "/room:book", json={"room_id": "1"})
    assert (reply.status_code, reply.headers["agtp-status"]) == (200, "200")
    assert agtp(served, body={"room_id": "1"}).status == 200
    manifest = httpx.post(f"{served.url}/:discover").json()
    assert [api["http_documentation"] for api in manifest["apis"]] == [f"{served.url}/openapi.json"]
    with Line(served.port) as line:
        assert line.ask("DISCOVER", "/").json["apis"] == manifest["apis"]


def test_queries_ids_and_etags_are_read_as_the_web_writes_them(served: Served) -> None:
    whole = httpx.post(f"{served.url}/:discover")
    again = httpx.post(f"{served.url}/:discover", headers={"If-None-Match": whole.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", whole.headers["etag"])
    assert ask(served, "GET", "/rooms:find?text=sea+view%2Bbath&most=3").json() == {"text": "sea view+bath", "most": 3}
    assert ask(served, "HEAD", "/rooms:find").content == b""
    reply = ask(served, "GET", "/rooms:find", headers={"Task-ID": "t-ü".encode(), "Request-ID": "r-1"})
    assert reply.headers["request-id"] == "r-1"
    assert (b"task-id", "t-ü".encode()) in reply.headers.raw
    assert reply.headers["server-id"] == "rooms.example"


def test_declared_errors_budgets_and_confirmations_are_problems_with_the_next_step(served: Served) -> None:
    taken = ask(served, "POST", "/room:book", json={"room_id": "taken"})
    assert (taken.status_code, taken.json()["code"]) == (422, "taken")
    assert taken.json()["details"] == {"next_free": "2027-01-01"}
    dear = ask(served, "POST", "/room:book", json={"room_id": "1"}, headers={"Budget-Limit": "calls=0"})
    assert (dear.status_code, dear.headers["agtp-status"]) == (402, "456")
    held = ask(served, "POST", "/booking:cancel", json={"ticket": "1"})
    assert (held.status_code, held.headers["agtp-status"]) == (403, "262")
    assert held.json()["error_type"]
    assert held.json()["detail"]


def test_an_answer_is_replayed_on_both_faces(served: Served) -> None:
    key = {"Idempotency-Key": "both"}
    first = ask(served, "POST", "/room:book", json={"room_id": "5"}, headers=key)
    again = ask(served, "POST", "/room:book", json={"room_id": "5"}, headers=key)
    other = agtp(served, "Idempotency-Key: both", body={"room_id": "5"})
    assert first.json() == again.json() == other.json
    assert again.headers["idempotency-replayed"] == "true"
    assert other.headers["idempotency-replayed"] == "true"
    assert ask(served, "POST", "/room:book", json={"room_id": "6"}, headers=key).status_code in (409, 422)


def test_an_answer_outlives_a_kill_on_both_faces(app: Path, tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "kept.db"))
    key = {"Idempotency-Key": "killed"}
    with serving(app, "--http", "127.0.0.1:0", *store) as before:
        first = ask(before, "POST", "/room:book", json={"room_id": "9"}, headers=key)
        with pytest.raises(httpx.TransportError):
            ask(before, "POST", "/room:book", json={"room_id": "dies"})
        assert before.process.wait(20) == -signal.SIGKILL
    with serving(app, "--http", "127.0.0.1:0", *store) as after:
        again = ask(after, "POST", "/room:book", json={"room_id": "9"}, headers=key)
        other = agtp(after, "Idempotency-Key: killed", body={"room_id": "9"})
    assert first.status_code == 200
    assert first.json() == again.json() == other.json
    assert (again.headers["idempotency-replayed"], other.headers["idempotency-replayed"]) == ("true", "true")


def test_several_workers_share_both_ports_and_a_signal_ends_both_faces(app: Path) -> None:
    with serving(app, "--http", "127.0.0.1:0", "--workers", "2") as running:
        seen = {ask(running, "POST", "/room:book", json={"room_id": "1"}).json()["worker"] for _ in range(40)}
        assert len(seen) == 2
        assert httpx.post(f"{running.url}/:discover").json()["apis"][0]["url"] == running.url
        assert running.stop() == 0
    with serving(app, "--http", "127.0.0.1:0") as running, httpx.Client() as client:
        client.get(f"{running.url}/rooms:find", headers=CALLER)
        assert running.stop() == 0
        with pytest.raises(httpx.ConnectError):
            client.get(f"{running.url}/rooms:find", headers=CALLER)


@pytest.mark.requirement("AI-6.4-2")
def test_http_beyond_this_machine_needs_tls_and_a_port_of_its_own(app: Path) -> None:
    assert "HTTP on 0.0.0.0:0 (--http) needs TLS" in refused(
        "serve", str(app), "--http", "0.0.0.0:0", "--store", "memory"
    )
    for host in ("127.0.0.1", "localhost"):
        # Several workers share their ports with each other, so that the system would let two faces share one too.
        same = ("--agtp", "127.0.0.1:4999", "--http", f"{host}:4999", "--store", "memory", "--workers", "2")
        assert "another port" in refused("serve", str(app), *same)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_in_use_is_reported_and_leaves_no_files(app: Path, served: Served, tmp_path: Path, workers: str) -> None:
    taken = served.url.removeprefix("http://")
    store = tmp_path / "state" / "rooms.db"
    store.parent.mkdir()
    options = ("--http", taken, "--store", str(store), "--workers", workers)
    assert f"Cannot listen on {taken}" in refused("serve", str(app), "--agtp", "127.0.0.1:0", *options)
    assert list(store.parent.iterdir()) == []


def _web(served: Served, headers: dict[str, str], verify: Any = True) -> httpx.Response:
    return httpx.post(f"{served.url}/seat:book", headers=headers, verify=verify, timeout=20)


def test_tokens_authenticate_callers_and_calls_are_recorded(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path / "seats", "token")
    with guarded.serving("--http", "127.0.0.1:0") as running:
        good = _web(running, bearer(guarded.token()))
        assert (good.status_code, good.json()["agent"], good.json()["verified"]) == (200, AGENT, "token")
        assert good.headers["audit-id"]
        nothing = _web(running, {})
        assert nothing.status_code == 401
        assert nothing.headers["www-authenticate"].startswith('Bearer realm="')
        assert nothing.json()["detail"].endswith("; send a token (Authorization: Bearer TOKEN).")
        assert _web(running, bearer(guarded.token()[:-4] + "AAAA")).status_code == 401
        assert _web(running, {"Agent-ID": AGENT, "Authority-Scope": SCOPE}).status_code == 401
        assert running.stop() == 0
    with sqlite3.connect(guarded.store) as kept:
        tables = {name for (name,) in kept.execute("select name from sqlite_master where type = 'table'")}
    assert any("audit" in name for name in tables)


def test_a_signature_is_over_the_method_and_path_of_agtp(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path / "seats", "signed")
    agent = guarded.new_agent("desk")
    with guarded.serving("--http", "127.0.0.1:0") as running:
        headers = agent.signed("BOOK", "/seat")
        good = _web(running, headers)
        assert (good.status_code, good.json()["verified"]) == (200, "signed"), good.text
        assert _web(running, headers).status_code == 401, "a nonce is used once, on whichever face"
        assert _web(running, agent.signed("POST", "/seat:book")).json()["code"] == "signature-invalid"


def test_a_client_certificate_authenticates_the_caller(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path / "seats", "mtls", "token")
    pair = guarded.authority.client("agent", uris=[f"agtp://{AGENT}"])
    with guarded.serving("--http", "127.0.0.1:0") as running:
        assert running.url.startswith("https://")
        context: ssl.SSLContext = trusting(guarded, *pair)
        # A certificate says who, and no document here says what it may do.
        assert _web(running, {}, context).headers["agtp-status"] == "455"
        known = _web(running, bearer(guarded.token()), context)
        assert (known.status_code, known.json()["verified"]) == (200, "mtls+token")
        assert _web(running, {}, trusting(guarded)).headers["agtp-status"] == "262"
        forged = Authority(tmp_path / "other").client("agent", uris=[f"agtp://{AGENT}"])
        with pytest.raises(httpx.TransportError):
            _web(running, {}, trusting(guarded, *forged))


def test_a_signal_lets_a_running_request_finish_on_both_faces(tmp_path: Path) -> None:
    module = tmp_path / "slow_rooms.py"
    module.write_text(
        APP.replace(
            '    if room_id == "dies":',
            '    print("begun", flush=True)\n    time.sleep(0.7)\n    if room_id == "dies":',
        ).replace("import os\n", "import os\nimport time\n")
    )
    with serving(module, "--http", "127.0.0.1:0") as running, ThreadPoolExecutor(2) as pool:
        web = pool.submit(ask, running, "POST", "/room:book", json={"room_id": "1"})
        other = pool.submit(agtp, running, body={"room_id": "1"})
        assert running.process.stdout.readline() == running.process.stdout.readline() == "begun\n"
        assert running.stop() == 0
        assert (web.result(20).status_code, other.result(20).status) == (200, 200)
