"""Public halves of a key and of its predecessors, in a JWK set beside the key file, so that old signatures verify."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from joserfc.jwk import OKPKey

from bespeak.protocol.fault import Fault
from bespeak.state.identity.key_text import key_id, parse_jwk, public_jwk
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.text_file import read_text

_SUFFIX: Final = ".keys.json"
_MOST: Final = 1000


def history_path(key_file: Path) -> Path:
    """Return the path of the set for a key file: `server.pem.keys.json` beside `server.pem`."""
    return key_file.with_name(key_file.name + _SUFFIX)


def read_history(key_file: Path) -> list[OKPKey] | Fault:
    """Read the keys in the set beside a key file, newest first; empty if the key was never replaced."""
    path = history_path(key_file)
    if not path.exists():
        return []
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return Fault(f"{path}: {text.message}")
    keys = parse_history(text)
    return Fault(f"{path}: {keys.message}") if isinstance(keys, Fault) else keys


def parse_history(text: str) -> list[OKPKey] | Fault:
    """Parse the Ed25519 keys of a JWK set, without duplicates. An unreadable one is an error: none may be lost."""
    try:
        document = decode_json(text)
    except (ValueError, RecursionError) as error:
        return Fault(f"not JSON: {error}")
    members = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(members, list) or len(members) > _MOST:
        return Fault(f"not a JWK set, an object with a list `keys` of up to {_MOST}")
    found: dict[str, OKPKey] = {}
    for number, entry in enumerate(members):
        key = parse_jwk(entry) if isinstance(entry, dict) else Fault("not an object")
        if isinstance(key, Fault):
            return Fault(f"key {number + 1} of the set: {key.message}")
        found.setdefault(key_id(key), key)
    return list(found.values())


def history_text(keys: Iterable[OKPKey]) -> str:
    """Write the set with the public halves of keys, without duplicates, in the given order."""
    members = {key_id(key): public_jwk(key) for key in keys}
    return msgspec.json.format(msgspec.json.encode({"keys": list(members.values())}), indent=2).decode() + "\n"
