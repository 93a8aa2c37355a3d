"""The documents that one service publishes, written into a folder; see published.py."""

from __future__ import annotations

import asyncio
import importlib
import io
import itertools
import json
import os
import re
import signal
import socket
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec

import bespeak

ROOT, WORK = Path.cwd(), Path(tempfile.gettempdir(), f"published-{os.getpid()}").resolve()
"""The source tree, and the folder into which its services are copied."""
URL, MANIFEST = "https://service.example", "application/vnd.agtp.manifest+json"
WELL_KNOWN = "ai agis.json agtp ai-catalog.json mcp/catalog.json agent-card.json agent.json"
PAGES = (
    *(("/", media_type) for media_type in ("application/json", "text/markdown", MANIFEST)),
    *((f"/.well-known/{name}", "*/*") for name in WELL_KNOWN.split()),
    *((path, "*/*") for path in ("/ai", "/openapi.json", "/capabilities.jsonld", "/llms.txt", "/mcp/server-card")),
)
TOOL_APIS = ("openai", "openai-responses", "anthropic", "gemini")
EXPORTS = {
    **{f"agis.{form}": ("agis", "--to", form) for form in ("yaml", "json")},
    **{f"tools-{api}.json": ("tools", "--style", api) for api in TOOL_APIS},
    **{f"{form}.json": (form, "--url", URL) for form in ("openapi", "ai", "a2a")},
    "a2a-legacy.json": ("a2a", "--legacy", "--url", URL),
    "llms.txt": ("llms", "--url", URL),
    "jsonld.json": ("jsonld",),
}
"""Arguments of `bespeak export`, by the file for its output."""
AGENT = {"Agent-ID": "a" * 64}
CALLERS = {"anyone": {}, "an agent": AGENT, "an agent with scopes": {**AGENT, "Authority-Scope": "*:*"}}
MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r'("last_updated": )"[\d-]+"'), r'\1"<date>"'),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\bresp-[0-9a-f]{12}\b"), "<response>"),
    (re.compile(r"(\beyJ[\w-]+)\.[\w-]*\.[\w-]+"), r"\1.<signature>"),
    (re.compile(r'("bespeak/sha256": |etag: )"[0-9a-f]+"'), r'\1"<hash>"'),
    (re.compile(r"try again in \d+ s"), "try again in <n> s"),
    (re.compile(r"(bespeak_target_\w+?)_[0-9a-f]{12}\b"), r"\1_<hash>"),
    (re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):\d{5}\b"), r"\1:<port>"),
    (re.compile(re.escape(str(WORK))), "<work>"),
    (re.compile(re.escape(str(ROOT))), "<root>"),
    (re.compile(re.escape(str(Path(os.__file__).parent))), "<python>"),
)


class Folder:
    """The documents of one service, and the messages about it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.messages: dict[str, list[str]] = {}

    def write(self, name: str, text: str) -> None:
        """Write a document. Format JSON that has one line, and mask what changes from run to run."""
        if text.startswith(("{", "[")) and "\n" not in text.rstrip():
            text = msgspec.json.format(text, indent=2) + "\n"
        for pattern, placeholder in MASKS:
            text = pattern.sub(placeholder, text)
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def run(self, name: str, *arguments: str, script: str = "bespeak") -> str:
        """Run a command and write its output; keep its messages and its exit code."""
        output = ""
        with self.listening(name):
            output, code = run_script(script, *arguments)
            if output:
                self.write(name, output)
            sys.stderr.write(f"exit code {code}\n" if code else "")
        return output

    @contextmanager
    def listening(self, source: str) -> Iterator[None]:
        """Keep what a block writes to standard error, and the exception that ends it."""
        stream = io.TextIOWrapper(buffer := io.BytesIO(), "utf-8", write_through=True)
        with redirect_stderr(stream):
            try:
                yield
            except Exception as error:  # noqa: BLE001 - errors are compared too
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
        self.messages.setdefault(buffer.getvalue().decode(), []).append(source)


def run_script(script: str, *arguments: str) -> tuple[str, int]:
    """Run a console script of this tree in this process; return its output and its exit code."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    module, _, function = scripts[script].partition(":")
    before, sys.argv, code = sys.argv, [script, *arguments], 0
    stream = io.TextIOWrapper(buffer := io.BytesIO(), "utf-8", write_through=True)
    try:
        with redirect_stdout(stream):
            getattr(importlib.import_module(module), function)()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    return buffer.getvalue().decode(), code


def write_service(folder: Folder, target: str) -> None:
    """Write the documents of one service."""
    folder.run("discover.txt", "discover", target)
    folder.run("lint.txt", "lint", target)
    for name, (form, *options) in EXPORTS.items():
        folder.run(f"export/{name}", "export", form, target, *options)
    with folder.listening("HTTP"):
        asyncio.run(_write_pages(folder, target))
    for place, with_state in (("agtp", True), ("agtp-without-store", False)):
        with folder.listening(place):
            asyncio.run(_write_replies(folder, target, place, with_state=with_state))
    for name, most in (("mcp.json", "all"), *([("mcp-search.json", "40")] if target.startswith("all") else [])):
        with folder.listening(name):
            replies = _ask_mcp("mcp", target, "--store", "memory", "--as", "probe", "--tools-listed", most)
            if replies:
                folder.write(name, json.dumps(replies, ensure_ascii=False))


async def _write_pages(folder: Folder, target: str) -> None:
    """Write the documents of the HTTP face with their headers, and the refusals of calls to every endpoint."""
    async with (
        bespeak.asgi(target, store="memory", url=URL).running() as service,
        httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url=URL) as client,
    ):
        index, refusals, gates, pages, endpoints = [], [], [], list(PAGES), []
        for path, accept in pages:
            reply = await client.get(path, headers={"Accept": accept})
            lines = (
                f"GET {path} {accept}: {reply.status_code}",
                *(f"{key}: {reply.headers[key]}" for key in reply.headers),
            )
            index.append("\n  ".join(lines) + "\n")
            if path == "/.well-known/ai":
                pages += [(part, "*/*") for part in sorted(set(re.findall(rf"{path}/[\w.%-]+", reply.text)))]
            if accept == MANIFEST and reply.is_success:
                endpoints = reply.json()["endpoints"]
            if reply.is_success:
                name = f"root-{accept}" if path == "/" else path.lstrip("/.")
                folder.write(f"http/{name.replace('/', '-')}", reply.text)
        for endpoint, (caller, headers) in itertools.product(endpoints, CALLERS.items()):
            # A body that is not JSON, or lacks a required member, never reaches a handler.
            method, path = endpoint["method"], re.sub(r"[{}]", "", endpoint["path"])
            lacks = set(endpoint["input_schema"].get("required", ())) - set(re.findall(r"{(\w+)}", endpoint["path"]))
            for body in ("[", "{}") if lacks else ("[",):
                with _traced() as names:
                    own = {"X-AGIS-Method": method, "Content-Type": "application/json", **headers}
                    reply = await client.post(path, headers=own, content=body)
                refusals.append(f"{method} {path} {body} by {caller}: {reply.status_code} {reply.text}\n")
                gates.append(f"{method} {path} {body} by {caller}: {' '.join(names)}\n")
    folder.write("endpoints.txt", "".join(f"{endpoint['method']} {endpoint['path']}\n" for endpoint in endpoints))
    folder.write("http/index.txt", "".join(index))
    folder.write("refusals.txt", "".join(refusals))
    folder.write("gates.txt", "".join(gates))


async def _write_replies(folder: Folder, target: str, place: str, *, with_state: bool) -> None:
    """Write the replies to DISCOVER over AGTP, and the gates of these calls, which pass if discovery is public."""
    gates = []
    options: dict[str, Any] = {"with_state": with_state}
    async with bespeak.connect(target, **options) as client:
        for name in ("manifest", "methods", "agents"):
            path = "/" if name == "manifest" else f"/{name}"
            with _traced() as names:
                reply = await client.request("DISCOVER", path, headers={"Accept": MANIFEST} if path == "/" else {})
            folder.write(f"{place}/{name}.json", reply.body.decode())
            gates.append(f"DISCOVER {path}: {reply.status} {' '.join(names)}\n")
    folder.write(f"{place}/gates.txt", "".join(gates))


@contextmanager
def _traced() -> Iterator[list[str]]:
    """Collect the names of the gates that a block runs through."""
    names: list[str] = []

    def watch(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name.endswith("_gate"):
            names.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        yield names
    finally:
        sys.setprofile(None)


def _ask_mcp(*arguments: str) -> list[Any]:
    """Ask an MCP server, which needs standard streams, in a fork: a new process would import everything again."""
    asked = ("initialize", "tools/list", "resources/list", "resources/templates/list", "prompts/list")
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "published", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": i, "method": name, "params": {} if i else client} for i, name in enumerate(asked)
    ]
    messages.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    ours, theirs = socket.socketpair()
    ours.settimeout(200)
    with tempfile.TemporaryFile() as complaints, ours, ours.makefile("rwb") as stream:
        if (child := os.fork()) == 0:
            for number, source in enumerate((theirs.fileno(), theirs.fileno(), complaints.fileno())):
                os.dup2(source, number)
            os.closerange(3, 256)
            sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", write_through=True)
            try:
                run_script("bespeak", *arguments)
            finally:
                os._exit(0)
        theirs.close()
        replies: list[Any] = []
        try:
            stream.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
            with suppress(OSError):
                stream.flush()
                while len(replies) < len(asked) and (line := stream.readline()):
                    replies += [reply for reply in [json.loads(line)] if "id" in reply]
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        complaints.seek(0)
        sys.stderr.write(complaints.read().decode())
    return sorted(replies, key=lambda reply: int(reply["id"]))
