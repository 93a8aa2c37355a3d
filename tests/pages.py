"""The pages of a service in a process of its own, opened in a real browser: its console, and its `/docs`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.chromium import Watched
from tests.process import ROOT
from tests.warm import start


@dataclass
class Console:
    """A console that is served, with the link that its command has printed."""

    link: str
    browser: Any

    @property
    def url(self) -> str:
        return self.link.partition("#")[0]

    @property
    def root(self) -> str:
        """URL of the service."""
        return self.url.removesuffix("/console/")

    @property
    def token(self) -> str:
        return self.link.partition("token=")[2]

    @contextmanager
    def page(self, place: str = "#/", *, link: bool = True, **options: Any) -> Iterator[Any]:
        """Open a view of the console, with the link of the command first; at the end it must be sound."""
        with self.tab(place, **options) as page:
            page.goto(self.link if link else self.url)
            if link:
                page.wait_for_selector("body[data-view=try]")
                page.goto(self.url + place)
            yield page

    @contextmanager
    def docs(self, place: str = "", **options: Any) -> Iterator[Any]:
        """Open a page of `/docs`; at the end it must be sound."""
        with self.tab(f"docs{place}", **options) as page:
            page.goto(f"{self.root}/docs{place}")
            yield page

    @contextmanager
    def tab(self, place: str, **options: Any) -> Iterator[Any]:
        """Open an empty tab; what it shows at the end must be sound."""
        context = self.browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        )
        watched = Watched(context, self.url)
        watched.page.watched = watched
        try:
            yield watched.page
            if options.get("java_script_enabled", True):  # axe is a script too
                watched.check(place)
            assert not watched.wrong
        finally:
            context.close()

    def call(self, **asked: Any) -> Any:
        """Call an endpoint as a page does, but from outside of it."""
        reply = httpx.post(f"{self.url}api/exchange", json=asked, headers={"Console-Token": self.token})
        return reply.json()


@contextmanager
def served(target: Path, state: Path) -> Iterator[str]:
    options = ["--http", "127.0.0.1:0", "--agtp", "127.0.0.1:0", "--store", "memory", "--mcp"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "cwd": ROOT}
    process = start(["console", str(target), *options], env={**os.environ, "HOTEL_LEDGER": str(state)}, **pipes)
    try:
        assert process.stdout is not None
        yield next(found[0] for line in process.stdout if (found := re.search(r"http://\S+#token=\S+", line)))
    finally:
        process.kill()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()
