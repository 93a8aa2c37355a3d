"""Certificates with the names a test wants, and whole authorities for real handshakes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BEGINS = datetime(2020, 1, 1, tzinfo=UTC)
ENDS = datetime(2090, 1, 1, tzinfo=UTC)


def certificate(
    key: Any = None, *, uris: Iterable[str] = (), dns: Iterable[str] = (), common: str | None = None, issuer: Any = None
) -> bytes:
    """Make a certificate in DER, signed by `issuer`, a pair of name and key, or by its own key."""
    key = key or Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else [])
    name, signer = issuer or (subject, key)
    names = [*map(x509.UniformResourceIdentifier, uris), *map(x509.DNSName, dns)]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGINS)
        .not_valid_after(ENDS)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=not common)
    digest = None if isinstance(signer, Ed25519PrivateKey | Ed448PrivateKey) else hashes.SHA256()
    return builder.sign(signer, digest).public_bytes(serialization.Encoding.DER)


class Authority:
    """A certificate authority whose certificates lie in files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.ca = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.ca)

    def server(self) -> tuple[Path, Path]:
        """Issue certificate and key of a server on loopback."""
        issued = self._ca.issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.ECDSA)
        return self._write("server", issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes())

    def client(self, name: str, key: Any = None, **names: Any) -> tuple[Path, Path]:
        """Issue certificate and key of a client with the given names."""
        key = key or Ed25519PrivateKey.generate()
        own = x509.load_pem_x509_certificate(self._ca.cert_pem.bytes())
        signer = serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        der = certificate(key, issuer=(own.subject, signer), **names)
        pem = x509.load_der_x509_certificate(der).public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return self._write(name, pem, private)

    def _write(self, name: str, certificate: bytes, key: bytes) -> tuple[Path, Path]:
        files = self._folder / f"{name}.pem", self._folder / f"{name}.key.pem"
        for file, data in zip(files, (certificate, key), strict=True):
            file.write_bytes(data)
        return files
