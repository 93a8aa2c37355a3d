"""The console of a server: who is admitted, what its JSON API answers, and what a page of another site cannot do."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.console import BOOK, FIND, WEB, Mounted
from tests.service import AGENT, build, echo, make_endpoint
from tests.state.identity.issuer import SERVER, Clock, claims, new_key, public, sign, write_keys
from tests.stateful import keeping

from bespeak.app.server.settings import plan_settings
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError
from bespeak.faces.console import application
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.credentials import make_key
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.commands.agents import AddApiKey, RevokeApiKey
from bespeak.state.store.settings import MEMORY

pytestmark = pytest.mark.anyio


async def test_nothing_but_the_files_is_shown_without_the_token() -> None:
    console = Mounted()
    for path in ("api/session", "api/endpoints", "api/endpoint?method=FIND&path=/rooms", "api/live"):
        reply = await console.ask(path, token=False)
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "console-token-wrong")
        wrong = await console.ask(path, token=False, headers={"Console-Token": "x" * 43})
        assert wrong.status_code == 401
    page = await console.ask("", token=False)
    assert page.status_code == 200
    assert "test.example" not in page.text


@rows(
    "headers",
    {"Host": "evil.example"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)
async def test_pages_of_others_are_refused_even_with_the_token(headers: dict[str, str]) -> None:
    console = Mounted()
    reply = await console.ask("api/session", headers=headers)
    assert reply.status_code in (403, 421)
    body = {"method": "FIND", "path": "/rooms"}
    assert (await console.ask("api/exchange", method="POST", json=body, headers=headers)).status_code in (403, 421)


async def test_a_form_and_a_body_that_is_not_an_object_are_refused() -> None:
    console = Mounted()
    form = await console.ask("api/exchange", method="POST", data={"method": "FIND"})
    assert form.status_code == 415
    no_texts = ('{"input": {"beds": "\\ud800"}}', '{"\\ud800": 1}', '{"input": {"beds": NaN}}', '{"as": "\\udfff"}')
    for body in ("[]", "{", "[" * 100_000, *no_texts):
        reply = await console.ask(
            "api/exchange", method="POST", content=body, headers={"Content-Type": "application/json"}
        )
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid-body")
    assert (await console.ask("api/exchange")).status_code == 405
    assert (await console.ask("api/session", method="POST", json={})).status_code == 405


async def test_the_page_may_run_its_own_scripts_only() -> None:
    policy = (await Mounted().ask("")).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


async def test_the_session_tells_who_is_served_and_where() -> None:
    session = (await Mounted().ask("api/session")).json()
    assert session["service"]["server_id"] == "test.example"
    assert (session["access"], session["identity"]) == ("token", "declared")
    assert (session["agtp"], session["http"]) == ("agtp://127.0.0.1:4480", WEB)


async def test_an_endpoint_is_described_with_its_contract_and_calls_to_copy() -> None:
    console = Mounted()
    found = (await console.ask("api/endpoint", params={"method": "BOOK", "path": "/room"})).json()
    assert found["semantic"]["impact"] == "irreversible"
    assert found["sample"] == {"room_id": "x"}
    assert found["calls"]["curl"].startswith("curl --json")
    listed = (await console.ask("api/endpoints")).json()
    assert ["BOOK", "/room"] in [one[:2] for one in listed]
    missing = await console.ask("api/endpoint", params={"method": "FIND", "path": "/nothing"})
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "endpoint-not-found")


async def test_a_call_is_shown_as_it_is_on_the_wire_with_every_gate() -> None:
    found = (await Mounted().call("FETCH", "/rooms/{room_id}", input={"room_id": "a b"}, scopes=["rooms:read"])).json()
    assert found["request"].startswith("AGTP/1.0 FETCH /rooms/a%20b\nAuthority-Scope: rooms:read\n")
    assert found["response"].startswith("AGTP/1.0 200 OK\n")
    assert (found["status"], found["refused"], found["error"]) == (200, False, None)
    gates = {one["gate"]: one["verdict"] for one in found["gates"]}
    assert gates["identity"] == gates["route"] == gates["scope"] == gates["input"] == gates["handler"] == "passed"


async def test_the_query_of_a_path_is_read_as_on_the_wire() -> None:
    found = (await Mounted().call("FIND", "/rooms?beds=2")).json()
    assert found["request"].startswith("AGTP/1.0 FIND /rooms?beds=2\n")
    assert (found["status"], found["body"]) == (200, {"beds": 2})


@rows(
    "asked, gate, remedy",
    ({"method": "BOOK", "path": "/rooms"}, "route", {"method": "FIND"}),
    ({"method": "FIN", "path": "/rooms"}, "vocabulary", {"method": "FIND"}),
    (
        {"method": "FIND", "path": "/guarded", "as": "ann", "scopes": ["a:b"]},
        "scope",
        {"scopes": ["a:b", "guests:read"]},
    ),
    ({"method": "FIND", "path": "/rooms", "input": {"beds": "many"}}, "input", None),
    ({"method": "FIND", "path": "/nothing"}, "route", {}),
)
async def test_a_refusal_names_its_gate_and_what_the_contract_offers(
    asked: dict[str, Any], gate: str, remedy: dict[str, Any] | None
) -> None:
    guarded = replace(make_endpoint("FIND", "/guarded", echo), required_scopes=("guests:read",))
    found = (await Mounted(FIND, BOOK, guarded).call(**asked)).json()
    assert found["refused"]
    refusing = [one["gate"] for one in found["gates"] if one["verdict"] == "refused"]
    assert refusing == [gate]
    changes = [one["change"] for one in found["remedies"]]
    assert (remedy is None and changes == []) or remedy in changes


async def test_what_cannot_be_undone_needs_a_second_press() -> None:
    console = Mounted()
    first = await console.call("BOOK", "/room", input={"room_id": "7"})
    assert (first.status_code, first.json()["error"]["code"]) == (409, "press-again")
    second = await console.call("BOOK", "/room", input={"room_id": "7"}, confirmed=True)
    assert second.json()["status"] == 200


@rows(
    "asked",
    {"method": "BOOK", "path": "/{kind}", "input": {"kind": "room", "room_id": "7"}},
    {"method": "book", "path": "/room", "input": {"room_id": "7"}, "headers": {"Method-Grammar": "AGIS/1.0"}},
    {"method": "FIND", "path": "/room", "input": {"room_id": "7"}},
    {"method": "PUT", "path": "/other", "input": {"room_id": "7"}},
)
async def test_no_other_words_for_a_call_that_cannot_be_undone_save_the_second_press(asked: dict[str, Any]) -> None:
    redirect = Redirect(from_method="FIND", from_path="/room", to_method="BOOK", to_path="/room")
    policies = Policies(methods=MethodPolicy(legacy=("PUT",), redirects=(redirect,)))
    replaced = replace(BOOK, method="REPLACE", path="/other")
    console = Mounted(FIND, BOOK, replaced, policies=policies)
    first = await console.call(**asked)
    assert (first.status_code, first.json()["error"]["code"]) == (409, "press-again")
    assert (await console.call(**asked, confirmed=True)).json()["status"] == 200


async def test_a_call_that_calls_others_needs_a_second_press() -> None:
    replacing = replace(FIND, method="ROUTE", path="/any", passes_on=True)
    console = Mounted(replacing)
    first = await console.call("ROUTE", "/any")
    assert (first.status_code, first.json()["error"]["code"]) == (409, "press-again")
    assert "may call what cannot be undone" in first.json()["error"]["message"]
    assert (await console.call("ROUTE", "/any", confirmed=True)).json()["status"] == 200


@rows(
    "asked, word",
    ({"method": "FIND", "path": "/rooms", "headers": {"Host": "x"}}, "'host'"),
    ({"method": "FIND", "path": "/rooms", "colour": 1}, "colour"),
    ({"method": "FIND", "path": "/ro oms"}, "percent-encode"),
    ({"method": "FIND", "path": "/rooms", "headers": {"Task-ID": "a\r\nX: y"}}, "control"),
    ({"method": "FETCH", "path": "/rooms/{room_id}"}, "room_id"),
    ({"path": "/rooms"}, "method"),
)
async def test_a_call_that_cannot_be_sent_says_why(asked: dict[str, Any], word: str) -> None:
    reply = await Mounted().ask("api/exchange", method="POST", json=asked)
    assert reply.status_code == 400
    assert word in reply.json()["error"]["message"]


async def test_a_credential_is_not_shown_in_the_request() -> None:
    found = (await Mounted().call("FIND", "/rooms", headers={"Authorization": "Bearer secret-secret"})).json()
    assert "secret-secret" not in json.dumps(found)


@contextlib.asynccontextmanager
async def watching(
    console: Mounted, query: str = "", ended: asyncio.Event | None = None
) -> AsyncIterator[asyncio.Queue[dict[str, Any]]]:
    """Read the events of a page that watches; comments are left out. `ended` is set when the stream ends."""
    reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    begun = asyncio.Event()

    async def send(message: Any) -> None:
        begun.set()
        if ended is not None and message.get("more_body") is False:
            ended.set()
        for line in message.get("body", b"").decode().splitlines():
            if line.startswith("data: "):
                reports.put_nowait(json.loads(line.removeprefix("data: ")))

    async def receive() -> Any:
        await asyncio.Event().wait()

    bearer = f"Bearer {console.credential}".encode()
    own = (b"authorization", bearer) if console.credential else (b"console-token", console.token.encode())
    headers = [own, (b"host", b"127.0.0.1:8080")]
    scope = {"type": "http", "method": "GET", "path": "/console/api/live", "query_string": query.encode()}
    task = asyncio.create_task(console({**scope, "headers": headers}, receive, send))
    await begun.wait()
    try:
        yield reports
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_exchanges_are_reported_as_they_happen_and_counted_if_there_are_many() -> None:
    console = Mounted()
    async with watching(console) as reports:
        for _ in range(500):
            console.bench.send("FIND", "/rooms")
        console.bench.send("BOOK", "/rooms")
        report = await asyncio.wait_for(reports.get(), 10)
    assert report["seen"] == 501
    assert report["counts"] == {"ok": 500, "refused": 1, "failed": 0}
    assert len(report["shown"]) == 20
    assert report["shown"][0]["path"] == "/rooms"
    assert report["ms"]["p50"] > 0


async def test_a_filter_counts_and_shows_only_what_it_admits() -> None:
    console = Mounted()
    async with watching(console, "gate=route&status=4") as reports:
        console.bench.send("FIND", "/rooms")
        console.bench.send("BOOK", "/rooms")
        report = await asyncio.wait_for(reports.get(), 10)
    assert (report["seen"], report["shown"][0]["gate"]) == (1, "route")


async def test_a_262_is_shown_with_the_gate_of_its_condition() -> None:
    console = Mounted(policies=Policies(scope_required_for_invocation=True))
    async with watching(console, "status=262") as reports:
        console.bench.send("FIND", "/rooms")
        report = await asyncio.wait_for(reports.get(), 10)
    assert report["shown"][0]["gate"] is not None


async def test_without_a_page_that_watches_no_exchange_is_looked_at() -> None:
    console = Mounted()
    async with watching(console):
        assert len(console.bench.dispatcher._subscribers) == 1
    assert console.bench.dispatcher._subscribers == ()


async def test_too_many_watchers_and_filters_that_are_not_known_are_refused() -> None:
    console = Mounted()
    async with contextlib.AsyncExitStack() as pages:
        for _ in range(8):
            await pages.enter_async_context(watching(console))
        assert (await console.ask("api/live")).status_code == 429


async def test_a_key_that_ends_is_refused_and_ends_what_it_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "INTERVAL", 0.01)
    document = ServerDocument(auth=AuthSettings(modes=("key",)))
    async with keeping(FIND, document=document) as kept:
        key = make_key()
        await kept.store.do(AddApiKey(key.key_id, key.digest, AGENT, "ann", "console:read", "", None))
        console, ended = Mounted(bench=kept.bench, credential=key.text), asyncio.Event()
        assert (await console.ask("api/session")).json()["can"] == ["read"]
        refused = await console.call("FIND", "/rooms")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "console-scope-missing")
        async with watching(console, ended=ended):
            await kept.store.do(RevokeApiKey(key.key_id))
            await asyncio.wait_for(ended.wait(), 30)
            refused = await console.ask("api/session")
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "key-revoked")
        assert kept.bench.dispatcher._subscribers == ()


async def test_a_token_that_expires_is_refused_and_ends_what_it_watches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(application, "INTERVAL", 0.01)
    issuer, clock = new_key(), Clock()
    keys = write_keys(tmp_path / "keys.json", public(issuer, kid="k"))
    auth = AuthSettings(modes=("token",), token=TokenSettings(keys=keys, leeway=0))
    bench = build(FIND)
    principals = bench.server.principals
    principals.clock = clock
    principals.authenticator = Authenticator(auth, SERVER, principals.key_of, clock=clock)
    console = Mounted(bench=bench, credential=sign(issuer, claims(scope="console:read console:act"), kid="k"))
    ended = asyncio.Event()
    async with watching(console, ended=ended):
        assert (await console.call("FIND", "/rooms")).json()["status"] == 200
        clock.now += 600
        await asyncio.wait_for(ended.wait(), 30)
    for refused in (await console.ask("api/session"), await console.call("FIND", "/rooms")):
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "token-expired")
    assert bench.dispatcher._subscribers == ()


async def test_a_call_has_no_authority_but_that_of_its_own_credential() -> None:
    guarded = replace(make_endpoint("FIND", "/guarded", echo), required_scopes=("guests:read",))
    async with keeping(guarded, document=ServerDocument(auth=AuthSettings(modes=("key",)))) as kept:
        operator, guest = make_key(), make_key()
        for key, scopes in ((operator, "console:read, console:act"), (guest, "guests:read")):
            await kept.store.do(AddApiKey(key.key_id, key.digest, AGENT, "ann", scopes, "", None))
        console = Mounted(bench=kept.bench, credential=operator.text)
        for asked in ({}, {"as": "ann"}, {"agent_id": AGENT, "scopes": ["guests:read"]}):
            found = (await console.call("FIND", "/guarded", **asked)).json()
            assert found["refused"], asked
            assert found["status"] in (262, 401), asked
        own = {"Authorization": f"Bearer {operator.text}"}
        assert (await console.call("FIND", "/guarded", headers=own)).json()["status"] == 455
        guests = {"Authorization": f"Bearer {guest.text}"}
        assert (await console.call("FIND", "/guarded", headers=guests)).json()["status"] == 200


async def test_a_watcher_that_does_not_read_keeps_no_more_than_one_report() -> None:
    console, stuck = Mounted(), asyncio.Event()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await stuck.wait()

    headers = [(b"console-token", console.token.encode()), (b"host", b"127.0.0.1:8080")]
    scope = {"type": "http", "method": "GET", "path": "/console/api/live", "query_string": b"", "headers": headers}
    task = asyncio.create_task(console(scope, asyncio.Event().wait, send))  # type: ignore[arg-type] # never asked
    while not console.bench.dispatcher._subscribers:
        await asyncio.sleep(0)
    [watcher] = console.bench.dispatcher._subscribers[0].__self__._watchers  # type: ignore[attr-defined]
    for _ in range(2000):
        console.bench.send("FIND", "/rooms")
    assert (watcher._seen, len(watcher._shown), len(watcher._at)) == (2000, 20, 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_long_text_in_a_refusal_is_cut() -> None:
    console = Mounted()
    long = "x" * 900_000
    for asked in (
        {"method": "FIND", "path": "/rooms", "input": {"beds": long}},
        {"method": "FIND", "path": f"/{long}"},
        {"method": long, "path": "/rooms"},
        {"method": "FIND", "path": "/rooms", "as": "ann", "scopes": [long]},
        {"method": "FIND", "path": "/rooms", "headers": {"Task-ID": long}},
    ):
        reply = await console.call(**asked)
        told = reply.json()
        assert reply.status_code in (200, 400)
        assert len(json.dumps(told.get("response", told))) < 20_000, list(asked)
    large = await console.call("FIND", "/rooms", input={"beds": "x" * 1_100_000})
    assert large.status_code == 413


@rows(
    "headers",
    {"Task-ID": "a\nAgent-ID: b"},
    {"Task-ID\r\nAgent-ID": "b"},
    {"Task-ID: a\r\nAgent-ID": "b"},
    {"Task-ID": "\u2028\u0000"},
    {"": "b"},
    {"Signature": "x"},
    {"Content-Length": "0"},
)
async def test_a_header_cannot_bring_another_one(headers: dict[str, str]) -> None:
    console = Mounted()
    reply = await console.call("FIND", "/rooms", headers=headers)
    assert reply.status_code == 400
    scopes = await console.call("FIND", "/rooms", scopes=["a:b\r\nAgent-ID: c"])
    assert scopes.status_code == 400


async def test_other_methods_are_refused_with_those_that_are_allowed() -> None:
    console = Mounted()
    head = await console.ask("index.html", method="HEAD", token=False)
    assert (head.status_code, head.content) == (200, b"")
    for path, method, allowed in (
        ("index.html", "OPTIONS", "GET, HEAD"),
        ("api/session", "HEAD", "GET"),
        ("api/session", "OPTIONS", "GET"),
        ("api/exchange", "OPTIONS", "POST"),
        ("api/live", "POST", "GET"),
    ):
        reply = await console.ask(path, method=method)
        assert (reply.status_code, reply.headers["allow"]) == (405, allowed)
        assert "access-control-allow-origin" not in reply.headers
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Headers": "console-token"}
    assert (await console.ask("api/session", method="OPTIONS", headers=asked)).status_code == 403


@rows(
    "host",
    "127.0.0.1:8080.evil.example",
    "127.0.0.1:8080@evil.example",
    "evil.example:8080",
    "127.0.0.1:8080:80",
    "127.0.0.1:99999",
    "127.0.0.1, evil.example",
    "localhost.evil.example",
    "127.0.0.1#.evil.example",
    "[::1].evil.example",
    "",
)
async def test_a_host_that_only_begins_like_this_machine_is_refused(host: str) -> None:
    console = Mounted()
    for path in ("", "api/session"):
        assert (await console.ask(path, headers={"Host": host})).status_code == 421


async def test_only_the_files_of_the_console_are_served() -> None:
    paths = Mounted().places
    assert not [path for path in paths if ".." in path or "LICENSE" in path or path.endswith((".py", ".toml"))]


def test_beyond_this_machine_the_console_needs_credentials() -> None:
    document = ServerDocument()
    with pytest.raises(ConfigError, match="console beyond this machine needs credentials"):
        plan_settings("rooms", document, http="0.0.0.0:8080", console=True, insecure=True, store=MEMORY)
    with pytest.raises(ConfigError, match="The console is served on the HTTP face"):
        plan_settings("rooms", document, console=True, store=MEMORY)
