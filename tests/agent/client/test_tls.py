"""When a connection is encrypted."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.state.identity.certificates import Authority

from bespeak.agent.client.agtp_transport import choose_tls
from bespeak.errors import ConfigError
from bespeak.protocol.address import Locator

NETWORK = Locator("rooms.acme.example")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_is_plain_unless_tls_is_asked_for(host: str) -> None:
    assert choose_tls(Locator(host)) is None
    assert choose_tls(Locator(host), tls=True) is not None


def test_a_ca_file_asks_for_tls_on_loopback_too(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    assert choose_tls(Locator("127.0.0.1"), ca_file=file) is not None


def test_any_other_host_is_tls_1_3_with_a_checked_certificate() -> None:
    context = choose_tls(NETWORK)
    assert context is not None
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_plain_tcp_over_a_network_must_be_asked_for() -> None:
    assert choose_tls(NETWORK, insecure=True) is None


def test_the_check_of_the_certificate_can_be_left_out() -> None:
    context = choose_tls(NETWORK, verify=False)
    assert context is not None
    assert context.verify_mode is ssl.CERT_NONE


def test_a_client_certificate_asks_for_tls_on_loopback_too(tmp_path: Path) -> None:
    cert, key = Authority(tmp_path).client("agent", common="agent")
    assert choose_tls(Locator("127.0.0.1"), client_cert=cert, client_key=key) is not None
    with pytest.raises(ConfigError, match="client_cert"):
        choose_tls(Locator("127.0.0.1"), client_key=key)
    with pytest.raises(ConfigError, match=r"agent\.pem"):
        choose_tls(NETWORK, client_cert=cert)


@pytest.mark.parametrize("options", [{"tls": True}, {"ca_file": "x"}, {"client_cert": "x"}])
def test_plain_and_encrypted_at_once_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="cannot be combined"):
        choose_tls(NETWORK, insecure=True, **options)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        choose_tls(NETWORK, ca_file=file)
