"""Answers, and what errors on the way to them mean."""

from __future__ import annotations

import ssl

import httpx
import pytest

from bespeak.agent.discovery.fetcher import FetchedResponse, broken, failed, take_answer
from bespeak.agent.discovery.web_document import DISCOVERY

URL = "https://flights.test/.well-known/ai"


def caused(cause: Exception) -> httpx.ConnectError:
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (caused(ConnectionRefusedError()), "connection", "connection refused"),
        (caused(ssl.SSLError(1, "wrong version number")), "certificate", "TLS handshake failed"),
        (httpx.RemoteProtocolError("peer closed"), "protocol", "incomplete"),
        (OSError(113, "No route to host"), "connection", "No route to host"),
        (httpx.ReadError(""), "connection", "ReadError"),
    ],
)
def test_error_is_classified_by_its_cause(error: Exception, kind: str, words: str) -> None:
    fault = broken(error, URL).fault
    assert fault is not None
    assert (fault.kind, fault.url) == (kind, URL)
    assert words in fault.message


def test_no_answer_has_no_status() -> None:
    answer = failed("timeout", "x", URL)
    assert (answer.status, answer.headers, answer.body) == (0, {}, b"")


async def take(response: httpx.Response) -> FetchedResponse:
    return await take_answer(response, DISCOVERY, URL)


@pytest.mark.anyio
async def test_only_a_body_that_counts_is_read() -> None:
    json = {"content-type": "application/json", "set-cookie": "id=1"}
    good = await take(httpx.Response(200, headers=json, stream=httpx.ByteStream(b"{}")))
    assert (good.body, good.headers) == (b"{}", {"content-type": "application/json"})
    assert (await take(httpx.Response(404, headers=json, stream=httpx.ByteStream(b"{}")))).body == b""
    page = await take(httpx.Response(200, headers={"content-type": "text/html"}, stream=httpx.ByteStream(b"<")))
    assert (page.body, page.fault) == (b"", None)


def test_a_media_type_has_no_parameters() -> None:
    assert FetchedResponse(200, {"content-type": " Application/JSON; charset=utf-8"}).media_type == "application/json"
    assert FetchedResponse(200, {}).media_type == ""
