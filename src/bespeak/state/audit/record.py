"""The payload of an attribution record: who asked for what, and the result (core 10.3)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange.headers import CONFIRMATION_ID, REQUEST_ID, SESSION_ID, TASK_ID
from bespeak.protocol.exchange.instant import write_milliseconds
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.protocol.exchange.principal import Principal

VERSION: Final = "1"
FIRST: Final = "0" * 64
"""Value that replaces the previous record's id in the first record."""

DIGEST_SIZE: Final = 32

_LONGEST: Final = 256
"""Limit for ids that callers choose: a record is also a header of the response."""

_MOST_INPUT: Final = 2048
"""Limit of recorded input in bytes of JSON."""

_FROM_HEADERS: Final = (
    ("request_id", REQUEST_ID),
    ("session_id", SESSION_ID),
    ("task_id", TASK_ID),
    ("case_id", CONFIRMATION_ID),
)


class Place(msgspec.Struct, frozen=True):
    """The members of a record that give its place."""

    stream: str
    """Stream: the process that sealed the record, or a part of its lifetime."""
    sequence: int
    """Number in the stream, from 1."""
    stream_digest: str
    """Digest of all earlier records of the stream, computed by `roll`."""
    previous_audit_id: str
    """Previous record in the chain of the agent."""
    agent_id: str = ""
    signing: str = ""
    """Signing mode, in the first record of a stream: `each`, `checkpoints` or `none`."""
    checkpoint_id: str = ""
    """Checkpoint, in the first record after one, so that a missing checkpoint is detected."""


def roll(digest: bytes, audit_id: bytes) -> bytes:
    """Return the digest of a stream with one more record."""
    return sha256(digest + audit_id).digest()


def request_hash(request: Request) -> str:
    """Return the SHA-256 over method, target and body, each delimited unambiguously."""
    target = f"{request.path}?{request.query}" if request.query else request.path
    return sha256(f"{request.method} {target}\n".encode("utf-8", "surrogateescape") + request.body).hexdigest()


def make_payload(
    *,
    request: Request,
    response: Response,
    principal: Principal,
    method: str,
    path: str | None,
    server_id: str,
    issued_at: float,
    replayed: bool = False,
    recorded: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Build the payload of a record. It holds no arguments except `recorded`, which the operator asked for by name.

    `issued_at` is in seconds since 1970. `path` is the endpoint's template, because values in a path are arguments too;
    None if no endpoint matched.
    """
    payload: dict[str, Any] = {
        "audit_record_version": VERSION,
        "server_id": server_id,
        "issued_at": write_milliseconds(issued_at),
        "status": response.status,
        "method": method[:_LONGEST],
        "request_hash": request_hash(request),
        "result_hash": sha256(response.body).hexdigest(),
    }
    if path is not None:
        payload["path"] = path
    if method != request.method:
        payload["requested_method"] = request.method[:_LONGEST]
    response_id = _response_id(response)
    if response_id is not None:
        payload["response_id"] = response_id
    given = request.headers
    for name, header in _FROM_HEADERS:
        if header in given:
            payload[name] = given[header][:_LONGEST]
    if principal.agent_id is not None:
        _add_identity(payload, principal)
    if replayed:
        payload["replayed"] = True
    if recorded:
        payload["extra"] = {"input": _bounded(recorded)}
    return payload


def _bounded(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input to record; a value too long for a header is replaced by its hash."""
    found: dict[str, Any] = {}
    left = _MOST_INPUT
    for name, value in recorded.items():
        encoded = msgspec.json.encode(value)
        if len(encoded) <= left:
            left -= len(encoded)
            found[name] = value
        else:
            found[name] = {"sha256": sha256(encoded).hexdigest(), "bytes": len(encoded)}
    return found


def _add_identity(payload: dict[str, Any], principal: Principal) -> None:
    payload["agent_id"] = principal.agent_id
    payload["identity_assurance"] = principal.verified or ("known" if principal.known else "asserted")
    if principal.principal_id is not None:
        # Earlier and later drafts call the same person by different names.
        payload["owner_id"] = payload["principal_id"] = principal.principal_id
    if principal.delegators:
        payload["delegators"] = principal.delegators


def _response_id(response: Response) -> str | None:
    for name, value in response.headers:
        if name == "Response-ID":
            return value
    return None
