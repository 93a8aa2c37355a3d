"""Notations of alignment artifacts, and how to tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from bespeak.contract.ontology.alignment import Alignment
from bespeak.documents.alignment.alignment_api import read_alignment_api, write_alignment_api
from bespeak.documents.alignment.collector import AlignmentDocument
from bespeak.documents.alignment.draft_json import read_json, write_json
from bespeak.documents.alignment.sssom import read_sssom, write_sssom

AlignmentNotation = Literal["json", "sssom", "alignment"]

MEDIA_TYPES: Final[Mapping[str, AlignmentNotation]] = {
    "application/json": "json",
    "text/tab-separated-values": "sssom",
    "application/rdf+xml": "alignment",
}

_HEAD: Final = 256 * 1024

_READERS: Final[Mapping[AlignmentNotation, Callable[[bytes, str], AlignmentDocument]]] = {
    "json": read_json,
    "sssom": read_sssom,
    "alignment": read_alignment_api,
}


def alignment_notation(data: bytes) -> AlignmentNotation:
    """Return the notation of a document by its first character."""
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {b"{": "json", b"<": "alignment"}.get(start, "sssom")  # type: ignore[return-value]


def is_alignment(data: bytes) -> bool:
    """Return True for a document that looks like an artifact, not like an ontology."""
    match alignment_notation(data):
        case "json":
            return b'"mappingRules"' in data
        case "alignment":
            return b"/heterogeneity/alignment" in data[:_HEAD]
        case "sssom":
            return b"subject_id\t" in data[:_HEAD]


def read_alignment(data: bytes, file: str, notation: AlignmentNotation | None = None) -> AlignmentDocument:
    """Read an artifact in any notation; an artifact with errors is refused as a whole."""
    return _READERS[notation or alignment_notation(data)](data, file)


def write_alignment(alignment: Alignment, notation: AlignmentNotation, signature: str = "") -> bytes:
    """Write an artifact. Only the JSON of the draft carries the signature and everything else."""
    match notation:
        case "json":
            return write_json(alignment, signature)
        case "sssom":
            return write_sssom(alignment)
        case "alignment":
            return write_alignment_api(alignment)
