"""How a live host answers: each rule by a host that breaks it and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest
from tests.agent.discovery.live import AI, AI_PATH, KEPT, OPENAPI_PATH, PAGES, SUMMARY_PATH, answer, host, look, served
from tests.agent.discovery.web import Asked, Script, always, authority, redirect, send, server_tls, serving
from tests.cases import rows

from bespeak.agent.discovery.examination import ABSENT, HostExamination
from bespeak.agent.discovery.live_check import check_answers
from bespeak.text.diagnostics.diagnostic import Diagnostic

pytestmark = pytest.mark.anyio

RAW = json.dumps(AI).encode()
HTML = always(200, b"<html>", Content_Type="text/html")


def without_head(status: int) -> Script:
    return lambda asked, writer: send(writer, status) if asked.method == "HEAD" else answer(asked, writer, AI)


def head_with(**headers: str) -> Script:
    def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        answer(asked, writer, AI, **(headers if asked.method == "HEAD" else {}))

    return script


def robots(text: bytes) -> Script:
    return always(200, text, Content_Type="text/plain")


def large(asked: Asked, writer: asyncio.StreamWriter) -> None:
    send(writer, 200, b"{", Content_Length="20000000", Content_Type="application/json")
    writer.close()


OPTIONAL = (OPENAPI_PATH, "/llms.txt", "/.well-known/agtp")


def found(seen: HostExamination) -> list[str]:
    return sorted({finding.rule for finding in check_answers(seen)})


@rows(
    "rule, pages",
    ("W910", {AI_PATH: always(404)}),
    ("W910", {AI_PATH: always(410)}),
    ("W914", {AI_PATH: always(500)}),
    ("W914", {AI_PATH: always(204)}),
    ("W914", {AI_PATH: always(429)}),
    ("W914", {SUMMARY_PATH: always(418)}),
    ("W914", {OPENAPI_PATH: always(503)}),
    ("W914", {"/": always(500)}),
    ("W915", {AI_PATH: always(401, WWW_Authenticate="Bearer")}),
    ("W915", {SUMMARY_PATH: always(403)}),
    ("W916", {AI_PATH: served(AI, Content_Type="text/plain; charset=utf-8")}),
    ("W916", {AI_PATH: served(AI, Content_Type="")}),
    ("W916", {AI_PATH: HTML}),
    ("W917", {AI_PATH: served(AI, Content_Type="application/json")}),
    ("W917", {AI_PATH: served(AI, Content_Type="application/json; charset=latin-1")}),
    ("W917", {"/llms.txt": served(b"# Flights", Content_Type="text/plain")}),
    ("W918", {AI_PATH: b"\xef\xbb\xbf" + RAW}),
    ("W918", {AI_PATH: RAW.replace(b"Flights", b"Fl\xffghts")}),
    ("W919", {AI_PATH: served(AI, Cache_Control="")}),
    ("W919", {AI_PATH: served(AI, Cache_Control="private, max-age=86400")}),
    ("W919", {AI_PATH: served(AI, Cache_Control="NO-STORE")}),
    ("W920", {AI_PATH: served(AI, Cache_Control="public, max-age=60")}),
    ("W920", {SUMMARY_PATH: served(PAGES[SUMMARY_PATH], Cache_Control="max-age=0")}),
    ("W921", {AI_PATH: served(AI, ETag="")}),
    ("W922", {AI_PATH: without_head(405)}),
    ("W922", {AI_PATH: without_head(404)}),
    ("W922", {AI_PATH: head_with(ETag='"b"')}),
    ("W922", {AI_PATH: head_with(Content_Type="text/html")}),
    ("W924", {AI_PATH: redirect(AI_PATH)}),
    ("W924", {AI_PATH: redirect("")}),
    ("W924", {AI_PATH: redirect("javascript:alert(1)")}),
    ("W925", {AI_PATH: redirect("http://flights.test/ai.json")}),
    ("W927", {AI_PATH: always(200, gzip.compress(b" " * 1_000_000), Content_Encoding="gzip")}),
    ("W927", {AI_PATH: b" " * 300_000}),
    ("W928", {AI_PATH: always(200, RAW, Content_Encoding="br")}),
    ("W928", {AI_PATH: always(200, gzip.compress(RAW), **KEPT, Content_Encoding="gzip")}),
    ("W928", {AI_PATH: always(200, b"no gzip", Content_Encoding="gzip")}),
    ("W929", {AI_PATH: redirect("https://metadata.test/latest")}),
    ("W929", {AI_PATH: lambda asked, writer: writer.write(b"SSH-2.0-hello\r\n\r\n")}),
    ("W930", {"/ai": {**AI, "aiendpoint": "2.0"}}),
    ("W931", {ABSENT: HTML}),
    ("W932", {"/robots.txt": robots(b"User-agent: *\nDisallow: /.well-known/ai")}),
    ("W932", {"/robots.txt": robots(b"User-agent: bespeak\nDisallow: /")}),
    ("W933", {AI_PATH: served(AI, Access_Control_Allow_Origin="")}),
    ("W933", {AI_PATH: served(AI, Access_Control_Allow_Origin="https://one.test")}),
    ("W943", {OPENAPI_PATH: large}),
    ("W943", {"/": large}),
    ("", {}),
    ("", {AI_PATH: redirect("/real"), "/real": AI}),  # a redirect at the host itself
    *(("", {"/ai": alias}) for alias in (AI, always(404), HTML)),
    # Optional documents may be restricted.
    *(("", dict.fromkeys(OPTIONAL, always(status))) for status in (401, 403, 404, 405, 406)),
    ("", {"/robots.txt": robots(b"User-agent: *\nDisallow: /llms.txt\nDisallow: /openapi.json")}),
)
async def test_host_that_breaks_one_rule_gets_one_finding(rule: str, pages: dict[str, Any]) -> None:
    assert found(await look(host(pages))) == ([rule] if rule else [])


async def test_hosts_without_documents_or_their_certificate_are_reported() -> None:
    assert found(await look(always(404))) == ["W911"]
    assert found(await look(HTML)) == ["W911", "W916", "W931"]
    seen = await look(host(), tls=server_tls("other.test"))
    [finding] = check_answers(seen)
    assert finding.rule == "W913"
    assert finding.location.file.endswith(AI_PATH)
    assert set(seen.documents) == {"ai"}


async def test_plain_http_is_an_error_unless_it_leads_to_https_or_stays_on_this_machine() -> None:
    plain = [finding for finding in check_answers(await look(host(), tls=False)) if finding.rule == "W912"]
    assert [finding.severity for finding in plain] == ["error"]
    seen = await look(host(), tls=False)
    origin = replace(seen.address.origin, host="127.0.0.1")
    [local] = check_answers(replace(seen, address=replace(seen.address, origin=origin)))
    assert (local.rule, local.severity) == ("W912", "info")
    async with serving(host()) as secure:
        seen = await look(lambda asked, writer: redirect(f"{secure.url}{asked.target}", 301)(asked, writer), tls=False)
    assert seen.documents["ai"].fetched.hops
    assert found(seen) == []


@pytest.mark.parametrize(("seconds", "rules"), [(2.9, []), (3.0, []), (3.1, ["W923"]), (None, [])])
async def test_an_answer_after_three_seconds_is_slow(seconds: float | None, rules: list[str]) -> None:
    seen = await look(host())
    ai = seen.documents["ai"]
    seen.documents["ai"] = replace(ai, fetched=replace(ai.fetched, first_seconds=seconds))
    assert found(seen) == rules


async def test_redirect_to_another_host_is_reported_with_its_target() -> None:
    def script(asked: Asked, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
        name, _, port = asked.headers["host"].partition(":")
        if name == "files.test":
            return answer(asked, writer, AI)
        if asked.target == AI_PATH:
            return redirect(f"https://files.test:{port}/")(asked, writer)
        return host()(asked, writer)

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert("flights.test", "files.test").configure_cert(tls)
    seen = await look(script, tls=tls, typed=("flights.test", "files.test"))
    [finding] = check_answers(seen)
    assert finding.rule == "W926"
    assert "files.test" in finding.message


async def test_headers_and_length_by_head_are_compared_and_named() -> None:
    seen = await look(host({AI_PATH: head_with(ETag='"b"')}))
    [finding] = check_answers(seen)
    assert "a different etag" in finding.message

    def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method == "HEAD":
            send(writer, 200, **{**KEPT, "Content_Length": "3"})
        else:
            answer(asked, writer, AI)

    assert found(await look(host({AI_PATH: script}))) == ["W922"]


async def test_skipped_requests_are_reported_and_every_finding_says_what_to_do() -> None:
    seen = await look(host())
    seen.unasked.append("https://flights.test/llms.txt")
    assert found(seen) == ["W943"]
    seen = await look(HTML, tls=False)
    findings: list[Diagnostic] = list(check_answers(seen))
    assert findings
    assert all(finding.location is not None and finding.location.file.startswith("http") for finding in findings)
    assert all(finding.help.endswith(".") for finding in findings)
