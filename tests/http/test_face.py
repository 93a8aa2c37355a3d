"""The HTTP face over an ASGI transport: routes, methods, refusals, limits."""

from __future__ import annotations

import httpx
import pytest
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.documents.http_toml import HttpSettings
from bespeak.server.http_face import make_face


def client(*endpoints, **options):
    face = make_face(build(*endpoints, **options).assembled, HttpSettings())
    return httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url="http://rooms.test")


TEXT = {"room_id": {"type": "string"}, "guests": {"type": "integer"}}


async def _ask(method, target, *endpoints, json=None, headers=None):
    async with client(*endpoints) as http:
        return await http.request(method, target, json=json, headers=headers or {})


def ask(*args, **kwargs):
    import asyncio

    return asyncio.run(_ask(*args, **kwargs))


BOOK = make_endpoint("BOOK", "/room", echo, properties=TEXT, impact="irreversible", output={"type": "object"})
FIND = make_endpoint("FIND", "/rooms/{room_id}", echo, properties=TEXT)


def test_an_endpoint_is_called_by_post_at_its_path_and_verb():
    reply = ask("POST", "/room:book", BOOK, json={"room_id": "12"})
    assert (reply.status_code, reply.json()) == (200, {"room_id": "12"})
    assert reply.headers["agtp-status"] == "200"
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "no-store"


def test_what_changes_nothing_and_takes_scalars_is_also_read_by_get():
    reply = ask("GET", "/rooms/a%20b:find?guests=2", FIND)
    assert reply.json() == {"room_id": "a b", "guests": 2}


def test_a_get_never_carries_out_what_changes_something():
    reply = ask("GET", "/room:book?room_id=1", BOOK)
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST, OPTIONS")


def test_the_bare_path_takes_the_method_from_a_header():
    reply = ask("POST", "/room", BOOK, json={"room_id": "7"}, headers={"X-AGIS-Method": "book"})
    assert reply.json() == {"room_id": "7"}


def test_the_bare_path_alone_says_where_the_endpoints_are():
    reply = ask("POST", "/room", BOOK, json={})
    assert reply.status_code == 405
    assert reply.json()["routes"] == ["/room:book"]


@pytest.mark.parametrize(
    ("target", "agtp", "http"),
    [("/room:steal", 459, 400), ("/nothing:book", 404, 404), ("/room/book:book", 460, 400)],
)
def test_a_refusal_is_a_problem_and_keeps_its_number(target, agtp, http):
    reply = ask("POST", target, BOOK, json={})
    assert reply.status_code == http
    assert reply.headers["agtp-status"] == str(agtp)
    assert reply.headers["content-type"] == "application/problem+json"
    told = reply.json()
    assert (told["status"], told["agtp_status"]) == (http, agtp)
    assert told["detail"]


def test_a_missing_scope_is_403_and_a_missing_credential_401():
    guarded = make_endpoint("BOOK", "/room", echo, scopes=("room:book",))
    nobody = ask("POST", "/room:book", guarded, json={})
    assert (nobody.status_code, nobody.headers["agtp-status"]) == (401, "262")
    assert "www-authenticate" in nobody.headers
    wrong = ask("POST", "/room:book", guarded, json={}, headers={"Agent-ID": AGENT, "Authority-Scope": "room:look"})
    assert (wrong.status_code, wrong.headers["agtp-status"]) == (403, "455")


def test_a_body_beyond_the_limit_is_refused():
    reply = ask("POST", "/room:book", BOOK, json={"room_id": "x" * 1_100_000})
    assert (reply.status_code, reply.json()["code"]) == (413, "content-too-large")
