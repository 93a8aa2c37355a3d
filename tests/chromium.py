"""A real browser for tests of pages: Chromium, driven by Playwright. `make chromium` installs it where it can."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

CHROMIUM: Final = os.environ.get("BESPEAK_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_MISSING: Final = [name for name in ("playwright", "axe_playwright_python") if importlib.util.find_spec(name) is None]

needs_chromium: Final = pytest.mark.skipif(
    CHROMIUM is None or bool(_MISSING),
    reason="Chromium is not installed: run `make chromium`, or name one in BESPEAK_CHROMIUM"
    if CHROMIUM is None
    else f"not installed: {', '.join(_MISSING)}; run `make setup`",
)


@contextmanager
def browser() -> Iterator[Any]:
    """Start the browser for the duration of a block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # The sandbox cannot be had by root in a container; the pages are our own.
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield started
        finally:
            started.close()


class Watched:
    """A page of which everything is noted that must not happen: errors, dialogs, and requests to other hosts."""

    def __init__(self, context: Any, url: str) -> None:
        self.page: Any = context.new_page()
        self.wrong: list[str] = []
        host = urlsplit(url).netloc
        self.page.on(
            "console", lambda message: self._note("console", message.text, message.type in ("error", "warning"))
        )
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.on("dialog", lambda dialog: (self._note("dialog", dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self._note("request", request.url, not _is_of(request.url, host)))

    def _note(self, kind: str, text: str, wrong: bool = True) -> None:
        if wrong:
            self.wrong.append(f"{kind}: {text}")

    def check(self, where: str) -> None:
        """Fail if something was noted, if axe finds a violation, or if the page is wider than the window."""
        assert not self.wrong, f"{where}: {self.wrong}"
        self.page.evaluate(_axe())
        found = self.page.evaluate("axe.run()")["violations"]
        told = [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in found]
        assert not told, f"{where}: {told}"
        wider = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{where}: {wider} pixels wider than the window"


def _is_of(url: str, host: str) -> bool:
    return url.startswith(("data:", "blob:")) or urlsplit(url).netloc == host


@cache
def _axe() -> str:
    import axe_playwright_python

    return Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
