"""Headers without proof are believed on this machine only."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process import bespeak
from tests.security.guarded import AGENT, SCOPE, Guarded, ask

pytestmark = pytest.mark.process


def test_a_header_is_enough_on_this_machine(tmp_path: Path) -> None:
    with Guarded(tmp_path, "open").serving() as served:
        answer = ask(served, {"Agent-ID": AGENT, "Authority-Scope": SCOPE})
        assert (answer.status, answer.json["agent"], answer.json["verified"]) == (200, AGENT, None)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:4480", "seats.example:4480"])
@pytest.mark.parametrize("encrypted", [True, False])
def test_it_is_not_beyond_it_whether_encrypted_or_not(tmp_path: Path, address: str, encrypted: bool) -> None:
    guarded = Guarded(tmp_path, "open")
    pair = ("--cert", str(tmp_path / "server.pem"), "--key", str(tmp_path / "server.key.pem"))
    options = ("--store", guarded.store, *(pair if encrypted else ()))
    refused = bespeak("serve", str(tmp_path), "--agtp", address, *options)
    assert refused.returncode == 2
    assert ("would not be authenticated" if encrypted else "needs TLS") in refused.stderr
    assert "--insecure" in refused.stderr
    assert not Path(guarded.store).exists()
