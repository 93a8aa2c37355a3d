"""The root of a service: the document that suits, or a call of DISCOVER."""

from __future__ import annotations

import pytest
from tests.faces.http.test_page import Content

from bespeak.faces.http.asgi import HttpResponse
from bespeak.faces.http.site import Page, Root
from bespeak.faces.http.translation import Target

ROOT = Root(
    {"application/json": Page(lambda: b"agis", "application/json"), "text/plain": Page(lambda: b"text", "text/plain")}
)


@pytest.mark.parametrize(
    ("accept", "body"), [(None, b"agis"), ("*/*", b"agis"), ("text/*", b"text"), ("image/png", b"agis")]
)
def test_the_document_that_suits_is_given(accept: str | None, body: bytes) -> None:
    reply = ROOT.answer({} if accept is None else {"accept": accept})
    assert isinstance(reply, HttpResponse)
    assert reply.body == body


def test_all_documents_can_be_built_before_the_first_request() -> None:
    contents = [Content(), Content()]
    Root({f"text/{number}": Page(content, "text/plain") for number, content in enumerate(contents)}).make()
    assert [content.made for content in contents] == [1, 1]


def test_the_manifest_is_called_for() -> None:
    assert ROOT.answer({"accept": "application/vnd.agtp.manifest+json"}) == Target("/", "DISCOVER", reads=False)


@pytest.mark.parametrize(
    ("accept", "asked"),
    [
        ("*/*", "application/agis"),
        ("text/html", "application/agis"),
        ("application/vnd.agtp.manifest+json", "application/vnd.agtp.manifest+json"),
    ],
)
def test_without_documents_the_dispatcher_is_asked_for_one(accept: str, asked: str) -> None:
    headers = {"accept": accept}
    assert Root({}).answer(headers) == Target("/", "DISCOVER", reads=False)
    assert headers["accept"] == asked
