"""Invariant: no document from the web makes its readers raise, and the operations read from one are bounded and
callable.

Run `python tools/fuzz/discovery.py --seconds 60`. It prints how many documents it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from campaign import campaign

from bespeak.agent.client.http_transport import build_request
from bespeak.agent.discovery.fetcher import lifetime, retry_after
from bespeak.agent.discovery.lookup import service_descriptions
from bespeak.agent.discovery.readers import ai_capabilities, check_producer, read_ai_document
from bespeak.agent.discovery.web_document import DISCOVERY, Fetched, parse_robots
from bespeak.protocol.address_guard import Origin, WebAddress, parse_web_address, resolve_address
from bespeak.text.diagnostics.reporters.text import full

_BASE = WebAddress(Origin("https", "flights.test", 443), "/.well-known/ai")
_DOCUMENT: dict[str, Any] = {
    "aiendpoint": "1.0",
    "service": {"name": "Flights", "description": "Finds flights.", "category": ["travel"], "language": ["en"]},
    "capabilities": [
        {
            "id": "search_flights",
            "description": "Search flights",
            "endpoint": "/api/flights/:id",
            "method": "GET",
            "params": {"from": "string, required -- airport code", "id": "text (string, required)"},
            "returns": "flights[] {id, price}",
        },
        {"id": "book", "description": "Book", "endpoint": "https://b.test/{x}", "method": "POST"},
    ],
    "auth": {"type": "apikey", "header": "X-API-Key"},
    "token_hints": {"compact_mode": True},
}
_VALUES: list[Any] = [None, True, -1, 10**30, 1.5, "", "\ud800", "\x00", "*", [], {}, [None], {"a": {}}, "é" * 300]
_TEXTS = [
    "javascript:x",
    "//x",
    "/:a/{b}",
    "https://[::1]/",
    "{",
    "}",
    "/../",
    "\r\n",
    "%2f",
    "string, required",
    "--",
    "\\",
]
_BYTES = [b"", b"{", b"[" * 3000, b'"', b"\xff", b"\xef\xbb\xbf", b"\x00", b"1e999", b"NaN"]


def mutate(value: Any, source: random.Random) -> Any:
    """Mutate a document."""
    if isinstance(value, dict) and value and source.random() < 0.85:
        key = source.choice(list(value))
        rest = {name: item for name, item in value.items() if name != key}
        return rest if source.random() < 0.1 else {**rest, key: mutate(value[key], source)}
    if isinstance(value, list) and value and source.random() < 0.85:
        at = source.randrange(len(value))
        return [*value[:at], mutate(value[at], source), *value[at + 1 :]]
    if isinstance(value, str) and source.random() < 0.6:
        at = source.randrange(len(value) + 1)
        return value[:at] + source.choice(_TEXTS) + value[at:]
    return source.choice(_VALUES)


def try_document(data: bytes) -> None:
    """Check one discovery document."""
    document, findings = read_ai_document(data, "fuzz")
    full(findings, lambda _: None)
    check_producer(Fetched(what=DISCOVERY.what, url=str(_BASE), final_url=str(_BASE), status=200, body=data))
    if document is None:
        return
    usable, wrong = ai_capabilities(document, _BASE)
    assert len(usable) + len(wrong) == len(document.capabilities) <= 100
    for each in usable:
        assert each.origin.scheme == "https"
        assert len(each.description) <= 200
        built = build_request(each, dict.fromkeys(each.input_schema["properties"], "x"))
        assert str(getattr(built, "address", "")).isascii()


def try_text(text: str) -> None:
    """Check one text in every place where a server may put one."""
    parse_robots(b"User-agent: *\nDisallow: " + text.encode(errors="replace")).allows(text)
    found = parse_web_address(text)
    assert not isinstance(found, WebAddress) or parse_web_address(str(found)) == found
    resolve_address(text, _BASE)
    page = Fetched(what="x", url=str(_BASE), final_url=str(_BASE), headers={"link": text})
    assert len(service_descriptions([page])) <= 3
    assert lifetime({"cache-control": text, "age": text}, 0.0) >= 0
    assert (retry_after({"retry-after": text}, 0.0) or 0) >= 0


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a mutated document, sometimes with damaged bytes, and one text."""
    document: Any = _DOCUMENT
    for _ in range(source.randrange(1, 6)):
        document = mutate(document, source)
    data = json.dumps(document).encode()
    if source.random() < 0.3:
        at = source.randrange(len(data) + 1)
        data = data[:at] + source.choice(_BYTES) + data[at + source.randrange(4) :]
    text = "".join(
        source.choices(["https://", "a.test", "/", *_TEXTS, "<", ">;rel=service-desc", "9", "max-age="], k=4)
    )
    noted += [data, text]
    try_document(data)
    try_text(text)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
