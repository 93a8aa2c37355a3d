"""Client certificates: which agent holds one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused, unauthorized
from bespeak.state.identity.credentials import Authenticated, key_mark

_REMEMBERED: Final = 1024
_KEY_REFUSED: Final = unauthorized(
    "certificate-key-refused",
    "The client certificate is for a key that is neither Ed25519 nor ECDSA; have one issued for such a key.",
)
_LONGEST: Final = 32 * 1024
_URI: Final = re.compile(r"agtp://([0-9a-f]{64})(?:@[A-Za-z0-9.:\[\]_-]{1,255})?/?")


class CertificateReader:
    """Reads certificates that TLS has verified; recent ones are remembered."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._recent = lru_cache(_REMEMBERED)(_identify)

    def identify(self, certificate: bytes) -> Authenticated | Refused:
        """Return the agent of a DER certificate, or a refusal."""
        if len(certificate) > _LONGEST:
            return unauthorized("certificate-malformed", f"The client certificate has more than {_LONGEST} bytes.")
        found = self._recent(certificate)
        # A connection may outlive the certificate it began with.
        if isinstance(found, Authenticated) and self._clock() >= (found.expires_at or 0):
            message = "The client certificate has expired; connect again with a new one."
            return unauthorized("certificate-expired", message)
        return found


def _identify(certificate: bytes) -> Authenticated | Refused:
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        key = parsed.public_key()
        spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        names = _agents(parsed)
        expires = parsed.not_valid_after_utc.timestamp()
    except UnsupportedAlgorithm:
        return _KEY_REFUSED
    except (ValueError, TypeError, x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType):
        return unauthorized("certificate-malformed", "The client certificate cannot be read; have it reissued.")
    if not isinstance(key, Ed25519PublicKey | EllipticCurvePublicKey):
        return _KEY_REFUSED
    if len(names) == 1:
        identity = sha256(certificate).hexdigest()
        holders = (key_mark(spki),)
        return Authenticated(names.pop(), ("mtls",), tls_identity=identity, expires_at=expires, holders=holders)
    what = "names several agents" if names else "names no agent"
    return unauthorized(
        "certificate-without-agent",
        f"The client certificate {what}; have one issued with one URI agtp://AGENT-ID among its alternative names.",
    )


def _agents(certificate: x509.Certificate) -> set[str]:
    """Return the Agent-IDs among the subject alternative names, or the common name if it is one."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        uris = extension.value.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        uris = []
    found = {match[1] for match in map(_URI.fullmatch, uris) if match}
    if found:
        return found
    names = (attribute.value for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    return {name for name in names if isinstance(name, str) and is_canonical_id(name)}
