"""Files of ontologies: read in chunks up to a limit, without exceptions."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

from bespeak.contract.ontology.ontology import Ontology
from bespeak.documents.ontology.fault import DocumentRefused
from bespeak.documents.ontology.limits import LIMITS, Limits
from bespeak.documents.ontology.reader import read_ontology
from bespeak.documents.ontology.triples import refuse_size
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.source.span import Location

_CHUNK: Final = 1024 * 1024


def read_bytes(path: Path, limits: Limits = LIMITS) -> bytes | Diagnostic:
    """Read a regular file up to the limit, or return the error."""
    try:
        # Non-blocking: opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return _unreadable(path, "is not a regular file")
            return _read(descriptor, str(path), limits)
        finally:
            os.close(descriptor)
    except DocumentRefused as refused:
        return refused.finding
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        return _unreadable(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")


def load_ontology(path: Path, *, limits: Limits = LIMITS, **given: Any) -> tuple[Ontology | None, list[Diagnostic]]:
    """Read the ontology of a file. `given` are the other arguments of `read_ontology`."""
    data = read_bytes(path, limits)
    if isinstance(data, Diagnostic):
        return None, [data]
    return read_ontology(data, str(path), limits=limits, **given)


def _read(descriptor: int, file: str, limits: Limits) -> bytes:
    data = bytearray()
    while chunk := os.read(descriptor, min(_CHUNK, limits.size + 1 - len(data))):
        data += chunk
        if len(data) > limits.size:
            refuse_size(file, data.count(b"\n") + 1, limits)
    return bytes(data)


def _unreadable(path: Path, reason: str) -> Diagnostic:
    return UNREADABLE.found(f"the file {reason}", Location(str(path)))
