"""llms.txt: a title, a sentence, links, and a limited length."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.discovery import MOST_ENDPOINTS, project_llms

FIND = make_endpoint("FIND", "/rooms", echo)
BOOK = make_endpoint("BOOK", "/room/{room_id}", echo, impact="irreversible", scopes=("booking:room",))
DOCUMENTS = {"/openapi.json": "OpenAPI"}


def page(*endpoints: Endpoint, name: str = "Acme Rooms", url: str | None = None, **fields: Any) -> str:
    service = Service(identity=ServerIdentity(server_id="x", operator="", contact="", name=name), **fields)
    return project_llms(service, endpoints, HttpSettings(url=url), DOCUMENTS)


def test_the_page_has_a_title_a_summary_and_links() -> None:
    old = replace(FIND, path="/old", deprecated=Deprecation(deprecated_in="1"))
    text = page(old, FIND, BOOK, description="Rooms by the night.")
    assert text.startswith("# Acme Rooms\n\n> Rooms by the night.\n\n")
    assert text.endswith(
        "## Endpoints\n\n"
        "- [FIND /rooms](/rooms:find): Do the thing. (GET)\n"
        "- [BOOK /room/{room_id}](/room/{room_id}:book): Do the thing. (needs booking:room)\n"
        "- [FIND /old](/old:find): Do the thing. (GET; deprecated)\n\n"
        "## Documents\n\n"
        "- [/openapi.json](/openapi.json): OpenAPI\n"
    )


def test_links_are_absolute_if_the_url_is_configured() -> None:
    text = page(FIND, url="https://rooms.example/api")
    assert "(https://rooms.example/api/rooms:find)" in text
    assert "(https://rooms.example/api/openapi.json)" in text


def test_internal_endpoints_are_left_out() -> None:
    assert "/rooms" not in page(replace(FIND, internal=True))


def test_number_of_listed_endpoints_is_limited() -> None:
    text = page(*(make_endpoint("FIND", f"/thing-{number}", echo) for number in range(10_000)))
    assert text.count("\n- [FIND") == MOST_ENDPOINTS
    assert "- 9800 more: " in text
    assert len(text) < 64_000


@given(st.text(min_size=1), st.text())
def test_texts_of_a_contract_do_not_become_markup(name: str, intent: str) -> None:
    text = page(replace(FIND, semantic=replace(FIND.semantic, intent=intent)), name=name, description=intent)
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    assert len(re.findall(r"(?<!\\)\]\(", text)) == 2
    assert not re.search(r"(?<!\\)<", text)
