"""The log: complete lines, with the ids of requests, and no values that callers sent."""

from __future__ import annotations

import io
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from tests.process import serving
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.log import FORMATS, LEVELS, JsonLines, TerminalLines, TextLines, log_to_stderr
from bespeak.contract.agent import Agent
from bespeak.contract.handler import Refusal
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Malformed
from bespeak.runtime.exchange import ACCESS_LOGGER, AskedPath
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.identity.settings import AuthSettings, SignedSettings, TokenSettings

pytestmark = pytest.mark.anyio

SECRET = "hush-4711"  # a part of everything that callers send here


def entry(message: str, *args: object, **particulars: Any) -> logging.LogRecord:
    record = logging.LogRecord("bespeak.test", logging.INFO, "here.py", 1, message, args, None)
    record.created, record.msecs = 0.25, 250.0
    if particulars:
        record.particulars = particulars
    return record


def test_lines_of_text_and_json_have_the_particulars_of_the_request() -> None:
    shown = TextLines().format(entry("%d is refused", 459, status=459, request_id="r1", response_id="p1"))
    assert shown == "1970-01-01T00:00:00.250Z INFO bespeak.test: 459 is refused request=r1 response=p1"
    for principal, more in (("acme", " principal=acme"), (None, "")):
        assert TextLines().format(entry("200", principal_id=principal)).endswith(f": 200{more}")
    assert TextLines().format(entry("x", request_id="a response=b")).endswith("x request=a\\x20response=b")
    record = entry("%d is refused", 459, status=459, path="/rooms/{room}", agent_id=None, response_id="p1")
    assert json.loads(JsonLines().format(record)) == {
        "time": "1970-01-01T00:00:00.250Z",
        "level": "info",
        "logger": "bespeak.test",
        "message": "459 is refused",
        "status": 459,
        "path": "/rooms/{room}",
        "response_id": "p1",
    }


@pytest.mark.parametrize("form", [TextLines(), JsonLines()])
@given(words=st.text() | st.sampled_from(["\n2026 ERROR x: forged", "a\x1b[2J", "\x85\u2028\x7f", "\ud800", "a b=c"]))
def test_no_value_adds_a_line_or_controls_a_terminal(form: logging.Formatter, words: str) -> None:
    line = form.format(entry("%s asks", words, request_id=words, task_id=words))
    assert line.isprintable()
    assert line.splitlines() == [line]
    assert isinstance(form, TextLines) or json.loads(line)["level"] == "info"


@given(words=st.text() | st.sampled_from(["/\n12:00:00 200 GET /forged", "/a\x1b[2J", "/\x85\u2028", "/\ud800"]))
def test_a_terminal_shows_an_unknown_path_escaped_and_bounded(words: str) -> None:
    record = entry("", status=404, method="GET", path="/*", code="endpoint-not-found", ms=0.25)
    record.asked = AskedPath(words * 100)
    line = TerminalLines().format(record)
    assert line.isprintable()
    assert line.splitlines() == [line]
    assert len(line) < 128 * 10 + 80
    assert line.endswith("anonymous 0.2 ms endpoint-not-found")


def test_a_terminal_shows_the_template_of_an_endpoint_and_the_beginning_of_the_agent() -> None:
    record = entry("", status=200, method="QUERY", path="/rooms/{room}", agent_id="ab" * 32, code=None, ms=12.345)
    record.asked = None
    assert TerminalLines().format(record).split(" ", 1)[1] == "200 QUERY /rooms/{room} abababababab 12.3 ms"
    assert TerminalLines().format(entry("started")) == TextLines().format(entry("started"))


def test_a_terminal_shows_a_request_that_was_refused_unread_in_a_short_line() -> None:
    record = entry("400 invalid-form: refused before it was read", status=400, code="invalid-form")
    record.name = ACCESS_LOGGER
    assert TerminalLines().format(record).split(" ", 1)[1] == "400 invalid-form: refused before it was read"


@given(words=st.text(st.characters(exclude_categories=["Cs"])))
def test_json_gives_back_every_text_as_it_was(words: str) -> None:
    assert json.loads(JsonLines().format(entry("%s", words)))["message"] == words


@pytest.mark.parametrize("form", [TextLines(), JsonLines()])
def test_no_line_of_a_trace_looks_like_an_entry(form: logging.Formatter) -> None:
    record = entry("it failed")
    try:
        raise ValueError("one\n1970-01-01T00:00:00.250Z INFO bespeak.test: forged")
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    first, *rest = form.format(record).splitlines()
    assert "it failed" in first
    assert all(line.startswith("    ") for line in rest)
    assert "forged" in first + "".join(rest)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    before = (logger.level, list(logger.handlers), logging.getLogger("httpx").level)
    yield logger
    logger.setLevel(before[0])
    logger.handlers[:] = before[1]
    for name in ("asyncio", "asyncpg", "httpcore", "httpx", "mcp"):
        logging.getLogger(name).setLevel(before[2])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", FORMATS)
def test_libraries_do_not_tell_addresses_and_a_second_call_replaces_the_first(
    root: logging.Logger, capsys: pytest.CaptureFixture[str], level: str, form: str
) -> None:
    log_to_stderr("error", "text")
    log_to_stderr(level, form)
    logging.getLogger("httpx").info("GET https://upstream.example/?key=%s", SECRET)
    logging.getLogger("hotel").log(logging.getLevelName(level.upper()), "from the operator's code")
    printed = capsys.readouterr().err.splitlines()
    assert [("operator" in line, SECRET in line) for line in printed] == [(True, False)]


# What callers send.


@pytest.fixture
def logged(root: logging.Logger) -> io.StringIO:
    """Return everything logged, at the lowest level, in both formats."""
    written = io.StringIO()
    for form in (TextLines(), JsonLines()):
        handler = logging.StreamHandler(written)
        handler.setFormatter(form)
        root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    for name in ("asyncio", "aiosqlite"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return written


def noisy_headers(**more: str) -> dict[str, str]:
    """Something secret in every header that is read, and in one that is not."""
    return {
        "authorization": f"Bearer {SECRET}.{SECRET}.{SECRET}",
        "agent-signature": f"agtp1;key={SECRET};nonce={SECRET};signature={SECRET}",
        "idempotency-key": f"{SECRET}-key",
        "confirmation-id": f"conf-{SECRET}",
        "session-id": f"{SECRET}-0123456789abcdefghijklmnopqrstuvwxyz",
        "delegation-chain": f"{SECRET}.{SECRET}.{SECRET}",
        "authority-scope": f"{SECRET}:read",
        "budget-limit": f"{SECRET}=1",
        "accept": f"application/{SECRET}",
        "content-type": f"application/{SECRET}",
        "if-none-match": f'"{SECRET}"',
        "x-secret": SECRET,
        **more,
    }


def fail(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002 - the name of the argument says what it is
    raise Refusal("taken", f"{input} is taken")


ENDPOINTS = (
    make_endpoint("QUERY", "/rooms/{room}", lambda context: {"rooms": []}, properties={"room": {}, "card": {}}),
    make_endpoint("BOOK", "/rooms/{room}", fail, properties={"room": {}, "card": {}}, errors=("taken",)),
    make_endpoint(
        "FETCH",
        "/cards/{card}",
        lambda context: {"card": context.input["card"], context.input["card"]: 1},
        properties={"card": {}},
        output={"type": "object", "properties": {"card": {"type": "integer"}}, "additionalProperties": False},
    ),
)

CALLS = [
    ("QUERY", f"/rooms/{SECRET}?card={SECRET}", {"card": SECRET}),
    ("QUERY", f"/rooms/{SECRET}", {SECRET: SECRET}),
    ("QUERY", f"/rooms/{SECRET}/{SECRET}", None),
    ("QUERY", f"/{SECRET}?{SECRET}", f"{{{SECRET}".encode()),
    ("BOOK", f"/rooms/{SECRET}", {"card": SECRET}),
    ("FETCH", f"/cards/{SECRET}", None),
    ("FROBNICATE", f"/rooms/{SECRET}", None),
    ("EXECUTE", "/", {"token": SECRET, "idempotency_key": SECRET}),
    ("DELEGATE", "/", {"delegate": SECRET, "scopes": [f"{SECRET}:read"]}),
    ("CONFIRM", "/", {"confirmation_id": SECRET, "decision": SECRET}),
    ("RESUME", "/", {"session_id": SECRET, "resumption_nonce": SECRET}),
    ("DESCRIBE", f"/{SECRET}", None),
    ("QUERY", f"/agents/{SECRET}", None),
]


async def send_all(bench: StatefulBench, headers: dict[str, str], *, agent: str | None) -> set[int]:
    """Send every call through the access log; return the statuses."""
    found = set()
    for left_out in (None, *headers):
        given_headers = {name: value for name, value in headers.items() if name != left_out}
        for method, target, body in CALLS:
            reply = await bench.send(method, target, body, agent=agent, **given_headers)
            found.add(reply.status)
    for number in (400, 408, 413):
        found.add(
            bench.bench.dispatcher.malformed(
                Malformed(number, "invalid", f"{SECRET} is wrong"), bench.connection
            ).status
        )
    return found


async def test_no_value_of_a_caller_is_logged_with_and_without_authentication(
    logged: io.StringIO, tmp_path: Path
) -> None:
    plain = ("idempotency-key", "confirmation-id", "accept", "content-type", "x-secret", "session-id")
    everything = noisy_headers()
    async with keeping(*ENDPOINTS) as bench:
        statuses = await send_all(bench, {name: everything[name] for name in plain}, agent=AGENT)
    async with keeping(*ENDPOINTS) as bench:
        statuses |= await send_all(bench, everything, agent=AGENT)
    async with keeping(*ENDPOINTS) as bench:
        statuses |= await send_all(bench, {"x-secret": SECRET}, agent=AGENT)
    assert {200, 400, 404, 408, 422, 459, 500} <= statuses
    assert "QUERY /rooms/{room}" in logged.getvalue()
    assert "/rooms/*" in logged.getvalue()
    assert SECRET not in logged.getvalue()
    document = strict(tmp_path)
    agents = (Agent(agent_id=AGENT, name="desk", public_key=OKPKey.generate_key("Ed25519", private=False).as_dict()),)
    signing = OKPKey.generate_key("Ed25519")
    async with keeping(*ENDPOINTS, document=document, agents=agents, keys=(signing,)) as bench:
        statuses = await send_all(bench, noisy_headers(), agent=AGENT)
    assert {401, 400} <= statuses
    assert SECRET not in logged.getvalue()


def strict(folder: Path) -> ServerDocument:
    """Write a configuration that authenticates callers and records everything."""
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": [OKPKey.generate_key("Ed25519", private=False, auto_kid=True).as_dict()]}))
    token = TokenSettings(issuer="https://issuer.example", audience="test.example", keys=keys)
    auth = AuthSettings(modes=("token", "signed"), token=token, signed=SignedSettings())
    return ServerDocument(auth=auth, audit=AuditSettings(records="all"))


@pytest.mark.process
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_logs_findings_and_answers_as_json(tmp_path: Path, workers: str) -> None:
    ledger = {"HOTEL_LEDGER": str(tmp_path / "hotel.sqlite3")}
    options = ("--log", "debug", "--log-format", "json", "--workers", workers)
    with serving("examples/hotel", *options, env=ledger) as served:
        with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
            connection.sendall(b"AGTP/1.0 FROB /\r\nRequest-ID: r-1\r\n\r\nAGTP/1.0 DISCOVER /methods\r\n\r\n")
            received = b""
            while received.count(b"AGTP/1.0 ") < 2:
                received += connection.recv(65536)
        served.stop()
        lines = [json.loads(line) for line in served.process.stderr.read().splitlines()]
    assert [line["rule"] for line in lines if line["logger"] == "bespeak.app.server.findings"] == ["M204"]
    told = [line for line in lines if "response_id" in line]
    assert [(line["level"], line["status"], line["path"]) for line in told] == [
        ("debug", 459, "/"),
        ("info", 459, "/"),
        ("info", 200, "/methods"),
    ]
    assert [line.get("request_id") for line in told] == ["r-1", "r-1", None]
    assert all(line["response_id"].encode() in received for line in told)


CREDENTIALS = (  # headers with values that must stay secret
    "authorization",
    "agent-signature",
    "idempotency-key",
    "confirmation-id",
    "session-id",
    "delegation-chain",
)

MALFORMED = ("{}", "Basic {}", "Bearer {}", "agtp1;{}", "{}\x01", "{}é", "a" * 9000 + "{}", "{},{}", '"{}"', "{}=")


@pytest.mark.parametrize("proven", [False, True], ids=["open", "token and signed"])
async def test_no_answer_repeats_a_credential(logged: io.StringIO, tmp_path: Path, proven: bool) -> None:
    document = strict(tmp_path) if proven else ServerDocument()
    async with keeping(*ENDPOINTS, document=document, keys=(OKPKey.generate_key("Ed25519"),)) as bench:
        for name in CREDENTIALS:
            for form in (noisy_headers()[name].replace(SECRET, "{}"), *MALFORMED):
                for method, target in (("QUERY", "/rooms/1"), ("BOOK", "/rooms/1"), ("SUSPEND", "/"), ("FROB", "/")):
                    reply = await bench.send(method, target, {}, **{name: form.replace("{}", SECRET)})
                    told = f"{reply.response.body!r} {reply.response.headers}"
                    assert SECRET not in told, (name, form)
    assert SECRET not in logged.getvalue()
