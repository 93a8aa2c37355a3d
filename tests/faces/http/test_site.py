"""A route table as HTTP sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cases import rows
from tests.service import build, echo, make_endpoint

from bespeak.faces.http.asgi import HttpResponse
from bespeak.faces.http.site import Page, Root, Site
from bespeak.faces.http.translation import RequestTarget

BOOK = replace(make_endpoint("BOOK", "/room", echo, impact="irreversible"), namespace="rooms")
FIND = make_endpoint("FIND", "/room", echo)
HIDDEN = replace(make_endpoint("AUDIT", "/room", echo), internal=True, namespace="vault")
SITE = Site(build(BOOK, FIND, HIDDEN).routes, {"/llms.txt": Page(lambda: b"", "text/plain")})
ROOT = Root(
    {"application/json": Page(lambda: b"agis", "application/json"), "text/plain": Page(lambda: b"text", "text/plain")}
)


def test_endpoints_and_documents_are_found_except_internal_ones_and_old_ones_are_replaced() -> None:
    assert (SITE.literal["/room:book"], SITE.literal["/:discover"]) == (("/room", "BOOK"), ("/", "DISCOVER"))
    assert SITE.offered_at("/room") == ["/room:book", "/room:find"]
    assert SITE.is_readable("FIND", "/room")
    assert not SITE.is_readable("BOOK", "/room")
    assert not SITE.is_readable("FIND", "/nowhere")
    known = [("/llms.txt", None), ("/room:book", None), ("/room", "BOOK")]
    assert all(SITE.is_known(path, method) for path, method in known)
    assert not any(SITE.is_known(path, method) for path, method in [("/room", None), ("/room:steal", None)])
    assert SITE.namespaces == {"rooms"}
    assert not SITE.is_known("/room:audit", None)
    assert not SITE.is_readable("AUDIT", "/room")
    assert Page(lambda: b"{}", "application/json").answer({"if-none-match": '"other"'}).status == 200
    assert ROOT.answer({"accept": "application/vnd.agtp.manifest+json"}) == RequestTarget("/", "DISCOVER", reads=False)


class Content:
    """The content of a page, which counts how often it is built."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> bytes:
        self.made += 1
        return b"{}"


def test_pages_are_made_once_at_the_first_request_or_before() -> None:
    content = Content()
    page = Page(content, "application/json")
    assert content.made == 0
    first, second = page.answer({}), page.answer({})
    assert (first, content.made) == (second, 1)
    headers = dict(first.headers)
    assert (headers[b"cache-control"], headers[b"content-length"]) == (b"public, max-age=86400", b"2")
    assert headers[b"access-control-allow-origin"] == b"*"
    content = Content()
    page = Page(content, "application/json")
    page.make()
    assert (content.made, page.answer({}).body, content.made) == (1, b"{}", 1)
    contents = [Content(), Content()]
    Root({f"text/{number}": Page(content, "text/plain") for number, content in enumerate(contents)}).make()
    assert [content.made for content in contents] == [1, 1]


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_a_client_with_the_current_document_gets_304(form: str) -> None:
    page = Page(lambda: b"{}", "application/json", vary="Accept")
    reply = page.answer({"if-none-match": form.format(page.etag)})
    assert (reply.status, reply.body, dict(reply.headers)[b"vary"]) == (304, b"", b"Accept")
    assert b"content-length" not in dict(reply.headers)


@rows("accept, body", (None, b"agis"), ("*/*", b"agis"), ("text/*", b"text"), ("image/png", b"agis"))
def test_the_document_that_suits_is_given(accept: str | None, body: bytes) -> None:
    reply = ROOT.answer({} if accept is None else {"accept": accept})
    assert isinstance(reply, HttpResponse)
    assert reply.body == body


@rows(
    "accept, asked",
    ("*/*", "application/agis"),
    ("text/html", "application/agis"),
    ("application/vnd.agtp.manifest+json", "application/vnd.agtp.manifest+json"),
)
def test_without_documents_the_dispatcher_is_asked_for_one(accept: str, asked: str) -> None:
    headers = {"accept": accept}
    assert (Root({}).answer(headers), headers["accept"]) == (RequestTarget("/", "DISCOVER", reads=False), asked)
