"""A document is stored as text and returned as the bytes that were made."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from bespeak.extensions.reports.methods import Document, decode


@pytest.mark.parametrize(("form", "content"), [("pdf", b"%PDF \xff\x00"), ("html", "<p>ł</p>".encode())])
def test_the_bytes_survive_being_stored(form: str, content: bytes) -> None:
    document = Document.of("log", "Log", form, "ann", content)
    assert decode(msgspec.json.encode(document)).content == content
    assert (document.digest, document.size) == (f"sha256:{hashlib.sha256(content).hexdigest()}", len(content))


def test_an_agent_is_told_where_it_is_and_others_get_it() -> None:
    document = Document.of("log", "Log", "markdown", "ann", b"# Log")
    assert document.notice("doc-1")["fetch"] == {"method": "FETCH", "path": "/documents/doc-1"}
    letter = document.letter("doc-1")
    assert (letter["file_name"], letter["text"], letter["content_type"]) == (
        *("doc-1.md", "# Log", "text/markdown; charset=utf-8"),
    )
    assert "fetch" not in letter
