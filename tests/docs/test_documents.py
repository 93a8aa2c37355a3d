"""Every block of every page is run: files are as shown, and commands print what is shown.

A page is followed from top to bottom in a new folder, as a reader would:

    python, toml, json   a file in the reader's folder; the marker above names it and its source under docs_src
    console              commands after `$` and their output, where `...` stands for anything; `bespeak serve` and
                         `uvicorn` keep running, and the ports in the page are mapped to theirs
    sh                   targets of the Makefile
    text                 a picture; nothing to run
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path

import api_page
import generate
import pytest
from tests import warm
from tests.process import ROOT, Served, serving

from bespeak.contract.endpoint import Semantic
from bespeak.contract.handler import ExternalService
from bespeak.documents.deployment.deployment import read_deployment

_BLOCK = re.compile(r"(?:^<!-- (\S+): (docs_src/\S+) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ADDRESS = re.compile(r"agtp://127\.0\.0\.1(?![:.\d])")
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
_SERVE = re.compile(r"((?:[A-Z_]+=\S+ )*)bespeak serve (.+)", re.DOTALL)
_RUNNING = re.compile(r"Uvicorn running on \S+:(\d+)")


class Reader:
    """A reader who follows a page: writes its files, runs its commands, keeps its servers running."""

    def __init__(self, folder: Path, servers: ExitStack, *, curl: Path | None = None) -> None:
        """Prepare the folder. `curl` is a folder with a replacement for curl."""
        self.folder = folder
        self._servers = servers
        self._ports: dict[str, str] = {}
        """Ports in the page, and the real ports of the servers."""
        self._files: dict[str, str] = {}
        # A copy, for a server keeps its state beside what it serves.
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("bespeak.db*"))
        places = [warm.command().parent, Path(sys.executable).parent, os.environ["PATH"]]
        self._environment = {
            "PATH": os.pathsep.join(map(str, [curl, *places] if curl else places)),
            "HOTEL_LEDGER": str(folder / "ledger.sqlite3"),
            "BESPEAK_CACHE": str(folder / ".cache"),
        }

    def save(self, name: str, source: str, text: str) -> None:
        assert (ROOT / source).read_text("utf-8") == text, f"{source} differs from the page; run `make docs`"
        self._files[name] = text

    def run(self, command: str) -> str:
        """Run a command and return its output. Servers keep running, and later commands use their real ports."""
        for name, text in self._files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._here(text), "utf-8")
        serve = _SERVE.match(command)
        if serve is not None:
            return self._serve(dict(part.split("=", 1) for part in serve[1].split()), *shlex.split(serve[2]))
        if command.startswith("uvicorn "):
            return self._host(shlex.split(command)[1:])
        done = subprocess.run(
            self._here(command),
            shell=True,
            cwd=self.folder,
            env={**os.environ, **self._environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return self._there(done.stdout)

    def _serve(self, environment: dict[str, str], target: str, *options: str) -> str:
        options, shown = _with_any_port("--http", options)
        options, monitored = _with_any_port("--operations", options)
        try:
            server = self._servers.enter_context(
                serving(target, *options, env={**self._environment, **environment}, cwd=self.folder)
            )
        except AssertionError as error:
            return str(error).removeprefix("the server did not start: ")
        # In order, so that workers end with their parent.
        self._servers.callback(server.stop)
        self._ports["4480"] = str(server.port)
        if shown is not None:
            self._ports[shown] = server.url.rpartition(":")[2]
        if monitored is not None:
            self._ports[monitored] = server.operations.rpartition(":")[2]
        return self._there(_findings(server) + server.announcement)

    def _host(self, arguments: list[str]) -> str:
        """Start a uvicorn server and return its output up to the moment it listens."""
        options, shown = _with_any_port("--port", tuple(arguments))
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", *options],
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, **self._environment},
        )
        self._servers.enter_context(process)
        self._servers.callback(process.terminate)
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            running = _RUNNING.search(line)
            if running is not None:
                assert shown is not None, "a page says which --port"
                self._ports[shown] = running[1]
                break
        return self._there(said)

    def _here(self, text: str) -> str:
        if "4480" in self._ports:
            text = _ADDRESS.sub("agtp://127.0.0.1:4480", text)
        return _PORT.sub(lambda port: self._ports.get(port[0], port[0]), text)

    def _there(self, output: str) -> str:
        for shown, port in self._ports.items():
            output = re.sub(rf":{port}\b", f":{shown}", output)
        return output


def _with_any_port(name: str, options: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """Replace the port in the options by one that the system chooses; return the options and the port shown."""
    if name not in options:
        return options, None
    at = options.index(name) + 1
    host, colon, port = options[at].rpartition(":")
    return (*options[:at], f"{host}{colon}0", *options[at + 1 :]), port


def _findings(server: Served) -> str:
    """Read the server's standard error so far."""
    assert server.process.stderr is not None
    stream = server.process.stderr.fileno()
    os.set_blocking(stream, False)
    with suppress(BlockingIOError):
        return os.read(stream, 65536).decode()
    return ""


def blocks(page: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, source, kind and text of each fenced block."""
    for match in _BLOCK.finditer(page.read_text("utf-8")):
        name, source, kind, text = match.groups(default="")
        yield name, source, kind, text


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output shown for it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.replace("\\\n", "").partition("\n")
        yield command, output


def matches(shown: str, printed: str) -> bool:
    """Compare output with the page. `...` on a line of its own stands for any lines, else for any text."""
    lines = (
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace(re.escape("..."), ".*?") + "\n"
        for line in shown.rstrip("\n").split("\n")
    )
    trimmed = "".join(f"{line.rstrip()}\n" for line in printed.rstrip("\n").split("\n"))
    return re.fullmatch("".join(lines), trimmed) is not None


def targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.fixture
def curl(tmp_path: Path) -> Path:
    """A folder with a `curl` for machines without one."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "curl").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/docs/curl.py" "$@"\n')
    (place / "curl").chmod(0o755)
    return place


@pytest.mark.process
@pytest.mark.parametrize("page", generate.hand_written(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_can_be_followed(page: Path, tmp_path: Path, curl: Path) -> None:
    follow(page, tmp_path / "reader", None if shutil.which("curl") else curl)


@pytest.mark.process
def test_a_page_can_be_followed_without_curl(tmp_path: Path, curl: Path) -> None:
    follow(ROOT / "docs" / "guides" / "http.md", tmp_path / "reader", curl)


def follow(page: Path, folder: Path, curl: Path | None) -> None:
    """Follow a page and compare every output."""
    with ExitStack() as servers:
        reader = Reader(folder, servers, curl=curl)
        for name, source, kind, text in blocks(page):
            if name:
                reader.save(name, source, text)
            elif kind == "console":
                for command, shown in sessions(text):
                    printed = reader.run(command)
                    assert matches(shown, printed), f"$ {command}\n{printed}\nis shown as\n{shown}"
            elif kind == "sh":
                for line in text.splitlines():
                    assert re.fullmatch(r"make( [a-z]+)+", line.partition("#")[0].strip())
                    assert set(line.partition("#")[0].split()[1:]) <= targets(), line
            else:
                assert kind == "text", f"a block of kind {kind!r} that no test runs:\n{text}"


@pytest.mark.process
def test_generated_pages_are_up_to_date() -> None:
    # In a process of its own: click keeps the help option of the first context it meets.
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, ""), f"run `make docs`: {run.stdout}{run.stderr}"


def test_every_public_name_is_documented() -> None:
    assert api_page.left_out() == set()


def test_every_rule_that_is_reported_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    documented = re.findall(r"^\| ([A-Z]\d{3}) ", (ROOT / "docs" / "reference" / "rules.md").read_text(), re.MULTILINE)
    assert set(re.findall(r'"([A-Z]\d{3})"', sources)) == set(documented)


def test_every_source_file_appears_on_a_page() -> None:
    shown = {source for page in generate.hand_written() for _, source, _, _ in blocks(page)}
    kept = {str(path.relative_to(ROOT)) for path in (ROOT / "docs_src").rglob("*.*") if path.suffix != ".pyc"}
    assert kept - shown == set()


@pytest.mark.parametrize("folder", sorted(ROOT.glob("docs_src/**/bespeak.toml")), ids=lambda path: path.parent.name)
def test_every_deployment_shown_loads_without_a_finding(folder: Path) -> None:
    _, findings = read_deployment(folder.parent)
    assert [str(finding) for finding in findings] == []


def test_the_reference_of_endpoint_files_names_every_key() -> None:
    text = (generate.REFERENCE / "endpoint-file.md").read_text("utf-8")
    keys = {field.name for kind in (Semantic, ExternalService) for field in fields(kind)}
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_no_page_is_too_long_to_read() -> None:
    words = {page.name: len(page.read_text("utf-8").split()) for page in generate.hand_written() if page.parent != ROOT}
    assert {name: count for name, count in words.items() if count > 1500} == {}
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_continuous_integration_runs_the_command_that_the_readme_shows() -> None:
    [command] = re.findall(r"^make .*test$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert f"\n{command} " in (ROOT / "README.md").read_text("utf-8")


def test_every_link_between_pages_has_a_target() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in generate.hand_written()
        for link in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_anchor_in_a_link_exists() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}#{part}"
        for page in generate.hand_written()
        for link, part in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8"))
        if part not in headings(page.parent / link if link else page)
    ]
    assert broken == []


def test_an_ellipsis_matches_lines_or_a_part_of_a_line() -> None:
    assert matches("a\n...\nz\n", "a\nb\nc\nz\n")
    assert matches("id ...\n", "id 17\n")
    assert not matches("a\n...\nz\n", "a\nb\n")
    assert not matches("a\n", "a\nb\n")
