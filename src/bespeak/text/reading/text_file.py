"""Files of a deployment as text, with a size limit and without exceptions."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import BinaryIO

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import MALFORMED, UNREADABLE
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.toml_tree import MAX_BYTES, parse_toml
from bespeak.text.source.tree import Location, SyntaxFault


def read_text(path: Path, most: int = MAX_BYTES) -> str | Diagnostic:
    """Read a UTF-8 file of at most `most` bytes, or return the error."""
    try:
        # Non-blocking: opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return _unreadable(path, "is not a regular file")
            if status.st_size > most:
                return _too_long(path, f"{status.st_size} bytes, more than {most}")
            return decode_text(os.read(descriptor, status.st_size), path)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        return _unreadable(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")


def read_stream(stream: BinaryIO, name: Path, most: int = MAX_BYTES) -> str | Diagnostic:
    """Read a stream like a file of that name, within the same size limit."""
    data = stream.read(most + 1)
    return decode_text(data, name) if len(data) <= most else _too_long(name, f"more than {most} bytes")


def decode_text(data: bytes, path: Path) -> str | Diagnostic:
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        reason = f"is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
        return _unreadable(path, reason, line, column, "Save it as UTF-8 text.")


def toml_table(text: str, file: str) -> Table | Diagnostic:
    tree = parse_toml(text, file)
    if isinstance(tree, SyntaxFault):
        return MALFORMED.found(f"this is not TOML: {tree.message}", tree.location)
    return Table(tree.data, "", Findings(tree.locate))


def _too_long(path: Path, length: str) -> Diagnostic:
    return _unreadable(path, f"has {length}", 1, 1, "Split the document.")


def _unreadable(path: Path, reason: str, line: int = 0, column: int = 0, advice: str = "") -> Diagnostic:
    return UNREADABLE.found(f"the file {reason}", Location(str(path), line, column), advice=advice)
