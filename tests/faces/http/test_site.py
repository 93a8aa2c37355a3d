"""A route table as HTTP sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.service import build, echo, make_endpoint

from bespeak.faces.http.asgi import HttpResponse
from bespeak.faces.http.site import Page, Root, Site
from bespeak.faces.http.translation import RequestTarget

BOOK = replace(make_endpoint("BOOK", "/room", echo, impact="irreversible"), namespace="rooms")
FIND = make_endpoint("FIND", "/room", echo)
HIDDEN = replace(make_endpoint("AUDIT", "/room", echo), internal=True, namespace="vault")
SITE = Site(build(BOOK, FIND, HIDDEN).routes, {"/llms.txt": Page(lambda: b"", "text/plain")})


def test_endpoints_are_found_by_path_and_verb() -> None:
    assert SITE.literal["/room:book"] == ("/room", "BOOK")
    assert SITE.literal["/:discover"] == ("/", "DISCOVER")
    assert SITE.offered_at("/room") == ["/room:book", "/room:find"]


def test_an_informational_endpoint_is_readable() -> None:
    assert SITE.is_readable("FIND", "/room")
    assert not SITE.is_readable("BOOK", "/room")
    assert not SITE.is_readable("FIND", "/nowhere")


def test_documents_and_endpoints_are_known() -> None:
    known = [("/llms.txt", None), ("/room:book", None), ("/room", "BOOK")]
    assert all(SITE.is_known(path, method) for path, method in known)
    assert not any(SITE.is_known(path, method) for path, method in [("/room", None), ("/room:steal", None)])


def test_internal_endpoints_are_neither_known_nor_readable_and_have_no_namespace() -> None:
    assert SITE.namespaces == {"rooms"}
    assert not SITE.is_known("/room:audit", None)
    assert not SITE.is_readable("AUDIT", "/room")


class Content:
    """The content of a page, which counts how often it is built."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> bytes:
        self.made += 1
        return b"{}"


def test_a_page_is_made_once_when_it_is_first_asked_for() -> None:
    content = Content()
    page = Page(content, "application/json")
    assert content.made == 0
    first, second = page.answer({}), page.answer({})
    assert (first, content.made) == (second, 1)
    headers = dict(first.headers)
    assert headers[b"cache-control"] == b"public, max-age=86400"
    assert headers[b"content-length"] == b"2"
    assert headers[b"access-control-allow-origin"] == b"*"


def test_a_page_can_be_built_before_the_first_request() -> None:
    content = Content()
    page = Page(content, "application/json")
    page.make()
    assert (content.made, page.answer({}).body, content.made) == (1, b"{}", 1)


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_a_client_with_the_current_document_gets_304(form: str) -> None:
    page = Page(lambda: b"{}", "application/json", vary="Accept")
    reply = page.answer({"if-none-match": form.format(page.etag)})
    assert (reply.status, reply.body) == (304, b"")
    assert dict(reply.headers)[b"vary"] == b"Accept"
    assert b"content-length" not in dict(reply.headers)


def test_a_client_with_an_old_document_gets_the_current_one() -> None:
    assert Page(lambda: b"{}", "application/json").answer({"if-none-match": '"other"'}).status == 200


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
    assert ROOT.answer({"accept": "application/vnd.agtp.manifest+json"}) == RequestTarget("/", "DISCOVER", reads=False)


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
    assert Root({}).answer(headers) == RequestTarget("/", "DISCOVER", reads=False)
    assert headers["accept"] == asked
