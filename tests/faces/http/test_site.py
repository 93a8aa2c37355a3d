"""A route table as HTTP sees it."""

from __future__ import annotations

from dataclasses import replace

from tests.service import build, echo, make_endpoint

from bespeak.faces.http.site import Page, Site

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
