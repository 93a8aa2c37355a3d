"""Keys are read from files, or it is said why not."""

from __future__ import annotations

from pathlib import Path

from joserfc.jwk import OKPKey

from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.key_files import read_key
from bespeak.state.identity.key_text import generate_key, key_id, private_text


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    key, path = generate_key(), tmp_path / "key.pem"
    path.write_text(private_text(key))
    read = read_key(path)
    assert isinstance(read, OKPKey)
    assert key_id(read) == key_id(key)
    assert isinstance(read_key(tmp_path / "none.pem"), Fault)
