"""Links in headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.agent.discovery.lookup import service_descriptions
from bespeak.agent.discovery.web_document import Fetched


def links(text: str) -> list[str]:
    page = Fetched(what="x", url="https://a.example/", final_url="https://a.example/b/", headers={"link": text})
    return service_descriptions([page])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('</o.json>; rel="service-desc"', ["https://a.example/o.json"]),
        ("<o.json>;rel=service-desc", ["https://a.example/b/o.json"]),
        ('</a>; rel="next", </o>; type="x"; rel="help SERVICE-DESC"', ["https://a.example/o"]),
        ('</o>; rel="service-doc"', []),
        ("<javascript:x>; rel=service-desc", []),
        ("<http://a.example/o>; rel=service-desc", []),
        ("", []),
    ],
)
def test_descriptions_of_a_service_are_found(text: str, expected: list[str]) -> None:
    assert links(text) == expected


@given(st.text(alphabet='<>;,="rel service-desc/', max_size=80))
def test_no_text_raises(text: str) -> None:
    assert len(links(text)) <= 3
