"""Client certificates: one agent, a key of today, or a refusal that says what to have issued instead."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.state.identity.certificates import ENDS, certificate
from tests.state.identity.issuer import AGENT, NOW, OTHER, Clock

from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.certificate import CertificateReader
from bespeak.state.identity.credentials import Authenticated, ed25519_mark

READER = CertificateReader(clock=Clock())
GOOD = certificate(None, uris=[f"agtp://{AGENT}"])


def code(der: bytes) -> str:
    found = READER.identify(der)
    assert isinstance(found, Refused)
    assert found.status == 401
    return found.code


@rows(
    "names",
    {"uris": [f"agtp://{AGENT}"]},
    {"uris": [f"agtp://{AGENT}@rooms.example:4480"]},
    {"uris": [f"agtp://{AGENT}", f"agtp://{AGENT}@rooms.example", "https://acme.example/"]},
    {"uris": [f"agtp://{AGENT}"], "common": OTHER},
    {"common": AGENT},
    {"common": AGENT, "uris": ["https://acme.example/"]},
)
@pytest.mark.parametrize("key", [None, ec.generate_private_key(ec.SECP384R1())])
def test_agent_is_read_from_a_uri_or_else_the_common_name(names: dict[str, Any], key: Any) -> None:
    der = certificate(key, **names)
    identity = hashlib.sha256(der).hexdigest()
    found = READER.identify(der)
    assert (found.agent_id, found.modes, found.tls_identity) == (AGENT, ("mtls",), identity)
    assert found.expires_at == ENDS.timestamp()


def test_certificates_of_one_key_have_its_mark() -> None:
    key = Ed25519PrivateKey.generate()
    one, other = (READER.identify(certificate(key, common=name)) for name in (AGENT, OTHER))
    assert isinstance(one, Authenticated)
    assert isinstance(other, Authenticated)
    assert one.holders == other.holders == (ed25519_mark(key.public_key().public_bytes_raw()),)


@rows(
    "names",
    *({}, {"common": "alice"}, {"common": AGENT.upper()}, {"common": AGENT[:63]}),
    *({"uris": [f"agtp://{AGENT}", f"agtp://{OTHER}"]}, {"uris": [f"https://{AGENT}"]}),
    *({"uris": [f"agtp://{AGENT}/rooms"]}, {"uris": [f"agtp://{AGENT[:63]}"]}),
    *({"uris": [f"agtp://{AGENT}@"]}, {"uris": [f"agtp://{AGENT}\n"]}),
    *({"uris": ["agtp://" + AGENT.upper()]}, {"dns": [AGENT[:63]]}),
)
def test_certificate_without_exactly_one_agent_is_refused(names: dict[str, Any]) -> None:
    assert code(certificate(None, **names)) == "certificate-without-agent"


@pytest.mark.parametrize("key", [rsa.generate_private_key(65537, 2048), ed448.Ed448PrivateKey.generate()])
def test_other_keys_are_refused(key: Any) -> None:
    assert code(certificate(key, uris=[f"agtp://{AGENT}"])) == "certificate-key-refused"


def test_certificate_that_expires_during_a_connection_is_refused() -> None:
    clock = Clock(ENDS.timestamp() - 1)
    reader = CertificateReader(clock=clock)
    der = certificate(None, uris=[f"agtp://{AGENT}"])
    assert isinstance(reader.identify(der), Authenticated)
    clock.now += 1
    refused = reader.identify(der)
    assert isinstance(refused, Refused)
    assert refused.code == "certificate-expired"


def test_a_certificate_is_read_once() -> None:
    der = certificate(None, uris=[f"agtp://{AGENT}"])
    assert READER.identify(der) is READER.identify(bytes(bytearray(der)))
    assert ENDS.timestamp() > NOW


@pytest.mark.parametrize("der", [b"", b"0", b"\x30\x82", b"x" * 40_000])
def test_invalid_certificate_bytes_are_refused(der: bytes) -> None:
    assert code(der) == "certificate-malformed"


@pytest.mark.filterwarnings("ignore")  # the library warns of odd certificates, which TLS lets no one present
@given(st.binary() | st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)).map(
    lambda change: GOOD[: change[0]] + bytes([change[1]]) + GOOD[change[0] + 1 :]
))  # fmt: skip
def test_no_bytes_raise(der: bytes) -> None:
    assert isinstance(READER.identify(der), Authenticated | Refused)
