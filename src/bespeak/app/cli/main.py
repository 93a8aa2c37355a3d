"""`bespeak`: the table of commands, global options and exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from difflib import get_close_matches
from typing import Final, NamedTuple, NoReturn

import click

from bespeak.app.server.collector import collector_paused
from bespeak.errors import BespeakError, ContractError

EXIT_GOOD: Final = 0
EXIT_REFUSED: Final = 1  # findings, or a refusal
EXIT_UNUSABLE: Final = 2  # usage, configuration or internal error


_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Error codes of a failed write. If the error has no file name, the write was to standard output."""


class CommandFailedError(BespeakError):
    """A command failed; the exit code is 1."""


class CommandEntry(NamedTuple):
    """The location of a command. Its module is imported only when the command runs, to keep start-up fast."""

    module: str
    attribute: str
    group: str
    summary: str


COMMANDS: Final[dict[str, CommandEntry]] = {
    "serve": CommandEntry("serve", "serve", "Run a service", "Serve a contract over AGTP and HTTP."),
    "mcp": CommandEntry("mcp", "mcp", "Run a service", "Serve the endpoints of a service as MCP tools."),
    "agents": CommandEntry("agents", "agents", "Run a service", "Register, list, suspend and revoke agents."),
    "keys": CommandEntry("keys", "keys", "Run a service", "Create, show and rotate signing keys."),
    "cases": CommandEntry("cases", "cases", "Run a service", "List, accept and reject open decisions."),
    "proposals": CommandEntry(
        "proposals", "proposals", "Run a service", "Approve, publish and promote proposed endpoints."
    ),
    "workflows": CommandEntry("workflows", "workflows", "Run a service", "Show, pause, resume and cancel workflows."),
    "audit": CommandEntry("audit", "audit", "Run a service", "Verify, show and export the audit trail."),
    "store": CommandEntry("store", "store", "Run a service", "Inspect, export and import the store."),
    "format": CommandEntry("format", "format_documents", "Write a contract", "Format AGIS documents."),
    "import": CommandEntry(
        "import_", "import_", "Write a contract", "Create a service from an AGIS document or OpenAPI."
    ),
    "review": CommandEntry("review", "review", "Write a contract", "Review the guesses of an import, one by one."),
    "export": CommandEntry(
        "export", "export", "Write a contract", "Export a service as AGIS, OpenAPI, tools or others."
    ),
    "schema": CommandEntry("schema", "schema", "Write a contract", "Print the JSON Schema of a document format."),
    "discover": CommandEntry("discover", "discover", "Use a service", "Show the endpoints of a service."),
    "call": CommandEntry("call", "call", "Use a service", "Call an endpoint of a service."),
    "propose": CommandEntry("propose", "propose", "Use a service", "Ask a service for an endpoint that it lacks."),
    "lint": CommandEntry("lint", "lint", "Check a contract", "Check contracts for errors and style."),
    "explain": CommandEntry("explain", "explain", "Check a contract", "Explain a rule."),
    "catalog": CommandEntry("catalog", "catalog", "Check a contract", "Look up verbs and compare catalogs."),
    "methods": CommandEntry("methods", "methods", "Check a contract", "Look up the standard methods."),
    "diff": CommandEntry("diff", "diff", "Check a contract", "Compare two contracts and find breaking changes."),
    "semantic": CommandEntry("semantic", "semantic", "Check a contract", "Publish, register and align ontologies."),
    "lsp": CommandEntry("lsp", "lsp", "Check a contract", "Run the language server for editors."),
    "conform": CommandEntry("conform", "conform", "Check a contract", "Run the AGTP-API or AGIS conformance checks."),
}


class CommandTable(click.Group):
    """Commands that are imported on demand and listed by task."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        with collector_paused():  # a quarter of the start would be spent on looking for garbage among modules
            module = importlib.import_module(f"bespeak.app.cli.{entry.module}")
        command = getattr(module, entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = get_close_matches(args[0], COMMANDS, n=1) if args[0] not in COMMANDS else []
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in dict.fromkeys(entry.group for entry in COMMANDS.values()):
            with formatter.section(group):
                formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items() if entry.group == group])


@click.group(
    cls=CommandTable,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="A TARGET is a folder, an .agis, .toml or .py file, module:app, or an OpenAPI file. "
    "A SERVICE is agtp://HOST[:4480], https://HOST or a TARGET.\n\n"
    "Exit codes: 0 success, 1 findings or a refusal, 2 usage, configuration or internal error.",
)
@click.version_option(package_name="bespeak")
def bespeak() -> None:
    """Write an agent-facing contract once; serve it, check it and publish it."""


def main() -> NoReturn:
    """Run the console script. Turn every expected error into one message and an exit code."""
    _open_streams()
    try:
        sys.exit(bespeak.main(standalone_mode=False) or EXIT_GOOD)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_UNUSABLE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader closed the pipe, as `| head` does.
        _drop_output()
        sys.exit(EXIT_GOOD)
    except CommandFailedError as error:
        _complain(str(error))
        sys.exit(EXIT_REFUSED)
    except BespeakError as error:
        _complain(_explained(error))
        sys.exit(EXIT_UNUSABLE)
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
            _complain(f"cannot write the output: {error.strerror or error}")
            _drop_output()
            sys.exit(EXIT_UNUSABLE)
        if isinstance(error, FileNotFoundError) and error.filename is None and not _has_folder():
            _complain("the current folder no longer exists. Change to another one.")
            sys.exit(EXIT_UNUSABLE)
        if os.environ.get("BESPEAK_DEBUG"):
            raise
        _complain(f"internal error: {type(error).__name__}: {error}")
        click.echo(
            "This is a bug in bespeak. Please report it with the traceback that BESPEAK_DEBUG=1 prints.", err=True
        )
        sys.exit(EXIT_UNUSABLE)


def _open_streams() -> None:
    """Replace streams that were closed before the start (`<&-`, `>&-`) with the null device; Python sets them to
    None.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open to the end


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib asks the same
    except FileNotFoundError:
        return False
    return True


def _complain(text: str) -> None:
    """Print an error. It may quote a server: escape terminal control characters."""
    from bespeak.text.diagnostics.diagnostic import printable  # noqa: PLC0415 - only an error needs it

    click.echo("bespeak: " + "\n".join(printable(line) for line in text.split("\n")), err=True)


def _drop_output() -> None:
    """Discard the remaining output, so that the interpreter does not fail when it flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explained(error: Exception) -> str:
    """Format an error. The findings of a contract are shown with their source lines."""
    from bespeak.text.diagnostics.diagnostic import Diagnostic  # noqa: PLC0415 - only an error needs them
    from bespeak.text.diagnostics.reporters.text import full  # noqa: PLC0415

    if not isinstance(error, ContractError) or not error.findings:
        return str(error)
    findings = [finding for finding in error.findings if isinstance(finding, Diagnostic)]
    return f"{error.message}\n\n{full(findings)}"
