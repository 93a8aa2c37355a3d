"""`bespeak call` and `discover` on the web."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.client.faces import served
from tests.agent.discovery.web import Web, always, at
from tests.agent.discovery.web import serving as serving_web
from tests.cases import rows
from tests.documents.ai.test_document import FLIGHTS
from tests.process import HOTEL, ROOT, Served, bespeak, refused, serving

from bespeak.agent.client.errors import Reply
from bespeak.app.cli.call import print_refusal
from bespeak.protocol.exchange.refusal import GATES

pytestmark = pytest.mark.process


AGENT = "a" * 64
AUTHORITY = ["--agent-id", AGENT, "--scope", "booking:room", "--scope", "calendar:write"]
WHO = """
from bespeak import App, Context

app = App("Who", server_id="who.example", operator="Tests", contact="ops@who.example")

@app.endpoint("FETCH", "/caller", impact="informational",
              intent="Fetch the id of the caller.", outcome="The Agent-ID of the caller is returned.")
def caller(context: Context) -> dict[str, str]:
    return {"agent_id": context.agent_id or ""}
"""
BOOKING = {
    "guest_id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "room_id": "101",
    "arrival": "2031-05-01",
    "departure": "2031-05-03",
}


@pytest.fixture(scope="module")
def hotel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    ledger = tmp_path_factory.mktemp("ledger") / "hotel.sqlite3"
    with serving(env={"HOTEL_LEDGER": str(ledger)}) as served:
        yield served


def test_fields_are_converted_to_the_type_in_the_schema(hotel: Served) -> None:
    result = bespeak("call", hotel.uri, "QUERY", "/rooms", "beds=3")
    assert result.returncode == 0, result.stderr
    assert {room["beds"] for room in json.loads(result.stdout)["rooms"]} == {3}
    assert bespeak("call", hotel.uri, "query", "/rooms", "beds:=2").returncode == 0


PAYMENTS = """
from dataclasses import dataclass
from typing import Annotated, Literal

from bespeak import App, Body

app = App("Payments", server_id="payments.example", operator="Acme", contact="ops@acme.example")


@dataclass
class Card:
    kind: Literal["card"]
    cents: int


@dataclass
class Transfer:
    kind: Literal["transfer"]
    iban: str
    cents: int


@app.endpoint("EXECUTE", "/stays/{stay_id}/payment", impact="reversible")
def pay(stay_id: str, payment: Annotated[Card | Transfer, Body()]) -> Card | Transfer:
    \"\"\"Pay for a stay.

    Outcome: The payment is recorded for the stay.
    \"\"\"
    return payment
"""


def test_fields_of_a_union_are_converted_below_a_path_with_parameters(tmp_path: Path) -> None:
    (tmp_path / "payments.py").write_text(PAYMENTS)
    target = str(tmp_path / "payments.py")
    result = bespeak("call", target, "EXECUTE", "/stays/12/payment", "kind=transfer", "iban=17", "cents=500")
    assert json.loads(result.stdout) == {"kind": "transfer", "iban": "17", "cents": 500}


def test_booking_is_sent_and_the_response_is_printed(hotel: Served) -> None:
    booked = bespeak("call", hotel.uri, "BOOK", "/room", "-d", json.dumps(BOOKING), *AUTHORITY)
    assert booked.returncode == 0, booked.stderr
    reservation = json.loads(booked.stdout)["reservation_id"]
    fetched = bespeak("call", hotel.uri, "FETCH", f"/reservations/{reservation}", *AUTHORITY, "--json")
    document = json.loads(fetched.stdout)
    assert (document["status"], document["headers"]["server-id"]) == (200, "hotel.example")
    assert document["body"]["arrival"] == "2031-05-01"
    told = refused("call", hotel.uri, "RESERVE", "/room", "-d", "-", *AUTHORITY, given=json.dumps(BOOKING), code=1)
    assert "room_unavailable" in told
    assert "2031-05-03" in told


def test_a_name_stands_for_an_agent_id(tmp_path: Path) -> None:
    (tmp_path / "who.py").write_text(WHO)
    ann, again, bob = (
        bespeak("call", "who.py", "FETCH", "/caller", "--as", name, "--scope", "caller:read", cwd=tmp_path).stdout
        for name in ("ann", "ann", "bob")
    )
    assert len(json.loads(ann)["agent_id"]) == 64
    assert ann == again
    assert ann != bob
    both = bespeak("call", "who.py", "FETCH", "/caller", "--as", "ann", "--agent-id", AGENT, cwd=tmp_path)
    assert (both.returncode, "either --agent-id or --as" in both.stderr) == (2, True)


def test_refusal_exits_with_one_and_prints_help(hotel: Served) -> None:
    scope = bespeak("call", hotel.uri, "BOOK", "/room", "--agent-id", AGENT)
    assert scope.returncode == 1
    assert "--scope booking:room --scope calendar:write" in scope.stderr
    assert scope.stdout == ""
    assert "--agent-id" in bespeak("call", hotel.uri, "BOOK", "/room").stderr
    invalid = bespeak("call", hotel.uri, "BOOK", "/room", "room_id=1", "party=2", *AUTHORITY)
    assert invalid.stderr.count("is a required property") >= 3
    assert "party" in invalid.stderr


@rows("way", "agtp", "http", "folder")
def test_verbose_shows_the_wire_without_secrets_and_the_gate_that_refused(
    hotel: Served, tmp_path: Path, way: str
) -> None:
    key = "bsk_0123456789ab_" + "c0ffee" * 8
    call = ("-v", "BOOK", "/room", "-d", json.dumps(BOOKING), "--agent-id", AGENT, "--scope", "rooms:read")
    options = {"env": {"BESPEAK_KEY": key, "HOTEL_LEDGER": str(tmp_path / "hotel.sqlite3")}}
    if way == "http":
        with serving(HOTEL, "--http", "127.0.0.1:0", env=options["env"]) as served_by_http:
            result = bespeak("call", served_by_http.url, *call, **options)
    else:
        result = bespeak("call", hotel.uri if way == "agtp" else str(HOTEL), *call, **options)
    lines = result.stderr.splitlines()
    sent, answered = (
        ("POST /room:book HTTP/1.1", "HTTP/1.1 403") if way == "http" else ("AGTP/1.0 BOOK /room", "AGTP/1.0 455")
    )
    assert f"> {sent}" in lines, result.stderr
    assert "> Authorization: Bearer bsk_0123456789ab_***" in lines
    assert f"> {json.dumps(BOOKING, separators=(',', ':'))}" in lines
    assert any(line.startswith(f"< {answered}") for line in lines)
    assert "* refused by the scope gate (455 scope-violation)" in lines
    assert "c0ffee" not in result.stderr
    assert result.returncode == 1


def test_a_refusal_of_the_handler_is_not_called_one_of_a_gate(hotel: Served) -> None:
    booking = json.dumps({**BOOKING, "room_id": "999"})
    result = bespeak("call", "-v", hotel.uri, "BOOK", "/room", "-d", booking, *AUTHORITY)
    assert "* refused by the endpoint, or a rule of the service (422 room_unavailable)" in result.stderr


def test_the_guide_lists_every_gate() -> None:
    guide = (ROOT / "docs" / "guides" / "calling.md").read_text()
    for name, decides, _ in GATES:
        assert f"| {name} | {decides} |" in guide


def test_warnings_are_printed_with_the_response(hotel: Served) -> None:
    result = bespeak("call", hotel.uri, "QUERY", "/availability", "arrival=2031-01-01", "departure=2031-01-02")
    assert result.returncode == 0
    assert "warning: this endpoint is deprecated; use QUERY /rooms; removed in 2.0.0" in result.stderr


def test_discover_is_readable_and_complete(hotel: Served) -> None:
    result = bespeak("discover", hotel.uri)
    assert result.returncode == 0, result.stderr
    assert "hotel.example" in result.stdout
    assert "redirect RESERVE /room -> BOOK /room" in result.stdout
    assert "needs booking:room, needs calendar:write" in result.stdout
    assert "\x1b" not in result.stdout
    methods = bespeak("discover", hotel.uri, "--methods", "--json")
    assert {("BOOK", "/room"), ("DISCOVER", "/methods")} <= {
        (entry["method"], entry["path"]) for entry in json.loads(methods.stdout)
    }


def test_folder_responds_like_its_server(hotel: Served, tmp_path: Path) -> None:
    live = json.loads(bespeak("discover", hotel.uri, "--json").stdout)
    assert json.loads(bespeak("discover", str(HOTEL), "--json").stdout)["endpoints"] == live["endpoints"]
    result = bespeak("call", str(HOTEL), "QUERY", "/rooms", "beds=3", env={"HOTEL_LEDGER": str(tmp_path / "l")})
    assert result.returncode == 0, result.stderr


@rows(
    "arguments",
    ["call", "agtp://127.0.0.1:1", "QUERY", "/rooms"],
    ["discover", "agtp://127.0.0.1:1"],
    ["discover", "ftp://host"],
    ["discover", "agtp://"],
    ["discover", "no/such/folder"],
    ["call", "x", "QUERY", "/", "-d", "{"],
    ["call", "x", "QUERY", "/", "-d", "[1]"],
    ["call", "x", "QUERY", "/", "-d", "@/no/such/file"],
    ["call", str(HOTEL), "QUERY", "/", "novalue"],
    ["call", str(HOTEL), "QUERY", "/", "a:={"],
    ["call", str(HOTEL), "QUERY", "/", "a:=" + "[" * 100_000],
    ["call", str(HOTEL), "QUERY", "/", "a=\udcff"],
    ["call", str(HOTEL), "QUERY", "/", "\udcff=a"],
    ["call", str(HOTEL), "QUERY", "/\udcff"],
    ["call", str(HOTEL), "QUERY", "/", "-d", '{"a": "\udcff"}'],
    ["call", str(HOTEL), "QUERY", "/", "-d", "@/dev/zero"],
    ["call", str(HOTEL), "QUERY", "/", "--signing-key", "/dev/zero"],
    ["call", str(HOTEL), "QUERY", "/", "--agent-id", "short"],
    ["discover", str(HOTEL), "--signing-key", str(HOTEL / "bespeak.toml")],
    ["discover", "x" * 5000],
    ["call", str(HOTEL), "QUERY", "/", "--scope", "nonsense"],
)
def test_impossible_call_exits_with_two_and_one_message(arguments: list[str]) -> None:
    result = bespeak(*arguments)
    assert result.returncode == 2, result
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr
    assert result.stderr.strip()


def test_discovering_a_folder_shows_its_findings(tmp_path: Path) -> None:
    folder = tmp_path / "endpoints"
    folder.mkdir()
    source = (HOTEL / "endpoints" / "book-room.toml").read_text()
    (folder / "bad.toml").write_text(source.replace('path = "/room"', 'path = "/book"'))
    assert "bad.toml:3:1: error[P302]" in refused("discover", str(tmp_path), code=1)


def test_invalid_output_is_reported_like_any_refusal(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        'from bespeak import App\n\napp = App("x", server_id="x", operator="x", contact="x")\n\n\n'
        '@app.endpoint("QUERY", "/rooms", impact="informational")\n'
        "def rooms() -> dict[str, int]:\n"
        '    """List rooms.\n\n    Outcome: They are returned.\n    """\n'
        '    return {"a": "b"}\n'
    )
    call = ("call", str(tmp_path / "wrong.py"), "QUERY", "/rooms")
    assert "output-validation-failed" in refused(*call, code=1)
    (tmp_path / "bespeak.toml").write_text("[policies]\nscope_required_for_invocation = true\n")
    assert "--scope DOMAIN:ACTION" in bespeak(*call).stderr


def test_pinned_key_is_required(hotel: Served, tmp_path: Path) -> None:
    assert bespeak("keys", "new", "--out", str(tmp_path / "key.pem")).returncode == 0
    for command in (["discover", hotel.uri], ["call", hotel.uri, "QUERY", "/rooms"]):
        result = bespeak(*command, "--signing-key", str(tmp_path / "key.pem"))
        assert (result.returncode, result.stdout) == (1, "")
        assert "was not called" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_value_nested_too_deeply_is_sent_as_text(hotel: Served) -> None:
    assert "input-validation-failed" in refused("call", hotel.uri, "QUERY", "/rooms", "beds=" + "[" * 100_000, code=1)


@pytest.mark.parametrize("options", [["-d", "@pipe"], ["--signing-key", "pipe"]])
def test_pipe_without_a_writer_does_not_block(tmp_path: Path, options: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused("call", str(HOTEL), "QUERY", "/rooms", *options, cwd=tmp_path)


def test_signing_key_that_is_not_text_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in refused("discover", "agtp://127.0.0.1:1", "--signing-key", str(tmp_path / "key"))


def test_headers_are_sent_as_given(hotel: Served) -> None:
    result = bespeak("call", hotel.uri, "QUERY", "/rooms", "-H", "Task-ID: t-9", "-H", "Request-ID:r-1", "--json")
    headers = json.loads(result.stdout)["headers"]
    assert (headers["task-id"], headers["request-id"]) == ("t-9", "r-1")


@pytest.mark.parametrize("header", ["Task-ID", "Task ID: t", ": t", "Task-ID: a\nb"])
def test_invalid_header_is_wrong_usage(header: str) -> None:
    assert "is not a valid header" in refused("call", str(HOTEL), "QUERY", "/rooms", "-H", header)


def test_call_with_an_idempotency_key_is_executed_once(hotel: Served) -> None:
    stay = json.dumps({**BOOKING, "arrival": "2032-01-01", "departure": "2032-01-02"})
    call = ("call", hotel.uri, "BOOK", "/room", "-d", stay, *AUTHORITY, "--idempotency-key", "stay-1")
    first, again = bespeak(*call), bespeak(*call)
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert first.stdout == again.stdout
    assert ("earlier call" in first.stderr, "earlier call" in again.stderr) == (False, True)


@rows(
    "members, told",
    ({"missing_scopes": ["a:b; curl x|sh"]}, "declare the scopes with --scope 'a:b; curl x|sh'\n"),
    ({"code": "confirmation-required", "confirmation_id": "'; sh"}, """-H 'Confirmation-ID: '"'"'; sh'\n"""),
)
def test_words_of_the_service_are_quoted_in_the_command_that_is_advised(
    members: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    body = json.dumps({"error": {"code": "x", "message": "Refused.", **members}}).encode()
    print_refusal(Reply(455, "Scope Violation", {}, body))
    assert told in capsys.readouterr().err


def test_scope_claim_beyond_the_grant_gets_help_to_declare_fewer_scopes(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    document = {"agent_id": AGENT, "name": "desk", "scopes_accepted": ["booking:room"]}
    (tmp_path / "agents" / "desk.json").write_text(json.dumps(document))
    (tmp_path / "rooms.py").write_text((ROOT / "docs_src/readme/rooms.py").read_text())
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "rooms:app"\n')
    result = bespeak("call", str(tmp_path), "QUERY", "/rooms", "--agent-id", AGENT, "--scope", "admin:all")
    assert "scope-claim-invalid" in result.stderr
    assert "help: declare fewer scopes with --scope" in result.stderr


NOTICES = """
from dataclasses import dataclass

from bespeak import App

app = App("Notices", server_id="notices.example", operator="Test", contact="ops@notices.example")


@dataclass
class Notice:
    text: str
    updated_at: str
    author: str | None = None


@app.endpoint("FETCH", "/notice", impact="informational", since="updated_at",
              intent="Fetch the notice of the day.", outcome="The notice is returned.")
def fetch() -> Notice:
    return Notice("Rain.", "2026-12-01T10:00:00Z")
"""


def test_options_reduce_the_response(tmp_path: Path) -> None:
    (tmp_path / "notices.py").write_text(NOTICES)

    def fetch(*options: str) -> tuple[int, str]:
        done = bespeak("call", str(tmp_path / "notices.py"), "FETCH", "/notice", *options)
        return done.returncode, done.stdout if done.returncode == 0 and done.stdout else done.stderr

    code, text = fetch("--fields", "text,author")
    assert (code, json.loads(text)) == (0, {"text": "Rain.", "author": None})
    code, text = fetch("--compact", "--since", "2026-11-01")
    assert (code, json.loads(text)) == (0, {"text": "Rain.", "updated_at": "2026-12-01T10:00:00Z"})
    code, text = fetch("--since", "2026-12-02")
    assert (code, text) == (0, "note: nothing changed since then\n")
    code, text = fetch("--fields", "texts")
    assert code == 1
    assert "unknown-fields: fields: 'texts' is not a field of the output; available: text, updated_at, author." in text


SITE: dict[str, Any] = {
    "/.well-known/ai": always(200, {**FLIGHTS, "aiendpoint": "1.1"}, TDM_Reservation="1"),
    "/api/flights": {"flights": [{"id": "LX1"}]},
}


@contextmanager
def hosted(opener: Any) -> Iterator[Any]:
    """Run an asynchronous context manager in a thread."""
    started, ended, found = threading.Event(), threading.Event(), []

    async def serve() -> None:
        async with opener as value:
            found.append(value)
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(20)
    try:
        yield found[0]
    finally:
        ended.set()
        thread.join()


@contextmanager
def site(pages: dict[str, Any] | None = None) -> Iterator[tuple[Web, str]]:
    with hosted(serving_web(at(SITE if pages is None else pages), tls=False)) as web:
        yield web, f"http://127.0.0.1:{web.port}"


def run(*arguments: str, cache: Path | None = None, **env: str) -> Any:
    return bespeak(*arguments, env={"BESPEAK_CACHE": str(cache) if cache else "off", **env})


def test_web_service_is_summarized() -> None:
    with site() as (_, url):
        done = run("discover", url)
    assert done.returncode == 0, done.stderr
    for part in (
        "Flights  Finds flights.",
        "called by ai-discovery",
        "/.well-known/ai  200, ",
        "authentication apikey in X-API-Key",
        "60 requests per minute",
        "tdm-reservation: 1",
        "producer rules",
        "search_flights  GET /api/flights  Search flights between two airports",
        "from: string, required -- airport code",
    ):
        assert part in done.stdout


def test_web_service_is_printed_as_json() -> None:
    with site() as (_, url):
        done = run("discover", url, "--json")
    told = json.loads(done.stdout)
    assert (told["kind"], told["name"], told["auth"]["type"]) == ("ai", "Flights", "apikey")
    assert (told["capabilities"][0]["url"], told["documents"][0]["status"]) == (f"{url}/api/flights", 200)
    assert "D170" in [finding["rule"] for finding in told["producer_findings"]]


def test_nothing_found_lists_the_requested_documents() -> None:
    with site({}) as (_, url):
        done = run("discover", url)
    assert done.returncode == 1
    assert "/openapi.json  404" in done.stdout
    assert "has no callable service" in done.stderr


@rows(
    "arguments, words",
    (("discover", "http://127.0.0.1:1"), "connection refused"),
    (("discover", "http://flights.example"), "--insecure"),
    (("discover", "https://me:pw@flights.example"), "a user name or password"),
    (("discover", "ftp://flights.example"), "is not a supported URI"),
)
def test_unsupported_address_is_reported(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "pw" not in done.stderr


def test_capability_is_called_by_id_or_by_path(tmp_path: Path) -> None:
    with site() as (web, url):
        by_id = run("call", url, "search_flights", "from=ZRH", cache=tmp_path, BESPEAK_TOKEN="sekret")
        by_place = run("call", url, "GET", "/api/flights", "from=ZRH", "--json")
        wrong = run("call", url, "search_flights", "to=ZRH")
        unknown = run("call", url, "nothing")
    assert json.loads(by_id.stdout) == {"flights": [{"id": "LX1"}]}
    assert json.loads(by_place.stdout)["status"] == 200
    assert (wrong.returncode, unknown.returncode) == (1, 1)
    assert '"from" is a required property' in wrong.stderr
    assert "it offers search_flights" in unknown.stderr
    first = next(asked for asked in web.asked if asked.target.startswith("/api"))
    assert (first.target, first.headers["x-api-key"]) == ("/api/flights?from=ZRH", "sekret")
    assert not any(b"sekret" in file.read_bytes() for file in tmp_path.iterdir())


def test_agtp_over_http_is_used_like_agtp(tmp_path: Path) -> None:
    with hosted(served()) as place:
        url = place.uris["http"]
        shown = run("discover", url)
        called = run("call", url, "FIND", "/rooms/7", "guests:=2")
        refused = run("call", url, "BOOK", "/room", "guests=2")
        same = run("diff", place.uris["agtp"], url)
        written = run("export", "agis", url, "-o", str(tmp_path / "rooms.agis"))
    assert "called by AGTP over HTTP" in shown.stdout
    assert "BOOK" in shown.stdout
    assert json.loads(called.stdout) == {"room_id": "7", "guests": 2}
    assert "422" in refused.stderr
    assert same.returncode == 0, same.stdout + same.stderr
    assert written.returncode == 0, written.stderr
    assert "method: BOOK" in (tmp_path / "rooms.agis").read_text()


def test_service_without_an_agtp_contract_is_not_exported() -> None:
    with site() as (_, url):
        done = run("export", "agis", url)
    assert done.returncode == 1
    assert "bespeak import openapi" in done.stderr


CARD = {
    "name": "Routes",
    "description": "Plans routes.",
    "protocolVersion": "0.3.0",
    "url": "/a2a",
    "securitySchemes": {"a": {"type": "http", "scheme": "bearer"}},
    "skills": [
        {"id": "plan", "name": "Plan", "description": "Plans a route.", "tags": [], "security": [{"a": ["maps:read"]}]}
    ],
}


def test_skills_of_an_agent_are_shown_with_doubt_and_called_by_messages() -> None:
    answer = {"result": {"kind": "message", "parts": [{"kind": "text", "text": "via Olten"}]}}
    with site({"/.well-known/agent-card.json": CARD, "/a2a": answer}) as (web, url):
        shown, called = run("discover", url), run("call", url, "plan", "message=to Bern")
        data = json.loads(run("discover", url, "--json").stdout)
    assert "called by messages of A2A\n" in shown.stdout
    assert f"takes messages at {url}/a2a  JSONRPC 0.3.0\nauthentication bearer" in shown.stdout
    assert "plan  PLAN /routes  Plans a route.  [probably informational (0.6), needs maps:read]" in shown.stdout
    assert json.loads(called.stdout) == {"text": "via Olten"}
    [sent] = [json.loads(asked.body) for asked in web.asked if asked.method == "POST"]
    assert (sent["method"], sent["params"]["message"]["parts"][0]["text"]) == ("message/send", "to Bern")
    assert data["capabilities"][0]["input_schema"]["required"] == ["message"]


def test_agent_without_a_known_interface_is_shown_and_nothing_to_call() -> None:
    with site({"/.well-known/agent-card.json": {**CARD, "preferredTransport": "GRPC"}}) as (_, url):
        shown = run("discover", url)
    assert shown.returncode == 1
    assert f"takes messages at {url}/a2a  GRPC 0.3.0" in shown.stdout
    assert "JSON-RPC of A2A 1.0 and 0.3, and the card has no such interface" in shown.stderr
