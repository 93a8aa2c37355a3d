"""Every reader of compact JWS refuses the same hostile forms, although a key that it trusts has signed them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from tests.cases import check_each
from tests.state.identity.issuer import write_keys

from bespeak.documents.projections.manifest_signature import verify_content
from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.state.audit.checkpoints import CHECKPOINT, BoundStream, Checkpoint, read_checkpoint
from bespeak.state.audit.record import RecordPlace, parse_compact, place_of
from bespeak.state.audit.trail import RECORD
from bespeak.state.identity import signed_document
from bespeak.state.identity.bearer import BearerVerifier
from bespeak.state.identity.credentials import Authenticated
from bespeak.state.identity.delegation import Claims, read_token
from bespeak.state.identity.jwks import FileKeys
from bespeak.state.identity.jws import PrivateKey, generate_key, key_id, public_jwk
from bespeak.state.identity.key_files import check_signature, trusted
from bespeak.state.identity.settings import TokenSettings
from bespeak.state.identity.signed_document import ArtifactStatement, SignedDocument, read_signed, verify_artifact
from bespeak.state.identity.signed_request import SignedRequest, sign_request, verify_signed

KEY = generate_key()
KEYS = trusted([KEY])
KID = key_id(KEY)
PUBLIC = KEYS[KID]
SERVER = "rooms.example"
AGENT, OTHER = "a" * 64, "b" * 64
NOW = time.time()
LONG = "x" * (5 << 20)
"""More than any reader takes."""


@dataclass
class Reader:
    """One reader: what it takes, and whether it takes a token."""

    header: dict[str, Any]
    payload: dict[str, Any] | bytes
    takes: Callable[[str], bool]
    detached: bool = False

    def token(self, header: bytes | None = None, payload: bytes | None = None) -> str:
        """Return a token that the key has signed, with other bytes for header or payload."""
        first = json.dumps(self.header).encode() if header is None else header
        own = self.payload if isinstance(self.payload, bytes) else json.dumps(self.payload).encode()
        return self.sign(encode64(first).decode(), encode64(own if payload is None else payload).decode())

    def sign(self, first: str, second: str) -> str:
        private = KEY.private_key
        assert isinstance(private, PrivateKey)
        signature = encode64(private.sign(f"{first}.{second}".encode())).decode()
        return f"{first}.{'' if self.detached else second}.{signature}"


def readers(folder: Path) -> dict[str, Reader]:
    keys = TokenSettings(keys=write_keys(folder / "keys.json", {**public_jwk(KEY), "kid": KID}))
    bearer = BearerVerifier(keys, FileKeys(folder / "keys.json"), audience=SERVER)
    claims = {"agent_id": AGENT, "aud": SERVER, "exp": int(NOW) + 86_400, "scope": "a:b"}
    delegated = Claims(AGENT, OTHER, SERVER, ("a:b",), 0, int(NOW) + 86_400, int(NOW), "id-1")
    statement = {"kind": "ontology", "id": "x", "version": "1", "sha256": "0" * 64}
    document = SignedDocument({"a": 1}, AGENT, SERVER, "2026-01-01T00:00:00Z")
    place = {name: 1 if name == "sequence" else "s" for name in RecordPlace.__struct_fields__}
    checkpoint = Checkpoint("1", SERVER, "2026-01-01T00:00:00Z", "p", 1, (BoundStream("s", 1, "d"),))
    content = b'{"server":1}'

    def is_audited(token: str) -> bool:
        read = parse_compact(token)
        return read is not None and check_signature(read, KEYS) == "good"

    def header(kind: str | None, **more: Any) -> dict[str, Any]:
        return {"alg": "EdDSA", "kid": KID, **({} if kind is None else {"typ": kind}), **more}

    return {
        "bearer": Reader(header("JWT"), claims, lambda token: isinstance(bearer.verify(token), Authenticated)),
        "delegation": Reader(
            header("agtp-delegation+jwt"),
            msgspec.to_builtins(delegated),
            lambda token: isinstance(read_token(token, SERVER, lambda _: PUBLIC), Claims),
        ),
        "artifact": Reader(
            header(signed_document.ARTIFACT_TYPE),
            {"bespeak_artifact": {"statement": statement, "signed_at": "2026"}},
            lambda token: isinstance(verify_artifact(token, ArtifactStatement(**statement), KEYS), str),
        ),
        "document": Reader(
            header(signed_document.DOCUMENT_TYPE),
            {"agtp_signed": msgspec.to_builtins(document)},
            lambda token: isinstance(read_signed(token, KEYS), SignedDocument),
        ),
        "record": Reader(header(RECORD), place, lambda token: is_audited(token) and place_of(token) is not None),
        "checkpoint": Reader(
            header(CHECKPOINT),
            msgspec.to_builtins(checkpoint),
            lambda token: is_audited(token) and read_checkpoint(token) is not None,
        ),
        "manifest": Reader(
            header(None, jwk=public_jwk(KEY)),
            content,
            lambda token: verify_content(token, content).state == "valid",
            detached=True,
        ),
        "pinned manifest": Reader(
            header(None), content, lambda token: verify_content(token, content, KEY).state == "valid", detached=True
        ),
        "request": signed_request(),
    }


def signed_request() -> Reader:
    headers = {"agent-id": AGENT}
    private = KEY.private_key
    assert isinstance(private, PrivateKey)
    made = sign_request("FIND", "/room", headers, b"", key=private, server_id=SERVER, now=NOW, key_id=KID)
    protected = msgspec.json.decode(decode(made.partition(".")[0]))
    lines = (
        *("agtp-signed-request/1", f"audience: {SERVER}", f"agent-id: {AGENT}", "method: FIND"),
        *("target: /room", "body: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        *(f"created: {protected['created']}", f"nonce: {protected['nonce']}"),
    )

    def takes(token: str) -> bool:
        request = Request("FIND", "/room", "", {**headers, "agent-signature": token}, b"", Connection())
        found = verify_signed(request, server_id=SERVER, key_of=lambda _: PUBLIC, now=NOW, max_age=60)
        return isinstance(found, SignedRequest)

    return Reader(protected, "\n".join(lines).encode(), takes, detached=True)


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def with_header(**members: Any) -> Callable[[Reader], str]:
    return lambda reader: reader.token(json.dumps({**reader.header, **members}).encode())


def written_header(change: Callable[[str], str | bytes]) -> Callable[[Reader], str]:
    def make(reader: Reader) -> str:
        changed = change(json.dumps(reader.header))
        return reader.token(changed if isinstance(changed, bytes) else changed.encode())

    return make


def written_payload(change: Callable[[str], str]) -> Callable[[Reader], str]:
    def make(reader: Reader) -> str:
        return reader.token(payload=change(json.dumps(reader.payload)).encode())

    return make


def without(*names: str) -> Callable[[Reader], str]:
    return lambda reader: reader.token(
        json.dumps({name: value for name, value in reader.header.items() if name not in names}).encode()
    )


def altered(change: Callable[[str, str, str], str]) -> Callable[[Reader], str]:
    """Change the text of an honest token."""
    return lambda reader: change(*reader.token().split("."))


def nudged(part: str) -> str:
    """Return another text of the same bytes, if base64url were read leniently: other unused bits, or padding."""
    if len(part) % 4 == 0:
        return part + "===="
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return part[:-1] + letters[letters.index(part[-1]) ^ 1]


def signed_text(first: Callable[[str], str], second: Callable[[str], str] = str) -> Callable[[Reader], str]:
    """Sign the encoded parts after a change, so that the signature is good for exactly this text."""

    def make(reader: Reader) -> str:
        own = reader.payload if isinstance(reader.payload, bytes) else json.dumps(reader.payload).encode()
        encoded = encode64(json.dumps(reader.header).encode()).decode(), encode64(own).decode()
        return reader.sign(first(encoded[0]), second(encoded[1]))

    return make


HEADERS: dict[str, Callable[[Reader], str]] = {
    **{f"crit {value}": with_header(crit=value) for value in (["exp"], [], None, ["b64"], ["alg"], "exp", {})},
    **{f"b64 {value}": with_header(b64=value) for value in (True, False, None)},
    "crit and b64": with_header(crit=["b64"], b64=False),
    "crit and b64 true": with_header(crit=["b64"], b64=True),
    **{f"alg {value}": with_header(alg=value) for value in ("none", "eddsa", "HS256", "ES256", "", None, 7, ["EdDSA"])},
    "no alg": without("alg"),
    **{f"kid {value}": with_header(kid=value) for value in (None, 7, ["k"], {})},
    **{f"typ {value}": with_header(typ=value) for value in (None, 7, ["JWT"])},
    "repeated alg": written_header(lambda text: '{"alg":"none",' + text[1:]),
    "repeated alg, escaped": written_header(lambda text: '{"\\u0061lg":"none",' + text[1:]),
    "repeated kid": written_header(lambda text: '{"kid":"other",' + text[1:]),
    "repeated unknown member": written_header(lambda text: '{"x":1,"x":1,' + text[1:]),
    "repeated member inside": written_header(lambda text: '{"x":{"y":1,"y":2},' + text[1:]),
    "long header": with_header(x="x" * 5000),
    "very long header": with_header(x=LONG),
    "list": written_header(lambda text: f"[{text}]"),
    "text": written_header(json.dumps),
    "null": written_header(lambda _: "null"),
    "empty": written_header(lambda _: ""),
    "byte order mark": written_header(lambda text: b"\xef\xbb\xbf" + text.encode()),
    "not UTF-8": written_header(lambda text: b'{"x":"\xff",' + text[1:].encode()),
    "UTF-16": written_header(lambda text: text.encode("utf-16-le")),
    "two values": written_header(lambda text: text + text),
    "deep": written_header(lambda text: '{"x":' + "[" * 3000 + "]" * 3000 + "," + text[1:]),
    "comment": written_header(lambda text: "/**/" + text),
    "NaN": written_header(lambda text: '{"x":NaN,' + text[1:]),
}
TEXTS: dict[str, Callable[[Reader], str]] = {
    "padding": altered(lambda first, second, third: f"{first}.{second}.{third}=="),
    "header in other bits or padded": signed_text(nudged),
    "signature in other bits": altered(lambda first, second, third: f"{first}.{second}.{nudged(third)}"),
    "line break in the header": signed_text(lambda first: first[:8] + "\n" + first[8:]),
    "space in the header": signed_text(lambda first: first[:8] + " " + first[8:]),
    "line break in the signature": altered(lambda first, second, third: f"{first}.{second}.{third[:8]}\n{third[8:]}"),
    "foreign character": signed_text(lambda first: first[:8] + "!" + first[8:]),
    "standard alphabet": altered(
        lambda first, second, third: f"{first}.{second}.{third.replace('-', '+').replace('_', '/')}+"
    ),
    "full-width letter": altered(lambda first, second, third: f"\uff45{first[1:]}.{second}.{third}"),
    "surrogate": altered(lambda first, second, third: f"\ud800{first}.{second}.{third}"),
    "NUL": altered(lambda first, second, third: f"{first}\0.{second}.{third}"),
    "fourth part": altered(lambda first, second, third: f"{first}.{second}.{third}."),
    "five parts": altered(lambda first, second, third: f"{first}.{second}.{third}.{second}.{third}"),
    "two parts": altered(lambda first, _, third: f"{first}.{third}"),
    "no signature": altered(lambda first, second, _: f"{first}.{second}."),
    "half a signature": altered(lambda first, second, third: f"{first}.{second}.{third[:44]}"),
    "signature and more": altered(lambda first, second, third: f"{first}.{second}.{third}AAAA"),
    "nothing": lambda _: "",
    "dots": lambda _: "..",
    "many dots": lambda _: "." * 100_000,
    "JSON serialization": lambda reader: json.dumps(
        dict(zip(("protected", "payload", "signature"), reader.token().split("."), strict=True))
    ),
}
PAYLOADS: dict[str, Callable[[Reader], str]] = {
    "repeated member": written_payload(lambda text: '{"x":1,"x":1,' + text[1:]),
    "repeated known member": written_payload(
        lambda text: f"{{{json.dumps(next(iter(json.loads(text))))}:null," + text[1:]
    ),
    "repeated member inside": written_payload(lambda text: '{"x":[{"y":1,"\\u0079":2}],' + text[1:]),
    "too long": written_payload(lambda text: f'{{"x":"{LONG}",' + text[1:]),
    "list": written_payload(lambda text: f"[{text}]"),
    "byte order mark": written_payload(lambda text: "\ufeff" + text),
    "two values": written_payload(lambda text: text + text),
    "empty": written_payload(lambda _: ""),
    "not UTF-8": lambda reader: reader.token(payload=b'{"x":"\xff",' + json.dumps(reader.payload)[1:].encode()),
    "payload in other bits or padded": signed_text(str, nudged),
    "line break in the payload": signed_text(str, lambda second: second[:8] + "\n" + second[8:]),
}


def hostile(reader: Reader) -> Iterator[tuple[str, Callable[[Reader], str]]]:
    yield from HEADERS.items()
    yield from TEXTS.items()
    if not reader.detached:
        yield from ((f"payload: {name}", make) for name, make in PAYLOADS.items())


def test_honest_tokens_are_taken_and_other_kinds_and_payloads_refused(tmp_path: Path) -> None:
    check_each(readers(tmp_path).items(), lambda case: refuse_unless(case[1].takes(case[1].token())))
    made = readers(tmp_path)
    cases = [
        (f"{name} for {other}", reader, made[other].token())
        for name, reader in made.items()
        for other in made
        if other.rpartition(" ")[2] != name.rpartition(" ")[2]
    ]
    check_each(cases, lambda case: refuse_unless(not case[1].takes(case[2])), lambda case: case[0])
    for reader in readers(tmp_path).values():
        if reader.detached:
            first, _, third = reader.token().split(".")
            assert not reader.takes(f"{first}.{encode64(b'other').decode()}.{third}")


def test_no_reader_takes_a_hostile_form(tmp_path: Path) -> None:
    cases = [
        (f"{name}: {form}", reader, make)
        for name, reader in readers(tmp_path).items()
        for form, make in hostile(reader)
    ]
    check_each(cases, lambda case: refuse_unless(not case[1].takes(case[2](case[1]))), lambda case: case[0])


def refuse_unless(holds: bool) -> None:
    assert holds
