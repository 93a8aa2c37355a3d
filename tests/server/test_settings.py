"""What may start, and whose word counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.documents.server_toml import LimitSettings, ListenSettings, ServerDocument
from bespeak.errors import ConfigError
from bespeak.server.settings import plan_settings
from bespeak.transports.address import Address


def test_the_command_line_goes_over_the_configuration_and_that_over_the_default() -> None:
    document = ServerDocument(
        listen=ListenSettings(agtp="127.0.0.1:5000", workers=3), limits=LimitSettings(max_body=1000)
    )
    assert plan_settings("x", document).address == Address("127.0.0.1", 5000)
    assert plan_settings("x", document).workers == 3
    assert plan_settings("x", document).max_body == 1000
    assert plan_settings("x", document).idle_timeout == 75.0
    assert plan_settings("x", document, address=":6000", workers=1).address.port == 6000
    assert plan_settings("x", ServerDocument()).address == Address("127.0.0.1", 4480)


def test_plain_tcp_beyond_this_machine_must_be_asked_for() -> None:
    with pytest.raises(ConfigError, match="needs TLS"):
        plan_settings("x", ServerDocument(), address="0.0.0.0:4480")
    assert plan_settings("x", ServerDocument(), address="0.0.0.0:4480", insecure=True).insecure


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="both"):
        plan_settings("x", ServerDocument(), certificate=tmp_path / "c.pem")
    with pytest.raises(ConfigError, match="no such file"):
        plan_settings("x", ServerDocument(), certificate=tmp_path / "c.pem", key=tmp_path / "k.pem")


@pytest.mark.parametrize("workers", [0, -1, 1000])
def test_the_number_of_workers_is_bounded(workers: int) -> None:
    with pytest.raises(ConfigError, match="--workers"):
        plan_settings("x", ServerDocument(), workers=workers)
