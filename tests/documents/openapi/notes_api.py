"""A small HTTP API about notes on a real HTTPS port, which records its requests, and its description."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import trustme
import uvicorn


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class NotesApi:
    """The running API."""

    port: int
    authority: Path
    """Certificate of its authority."""
    seen: list[Seen] = field(default_factory=list)

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = parse_qsl(scope["query_string"].decode(), keep_blank_values=True)
        seen = Seen(scope["method"], scope["raw_path"].decode().partition("?")[0], query, headers, body)
        self.seen.append(seen)
        status, kind, answer = respond(seen)
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
        await send({"type": "http.response.body", "body": answer})


def respond(seen: Seen) -> tuple[int, str, bytes]:
    """Return the answer of the API."""
    if seen.headers.get("x-api-key") != "secret-key":
        return 401, "application/json", b"{}"
    if seen.path.endswith("/missing"):
        return 404, "application/json", b'{"detail": "no such note"}'
    if seen.path.endswith("/taken"):
        return 409, "application/json", b"{}"
    if b"surprise" in seen.body:
        return 201, "application/json", b'{"note": 7}'
    if seen.method == "DELETE":
        return 204, "text/plain", b""
    if seen.path.endswith("/text"):
        return 200, "text/plain; charset=utf-8", "Grüße".encode()
    if seen.method == "GET" and seen.path == "/v2/notes":
        return 200, "application/json", b'[{"id": "1", "text": "one"}]'
    if seen.path.endswith("/count"):
        return 200, "application/json", b"7"
    return 200, "application/json", b'{"id": "1", "text": "one", "kind": null}'


@contextmanager
def running_notes(folder: Path) -> Iterator[NotesApi]:
    """Run the API on a free port until the block ends."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    pem, trusted = folder / "server.pem", folder / "authority.pem"
    certificate.private_key_and_cert_chain_pem.write_to_path(str(pem))
    authority.cert_pem.write_to_path(str(trusted))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    api = NotesApi(listener.getsockname()[1], trusted)
    config = uvicorn.Config(
        api, ssl_certfile=str(pem), ssl_keyfile=str(pem), log_level="error", lifespan="off", http="h11", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


def _json(schema: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _query(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, **more}


def _body(properties: dict[str, Any], media_type: str = "application/json") -> dict[str, Any]:
    """Return a body whose first property is required."""
    schema = {"type": "object", "properties": properties, "required": [*properties][:1]}
    return {"required": True, "content": {media_type: {"schema": schema}}}


TEXT = {"type": "string"}
FILE = {"type": "string", "format": "binary"}
HEADERS = ("X-Trace-Id", "Authorization", "X-API-Key")
NOTE = {"$ref": "#/components/schemas/Note"}
FILTER = {"type": "object", "properties": {"a": TEXT}}
TEXTS = {"type": "array", "items": {"type": "string"}}
NOTE_ID = {"name": "noteId", "in": "path", "required": True, "schema": {"type": "string"}}


def described(server: str) -> dict[str, Any]:
    """Return the description of the API at an address."""
    good = {"200": {"description": "The note.", **_json(NOTE)}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Acme Notes", "version": "2.1", "contact": {"email": "api@acme.example"}},
        "servers": [{"url": f"{server}/v2"}],
        "security": [{"key": []}],
        "paths": {
            "/notes": {
                "get": {
                    "operationId": "listNotes",
                    "summary": "Lists all notes",
                    "parameters": [
                        _query("limit", {"type": "integer"}),
                        _query("sortBy", {"type": "string", "enum": ["date", "title"]}),
                        _query("tags", TEXTS, style="form", explode=False),
                        _query("author", TEXTS),
                        _query("filter", FILTER, style="deepObject"),
                        *({"name": name, "in": "header", "schema": TEXT} for name in HEADERS),
                        {"name": "theme", "in": "cookie", "schema": TEXT},
                    ],
                    "responses": {"200": {"description": "ok", **_json({"type": "array", "items": NOTE})}},
                },
                "post": {
                    "operationId": "createNote",
                    "summary": "Create a note",
                    "parameters": [_query("dryRun", {"type": "boolean"}), _query("noteText", {"type": "string"})],
                    "requestBody": _body({"noteText": TEXT, "$meta": {"type": "object"}}),
                    "responses": {**good, "409": {"description": "Note exists"}},
                },
            },
            "/notes/count": {
                "get": {
                    "summary": "Count the notes",
                    "responses": {"200": {"description": "n", **_json({"type": "integer"})}},
                }
            },
            "/notes/{noteId}": {
                "parameters": [NOTE_ID],
                "get": {
                    "operationId": "getNote",
                    "summary": "Info for a note",
                    "responses": {**good, "404": {"description": "Note not found"}},
                },
                "put": {
                    "operationId": "replaceNote",
                    "requestBody": {"required": True, **_json(NOTE)},
                    "responses": {**good, "409": {"description": "Note is locked"}},
                },
                "delete": {"operationId": "deleteNote", "responses": {"204": {"description": "gone"}}},
            },
            "/notes/{noteId}/text": {
                "get": {
                    "parameters": [NOTE_ID],
                    "summary": "Get the text of a note",
                    "responses": {"200": {"description": "t", "content": {"text/plain": {"schema": TEXT}}}},
                }
            },
            "/notes/{noteId}/share": {
                "post": {
                    "parameters": [NOTE_ID],
                    "summary": "Share a note",
                    "requestBody": _body({"with": TEXTS, "noteId": TEXT}, "application/x-www-form-urlencoded"),
                    "responses": good,
                }
            },
            "/notes/{noteId}/attachments": {
                "post": {
                    "operationId": "uploadAttachment",
                    "parameters": [NOTE_ID],
                    "requestBody": _body(
                        {"file": {**TEXT, "format": "binary"}, "fileName": TEXT}, "multipart/form-data"
                    ),
                    "responses": good,
                }
            },
            "/notes/search": {
                "post": {
                    "summary": "Search notes",
                    "requestBody": {"required": True, **_json({"type": "array", "items": {"type": "string"}})},
                    "responses": {"200": {"description": "found", **_json({"type": "object"})}},
                }
            },
        },
        "components": {
            "schemas": {
                "Note": {
                    "type": "object",
                    "required": ["id", "text"],
                    "properties": {
                        "id": {"type": "string"},
                        "text": {"type": "string"},
                        "kind": {"type": "string", "nullable": True, "enum": ["a", "b", None]},
                        "parent": {"$ref": "#/components/schemas/Note"},
                    },
                }
            },
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        },
    }
