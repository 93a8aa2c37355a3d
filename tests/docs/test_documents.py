"""The documents of the repository: what they say is true, and every example runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import api_page
import click
import generate
import prose
import pytest
import types_tables
from tests import warm
from tests.process import ROOT, Served, serving

from bespeak.app.cli.main import bespeak
from bespeak.contract.endpoint import Semantic
from bespeak.contract.handler import ExternalService
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.server_toml import declared_tables
from bespeak.errors import ContractError
from bespeak.runtime.functions.reading import read_handler
from bespeak.text.reading.settings import declared, nested_tables

_BLOCK = re.compile(r"(?:^<!-- (\S+): (docs_src/\S+) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ADDRESS = re.compile(r"agtp://127\.0\.0\.1(?![:.\d])")
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
_SERVE = re.compile(r"((?:[A-Z_]+=\S+ )*)bespeak serve (.+)", re.DOTALL)
_RUNNING = re.compile(r"Uvicorn running on \S+:(\d+)")
_SHELL = re.compile(r"[|&;<>$`*?()~\n]|^\w+=")  # what only a shell understands
_PYTHON = {"bespeak": ("-m", "bespeak"), "python": ()}


class Reader:
    """A reader who follows a page: writes its files, runs its commands, keeps its servers running."""

    def __init__(self, folder: Path, servers: ExitStack, *, curl: Path | None = None, examples: bool = False) -> None:
        """Prepare the folder. `curl` is a folder with a replacement for curl.

        Without `examples` the reader has an installed package only, and no clone of the repository.
        """
        self.folder = folder
        self._servers = servers
        self._ports: dict[str, str] = {}  # ports in the page, and the real ports of the servers
        self._files: dict[str, str] = {}
        folder.mkdir()
        if examples:
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
        command = self._here(command)
        words = [] if _SHELL.search(command) else shlex.split(command)
        options: Any = {"cwd": self.folder, "env": {**os.environ, **self._environment}}
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        if words and words[0] in _PYTHON:
            process = warm.start_python([*_PYTHON[words[0]], *words[1:]], **options)
        else:
            process = subprocess.Popen(command, shell=True, text=True, **options)
        with process:
            return self._there(process.communicate()[0])

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
        process = warm.start_python(
            ["-m", "uvicorn", *options],
            stderr=subprocess.PIPE,
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
    with ExitStack() as servers:
        reader = Reader(folder, servers, curl=curl, examples=page.parent == ROOT / "examples")
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


def test_pages_document_every_public_name_rule_source_and_key() -> None:
    assert api_page.left_out() == set()
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    documented = re.findall(r"^\| ([A-Z]\d{3}) ", (ROOT / "docs" / "reference" / "rules.md").read_text(), re.MULTILINE)
    assert set(re.findall(r'"([A-Z]\d{3})"', sources)) == set(documented)
    shown = {source for page in generate.hand_written() for _, source, _, _ in blocks(page)}
    kept = {str(path.relative_to(ROOT)) for path in (ROOT / "docs_src").rglob("*.*") if path.suffix != ".pyc"}
    assert kept - shown == set()
    text = (generate.REFERENCE / "endpoint-file.md").read_text("utf-8")
    keys = {field.name for kind in (Semantic, ExternalService) for field in fields(kind)}
    assert {key for key in keys if f"`{key}`" not in text} == set()


@pytest.mark.parametrize("folder", sorted(ROOT.glob("docs_src/**/bespeak.toml")), ids=lambda path: path.parent.name)
def test_every_deployment_shown_loads_without_a_finding(folder: Path) -> None:
    _, findings = read_deployment(folder.parent)
    assert [str(finding) for finding in findings] == []


def test_no_page_is_too_long_and_the_readme_shows_the_command_of_continuous_integration() -> None:
    words = {page.name: len(page.read_text("utf-8").split()) for page in generate.hand_written() if page.parent != ROOT}
    assert {name: count for name, count in words.items() if count > 1500} == {}
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150
    [command] = re.findall(r"^make .*test$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert f"\n{command} " in (ROOT / "README.md").read_text("utf-8")


def test_every_link_between_pages_has_a_target_and_its_anchor() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in generate.hand_written()
        for link in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []
    broken = [
        f"{page.relative_to(ROOT)}: {link}#{part}"
        for page in generate.hand_written()
        for link, part in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8"))
        if part not in headings(page.parent / link if link else page)
    ]
    assert broken == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_an_ellipsis_matches_lines_or_a_part_of_a_line() -> None:
    assert matches("a\n...\nz\n", "a\nb\nc\nz\n")
    assert matches("id ...\n", "id 17\n")
    assert not matches("a\n...\nz\n", "a\nb\n")
    assert not matches("a\n", "a\nb\n")


def rules(source: str, name: str = "page.py") -> list[str]:
    checked = prose.check_python if name.endswith(".py") else prose.check_text
    return [finding.rule for finding in checked(Path(name), source)]


@pytest.mark.parametrize("first", ["The head.", "Whether it fits.", "Bytes as text.", "`x` as text.", "Returns."])
def test_docstring_without_a_leading_verb_is_reported(first: str) -> None:
    assert rules(f'class A:\n    async def f(self):\n        """{first}"""') == ["begin the docstring with a verb"]


def test_verbs_properties_fixtures_and_nested_functions_pass() -> None:
    assert rules('def f():\n    """Pass the head on."""\n    def g():\n        """The head."""') == []
    assert rules('class A:\n    """The head."""\n    @property\n    def f(self):\n        """The head."""') == []
    assert rules('@pytest.fixture\ndef f():\n    """A folder."""') == []


@pytest.mark.parametrize("text", ["A list is no\nobject.", "The address is none to ask.", "Words that are nothing."])
def test_denied_noun_is_reported_in_pages_and_messages(text: str) -> None:
    assert rules(text, "page.md") == ['write "is not"']
    assert rules(f"raise ValueError(f'''{{x}} {text}''')") == ['write "is not"']


@pytest.mark.parametrize("text", ["It is no longer used.", "There is no endpoint.", "Which is None."])
def test_plain_negations_pass(text: str) -> None:
    assert rules(text, "page.md") == []


def test_finding_names_its_place_and_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("A paragraph that reads well.\n\nA map is no list.")
    assert prose.main([str(page)]) == 1
    assert "page.md:3: write" in capsys.readouterr().out
    page.write_text("A map is not a list.")
    assert prose.main([str(page)]) == 0


POLICY = (ROOT / "SECURITY.md").read_text("utf-8")
THREATS = (ROOT / "docs" / "explanation" / "security.md").read_text("utf-8")
TEXT = POLICY + THREATS


def test_security_settings_and_threats_are_those_of_the_threat_model() -> None:
    marked = {
        (table, key)
        for table, setting in nested_tables(declared_tables())
        for _, key, inner in declared(setting.of)
        if inner.security
    }
    limits = {("limits", key) for key in re.findall(r"\| `([a-z_]+)` \| [^|]+ \|$", POLICY, re.MULTILINE)}
    assert {*re.findall(r"`\[([a-z0-9.]+)\] ([a-z_]+)`", TEXT)} | limits == marked
    rows = [re.split(r"\s*\|\s*", line.strip("|").strip()) for line in THREATS.splitlines() if line.startswith("| ")]
    threats = [row[0] for row in rows if row[0] != "threat"]
    assert threats
    assert [row for row in rows if len(row) < 2 or not row[1]] == []
    assert [threat for threat in threats if threats.count(threat) > 1 or f"| {threat} |" in POLICY] == []


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)`", TEXT))))
def test_every_named_option_belongs_to_serve(option: str) -> None:
    serve = bespeak.get_command(click.Context(bespeak), "serve")
    assert option in {name for parameter in serve.params for name in parameter.opts}


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`bespeak ([a-z]+ [a-z]+)`", TEXT))))
def test_every_named_command_exists(command: str) -> None:
    group, name = command.split()
    found = bespeak.get_command(click.Context(bespeak), group)
    assert isinstance(found, click.Group)
    assert found.get_command(click.Context(found), name) is not None


def without_annotation(value) -> None:  # type: ignore[no-untyped-def]
    """Do nothing."""


def without_result(value: int):  # type: ignore[no-untyped-def]
    """Do nothing."""


def any_positions(*values: int) -> None:
    """Do nothing."""


def any_names(**values: int) -> None:
    """Do nothing."""


def shared_default(value: list[int] = [1]) -> None:  # noqa: B006 - that is what is refused
    """Do nothing."""


@pytest.mark.parametrize("function", [without_annotation, without_result, any_positions, any_names, shared_default])
def test_functions_that_the_page_calls_refused_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ContractError):
        read_handler(function)


def test_types_of_inputs_and_outputs_are_converted_or_refused() -> None:
    kinds = types_tables.SCALARS | types_tables.CONTAINERS | types_tables.CLASSES
    assert types_tables.input_table(kinds).count("\n") == len(kinds) + 1
    assert "`int`" not in types_tables.output_table()
    assert "`Guest (dataclass)`" in types_tables.output_table()
    assert "`Path`" in types_tables.refused_list()
