"""New parts of a contract together: unions, streams, files and providers, on every face, audited, with two workers."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process import bespeak, serving

import bespeak as client

pytestmark = pytest.mark.process
APP = '''
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from bespeak import App, Body, Needs, Upload

app = App("Desk", server_id="desk.example", operator="Acme", contact="ops@acme.example")


@dataclass
class Card:
    kind: Literal["card"]
    number: str


@dataclass
class Transfer:
    kind: Literal["transfer"]
    iban: str


@dataclass
class Line:
    number: int


def open_ledger() -> Iterator[str]:
    yield "ledger"


@app.endpoint("PAY", "/invoices", impact="reversible", scopes=["bills:pay"])
def pay(payment: Annotated[Card | Transfer, Body()], ledger: Annotated[str, Needs(open_ledger)]) -> Card | Transfer:
    """Pay a bill by card or by transfer.

    Outcome: The payment is noted and returned.
    """
    assert ledger == "ledger"
    return payment


@app.endpoint("QUERY", "/lines", impact="informational", scopes=["bills:pay"])
def list_lines(count: int) -> Iterator[Line]:
    """Query the lines of the bill.

    Outcome: The lines are returned.
    """
    for number in range(count):
        yield Line(number)


@app.endpoint("SCAN", "/receipts", impact="informational", scopes=["bills:pay"])
def scan(receipt: Upload) -> dict[str, int]:
    """Scan a receipt and count its bytes.

    Outcome: The number of bytes is returned.
    """
    return {"bytes": len(receipt.read())}
'''
SETTINGS = '[server]\napp = "desk:app"\n\n[auth]\nmodes = ["key"]\n\n[audit]\nrecords = "all"\n'
PAYMENT = {"kind": "transfer", "iban": "DE02"}
LINES = {"items": [{"number": 0}, {"number": 1}]}
RECEIPT = {"name": "r.txt", "media_type": "text/plain", "data": base64.b64encode(b"abc").decode()}
CALLS = (
    ("PAY", "/invoices", "pay_invoices", PAYMENT, PAYMENT),
    ("QUERY", "/lines", "query_lines", {"count": 2}, LINES),
    ("SCAN", "/receipts", "scan_receipts", {"receipt": RECEIPT}, {"bytes": 3}),
)


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_every_face_takes_unions_streams_files_and_keys(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    store = str(tmp_path / "store.db") if database == "sqlite" else str(request.getfixturevalue("postgres_store"))
    (tmp_path / "desk.py").write_text(APP)
    (tmp_path / "bespeak.toml").write_text(f'{SETTINGS}\n[store]\nplace = "{store}"\n')
    made = bespeak("keys", "api", "new", str(tmp_path), "--agent", "ann", "--scope", "bills:pay", "--json")
    assert made.returncode == 0, made.stderr
    key = json.loads(made.stdout)["key"]
    options = ("--http", "127.0.0.1:0", "--mcp", "--a2a", "--workers", "2", "--store", store)
    with serving(tmp_path, *options) as served:
        for address in (served.uri, served.url):
            with client.connect_sync(address, key=key) as service:
                for method, path, _, given, expected in CALLS:
                    assert service.call(method, path, **given) == expected
                assert list(service.stream("QUERY", "/lines", count=2)) == LINES["items"]
                with pytest.raises(client.InvalidInputError):
                    service.call("PAY", "/invoices", kind="card", iban="DE02")
        http = httpx.Client(
            base_url=served.url, headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False
        )
        with http:
            form = http.post("/receipts:scan", files={"receipt": ("r.txt", b"abcd", "text/plain")})
            assert form.json() == {"bytes": 4}, form.text
            streamed = http.post("/lines:query", json={"count": 2}, headers={"Accept": "application/x-ndjson"})
            assert [json.loads(line) for line in streamed.text.splitlines()][-1] == {"end": {"items": 2}}
            for _, _, tool, given, expected in CALLS:
                assert _by_mcp(http, tool, given) == expected
                assert _by_a2a(http, tool, given) == expected
    checked = bespeak("audit", "verify", str(tmp_path))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert key not in checked.stdout


def _by_mcp(http: httpx.Client, tool: str, given: dict[str, Any]) -> Any:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}}
    told = http.post("/mcp", json=asked, headers={"Accept": "application/json, text/event-stream"})
    found = told.json() if told.text.startswith("{") else json.loads(told.text.partition("data: ")[2].split("\n")[0])
    result = found["result"]["structuredContent"]
    return result.get("result", result)  # a union is not an object to MCP


def _by_a2a(http: httpx.Client, skill: str, given: dict[str, Any]) -> Any:
    message = {
        "messageId": f"m-{skill}",
        "role": "ROLE_USER",
        "parts": [{"data": {"skill": skill, "input": given}}],
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    told = http.post("/a2a", json=asked, headers={"A2A-Version": "1.0"})
    task = told.json()["result"]["task"]
    return task["artifacts"][0]["parts"][0]["data"]
