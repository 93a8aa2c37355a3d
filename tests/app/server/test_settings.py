"""What may start, and whose word counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.app.server.settings import plan_settings
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import ClientCertificateSettings, LimitSettings, ListenSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError
from bespeak.faces.limits import MAX_BUFFERED
from bespeak.protocol.address import Address
from bespeak.state.identity.settings import AuthSettings, MtlsSettings


def test_the_command_line_overrides_the_configuration_and_that_the_default() -> None:
    document = ServerDocument(
        listen=ListenSettings(agtp="127.0.0.1:5000", workers=3), limits=LimitSettings(max_body=1000)
    )
    assert plan_settings("rooms:app", document).address == Address("127.0.0.1", 5000)
    assert plan_settings("rooms:app", document).workers == 3
    assert plan_settings("rooms:app", document).max_body == 1000
    assert plan_settings("rooms:app", document).idle_timeout == 75.0
    assert plan_settings("rooms:app", document, address=":6000", workers=1).address.port == 6000
    assert plan_settings("rooms:app", ServerDocument()).address == Address("127.0.0.1", 4480)


def test_http_is_spoken_where_it_is_asked_for_and_nowhere_else() -> None:
    document = ServerDocument(listen=ListenSettings(http="127.0.0.1:9000"), http=HttpSettings(ai_alias=True))
    assert plan_settings("rooms:app", ServerDocument()).http is None
    assert plan_settings("rooms:app", document).http == Address("127.0.0.1", 9000)
    assert plan_settings("rooms:app", document).web.ai_alias
    assert plan_settings("rooms:app", document, http="localhost").http == Address("localhost", 8080)
    assert plan_settings("rooms:app", document, http=":0").http == Address("127.0.0.1", 0)


def test_http_beyond_this_machine_is_held_to_the_same_rules(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"HTTP on 0\.0\.0\.0:8080 \(--http\) needs TLS"):
        plan_settings("rooms:app", ServerDocument(), http="0.0.0.0")
    certificate = tmp_path / "cert.pem"
    certificate.touch()
    with pytest.raises(ConfigError, match=r"\(--http\) would not be authenticated: choose \[auth\] modes"):
        plan_settings("rooms:app", ServerDocument(), http="0.0.0.0", certificate=certificate, key=certificate)
    assert plan_settings("rooms:app", ServerDocument(), http="0.0.0.0", insecure=True).http is not None
    with pytest.raises(ConfigError, match="another port"):
        plan_settings("rooms:app", ServerDocument(), address=":5000", http=":5000")


def test_plain_tcp_beyond_this_machine_must_be_asked_for() -> None:
    with pytest.raises(ConfigError, match="needs TLS"):
        plan_settings("rooms:app", ServerDocument(), address="0.0.0.0:4480")
    assert plan_settings("rooms:app", ServerDocument(), address="0.0.0.0:4480", insecure=True).insecure


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="both"):
        plan_settings("rooms:app", ServerDocument(), certificate=tmp_path / "c.pem")
    with pytest.raises(ConfigError, match=r"no such file: .*c\.pem, the certificate \(--cert\)"):
        plan_settings("rooms:app", ServerDocument(), certificate=tmp_path / "c.pem", key=tmp_path / "k.pem")


@pytest.mark.parametrize("workers", [0, -1, 1000])
def test_the_number_of_workers_is_bounded(workers: int) -> None:
    with pytest.raises(ConfigError, match="--workers"):
        plan_settings("rooms:app", ServerDocument(), workers=workers)


def test_unproven_identities_beyond_this_machine_must_be_asked_for(tmp_path: Path) -> None:
    certificate = tmp_path / "cert.pem"
    certificate.touch()
    away = {"address": "0.0.0.0:4480", "certificate": certificate, "key": certificate}
    with pytest.raises(ConfigError, match=r"choose \[auth\] modes"):
        plan_settings("rooms:app", ServerDocument(), **away)
    proven = ServerDocument(auth=AuthSettings(modes=("token",)))
    assert plan_settings("rooms:app", proven, **away).auth.modes == ("token",)
    assert plan_settings("rooms:app", ServerDocument(), insecure=True, **away).auth.modes == ("open",)
    assert plan_settings("rooms:app", ServerDocument(), address="127.0.0.1:0").auth.modes == ("open",)


def test_state_is_kept_where_the_command_line_says_else_beside_the_target() -> None:
    assert plan_settings("rooms:app", ServerDocument(), store="memory").store == "memory"
    assert plan_settings("rooms:app", ServerDocument()).store == "bespeak.db"


def test_the_bound_of_all_requests_follows_the_largest_body_and_cannot_be_below_it() -> None:
    def plan(**limits: int) -> int:
        return plan_settings("rooms:app", ServerDocument(limits=LimitSettings(**limits))).max_buffered

    assert plan() == plan(max_body=1000) == MAX_BUFFERED
    assert plan(max_body=MAX_BUFFERED) == 4 * MAX_BUFFERED
    with pytest.raises(ConfigError, match=r"max_buffered of \[limits\] must be at least 66536"):
        plan(max_body=1000, max_buffered=66_535)


def test_client_certificates_need_tls_and_their_authorities(pair: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = pair
    ca = tmp_path / "ca.pem"
    document = ServerDocument(auth=AuthSettings(modes=("mtls",), mtls=MtlsSettings(ca=ca)))
    with pytest.raises(ConfigError, match="require TLS"):
        plan_settings("rooms:app", document)
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        plan_settings("rooms:app", document, certificate=cert, key=key)
    ca.touch()
    assert plan_settings("rooms:app", document, certificate=cert, key=key)


@pytest.mark.parametrize(("mode", "required"), [("required", True), ("optional", False)])
def test_client_certificates_of_a_connection_need_tls_too(
    pair: tuple[Path, Path], tmp_path: Path, mode: str, required: bool
) -> None:
    cert, key = pair
    ca = tmp_path / "ca.pem"
    document = ServerDocument(mtls=ClientCertificateSettings(mode=mode, ca_bundle_path=ca))
    with pytest.raises(ConfigError, match="require TLS"):
        plan_settings("rooms:app", document)
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        plan_settings("rooms:app", document, certificate=cert, key=key)
    ca.touch()
    settings = plan_settings("rooms:app", document, certificate=cert, key=key)
    assert (settings.client_ca, settings.client_required) == (ca, required)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Files as of a certificate and its key."""
    files = tmp_path / "c.pem", tmp_path / "k.pem"
    for file in files:
        file.touch()
    return files
