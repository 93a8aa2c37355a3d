"""AGIS documents as agents take them."""

from __future__ import annotations

import json

import pytest
from tests.agent.discovery.test_lookup import AGIS

from bespeak.agent.discovery.readers import agis_tree, read_agis_document
from bespeak.agent.discovery.web_document import Fetched
from bespeak.text.diagnostics.diagnostic import Diagnostic

URL = "https://rooms.test/"


def fetched(body: bytes) -> Fetched:
    return Fetched(what="the AGIS document", url=URL, final_url=URL, status=200, body=body)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_good_document_is_taken_with_nothing_to_say(mark: bytes) -> None:
    document, found = read_agis_document(fetched(mark + AGIS.encode()))
    assert document is not None
    assert (document.service, found) == ("Rooms", [])


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        (b'agis: "1.0"\nservice: \xff', ["D101"]),
        (b"agis: [", ["D102"]),
        (b"service: Rooms\n", ["W105"]),
        (b"just a text", ["W105"]),
        (json.dumps({"agis": "1.0", "service": "Rooms", "endpoints": []}).encode(), ["W105"]),
    ],
)
def test_unusable_document_is_a_warning(body: bytes, rules: list[str]) -> None:
    document, found = read_agis_document(fetched(body))
    assert document is None
    assert [finding.rule for finding in found][-1:] == rules
    assert found[-1].severity == "warning"


def test_nothing_is_used_of_a_document_that_breaks_the_rules_of_agis() -> None:
    document, found = read_agis_document(fetched(AGIS.replace("path: /room", "path: /book-room").encode()))
    assert document is None
    assert found[0].severity == "error"
    assert found[-1].rule == "W105"


def test_many_faults_make_a_bounded_list() -> None:
    endpoint = AGIS[AGIS.index("  - method") :]
    body = AGIS + "".join(endpoint.replace("/room", f"/book-room{number}") for number in range(100))
    assert len(read_agis_document(fetched(body.encode()))[1]) <= 21


def test_an_answer_is_a_tree_a_fault_or_something_else() -> None:
    assert agis_tree(fetched(b'{"openapi": "3.1.0"}')) is None
    assert isinstance(agis_tree(fetched(b"{")), Diagnostic)
    tree = agis_tree(fetched(AGIS.encode()))
    assert tree is not None
    assert not isinstance(tree, Diagnostic)
