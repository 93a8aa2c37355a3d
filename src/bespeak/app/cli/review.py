"""`bespeak review`: walk through the guesses of an import and mark endpoints as reviewed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from bespeak.checks.lint.registration import check_endpoint
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled, open_catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, McpTool
from bespeak.documents.adoption.deployment import Note, ReviewFile, read_review, waiting_files
from bespeak.documents.adoption.facade import DANGERS
from bespeak.documents.deployment.deployment import Deployment, read_deployment
from bespeak.documents.deployment.endpoint_toml import endpoint_of
from bespeak.documents.deployment.server_toml import parse_server
from bespeak.documents.replacement import replace_text
from bespeak.errors import ConfigError
from bespeak.terminal import PATH, CommandFailedError
from bespeak.terminal.console import line, print_findings, print_json, print_lines
from bespeak.text.diagnostics.diagnostic import Diagnostic, printable
from bespeak.text.reading.text_file import read_text, toml_table

_HELP: Final = "y accept | e edit the file | e NUMBER [VALUE] change a value | s skip | q quit"
_WIDEST: Final = 100  # maximum characters of a value that is shown


@click.command(short_help="Review the guesses of an import, one by one.")
@click.argument("folder", type=PATH)
@click.option("--list", "listing", is_flag=True, help="List what waits for a review; ask nothing.")
@click.option(
    "--accept",
    "accepted",
    type=(str, str),
    multiple=True,
    metavar="METHOD PATH",
    help="Accept an endpoint as it is; ask nothing. Repeatable; `*` is a wildcard.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def review(folder: Path, listing: bool, accepted: tuple[tuple[str, str], ...], as_json: bool) -> None:
    """Review the guesses of an import in FOLDER, what is in doubt first, then the most dangerous endpoints.

    Each endpoint is shown with its guesses. `y` accepts it: the comments of its guesses and `reviewed = false` are
    removed from its file, and everything else in the file stays. `e` opens the file in $EDITOR, `e 2 reversible`
    changes the value of the second guess, `s` skips the endpoint, and `q` quits. Every answer is written at once; the
    next run continues with what is left.

    \b
    Example:
    bespeak review acme
    bespeak review acme --list
    bespeak review acme --accept LIST '*' --accept REMOVE '/notes/{note_id}'
    """
    deployment, findings = read_deployment(folder)
    print_findings(finding for finding in findings if finding.severity == "error")
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder. Give the folder of an import.")
    waiting = waiting_files(deployment)
    if accepted:
        _accept_named(_Reviewer(deployment), waiting, accepted)
    elif as_json:
        print_json([_as_dict(file) for file in waiting])
    elif listing:
        if waiting:
            print_lines(_summary(file) for file in waiting)
        click.echo(_left(len(waiting)))
    else:
        _walk(_Reviewer(deployment), waiting)


class _Reviewer:
    def __init__(self, deployment: Deployment) -> None:
        server = deployment.server
        catalog = open_catalog(server.main.catalog, deployment.root)[0] if server.main.catalog else None
        self._catalog: Catalog = catalog or load_bundled()
        self._policies = server.policies

    def reload(self, file: ReviewFile) -> ReviewFile | list[Diagnostic]:
        """Read a file again; return its errors if it can no longer be used."""
        text = read_text(file.path)
        if isinstance(text, Diagnostic):
            return [text]
        endpoint, errors = self._check(file, text)
        if errors:
            return errors
        again = read_review(file.path, endpoint)
        return [again] if isinstance(again, Diagnostic) else again

    def accept(self, file: ReviewFile) -> list[Diagnostic] | str:
        """Mark a file as reviewed. Return errors that prevent it, or a text why it was not done."""
        accepted = file.accepted()
        stuck = "`reviewed = false` is not on a line of its own; remove it by hand"
        return stuck if accepted is None else self._write(file, accepted)

    def change(self, file: ReviewFile, note: Note, typed: str) -> list[Diagnostic] | str:
        """Write another value for a guess. Return errors that prevent it, or a text why it was not done."""
        try:
            return self._write(file, file.changed(note, typed))
        except ValueError as error:
            return str(error)

    def _check(self, file: ReviewFile, text: str) -> tuple[Endpoint | None, list[Diagnostic]]:
        if file.endpoint is None:
            _, findings = parse_server(text, str(file.path))
            return None, [finding for finding in findings if finding.severity == "error"]
        table = toml_table(text, str(file.path))
        if isinstance(table, Diagnostic):
            return None, [table]
        endpoint, findings = endpoint_of(table, str(file.path))
        if endpoint is not None:
            findings = [*findings, *check_endpoint(endpoint, self._catalog, self._policies)]
        return endpoint, [finding for finding in findings if finding.severity == "error"]

    def _write(self, file: ReviewFile, text: str) -> list[Diagnostic] | str:
        """Replace the text that was shown, if the new one has no errors."""
        current = read_text(file.path)
        if isinstance(current, Diagnostic):
            return [current]
        if current.replace("\r\n", "\n") != file.tree.text:
            return "the file has changed meanwhile"
        _, errors = self._check(file, text)
        if errors:
            return errors
        try:
            replace_text(file.path, text)
        except OSError as error:
            raise ConfigError(f"{file.path} cannot be written: {error.strerror or error}") from error
        return []


def _accept_named(reviewer: _Reviewer, waiting: Sequence[ReviewFile], named: Sequence[tuple[str, str]]) -> None:
    chosen: dict[Path, ReviewFile] = {}
    for method, path in named:
        wanted = f"{method} {path}"
        # Of the wildcards of fnmatch, only `*` is one here.
        pattern = wanted.replace("[", "[[]").replace("?", "[?]")
        found = [file for file in waiting if file.name == wanted or ("*" in wanted and fnmatchcase(file.name, pattern))]
        if not found:
            raise CommandFailedError(f"{printable(wanted)} does not wait for a review; use --list to see what does")
        chosen.update((file.path, file) for file in found)
    for file in chosen.values():
        problem = reviewer.accept(file)
        if problem:
            _print_problem(problem)
            raise CommandFailedError(f"{printable(file.name)} is not accepted")
        click.echo(f"accepted {printable(file.name)}")
    click.echo(_left(len(waiting) - len(chosen)))


def _as_dict(file: ReviewFile) -> dict[str, Any]:
    return {
        "name": file.name,
        "danger": file.danger or None,
        "upstream": file.upstream or None,
        "file": str(file.path),
        "guesses": [{"at": note.at, "confidence": note.confidence, "text": note.text} for note in file.notes],
    }


def _summary(file: ReviewFile) -> Text:
    count = len(file.notes)
    guesses = f"  {count} guess{'' if count == 1 else 'es'}"
    upstream = f"  {file.upstream[:_WIDEST]}" if file.upstream else ""
    return line((file.name, "bold"), (upstream, "dim"), guesses, (_danger(file), "yellow"))


def _danger(file: ReviewFile) -> str:
    return f"  {DANGERS[file.danger]}" if file.danger else ""


def _left(count: int) -> str:
    if not count:
        return "Nothing is left to review."
    return f"{count} {'file waits' if count == 1 else 'files wait'} for a review."


def _walk(reviewer: _Reviewer, waiting: Sequence[ReviewFile]) -> None:
    """Ask about one file after the other. Each answer is written before the next question."""
    done = 0
    if waiting:
        click.echo(_HELP)
    for number, file in enumerate(waiting, 1):
        try:
            answer = _ask(reviewer, file, f"{number}/{len(waiting)}")
        except (click.Abort, KeyboardInterrupt):  # Ctrl-C, or the end of the input
            click.echo("")
            answer = "q"
        if answer == "q":
            break
        done += answer == "y"
    click.echo(_left(len(waiting) - done))


def _ask(reviewer: _Reviewer, file: ReviewFile, position: str) -> str:
    """Show a file until it is accepted or skipped; return `y`, `s` or `q`."""
    print_lines(_shown(file, position))
    while True:
        words = click.prompt("y/e/s/q", prompt_suffix="> ", default="", show_default=False).split(maxsplit=2)
        match [words[0].lower() if words else "", *words[1:]]:
            case ["y" | "yes" | "accept"]:
                problem = reviewer.accept(file)
                if not problem:
                    return "y"
                _print_problem(problem)
            case ["s" | "skip"]:
                return "s"
            case ["q" | "quit"]:
                return "q"
            case ["e" | "edit"]:
                click.edit(filename=str(file.path))
            case ["e" | "edit", number, *typed] if _note(file, number) is not None:
                note = _note(file, number)
                assert note is not None
                value = typed[0] if typed else click.prompt(f"{_key(note)} =", prompt_suffix=" ")
                problem = reviewer.change(file, note, value)
                if problem:
                    _print_problem(problem)
                    continue
            case _:
                click.echo(_HELP)
                continue
        again = reviewer.reload(file)
        if isinstance(again, list):
            _print_problem(again)
            click.echo("The file has errors; edit it again, or skip it.")
            continue
        file = again
        print_lines(_shown(file, position))


def _note(file: ReviewFile, number: str) -> Note | None:
    index = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else 0
    return file.notes[index - 1] if 0 < index <= len(file.notes) else None


def _shown(file: ReviewFile, position: str) -> Iterator[Text]:
    yield Text("")
    yield line(f"[{position}] ", (file.name, "bold"), (_danger(file), "bold yellow"))
    yield line((f"  {file.path}", "dim"))
    if file.upstream:
        yield line(f"  upstream: {file.upstream}")
    endpoint = file.endpoint
    if endpoint is not None:
        if isinstance(endpoint.handler, ExternalService):
            yield line(f"  {endpoint.handler.method} {endpoint.handler.url}")
        elif isinstance(endpoint.handler, McpTool):
            server = endpoint.handler.mcp
            yield line(f"  {server.named} of {server.url or ' '.join((server.command, *server.args))}")
        semantic = endpoint.semantic
        yield line(f"  intent: {semantic.intent}")
        yield line(f"  outcome: {semantic.outcome}")
        repeated = "idempotent" if semantic.is_idempotent else "not idempotent"
        scopes = f", scopes {' '.join(endpoint.required_scopes)}" if endpoint.required_scopes else ""
        yield line(f"  impact: {semantic.impact}, {repeated}{scopes}")
    for number, note in enumerate(file.notes, 1):
        written = file.written(note.at)
        value = f" = {written[:_WIDEST]}{'...' if len(written) > _WIDEST else ''}" if written else ""
        yield line(f"  {number}  ", (f"{_key(note)}{value}", "cyan"), f"  ({note.confidence:.1f}) {note.text}")


def _key(note: Note) -> str:
    return note.at.removeprefix("/endpoint").removeprefix("/").replace("/", ".") or "the file"


def _print_problem(problem: list[Diagnostic] | str) -> None:
    if isinstance(problem, str):
        click.echo(f"Not done: {printable(problem)}.")
    else:
        print_findings(problem)
