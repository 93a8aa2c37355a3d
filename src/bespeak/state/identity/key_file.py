"""An Ed25519 key in a file of its own."""

from __future__ import annotations

from pathlib import Path

from joserfc.jwk import OKPKey

from bespeak.protocol.fault import Fault
from bespeak.state.identity.key_text import parse_key
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text


def read_key(path: Path) -> OKPKey | Fault:
    """Read the key in a file, or return the error."""
    text = read_text(path)
    return Fault(text.message) if isinstance(text, Diagnostic) else parse_key(text)
