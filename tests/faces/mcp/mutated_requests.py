"""Requests of MCP over HTTP with mutations: in headers, members, values, text and bytes."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tests.faces.mcp.tools import MODERN, modern
from tests.service import AGENT

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LEVEL = "io.modelcontextprotocol/logLevel"
KEY = "bespeak/idempotency-key"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("query_rooms", {}),
    ("query_rooms", {"beds": 2, "city": "Riga"}),
    ("check_values", {"value": {"a": [1, 2.5, None, True, "é"]}}),
    ("list_floors", {}),
    ("summarize_rooms", {"words": 3}),
    ("adjust_rooms", {"room_id": "12", "price": 9.5}),
    ("adjust_rooms", {"room_id": "a/b é", "price": -1}),
    ("reset_rooms", {}),
    ("scan_rooms", {"rooms": 3}),
    ("scan_floors", {}),
    ("scan_floors", {"fail": True}),
    ("measure_rooms", {}),
    ("book_room", {"room_id": "12"}),
    ("purchase_room", {"room_id": "12"}),
    ("find_regions", {"region": "north"}),
    ("inspect_ledger", {}),
    ("call_capability", {"name": "query_rooms", "arguments": {"beds": 2}}),
    ("call_capability", {"name": "check_values"}),
    ("call_capability", {"name": "book_room", "arguments": {"room_id": "12"}}),
    ("find_capability", {"query": "rooms"}),
    ("unknown", {}),
)
MUTATIONS: dict[str, Mutation] = {}
MEMBERS = ("", "x", "id", "name", "cursor", "task", "inputResponses", "requestState", "progressToken", "_meta", "é")
Case = tuple[int, tuple[tuple[str, int], ...]]
"""Which plain request, and the mutations of it, each with a seed."""
_EACH = len(CALLS) + 2
PLAIN = 2 * _EACH
"""Number of requests without mutations: calls and lists of the modern era, then of the one before."""
SESSION = "<session>"
"""Stands for the id of a session of the caller."""


@dataclass
class Sent:
    """A request: its headers and its message, as text once it has been written."""

    headers: list[tuple[str, str]]
    message: Any
    http_method: str = "POST"
    target: str = "/mcp"
    text: bytes | None = None

    def written(self) -> bytes:
        """Return the message as text."""
        return json.dumps(self.message, separators=(",", ":")).encode() if self.text is None else self.text

    def encode(self) -> bytes:
        """Return the request as it is sent."""
        body = self.written()
        lines = [f"{self.http_method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in self.headers)]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}"])
        return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


Mutation = Callable[[random.Random, Sent], None]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.0, 1.5, -0.0, 1e300, 5e-324, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30),
    *("", "x", " x ", "1", "é", "\U0001f600", "\ud800", "a\nb", "\x00", "\x7f", "\u2028", "query_rooms", "x" * 5000),
    *([], {}, [1], {"a": 1}, {"": 0}, [[[]]], {"confirm": True}),
)


def mutation(function: Mutation) -> Mutation:
    """Register a mutation by its name."""
    MUTATIONS[function.__name__] = function
    return function


def _value(choose: random.Random) -> Any:
    return deepcopy(choose.choice(VALUES))


def _params(sent: Sent) -> dict[str, Any]:
    found = sent.message.get("params") if isinstance(sent.message, dict) else None
    return found if isinstance(found, dict) else {}


def _meta(sent: Sent) -> dict[str, Any]:
    found = _params(sent).get("_meta")
    return found if isinstance(found, dict) else {}


def _nodes(value: Any) -> Iterator[Any]:
    """Yield every object and array of a message."""
    if isinstance(value, (dict, list)):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _nodes(inner)


@mutation
def change_any_member(choose: random.Random, sent: Sent) -> None:
    node = choose.choice(list(_nodes(sent.message)) or [{}])
    if node:
        place: Any = choose.choice(list(node) if isinstance(node, dict) else range(len(node)))
        node[place] = _value(choose)


@mutation
def drop_any_member(choose: random.Random, sent: Sent) -> None:
    node = choose.choice([node for node in _nodes(sent.message) if isinstance(node, dict)] or [{}])
    if node:
        del node[choose.choice(list(node))]


@mutation
def add_any_member(choose: random.Random, sent: Sent) -> None:
    nodes = [node for node in _nodes(sent.message) if isinstance(node, dict)]
    if nodes:
        choose.choice(nodes)[choose.choice(MEMBERS)] = _value(choose)


@mutation
def change_id(choose: random.Random, sent: Sent) -> None:
    if isinstance(sent.message, dict):
        sent.message["id"] = _value(choose)


@mutation
def change_argument(choose: random.Random, sent: Sent) -> None:
    arguments = _params(sent).get("arguments")
    if isinstance(arguments, dict):
        names = [*arguments, "value", "beds", "words", "unknown", "fields", "compact"]
        arguments[choose.choice(names)] = _value(choose)


@mutation
def change_arguments(choose: random.Random, sent: Sent) -> None:
    if _params(sent):
        _params(sent)["arguments"] = _value(choose)


@mutation
def change_tool(choose: random.Random, sent: Sent) -> None:
    """Call another tool, in the body, in the header or in both."""
    name, arguments = choose.choice(CALLS)
    where = choose.random()
    if where < 0.7 and _params(sent):
        _params(sent).update(name=name, arguments=dict(arguments))
    if where > 0.2:
        _set(sent, "Mcp-Name", name)


@mutation
def change_envelope(choose: random.Random, sent: Sent) -> None:
    name, values = choose.choice(
        [
            (VERSION, (MODERN, "2025-11-25", "2026-07-29", "", 20260728, None)),
            (CAPABILITIES, ({}, {"elicitation": {}}, {"roots": {"listChanged": True}}, {"x": 1}, None, [], "x", 1)),
            (
                CAPABILITIES,
                ({"sampling": 1}, {"elicitation": {"form": {}}}, {"experimental": {"a": {}}}, {"roots": []}),
            ),
            (CLIENT, ({"name": "n", "version": "2"}, {"name": "n"}, {}, None, "x", {"name": 1, "version": "2"})),
            (CLIENT, ({"name": "é", "version": "2", "title": "t"}, {"name": "n", "version": "2", "icons": 5})),
            (LEVEL, ("debug", "loud", None, 1, "DEBUG")),
            ("progressToken", (1, "t", 1.5, True, None, 2**70, [], "")),
            (KEY, ("k1", "k2", "", "a\nb", 5, None, "é", "k" * 300, " k", "\ud800")),
            (choose.choice(["traceparent", "tracestate", "baggage"]), ("00-ab-cd-01", "", 1, None, {})),
            (choose.choice(["com.example/x", "mcp.dev/x", "bespeak/x", "x/", "/", "é/x"]), VALUES),
        ]
    )
    if _params(sent):
        _params(sent).setdefault("_meta", {})
        _meta(sent)[name] = deepcopy(choose.choice(values))


@mutation
def want_progress(choose: random.Random, sent: Sent) -> None:
    if _params(sent):
        _params(sent).setdefault("_meta", {})
        _meta(sent)["progressToken"] = choose.choice([1, "t", 0, "é", -5])


@mutation
def change_method(choose: random.Random, sent: Sent) -> None:
    named = ("tools/call", "tools/list", "Tools/Call", "ping", "server/discover", "resources/list", "x", "")
    method = choose.choice(named)
    if isinstance(sent.message, dict) and choose.random() < 0.7:
        sent.message["method"] = method
    if choose.random() < 0.7:
        _set(sent, "Mcp-Method", method)


@mutation
def send_batch(choose: random.Random, sent: Sent) -> None:
    sent.message = choose.choice([[sent.message], [sent.message, sent.message], [], [[sent.message]]])


@mutation
def shuffle_members(choose: random.Random, sent: Sent) -> None:
    for node in _nodes(sent.message):
        if isinstance(node, dict):
            items = list(node.items())
            choose.shuffle(items)
            node.clear()
            node.update(items)


@mutation
def write_otherwise(choose: random.Random, sent: Sent) -> None:
    """Write the message with blanks, with its characters as they are, or with escapes."""
    way = choose.randrange(5)
    if way == 0:
        sent.text = json.dumps(sent.message, indent=choose.choice([0, 1, "\t"])).encode()
    elif way == 1:
        sent.text = json.dumps(sent.message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    elif way == 2:
        sent.text = choose.choice([b" ", b"\n\r\t ", b"\xef\xbb\xbf", b"\x0b"]) + sent.written()
    elif way == 3:
        sent.text = sent.written() + choose.choice([b" ", b"\n", b"x", b"{}", b"\x00", b","])
    else:
        sent.text = (
            sent.written()
            .decode(errors="replace")
            .encode(choose.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig"]))
        )


@mutation
def repeat_member(choose: random.Random, sent: Sent) -> None:
    """Write a member twice; the last one counts."""
    text = sent.written()
    value = json.dumps(_value(choose)).encode()
    repeats = (b'"id":', b'"jsonrpc":', b'"method":', b'"params":', b'"name":', b'"arguments":', b'"_meta":')
    name = choose.choice([*repeats, b'"value":', b'"beds":', f'"{VERSION}":'.encode(), f'"{CAPABILITIES}":'.encode()])
    at = text.find(name)
    if at >= 0:
        sent.text = text[:at] + name + value + b"," + text[at:]


@mutation
def escape_names(choose: random.Random, sent: Sent) -> None:
    """Write a letter as an escape, which changes nothing, or in another case, which does."""
    text = sent.written()
    word = choose.choice([b"name", b"arguments", b"_meta", b"jsonrpc", b"method", b"tools/call", b"query_rooms", b"id"])
    at = choose.randrange(len(word))
    letter = choose.choice([b"\\u%04x" % word[at], word[at : at + 1].upper(), b"\\/" if word[at] == 47 else b"?"])
    sent.text = text.replace(word, word[:at] + letter + word[at + 1 :], choose.choice([1, 9]))


@mutation
def change_number(choose: random.Random, sent: Sent) -> None:
    """Replace a value by text that parsers of JSON read differently."""
    text = sent.written()
    odd = choose.choice(
        [
            *(
                b"1e400",
                b"-1e400",
                b"NaN",
                b"Infinity",
                b"-Infinity",
                b"-0",
                b"01",
                b"1.",
                b".5",
                b"+1",
                b"1E5",
                b"0x1",
            ),
            *(b"1e-400", b"1" * 400, b"1" * 5000, b"0." + b"1" * 400, b"1" * 30 + b".5", b"[" * 200 + b"]" * 200),
            *(
                b"[" * 3000 + b"]" * 3000,
                b'{"a":' * 150 + b"1" + b"}" * 150,
                b"'x'",
                b'"\x01"',
                b'"\xff"',
                b'"\\ud800"',
            ),
            *(b'"\xed\xa0\x80"', b'"\\ud83d\\ude00"', b"True", b"None", b"//", b'"a\tb"', b"123456789012345678901"),
            *(b'{"x":1e400}', b'{"experimental":{"x":{"y":1e400}}}', b'{"x":"\\ud800"}', b'{"x":%b}' % (b"9" * 5000)),
        ]
    )
    places = [b'"value":', b'"beds":', b'"id":', b'"price":', b'"words":', f'"{CAPABILITIES}":'.encode()]
    found = [place for place in places if place in text]
    if found:
        place = choose.choice(found)
        before, _, after = text.partition(place)
        end = min((after.find(mark) for mark in (b",", b"}") if mark in after), default=len(after))
        sent.text = before + place + odd + after[end:]


@mutation
def change_byte(choose: random.Random, sent: Sent) -> None:
    text = bytearray(sent.written() or b" ")
    for _ in range(choose.choice([1, 1, 1, 3])):
        at = choose.randrange(len(text))
        match choose.randrange(3):
            case 0:
                text[at] = choose.randrange(256)
            case 1:
                text.insert(at, choose.randrange(256))
            case _:
                del text[at]
        text = text or bytearray(b" ")
    sent.text = bytes(text)


@mutation
def cut_text(choose: random.Random, sent: Sent) -> None:
    text = sent.written()
    sent.text = text[: choose.randrange(len(text) + 1)]


HEADERS: dict[str, tuple[str, ...]] = {
    "Accept": (
        *("*/*", "application/json", "text/event-stream", "application/*, text/*", "", "text/html", "é"),
        *("APPLICATION/JSON, Text/Event-Stream", "application/json;q=0, text/event-stream;q=1"),
        *("application/json,text/event-stream", " application/json , text/event-stream "),
        *("application/jsonx, text/*", "text/event-stream,*/*", "text/event-stream,*/*"),
    ),
    "Content-Type": (
        *("application/json; charset=utf-8", "application/jsonx", "text/plain", "APPLICATION/JSON", "", "json"),
        *(" application/json ", "application/json;charset=latin-1"),
    ),
    "MCP-Protocol-Version": (
        *(MODERN, f"{MODERN} ", "2025-11-25", "2025-06-18", "2024-11-05", "2026-07-29", "", "é"),
        f"{MODERN}, {MODERN}",
    ),
    "Mcp-Method": ("tools/call", "tools/call ", "tools/list", "TOOLS/CALL", "", "tools%2Fcall"),
    "Mcp-Name": (
        *("query_rooms", "query_rooms  ", "Query_Rooms", "", "é", "list_floors"),
        *(f"=?base64?{base64.b64encode(name).decode()}?=" for name in (b"query_rooms", b"list_floors", b"\xff")),
        *("=?base64?!?=", "=?base64?cXVlcnlfcm9vbXM?="),
    ),
    "Host": ("localhost", "127.0.0.1:1", "evil.example", "", "localhost:x", "[::1]"),
    "Origin": ("http://localhost", "https://evil.example", "null", "", "http://127.0.0.1:8080"),
    "Agent-ID": (AGENT, "b" * 64, "x", "", f" {AGENT} ", AGENT.upper()),
    "Authority-Scope": ("rooms:read", "rooms:read, rooms:write", "rooms:write", "", "é:x", "rooms:read ", "*", "x y"),
    "Authorization": ("Bearer x", "Basic eA==", "", "Bearer"),
    "Budget-Limit": ("tokens=1", "USD=0.01", "x", ""),
    "Session-ID": ("s1", "", "x" * 300),
    "Task-ID": ("t1", "é", ""),
    "Request-ID": ("r1",),
    "Delegation-Chain": ("x", ""),
    "Idempotency-Key": ("k1",),
    "Mcp-Session-Id": ("abc", ""),
    "Mcp-Param-Region": ("north", "south", ""),
    "Last-Event-ID": ("1",),
    "Content-Encoding": ("gzip",),
    "X-AGIS-Method": ("BOOK",),
    "X-AGIS-Grammar": ("AGIS/1.0",),
    "Method-Grammar": ("AGIS/1.0", "x"),
    "X-Forwarded-For": ("10.0.0.1",),
    "Cookie": ("a=b",),
    "User-Agent": ("tests",),
    "Connection": ("close", "keep-alive"),
}


def _set(sent: Sent, name: str, value: str) -> None:
    sent.headers = [pair for pair in sent.headers if pair[0].lower() != name.lower()]
    sent.headers.append((name, value))


@mutation
def change_header(choose: random.Random, sent: Sent) -> None:
    name = choose.choice(list(HEADERS))
    _set(sent, name, choose.choice(HEADERS[name]))


@mutation
def drop_header(choose: random.Random, sent: Sent) -> None:
    if sent.headers:
        sent.headers.remove(choose.choice(sent.headers))


@mutation
def repeat_header(choose: random.Random, sent: Sent) -> None:
    name, value = choose.choice(sent.headers or [("X", "y")])
    known = next((values for other, values in HEADERS.items() if other.lower() == name.lower()), ())
    sent.headers.insert(choose.randrange(len(sent.headers) + 1), (name, choose.choice([value, *known])))


@mutation
def split_accept(_: random.Random, sent: Sent) -> None:
    """Send the media types in two headers, of which the SDK reads the first."""
    sent.headers = [pair for pair in sent.headers if pair[0] != "Accept"]
    sent.headers += [("Accept", "application/json"), ("Accept", "text/event-stream")]


@mutation
def write_header_otherwise(choose: random.Random, sent: Sent) -> None:
    if sent.headers:
        at = choose.randrange(len(sent.headers))
        name, value = sent.headers[at]
        changed = [(name.upper(), value), (name, f"  {value}\t "), (name, value.upper()), (name, f"{value}\x0c")]
        sent.headers[at] = choose.choice(changed)


@mutation
def change_line(choose: random.Random, sent: Sent) -> None:
    sent.http_method = choose.choice(["POST", "POST", "GET", "PUT", "DELETE", "OPTIONS"])
    sent.target = choose.choice(["/mcp", "/mcp?x=1", "/mcp/", "/MCP", "/%6dcp"])


def plain_request(number: int, authority: dict[str, str]) -> Sent:
    """Return a request without mutations."""
    if number % _EACH >= len(CALLS):
        headers, message = modern("tools/list")
    else:
        name, arguments = CALLS[number % _EACH]
        headers, message = modern("tools/call", name=name, arguments=deepcopy(arguments))
    if number >= _EACH:
        headers = {"Accept": headers["Accept"], "Content-Type": headers["Content-Type"], "Mcp-Session-Id": SESSION}
        headers |= {"MCP-Protocol-Version": "2025-11-25"} if number % 3 else {}
        del message["params"]["_meta"]
        if number % 2 and not message["params"]:
            del message["params"]
    return Sent([("Host", "127.0.0.1"), *headers.items(), *authority.items()], message)


def mutated(case: Case, authority: dict[str, str]) -> Sent:
    """Return the request of a case."""
    number, mutations = case
    sent = plain_request(number, authority)
    for name, seed in mutations:
        MUTATIONS[name](random.Random(seed), sent)
    return sent


def random_case(choose: random.Random, names: Sequence[str] = tuple(MUTATIONS)) -> Case:
    """Choose a case: mostly with one mutation, sometimes with none or several."""
    count = choose.choice([0, 1, 1, 1, 1, 2, 2, 3])
    mutations = choose.choices(names, k=count)
    return choose.randrange(PLAIN), tuple((name, choose.randrange(2**20)) for name in mutations)
