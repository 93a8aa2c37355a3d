"""Attribution records (core 10.3): the payload, and records and checkpoints as the store keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.headers import CONFIRMATION_ID, REQUEST_ID, SESSION_ID, TASK_ID
from bespeak.protocol.exchange.instant import write_milliseconds
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Fault

if TYPE_CHECKING:
    from bespeak.state.identity.jws import Jws

VERSION: Final = "1"
FIRST: Final = "0" * 64  # value that replaces the previous record's id in the first record
DIGEST_SIZE: Final = 32
_LONGEST: Final = 256  # limit for ids that callers choose: a record is also a header of the response
_MOST_INPUT: Final = 2048  # limit of recorded input in bytes of JSON
_LONGEST_COMPACT: Final = 1 << 22  # characters of a record or checkpoint: ten times the largest checkpoint
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Any])


class Payload(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="audit_record_version", tag=VERSION):
    """The members of a record that describe its exchange; a member without a value is left out."""

    server_id: str
    issued_at: str
    status: int
    method: str
    request_hash: str
    result_hash: str
    path: str | None = None
    requested_method: str | None = None  # method of the request, if another one was in force
    response_id: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    task_id: str | None = None
    case_id: str | None = None
    agent_id: str | None = None
    identity_assurance: str | None = None
    owner_id: str | None = None  # earlier name of `principal_id`: drafts call the same person by different names
    principal_id: str | None = None
    delegators: tuple[str, ...] = ()
    replayed: bool = False
    extra: Mapping[str, Any] | None = None
    parent_response_id: str | None = None  # Response-ID of the composition that made the call as one of its steps
    step: str | None = None  # number of the step, `2/17` for an element of a list
    synthesis_id: str | None = None  # synthesis that was called
    face: str | None = None  # face by which the request came, unless it is AGTP: `http`, `mcp` or `a2a`
    semantic_mapping: Mapping[str, Any] | None = None  # alignments through which the call was understood


class RecordPlace(msgspec.Struct, frozen=True):
    stream: str  # stream: the process that sealed the record, or a part of its lifetime
    sequence: int  # number in the stream, from 1
    stream_digest: str  # digest of all earlier records of the stream, computed by `roll`
    previous_audit_id: str  # previous record in the chain of the agent
    agent_id: str = ""
    signing: str = ""  # signing mode, in the first record of a stream: `each`, `checkpoints` or `none`
    checkpoint_id: str = ""  # checkpoint, in the first record after one, so that a missing checkpoint is detected
    server_id: str = ""
    issued_at: str = ""


def encode_header(header: dict[str, str]) -> bytes:
    """Encode a header as the first part of a JWS, including the dot."""
    return encode64(msgspec.json.encode(header)) + b"."


def roll(digest: bytes, audit_id: bytes) -> bytes:
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
    parent_response_id: str | None = None,
    step: str | None = None,
    synthesis_id: str | None = None,
    semantic_mapping: Mapping[str, Any] | None = None,
) -> Payload:
    """Build the payload of a record. It holds no arguments except `recorded`, which the operator asked for by name.

    `issued_at` is in seconds since 1970. `path` is the endpoint's template, because values in a path are arguments too;
    None if no endpoint matched.
    """
    given = request.headers
    agent_id = principal.agent_id
    principal_id = None if agent_id is None else principal.principal_id
    proof = principal.verified or ("known" if principal.known else "asserted")
    if principal.key_id is not None:
        proof = f"{proof}:{principal.key_id}"  # which key it was, if one was stolen
    # In the order of the members: naming each of them takes seven times as long, for every record.
    return Payload(
        server_id,
        write_milliseconds(issued_at),
        response.status,
        method[:_LONGEST],
        request_hash(request),
        sha256(response.body).hexdigest(),
        path,
        request.method[:_LONGEST] if request.method != method else None,
        next((value for name, value in response.headers if name == "Response-ID"), None),
        given[REQUEST_ID][:_LONGEST] if REQUEST_ID in given else None,
        given[SESSION_ID][:_LONGEST] if SESSION_ID in given else None,
        given[TASK_ID][:_LONGEST] if TASK_ID in given else None,
        given[CONFIRMATION_ID][:_LONGEST] if CONFIRMATION_ID in given else None,
        agent_id,
        None if agent_id is None else proof,
        principal_id,
        principal_id,
        () if agent_id is None else principal.delegators,
        replayed,
        {"input": _bounded(recorded)} if recorded else None,
        parent_response_id,
        step,
        synthesis_id,
        None if request.connection.face == "agtp" else request.connection.face,
        semantic_mapping,
    )


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


def jws_id(jws: str) -> str:
    """Return the id of a JWS: SHA-256 of its text, in hexadecimal (core 10.3)."""
    return sha256(jws.encode("utf-8", "surrogatepass")).hexdigest()


def parse_compact(jws: str) -> Jws | None:
    """Read a JWS, signed or not; return None if the text is not one. Its algorithm is judged with its signature."""
    from bespeak.state.identity.jws import parse_jws  # noqa: PLC0415 - loads cryptography, which most servers do without

    read = parse_jws(jws, longest=_LONGEST_COMPACT, algorithms=None)
    return None if isinstance(read, Fault) else read


class KeptRecord(msgspec.Struct, frozen=True, gc=False):
    """A row of the trail, in the order of the table's columns."""

    position: int
    stream: str
    sequence: int
    agent_id: str
    audit_id: str
    jws: str


class KeptCheckpoint(msgspec.Struct, frozen=True, gc=False):
    position: int
    checkpoint_id: str
    jws: str


_PLACE: Final = msgspec.json.Decoder(RecordPlace)


def place_in(jws: Jws) -> RecordPlace | None:
    """Return the place that a payload claims; None if it claims no place."""
    place = jws.read_payload(_PLACE)
    return None if isinstance(place, Fault) else place


def place_of(jws: str) -> RecordPlace | None:
    """Return the place that a record claims, without verifying its signature."""
    compact = parse_compact(jws)
    return None if compact is None else place_in(compact)


def payload_of(jws: str) -> dict[str, Any] | None:
    """Return the payload of a record, without verifying its signature."""
    compact = parse_compact(jws)
    if compact is None:
        return None
    payload = compact.read_payload(_MEMBERS)
    return None if isinstance(payload, Fault) else payload
