"""Names of terms."""

from __future__ import annotations

import pytest

from bespeak.contract.ontology.ontology import Term


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("https://ex.org/o#LLM", "LLM"),
        ("https://ex.org/o/LLM", "LLM"),
        ("https://ex.org/o/LLM/", "LLM"),
        ("urn:x", "urn:x"),
    ],
)
def test_local_name_is_the_end_of_the_iri(iri: str, name: str) -> None:
    assert Term(iri=iri, kind="class").local_name == name
