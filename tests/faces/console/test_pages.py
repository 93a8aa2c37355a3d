"""The console in a real browser: every view on a phone and a desk, light and dark, by keyboard; what is forged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.chromium import needs_chromium
from tests.pages import Console

pytestmark = [pytest.mark.process, pytest.mark.timeout(300), needs_chromium]
ROOM = {"guest_id": "0b6f0a3c-6b7a-4a55-9d3c-2f6f0f4f3a11", "room_id": "105", "arrival": "2027-03-01"}

NIGHT = {"arrival": "2029-05-01", "departure": "2029-05-02"}


def exchange(page: Any, state: str) -> Any:
    """Wait until the exchange is in a state, and return it."""
    return page.wait_for_selector(f"#exchange[data-state={state}]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_view_is_sound(hotel: Console, scheme: str, width: int) -> None:
    with hotel.page(color_scheme=scheme, viewport={"width": width, "height": 900}) as page:
        page.watched.check("list")
        page.goto(f"{hotel.url}#/endpoint/BOOK/room?body={json.dumps(ROOM)}&as=ann")
        page.wait_for_selector(".endpoint[data-state=ready]")
        page.watched.check("endpoint")
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector(".send[data-armed=true]")
        page.watched.check("armed")
        page.get_by_role("button", name="Press again").click()
        exchange(page, "refused")
        page.get_by_text("JSON", exact=True).click()
        page.get_by_text("Headers").first.click()
        page.watched.check("refused")
        page.goto(f"{hotel.url}#/live")
        page.wait_for_selector("[data-state=watching]")
        hotel.call(method="QUERY", path="/rooms", input={"beds": 2})
        page.wait_for_selector("tr[data-status-code='200']")
        page.watched.check("live")
        page.goto(f"{hotel.url}#/history")
        page.get_by_role("link", name="BOOK /room").click()
        exchange(page, "refused")
        page.watched.check("exchange")
        page.go_back()
        page.wait_for_selector("[data-exchange-id]")
        page.watched.check("history")
        page.keyboard.press("?")
        page.wait_for_selector("dialog[open]")
        page.watched.check("keys")


def test_a_call_is_made_by_keyboard_alone(hotel: Console) -> None:
    with hotel.page() as page:
        page.wait_for_selector("[data-rows] a")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # the link that skips to the content
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("/")
        page.keyboard.type("book room")
        page.wait_for_selector(".list[data-found='1']")
        page.keyboard.press("Enter")
        page.wait_for_selector(".endpoint[data-path='/room'][data-state=ready]")
        page.get_by_label("guest_id").focus()
        page.keyboard.type(ROOM["guest_id"])
        page.keyboard.press("Tab")
        page.keyboard.type("105")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#exchange[data-state=armed]")
        page.keyboard.press("Control+Enter")
        assert exchange(page, "refused").get_attribute("data-gate") == "scope"
        page.keyboard.press("Escape")  # leaves the field
        page.keyboard.press("?")
        page.wait_for_selector("dialog[open]")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.closest('[data-rows]') !== null")


def test_form_and_json_are_two_views_of_the_same_arguments(hotel: Console) -> None:
    with hotel.page("#/endpoint/QUERY/rooms") as page:
        page.get_by_label("beds").fill("3")
        page.get_by_text("JSON", exact=True).click()
        text = page.get_by_label("Arguments as JSON")
        assert json.loads(text.input_value()) == {"beds": 3}
        text.fill("{beds: 2, 'arrival': '2027-03-01',} // pasted")
        page.wait_for_selector("[data-json=corrected]")
        assert page.get_by_label("beds").input_value() == "2"
        assert page.get_by_label("arrival").input_value() == "2027-03-01"
        text.fill("{beds")
        page.wait_for_selector("[data-json=error]")
        assert page.get_by_label("beds").input_value() == "2"
        page.goto(f"{hotel.url}#/endpoint/BOOK/room")
        page.wait_for_selector(".endpoint[data-path='/room']")
        page.reload()
        page.goto(f"{hotel.url}#/endpoint/QUERY/rooms")
        page.wait_for_selector(".endpoint[data-path='/rooms'][data-state=ready]")
        assert page.get_by_label("beds").input_value() == "2"


def test_a_refusal_offers_the_change_that_helps(hotel: Console) -> None:
    with hotel.page(f"#/endpoint/BOOKS/room?body={json.dumps({**ROOM, **NIGHT})}&as=ann") as page:
        page.wait_for_selector(".endpoint[data-state=unknown]")
        page.keyboard.press("Control+Enter")
        assert exchange(page, "refused").get_attribute("data-status-code") == "459"
        assert page.locator("li[data-gate=vocabulary][data-verdict=refused]").inner_text().count("refused") == 1
        page.get_by_role("button", name="Use BOOK").click()
        page.wait_for_selector(".endpoint[data-method=BOOK][data-state=ready]")
        page.keyboard.press("Control+Enter")
        exchange(page, "armed")
        page.keyboard.press("Control+Enter")
        exchange(page, "refused")
        page.locator("[data-remedy=scopes]").click()
        page.keyboard.press("Control+Enter")
        exchange(page, "armed")
        page.keyboard.press("Control+Enter")
        assert exchange(page, "done").get_attribute("data-status-code") == "200"


def test_nothing_that_cannot_be_undone_is_sent_by_one_press_or_by_a_link(hotel: Console) -> None:
    with hotel.page("#/live") as watching, hotel.page("#/endpoint/CANCEL/reservations/x?send=1&confirmed=true") as page:
        watching.wait_for_selector("[data-state=watching]")
        page.goto(f"{hotel.url}#/endpoint/BOOK/room?body={json.dumps(ROOM)}")
        page.wait_for_selector(".endpoint[data-method=BOOK][data-state=ready]")
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector("#exchange[data-state=armed]")
        page.get_by_label("room_id").fill("106")
        page.wait_for_selector("#exchange[data-state=idle]")
        page.get_by_role("button", name="Copy the call as bespeak call").click()
        hotel.call(method="QUERY", path="/rooms")
        watching.wait_for_selector("tr[data-status-code='200']")
        assert watching.locator("table a", has_text="QUERY").count() == 1
        assert watching.locator("tbody tr").count() == 1


def test_exchanges_are_watched_filtered_and_paused(hotel: Console) -> None:
    with hotel.page("#/live") as page:
        page.wait_for_selector("[data-state=watching]")
        page.get_by_label("Gate").select_option("vocabulary")
        page.wait_for_selector("[data-state=watching]")
        hotel.call(method="QUERY", path="/rooms")
        hotel.call(method="BOOKS", path="/room")
        page.wait_for_selector("tr[data-gate=vocabulary]")
        assert page.locator("tbody tr").count() == 1
        page.get_by_role("button", name="Pause").click()
        hotel.call(method="BOOKS", path="/room")
        page.wait_for_selector("[data-state=paused][data-seen='1']")
        page.get_by_role("button", name="Go on").click()
        page.wait_for_selector("[data-seen='2']")


def test_one_of_several_workers_says_that_it_is_one(hotel: Console) -> None:
    headers = {"Console-Token": hotel.token}
    session = httpx.get(f"{hotel.url}api/session", headers=headers).json()
    with hotel.page() as page:
        page.route("**/api/session", lambda route: route.fulfill(json={**session, "workers": 2}))
        page.reload()
        page.goto(f"{hotel.url}#/live")
        page.get_by_text("The service has 2 workers.").wait_for()


def test_own_exchanges_are_kept_without_secrets_and_can_be_used_again(hotel: Console) -> None:
    with hotel.page("#/endpoint/QUERY/rooms") as page:
        page.wait_for_selector(".endpoint[data-state=ready]")
        page.get_by_text("Headers").first.click()
        page.get_by_role("button", name="Add a header").click()
        page.get_by_label("Name", exact=True).last.fill("Authorization")
        page.get_by_label("Value").fill("Bearer very-secret-credential")
        for beds in ("2", "3"):
            page.get_by_label("beds").fill(beds)
            page.keyboard.press("Control+Enter")
            page.wait_for_selector("#exchange[data-status-code]")
            page.wait_for_function(
                f"() => JSON.parse(localStorage['bespeak.console.history']).length === {int(beds) - 1}"
            )
        kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert "very-secret" not in kept
        page.goto(f"{hotel.url}#/history")
        page.get_by_role("button", name="Pin").first.click()
        page.wait_for_selector("[data-pinned=true]")
        page.get_by_role("link", name="Compare").nth(0).click()
        page.get_by_role("link", name="Compare").nth(1).click()
        page.wait_for_selector(".compared[data-differences]")
        assert page.locator(".compared tr", has_text="call.input.beds").count() == 1
        with page.expect_download() as download:
            page.get_by_role("button", name="Export JSON").click()
        exported = json.loads(Path(download.value.path()).read_text("utf-8"))
        assert [one["call"]["input"] for one in exported["exchanges"]] == [{"beds": 3}, {"beds": 2}]
        page.get_by_role("button", name="Call again").nth(1).click()
        page.wait_for_function("() => JSON.parse(localStorage['bespeak.console.history']).length === 3")
        assert page.get_by_label("beds").input_value() == "2"


PANEL = {
    "title": "Cases",
    "blocks": [
        {
            "kind": "table",
            "title": "Waiting",
            "columns": ["case", "call"],
            "rows": [{"key": "c-1", "cells": ["c-1", "<b>BOOK</b>"], "actions": ["confirm"], "state": "waiting"}],
            "actions": {"confirm": {"label": "Confirm", "fields": ["reason"], "danger": True}},
        },
        {"kind": "facts", "title": "Sizes", "facts": {"queue": 12000, "outbox": 0}},
        {"kind": "text", "title": "Plan", "text": "<script>alert(1)</script>"},
        {
            "kind": "graph",
            "title": "Plan",
            "nodes": [
                {"id": "a", "label": "Find a room", "state": "done"},
                {"id": "b", "label": "Book it", "state": "failed"},
            ],
            "edges": [["a", "b", "then"]],
        },
    ],
}


@pytest.mark.parametrize("width", [390, 1280])
def test_a_panel_of_any_extension_is_shown_with_its_actions(hotel: Console, width: int) -> None:
    acted: list[Any] = []

    def answer(route: Any) -> None:
        if route.request.method == "POST":
            acted.append(route.request.post_data_json)
        route.fulfill(json=PANEL)

    with hotel.page(viewport={"width": width, "height": 900}) as page:
        page.route("**/api/panel**", answer)
        page.goto(f"{hotel.url}#/panels/cases")
        page.wait_for_selector("[data-block=graph] svg")
        page.get_by_role("button", name="Confirm c-1").click()
        page.get_by_label("reason").fill("fine")
        page.watched.check("question")
        page.get_by_role("button", name="Confirm", exact=True).click()
        page.get_by_text("Confirm: done.").wait_for()
        assert acted == [{"name": "cases", "action": "confirm", "key": "c-1", "fields": {"reason": "fine"}}]
        assert page.locator("[data-node=b][data-state=failed]").count() == 1


def test_work_that_goes_on_is_followed(hotel: Console) -> None:
    looks = iter(["running", "running", "done"])

    def answer(route: Any) -> None:
        asked = route.request.post_data_json
        whole = {"gates": [], "headers": [], "remedies": [], "refused": False, "error": None, "ms": 1, "meaning": ""}
        if asked["method"] == "CHECK":
            details = {"progress": {"done": 2, "total": 4, "unit": "rows"}, "result": {"rows": 4}}
            body: Any = {"status": next(looks), "details": details}
        else:
            body = {"look": {"method": "CHECK", "parameters": {"target": "job-1"}}}
        number = 200 if asked["method"] == "CHECK" else 202
        route.fulfill(json={**whole, "status": number, "reason": "", "request": "", "response": "", "body": body})

    with hotel.page("#/endpoint/QUERY/rooms") as page:
        page.wait_for_selector(".endpoint[data-state=ready]")
        page.route("**/api/exchange", answer)
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("[data-work=running]")
        page.wait_for_selector("[data-work=done]")


def test_a_view_that_the_server_does_not_have_says_so(hotel: Console) -> None:
    with hotel.page() as page:
        page.route("**/api/panel**", lambda route: route.fulfill(status=404, json={"title": "Not Found"}))
        page.goto(f"{hotel.url}#/panels/nothing")
        page.get_by_text("This server does not have this view.").wait_for()
        page.watched.wrong = [one for one in page.watched.wrong if "404" not in one]


def test_a_link_without_its_token_shows_nothing(hotel: Console) -> None:
    with hotel.page("access", link=False) as page:
        page.wait_for_selector("body[data-view=token]")
        assert "Harbour" not in page.content()
        page.get_by_label("Link or token").fill("nothing")
        page.get_by_role("button", name="Open").click()
        page.get_by_text("There is no token in this text").wait_for()
        page.watched.wrong = [one for one in page.watched.wrong if "401" not in one]
        page.watched.check("access")
        page.get_by_label("Link or token").fill(f"OPEN  {hotel.link}")
        page.get_by_role("button", name="Open").click()
        page.wait_for_selector("body[data-view=try]")


def test_the_token_does_not_stay_in_the_address(hotel: Console) -> None:
    with hotel.page() as page:
        page.goto(hotel.link)
        page.wait_for_selector("[data-rows] a")
        assert page.url == f"{hotel.url}#/"
        assert page.evaluate("localStorage.length") == 0


def test_pages_of_other_sites_and_other_names_of_this_one_get_nothing(hotel: Console) -> None:
    token = {"Console-Token": hotel.token}
    for forged in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert httpx.get(f"{hotel.url}api/session", headers={**token, **forged}).status_code in (403, 421)
    context = hotel.browser.new_context()
    try:
        page = context.new_page()
        page.route("http://evil.example/", lambda route: route.fulfill(body="<p>evil", content_type="text/html"))
        page.goto("http://evil.example/")
        script = "([url, headers, mode]) => fetch(url, {headers, mode}).then((one) => one.text(), () => 'refused')"
        assert page.evaluate(script, [f"{hotel.url}api/session", token, "cors"]) == "refused"
        assert page.evaluate(script, [f"{hotel.url}api/session", {}, "no-cors"]) in ("", "refused")
    finally:
        context.close()


def test_descriptions_are_text_whatever_they_look_like(crowd: Console) -> None:
    with crowd.page("#/endpoint/QUERY/hostile") as page:
        page.wait_for_selector(".endpoint[data-state=ready]")
        assert "<script>alert(2)</script>" in page.locator(".lead").inner_text()
        page.keyboard.press("Control+Enter")
        exchange(page, "done")
        page.goto(f"{crowd.url}#/history")
        page.get_by_role("link", name="QUERY /hostile").click()
        exchange(page, "done")
        assert page.locator("#app script, #app img, h1 b b, .lead b").count() == 0


def test_thousands_of_endpoints_are_found_and_not_all_drawn(crowd: Console) -> None:
    with crowd.page() as page:
        page.wait_for_selector("[data-rows] a")
        assert int(page.locator(".list").get_attribute("data-found")) > 10_000
        assert page.locator("*").count() < 3000
        page.keyboard.press("/")
        page.keyboard.type("number-9999")
        page.wait_for_selector(".list[data-found='1']")
        page.keyboard.press("Enter")
        page.wait_for_selector(".endpoint[data-path='/things/number-9999'][data-state=ready]")
