"""The pages at `/docs` in a real browser: phone and desk, light and dark, without a script, with hostile texts."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.chromium import needs_chromium
from tests.pages import Console

pytestmark = [pytest.mark.process, pytest.mark.timeout(120), needs_chromium]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_is_sound(hotel: Console, scheme: str, width: int) -> None:
    with hotel.docs(color_scheme=scheme, viewport={"width": width, "height": 900}) as page:
        page.get_by_role("heading", level=1, name="Harbour Hotel").wait_for()
        page.watched.check("list")
        page.get_by_role("searchbox", name="Search endpoints").fill("room")
        page.get_by_role("region", name="Endpoints found").get_by_role("link").first.wait_for()
        page.watched.check("found")
        page.get_by_role("link", name="BOOK /room", exact=True).first.click()
        page.get_by_role("heading", level=1, name="BOOK /room").wait_for()
        assert page.get_by_text("cannot be undone").count() > 0


def test_an_endpoint_is_found_and_opened_by_keyboard_alone(hotel: Console) -> None:
    with hotel.docs() as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # the link that skips to the content
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("/")
        page.keyboard.type("BOOK /room")
        page.get_by_role("status").get_by_text("found").wait_for()
        page.keyboard.press("Escape")
        assert page.get_by_role("region", name="Endpoints found").count() == 0
        page.keyboard.type("BOOK /room")
        page.get_by_role("region", name="Endpoints found").get_by_role("link").first.wait_for()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_role("heading", level=1, name="BOOK /room").wait_for()


def test_a_call_is_copied_as_it_is_shown(hotel: Console) -> None:
    with hotel.docs("/BOOK/room", permissions=["clipboard-read", "clipboard-write"]) as page:
        for way in ("bespeak call", "curl"):
            button = page.get_by_role("button", name=re.compile(f"Copy .*{way}"))
            button.click()
            page.get_by_text("Copied", exact=True).first.wait_for()
            assert way.partition(" ")[0] in page.evaluate("navigator.clipboard.readText()")
        shown = page.locator("pre").all_inner_texts()
        assert page.evaluate("navigator.clipboard.readText()").strip() in [one.strip() for one in shown]


def test_everything_can_be_read_without_a_script(hotel: Console) -> None:
    with hotel.docs(java_script_enabled=False) as page:
        assert page.get_by_role("search").count() == 0
        page.get_by_role("link", name="BOOK /room", exact=True).click()
        page.get_by_role("heading", level=1, name="BOOK /room").wait_for()
        assert page.get_by_text("guest_id", exact=True).first.is_visible()
        assert page.get_by_role("button").count() == 0


def test_descriptions_are_text_whatever_they_look_like(crowd: Console) -> None:
    with crowd.docs("/QUERY/hostile") as page:
        assert "<script>alert(2)</script>" in page.get_by_role("main").inner_text()
        page.get_by_role("searchbox").fill("alert hostile")
        found = page.get_by_role("region", name="Endpoints found")
        found.get_by_role("link").wait_for()
        assert '<img src=x onerror="alert(1)">' in found.text_content()
        assert page.locator("main script, #found script, img, h1 b b, .lead b, #found p *").count() == 0


def test_ten_thousand_endpoints_are_found_and_not_all_drawn(crowd: Console) -> None:
    with crowd.docs() as page:
        assert page.locator("*").count() < 3000
        page.keyboard.press("/")
        page.keyboard.type("number-9999")
        page.get_by_role("status").get_by_text("1 found").wait_for()
        page.get_by_role("region", name="Endpoints found").get_by_role("link").click()
        page.get_by_role("heading", level=1, name="FETCH /things/number-9999").wait_for()


def test_the_address_of_the_service_shows_the_same_to_a_browser(hotel: Console) -> None:
    with hotel.tab("root") as page:
        page.goto(f"{hotel.root}/")
        page.get_by_role("link", name="BOOK /room", exact=True).wait_for()
    assert httpx.get(f"{hotel.root}/").headers["content-type"].startswith("application/json")
