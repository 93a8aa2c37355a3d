"""A report in its format, as it is stored and fetched."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

KIND: Final = "report"
KEPT: Final = 30 * 86400.0
"""Seconds for which a document can be fetched."""
MOST_BYTES: Final = 1024 * 1024
MOST_KEPT: Final = 1_000
"""Documents of one agent."""
STORED: Final = "stored"
"""State of a document that waits to be fetched; one that is delivered has the states of a posting."""

CONTENT_TYPES: Final[Mapping[str, str]] = {
    "json": "application/json",
    "html": "text/html; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
    "pdf": "application/pdf",
}
SUFFIXES: Final[Mapping[str, str]] = {"json": "json", "html": "html", "markdown": "md", "pdf": "pdf"}


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of a report."""

    report_type: str
    title: str
    format: str
    recipient: str
    digest: str
    size: int
    """Number of bytes."""
    text: str | None = None
    """The document; None if it is not text."""
    base64: str | None = None
    """The document, if it is not text."""

    @classmethod
    def of(cls, report_type: str, title: str, form: str, recipient: str, content: bytes) -> Document:
        """Make a document of its bytes."""
        is_text = form != "pdf"
        return cls(
            report_type=report_type,
            title=title,
            format=form,
            recipient=recipient,
            digest=f"sha256:{hashlib.sha256(content).hexdigest()}",
            size=len(content),
            text=content.decode() if is_text else None,
            base64=None if is_text else base64.b64encode(content).decode(),
        )

    @property
    def content(self) -> bytes:
        """The bytes of the document."""
        return self.text.encode() if self.text is not None else base64.b64decode(self.base64 or "")

    def notice(self, document_id: str) -> dict[str, Any]:
        """Return what a recipient is told of a document: what it is, and how to fetch it."""
        return {
            "document_id": document_id,
            **{name: getattr(self, name) for name in ("report_type", "title", "format", "digest")},
            "bytes": self.size,
            "content_type": CONTENT_TYPES[self.format],
            "fetch": {"method": "FETCH", "path": f"/documents/{document_id}"},
        }

    def letter(self, document_id: str) -> dict[str, Any]:
        """Return the document for a recipient outside, who cannot fetch it."""
        notice = {name: value for name, value in self.notice(document_id).items() if name != "fetch"}
        name = f"{document_id}.{SUFFIXES[self.format]}"
        body = {"text": self.text} if self.text is not None else {"base64": self.base64}
        return {**notice, "file_name": name, **body}


decode: Final = msgspec.json.Decoder(Document).decode
