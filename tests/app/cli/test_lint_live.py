"""Test `bespeak lint https://host` against local servers."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.agent.discovery.live import AI, AI_PATH, PAGES
from tests.agent.discovery.web import authority, authority_file
from tests.cases import rows
from tests.process import HOTEL, bespeak, refused, serving

from bespeak.text.diagnostics.reporters import FORMATS
from bespeak.text.diagnostics.reporters.json_report import schema

pytestmark = pytest.mark.process

Answers = dict[str, tuple[int, dict[str, str], bytes]]

GOOD = {
    "Content-Type": "application/json; charset=utf-8",
    "Cache-Control": "public, max-age=86400",
    "ETag": '"a"',
    "Access-Control-Allow-Origin": "*",
}


def answers(pages: dict[str, Any], **headers: str) -> Answers:
    return {path: (200, {**GOOD, **headers}, json.dumps(page).encode()) for path, page in pages.items()}


@contextmanager
def hosting(known: Answers, *, everything: tuple[int, str] | None = None, tls: bool = False) -> Iterator[str]:
    """Serve these responses; other paths are 404, or one page for all."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind = everything or (404, "text/plain")
            status, headers, body = known.get(self.path, (status, {"Content-Type": kind}, b"<html>"))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority().issue_cert("localhost", "127.0.0.1").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def hotel() -> Iterator[str]:
    with serving(HOTEL, "--http", "127.0.0.1:0") as served:
        yield served.url


@pytest.fixture(scope="module")
def bad() -> Iterator[str]:
    with hosting({}, everything=(200, "text/html")) as url:
        yield url


def test_example_hotel_scores_one_hundred(hotel: str) -> None:
    done = bespeak("lint", hotel, "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    [score] = report["scores"]
    assert (score["points"], score["gains"], score["platform"]["grade"]) == (100, [], "Excellent")
    served = [(finding["rule"], finding["severity"]) for finding in report["findings"] if finding["rule"][0] == "W"]
    assert served == [("W912", "info")]
    assert not [finding for finding in report["findings"] if finding["severity"] == "error"]


def test_text_report_shows_findings_with_urls_then_the_score(hotel: str) -> None:
    done = bespeak("lint", hotel)
    assert done.returncode == 0
    assert f"{hotel}: info[W912]" in done.stdout
    assert f"{hotel}: score 100/100 (the platform's own rating: 9" in done.stdout
    assert "--fix" not in done.stdout


def test_host_with_errors_exits_with_one_and_shows_how_to_raise_the_score(bad: str) -> None:
    done = bespeak("lint", bad)
    assert done.returncode == 1
    assert "error[W911]" in done.stdout
    assert "warning[W931]" in done.stdout
    assert "\n  +16   Publish a document without errors" in done.stdout
    assert done.stderr == ""


def test_json_report_matches_its_schema(bad: str, hotel: str) -> None:
    done = bespeak("lint", bad, hotel, "--format", "json")
    report = json.loads(done.stdout)
    jsonschema_rs.validate(json.loads(schema()), report)
    assert [score["subject"] for score in report["scores"]] == [bad, hotel]
    assert {f"{hotel}/.well-known/ai", f"{hotel}/openapi.json"} <= set(report["files"])


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_accepts_urls_as_files(name: str, bad: str) -> None:
    done = bespeak("lint", bad, "--format", name)
    assert done.returncode == 1
    assert "W911" in done.stdout
    assert bad.replace(":", "%3A") in done.stdout or bad in done.stdout


def test_files_and_hosts_are_checked_in_one_run(hotel: str, bad: str, tmp_path: Path) -> None:
    file = tmp_path / "ai.json"
    file.write_text(json.dumps({**AI, "aiendpoint": "2.0"}))
    done = bespeak("lint", str(file), hotel, bad, "--format", "concise")
    assert done.returncode == 1
    assert f"{file}:" in done.stdout
    assert f"{hotel}: W912" in done.stdout
    assert f"{bad}: W911" in done.stdout
    assert bespeak("lint", str(file), hotel, "--ignore", "D17").returncode == 0


def test_rules_are_selected_as_for_files(bad: str) -> None:
    assert bespeak("lint", bad, "--select", "W931", "--fail-on", "error").returncode == 0
    assert bespeak("lint", bad, "--select", "W931", "--fail-on", "warning").returncode == 1
    assert bespeak("lint", bad, "--exit-zero").returncode == 0


def test_hiding_findings_does_not_raise_the_score(bad: str) -> None:
    shown, hidden = (
        json.loads(bespeak("lint", bad, "--format", "json", *options).stdout)["scores"]
        for options in ([], ["--ignore", "W,D"])
    )
    assert shown == hidden


def test_known_findings_of_a_host_are_baselined(bad: str, tmp_path: Path) -> None:
    baseline = ["--baseline", str(tmp_path / "known.json")]
    assert bespeak("lint", bad, *baseline, "--write-baseline").returncode == 0
    done = bespeak("lint", bad, *baseline)
    assert done.returncode == 0
    assert "in the baseline" in done.stdout


@pytest.mark.parametrize("option", ["--fix", "--diff"])
def test_fix_is_refused_for_a_host(option: str, bad: str) -> None:
    assert "live service and cannot be fixed" in refused("lint", bad, option)


def test_unreachable_host_exits_with_two_and_other_hosts_are_reported(bad: str) -> None:
    with hosting({}) as url:
        pass
    done = bespeak("lint", url, bad, "--format", "concise")
    assert done.returncode == 2
    assert f"{url}: W101 the host cannot be checked" in done.stdout
    assert "W931" in done.stdout


@rows(
    "url, said",
    ("http://flights.example", "(--insecure) to allow it"),
    ("https://flights.example/api/v1", "use https://flights.example"),
    ("https://me:secret@flights.example", "a user name or password"),
    ("https://", "has no host"),
)
def test_url_that_is_not_a_host_is_wrong_usage(url: str, said: str) -> None:
    told = refused("lint", url)
    assert said in told
    assert "secret" not in told


def test_url_with_one_slash_is_a_missing_path() -> None:
    assert "does not exist" in refused("lint", "https:/flights.example")


def test_https_needs_a_trusted_certificate() -> None:
    pages = {path: page for path, page in PAGES.items() if path != "/llms.txt"}
    with hosting(answers(pages), tls=True) as url:
        done = bespeak("lint", url, "--format", "concise")
        assert done.returncode == 1
        assert "W913" in done.stdout
        with authority_file() as file:
            done = bespeak("lint", url, "--ca-file", str(file), "--format", "concise")
    assert done.returncode == 0, done.stdout
    assert "score 100/100" in done.stdout


def test_host_given_twice_is_checked_once(hotel: str) -> None:
    report = json.loads(bespeak("lint", hotel, f"{hotel}{AI_PATH}", "--format", "json").stdout)
    assert len(report["scores"]) == 1


def test_settings_of_the_current_deployment_do_not_apply_to_a_host(hotel: str) -> None:
    done = bespeak("lint", hotel, "--format", "json", cwd=HOTEL)
    assert done.returncode == 0
    assert "examples" not in done.stdout
