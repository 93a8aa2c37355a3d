"""A conforming AGTP server small enough to be made wrong in one way at a time."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest

FLOOR = [
    *("QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN", "PROPOSE"),
    *("EXECUTE", "DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "NOTIFY"),
]
CATALOG = {*FLOOR, "BOOK", "RESERVE", "FETCH", "AUDIT", "TRANSFER", "RENT"}


def endpoint(method: str, path: str, *, impact: str = "informational", **changes: Any) -> dict[str, Any]:
    """An endpoint as a manifest shows it."""
    fields: dict[str, Any] = {
        "method": method,
        "path": path,
        "description": f"{method} of {path}.",
        "semantic": {
            "intent": "Look at it.",
            "actor": "agent",
            "outcome": "It was looked at.",
            "capability": "retrieval",
            "confidence": 0.9,
            "impact": impact,
            "is_idempotent": True,
        },
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
        "output_schema": {"type": "object", "additionalProperties": True},
        "errors": [],
        "handler": {"type": "registered_function"},
    }
    return {**fields, **changes}


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """A closed input schema."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _manifest() -> dict[str, Any]:
    kinds = closed({"kind": {"type": "string", "enum": ["double", "single"]}})
    said = closed({"ok": {"type": "boolean"}}, "ok") | {"additionalProperties": True}
    room = closed({"room": {"type": "string"}}, "room")
    successor = {"method": "RESERVE", "path": "/rooms"}
    old = {"deprecated_in": "1.1", "removed_in": "2.0", "successor": successor}
    return {
        "agtp_version": "1.0",
        "agtp_api_version": "1.0",
        "document_version": "v1",
        "catalog_version": "9.1.0",
        "catalog_versions_supported": ["9.1.0"],
        "server": {
            "server_id": "mini.example",
            "domain": None,
            "operator": "Mini",
            "contact": "ops@mini.example",
            "supported_features": [],
            "issued": "2026-01-01T00:00:00Z",
            "updated": "2026-01-01T00:00:00Z",
        },
        "embedded_methods": list(FLOOR),
        "custom_methods": [],
        "endpoints": [
            endpoint("QUERY", "/rooms", input_schema=kinds, output_schema=said),
            endpoint("FETCH", "/rooms/{room_id}", input_schema=closed({"room_id": {"type": "string"}}, "room_id")),
            endpoint("RESERVE", "/rooms", impact="irreversible", input_schema=room, required_scopes=["booking:room"]),
            endpoint("RENT", "/rooms", impact="reversible", input_schema=room, deprecated=old),
            endpoint("DISCOVER", "/methods", output_schema={"type": "array", "items": {"type": "object"}}),
        ],
        "agent_disclosure": "public",
        "hosted_agents": [],
        "agent_disclosure_notice": None,
        "apis": [],
        "hosted_protocols": [],
        "policies": {
            "wildcards_accepted": False,
            "anonymous_discovery": True,
            "scope_required_for_invocation": False,
            "synthesis_enabled": False,
            "max_synthesis_depth": 10,
            "methods": {
                "allow": "*",
                "disallow": ["TRANSFER"],
                "legacy": "NONE",
                "redirects": [
                    {"from_method": "BOOK", "from_path": "/rooms", "to_method": "RESERVE", "to_path": "/rooms"}
                ],
            },
        },
        "manifest_signature": "eyJhbGciOiJFZERTQSJ9..c2ln",
    }


IMPOSSIBLE = {"reason": "composition-impossible", "explanation": "No endpoint has it."}


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


def refusal(status: int, code: str, **fields: Any) -> Answer:
    return Answer(status, {"error": {"code": code, **fields}})


@dataclass
class Ask:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Miniature:
    """Change `manifest`, put a function into `spoil`, or flip a flag, and it is wrong in that way."""

    manifest: dict[str, Any] = field(default_factory=_manifest)  # what it publishes
    contract: dict[str, Any] = field(default_factory=_manifest)  # what it does
    known_agents: set[str] | None = None
    rights: dict[str | None, set[str]] = field(default_factory=dict)  # methods of an agent; all if it is not listed
    wrapped: bool = False  # True if input is taken in the envelope only
    media: set[str] | None = None  # media types of input; any if None
    proposal_at: tuple[str, ...] = ()  # members around a proposal
    pending: bool = False  # True if proposals wait for a decision
    method_first: bool = False  # True if a method without an endpoint is 405 on any path
    input_first: bool = False  # True if input is validated before scope
    validates: bool = True
    wire: Callable[[bytes], list[bytes]] = lambda data: [data]  # how an answer is cut into pieces
    strict: bool = True
    merges_query: bool = True
    decodes_query: bool = True
    query_wins: bool = False
    spoil: Callable[[Ask, Answer], Answer | None] = lambda _ask, _answer: None
    log: list[Ask] = field(default_factory=list)
    invoked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def endpoint(self, method: str, path: str) -> dict[str, Any]:
        """One endpoint of the manifest, to be changed in place."""
        return next(item for item in self.manifest["endpoints"] if (item["method"], item["path"]) == (method, path))

    def answer(self, ask: Ask) -> Answer:
        self.log.append(ask)
        answer = self._decide(ask)
        answer.headers.setdefault("Server-ID", "mini.example")
        answer.headers.setdefault("Content-Type", "application/vnd.agtp+json")
        if "task-id" in ask.headers:
            answer.headers["Task-ID"] = ask.headers["task-id"]
        return self.spoil(ask, answer) or answer

    def _decide(self, ask: Ask) -> Answer:
        agent = ask.headers.get("agent-id")
        if ask.method == "DISCOVER" and ask.path == "/" and agent is None:
            media = {"Content-Type": "application/vnd.agtp.manifest+json", "ETag": '"1"', "Cache-Control": "max-age=60"}
            return Answer(200, self.manifest, media)
        if "#" in ask.path + ask.query:
            return refusal(400, "invalid-request-line")
        if self.known_agents is not None and agent not in self.known_agents:
            return refusal(401, "agent-unknown")
        if ask.body and self.media is not None and ask.headers.get("content-type") not in self.media:
            return refusal(400, "unsupported-media-type")
        if ask.method not in CATALOG:
            return refusal(459, "method-violation", method=ask.method, catalog_version="9.1.0")
        if self.pending and (ask.method, ask.path) == ("QUERY", "/proposals/p-1"):
            return Answer(261, {"proposal_id": "p-1"})
        return self._routed(ask)

    def _routed(self, ask: Ask) -> Answer:
        for segment in ask.path[1:].split("/"):
            if ask.path != "/" and (not segment or segment.replace("-", "").replace("_", "").upper() in CATALOG):
                return refusal(460, "endpoint-violation", segment=segment)
        method, path = ask.method, ask.path
        for entry in self.contract["policies"]["methods"]["redirects"]:
            if (method, path) == (entry["from_method"], entry["from_path"]):
                method, path = entry["to_method"], entry["to_path"]
        if method not in self.rights.get(ask.headers.get("agent-id"), CATALOG):
            return refusal(405, "not-for-you")
        bound = {*FLOOR, *(item["method"] for item in self.contract["endpoints"])}
        allow = self.contract["policies"]["methods"]["allow"]
        if (self.method_first and method not in bound) or (allow != "*" and method not in (*allow, *FLOOR)):
            return refusal(405, "method-not-allowed", allowed_methods_for_path=[], redirects_for_path={})
        here = [item for item in self.contract["endpoints"] if _matches(item["path"], path)]
        found = next((item for item in here if item["method"] == method), None)
        if method in self.contract["policies"]["methods"]["disallow"] or (here and found is None):
            names = [item["method"] for item in here]
            redirects = {
                entry["from_method"]: entry["to_method"]
                for entry in self.contract["policies"]["methods"]["redirects"]
                if entry["from_path"] == path
            }
            return refusal(405, "method-not-allowed", allowed_methods_for_path=names, redirects_for_path=redirects)
        if found is not None:
            answer = self._endpoint(ask, found)
            if "deprecated" in found:
                answer.headers["AGTP-Endpoint-Warning"] = "deprecated; successor=RESERVE /rooms; removed_in=2.0"
                answer.headers["AGTP-Catalog-Warning"] = "deprecated; successor=RESERVE"
            return answer
        if path != "/" or method not in FLOOR:
            return refusal(404, "endpoint-not-found")
        if method == "PROPOSE":
            return self._propose(json.loads(ask.body))
        return refusal(422, "missing-required-params")

    def _propose(self, proposal: Any) -> Answer:
        if not self.contract["policies"]["synthesis_enabled"]:
            return refusal(463, "proposal-rejected", reason="synthesis-disabled")
        for member in self.proposal_at:
            proposal = proposal.get(member) if isinstance(proposal, dict) else None
        if not isinstance(proposal, dict) or not {"method", "path", "semantic"} <= proposal.keys():
            return refusal(400, "invalid-body")
        if proposal["method"] not in CATALOG:
            return refusal(459, "method-violation")
        if "query" in proposal["path"]:
            return refusal(460, "endpoint-violation")
        if len(proposal["semantic"]) < 7 or proposal["input_schema"]["type"] != "object":
            return refusal(400, "invalid-proposal")
        if proposal["required_scopes"]:
            return refusal(262, "authorization-required", type="scope-required")
        if self.pending:
            return Answer(261, {"proposal_id": "p-1"})
        if (proposal["method"], proposal["path"]) != ("FETCH", "/rooms"):
            return refusal(463, "proposal-rejected", **IMPOSSIBLE)
        return Answer(263, {"endpoint": proposal, "synthesis_id": "syn-1", "expires_at": "2027-01-01T00:00:00Z"})

    def _endpoint(self, ask: Ask, found: dict[str, Any]) -> Answer:
        gates = [self._check_scope, self._check_input]
        for gate in reversed(gates) if self.input_first else gates:
            refused = gate(ask, found)
            if refused is not None:
                return refused
        value = self._input(ask, found)
        assert isinstance(value, dict)
        self.invoked.append((f"{found['method']} {found['path']}", value))
        if found["path"] == "/methods":
            names = ("method", "path", "description")
            return Answer(200, [{name: item[name] for name in names} for item in self.contract["endpoints"]])
        return Answer(200, {"ok": True})

    def _check_scope(self, ask: Ask, found: dict[str, Any]) -> Answer | None:
        needed = set(found.get("required_scopes", []))
        if needed and "agent-id" not in ask.headers:
            return refusal(262, "authorization-required", type="credentials-missing")
        if needed - {scope.strip() for scope in ask.headers.get("authority-scope", "").split(",")}:
            return refusal(455, "scope-violation")
        return None

    def _input(self, ask: Ask, found: dict[str, Any]) -> dict[str, Any] | None:
        given = json.loads(ask.body) if ask.body else {"parameters": {}} if self.wrapped else {}
        if self.wrapped:
            given = given.get("parameters") if isinstance(given, dict) else None
        if not isinstance(given, dict):
            return None
        captured = {
            part[1:-1]: unquote(value)
            for part, value in zip(found["path"].split("/"), ask.path.split("/"), strict=False)
            if part.startswith("{")
        }
        query = dict(parse_qsl(ask.query) if self.decodes_query else _undecoded(ask.query)) if self.merges_query else {}
        merged = {**given, **query} if self.query_wins else {**query, **given}
        return {**merged, **captured}

    def _check_input(self, ask: Ask, found: dict[str, Any]) -> Answer | None:
        value = self._input(ask, found)
        if value is None:
            return refusal(400, "invalid-body")
        schema = found["input_schema"]
        wrong = [name for name in schema.get("required", []) if name not in value]
        wrong += [name for name in value if name not in schema["properties"]] if self.strict else []
        wrong += [
            name
            for name, given in value.items()
            if self.validates and "enum" in (rule := schema["properties"].get(name, {})) and given not in rule["enum"]
        ]
        if wrong:
            return refusal(422, "input-validation-failed", violations=[{"pointer": f"/{name}"} for name in wrong])
        return None

    @asynccontextmanager
    async def serve(self, tls: ssl.SSLContext | None = None, stalled: Any = None) -> AsyncIterator[str]:
        """Listen on loopback and close after each reply, as the reference implementation does."""

        async def talk(incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
            try:
                asked = (await incoming.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                _, method, target = asked[0].split(" ")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in asked[1:-2])}
                body = await incoming.readexactly(int(headers["content-length"]))
                path, _, query = target.partition("?")
                answer = self.answer(Ask(method, path, query, headers, body))
                content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                lines = [f"{name}: {value}" for name, value in answer.headers.items()]
                first = f"AGTP/1.0 {answer.status} Text"
                head = "\r\n".join([first, *lines, f"Content-Length: {len(content)}", "", ""])
                for piece in self.wire(head.encode() + content):
                    outgoing.write(piece)
                    await outgoing.drain()
            except TimeoutError:  # how a test makes it wait
                await stalled.wait()
            except ConnectionResetError:  # how a test makes it fall silent
                pass
            finally:
                outgoing.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
        host, port = server.sockets[0].getsockname()
        async with server:
            yield f"agtp://{host}:{port}"


def _matches(template: str, path: str) -> bool:
    wanted, given = template.split("/"), path.split("/")
    return len(wanted) == len(given) and all(
        (part.startswith("{") and value) or part == value for part, value in zip(wanted, given, strict=True)
    )


def _undecoded(query: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part)]


@pytest.fixture
def mini() -> Miniature:
    return Miniature()
