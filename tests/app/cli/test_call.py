"""`bespeak call` and `bespeak discover` against a live server, and without one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process import HOTEL, ROOT, Served, bespeak, serving

pytestmark = pytest.mark.process

AGENT = "a" * 64
AUTHORITY = ["--agent-id", AGENT, "--scope", "booking:room", "--scope", "calendar:write"]
WHO = '''
from bespeak import App, Context

app = App("Who", server_id="who.example", operator="Tests", contact="ops@who.example")

@app.endpoint("FETCH", "/caller", impact="informational")
def caller(context: Context) -> dict[str, str]:
    """Fetch the id of the caller.

    Outcome: The Agent-ID of the caller is returned.
    """
    return {"agent_id": context.agent_id or ""}
'''
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


def test_booking_is_sent_and_the_response_is_printed(hotel: Served) -> None:
    booked = bespeak("call", hotel.uri, "BOOK", "/room", "-d", json.dumps(BOOKING), *AUTHORITY)
    assert booked.returncode == 0, booked.stderr
    reservation = json.loads(booked.stdout)["reservation_id"]
    fetched = bespeak("call", hotel.uri, "FETCH", f"/reservations/{reservation}", *AUTHORITY, "--json")
    document = json.loads(fetched.stdout)
    assert document["status"] == 200
    assert document["headers"]["server-id"] == "hotel.example"
    assert document["body"]["arrival"] == "2031-05-01"
    again = bespeak("call", hotel.uri, "RESERVE", "/room", "-d", "-", *AUTHORITY, given=json.dumps(BOOKING))
    assert again.returncode == 1
    assert "room_unavailable" in again.stderr
    assert "2031-05-03" in again.stderr


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
    nobody = bespeak("call", hotel.uri, "BOOK", "/room")
    assert "--agent-id" in nobody.stderr
    invalid = bespeak("call", hotel.uri, "BOOK", "/room", "room_id=1", "party=2", *AUTHORITY)
    assert invalid.stderr.count("is a required property") >= 3
    assert "party" in invalid.stderr


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
    local = json.loads(bespeak("discover", str(HOTEL), "--json").stdout)
    assert local["endpoints"] == live["endpoints"]
    result = bespeak("call", str(HOTEL), "QUERY", "/rooms", "beds=3", env={"HOTEL_LEDGER": str(tmp_path / "l")})
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
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
    ],
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
    result = bespeak("discover", str(tmp_path))
    assert result.returncode == 1
    assert "bad.toml:3:1: error[P302]" in result.stderr


def test_invalid_output_is_reported_like_any_refusal(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        'from bespeak import App\n\napp = App("x", server_id="x", operator="x", contact="x")\n\n\n'
        '@app.endpoint("QUERY", "/rooms", impact="informational")\n'
        "def rooms() -> dict[str, int]:\n"
        '    """List rooms.\n\n    Outcome: They are returned.\n    """\n'
        '    return {"a": "b"}\n'
    )
    result = bespeak("call", str(tmp_path / "wrong.py"), "QUERY", "/rooms", "--scope", "a:b")
    assert result.returncode == 1
    assert "output-validation-failed" in result.stderr
    assert "internal error" not in result.stderr
    unscoped = bespeak("call", str(tmp_path / "wrong.py"), "QUERY", "/rooms")
    assert "--scope DOMAIN:ACTION" in unscoped.stderr


def test_pinned_key_is_required(hotel: Served, tmp_path: Path) -> None:
    assert bespeak("keys", "new", "--out", str(tmp_path / "key.pem")).returncode == 0
    for command in (["discover", hotel.uri], ["call", hotel.uri, "QUERY", "/rooms"]):
        result = bespeak(*command, "--signing-key", str(tmp_path / "key.pem"))
        assert (result.returncode, result.stdout) == (1, "")
        assert "was not called" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_value_nested_too_deeply_is_sent_as_text(hotel: Served) -> None:
    result = bespeak("call", hotel.uri, "QUERY", "/rooms", "beds=" + "[" * 100_000)
    assert result.returncode == 1
    assert "input-validation-failed" in result.stderr


@pytest.mark.parametrize("options", [["-d", "@pipe"], ["--signing-key", "pipe"]])
def test_pipe_without_a_writer_does_not_block(tmp_path: Path, options: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = bespeak("call", str(HOTEL), "QUERY", "/rooms", *options, cwd=tmp_path)
    assert result.returncode == 2
    assert "not a regular file" in result.stderr


def test_signing_key_that_is_not_text_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    result = bespeak("discover", "agtp://127.0.0.1:1", "--signing-key", str(tmp_path / "key"))
    assert result.returncode == 2
    assert "not UTF-8" in result.stderr


def test_headers_are_sent_as_given(hotel: Served) -> None:
    result = bespeak("call", hotel.uri, "QUERY", "/rooms", "-H", "Task-ID: t-9", "-H", "Request-ID:r-1", "--json")
    headers = json.loads(result.stdout)["headers"]
    assert (headers["task-id"], headers["request-id"]) == ("t-9", "r-1")


@pytest.mark.parametrize("header", ["Task-ID", "Task ID: t", ": t", "Task-ID: a\nb"])
def test_invalid_header_is_wrong_usage(header: str) -> None:
    result = bespeak("call", str(HOTEL), "QUERY", "/rooms", "-H", header)
    assert result.returncode == 2
    assert "is not a valid header" in result.stderr


def test_call_with_an_idempotency_key_is_executed_once(hotel: Served) -> None:
    stay = json.dumps({**BOOKING, "arrival": "2032-01-01", "departure": "2032-01-02"})
    call = ("call", hotel.uri, "BOOK", "/room", "-d", stay, *AUTHORITY, "--idempotency-key", "stay-1")
    first, again = bespeak(*call), bespeak(*call)
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert first.stdout == again.stdout
    assert ("earlier call" in first.stderr, "earlier call" in again.stderr) == (False, True)


def test_scope_claim_beyond_the_grant_gets_help_to_declare_fewer_scopes(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    document = {"agent_id": AGENT, "name": "desk", "scopes_accepted": ["booking:room"]}
    (tmp_path / "agents" / "desk.json").write_text(json.dumps(document))
    (tmp_path / "rooms.py").write_text((ROOT / "docs_src/readme/rooms.py").read_text())
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "a@a.example"\napp = "rooms:app"\n'
    )
    result = bespeak("call", str(tmp_path), "QUERY", "/rooms", "--agent-id", AGENT, "--scope", "admin:all")
    assert "scope-claim-invalid" in result.stderr
    assert "help: declare fewer scopes with --scope" in result.stderr


NOTICES = '''
from dataclasses import dataclass

from bespeak import App
from bespeak.contract.policy import Policies

app = App("Notices", server_id="notices.example", operator="Test", contact="ops@notices.example",
          policies=Policies(scope_required_for_invocation=False))


@dataclass
class Notice:
    text: str
    updated_at: str
    author: str | None = None


@app.endpoint("FETCH", "/notice", impact="informational", since="updated_at")
def fetch() -> Notice:
    """Fetch the notice of the day.

    Outcome: The notice is returned.
    """
    return Notice("Rain.", "2026-12-01T10:00:00Z")
'''


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
