"""Documents at fixed paths, and the copies clients keep."""

from __future__ import annotations

import pytest

from bespeak.faces.http.site import Page


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
