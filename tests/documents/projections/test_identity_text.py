"""The representations of an identity document."""

from __future__ import annotations

import json

import pytest
import yaml

from bespeak.documents.projections.agent_documents import IDENTITY_TYPES, write_identity

DOCUMENT = {"agent_id": "a" * 64, "name": "<script>Ünal", "scopes": ["a:b"], "wildcards": False, "trust_score": 0.5}


@pytest.mark.parametrize("media_type", [name for name in IDENTITY_TYPES if name != "text/html"])
def test_json_and_yaml_have_the_same_content(media_type: str) -> None:
    text, content_type = write_identity(DOCUMENT, media_type)
    assert (yaml.safe_load(text) if "yaml" in media_type else json.loads(text)) == DOCUMENT
    assert content_type == (media_type if "yaml" in media_type else "application/vnd.agtp.identity+json")


def test_a_page_shows_every_member_and_escapes_it() -> None:
    text, content_type = write_identity(DOCUMENT, "text/html")
    page = text.decode()
    assert content_type == "text/html; charset=utf-8"
    assert all(name in page for name in DOCUMENT)
    assert "<script>" not in page
    assert "&lt;script&gt;Ünal" in page
