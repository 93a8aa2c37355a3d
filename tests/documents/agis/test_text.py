"""YAML and JSON of one document mean the same, and writing twice changes nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.documents.agis_documents import booking, texts, values

from bespeak.documents.agis.canonical import canonical, write_json, write_yaml
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import SyntaxFault
from bespeak.text.source.yaml_tree import parse_yaml

anything = st.fixed_dictionaries({}, optional=dict.fromkeys(booking(), values)) | st.dictionaries(texts, values)


@pytest.mark.requirement("AGIS-10-2")
@given(anything)
@settings(max_examples=200)
def test_both_forms_are_read_as_the_same_data(data: dict[str, Any]) -> None:
    one, other = parse_yaml(write_yaml(data), "a"), parse_json(write_json(data), "a")
    assert not isinstance(one, SyntaxFault)
    assert not isinstance(other, SyntaxFault)
    assert one.data == other.data == canonical(data)


@given(anything)
@settings(max_examples=100)
def test_writing_twice_gives_the_same_text(data: dict[str, Any]) -> None:
    yaml_text, json_text = write_yaml(data), write_json(data)
    one, other = parse_yaml(yaml_text, "a"), parse_json(json_text, "a")
    assert not isinstance(one, SyntaxFault)
    assert not isinstance(other, SyntaxFault)
    assert (write_yaml(one.data), write_yaml(other.data)) == (yaml_text, yaml_text)
    assert (write_json(one.data), write_json(other.data)) == (json_text, json_text)


def test_written_document_is_readable() -> None:
    text = write_yaml(booking())
    assert text.startswith('agis: "1.0"\nservice: Acme Rooms\nagtp: agtp://rooms.acme.example\n')
    assert "\n\nvocabulary:\n  declared_verbs: [BOOK]\n" in text
    assert "\n\nendpoints:\n  - method: BOOK\n    path: /room\n    semantic:\n      intent: Books a room" in text
    assert "confidence_guidance: 0.85\n" in text
    assert "errors: [room_unavailable]\n" in text


@pytest.mark.requirement("AGIS-10-4")
def test_booleans_are_lower_case_and_decimals_plain() -> None:
    data = booking()
    data["endpoints"][0]["semantic"] |= {"is_idempotent": True, "confidence_guidance": 0.85}
    for text in (write_yaml(data), write_json(data)):
        assert re.search(r'"?is_idempotent"?: true\b', text)
        assert re.search(r'"?confidence_guidance"?: 0\.85\b', text)


def test_endpoints_are_separated_by_an_empty_line() -> None:
    data = booking()
    data["endpoints"] *= 2
    assert "errors: [room_unavailable]\n\n  - method: BOOK\n" in write_yaml(data)
