"""`bespeak`: the table of commands, global options and exit codes."""

from __future__ import annotations

import errno
import os
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NoReturn

import click

from bespeak.app.server import collector_paused
from bespeak.contract.extensions import BUNDLED, CommandEntry, Lazy
from bespeak.errors import BespeakError, ContractError
from bespeak.terminal import EXIT_GOOD, EXIT_REFUSED, EXIT_UNUSABLE, CommandFailedError, LazyGroup, TargetLoader

if TYPE_CHECKING:
    from bespeak.contract.service import Service

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Error codes of a failed write. If the error has no file name, the write was to standard output."""


_OWN: Final = (
    # Name, module and attribute of each command, its section, and its summary.
    ("serve", "serve:serve", "Run a service", "Serve a contract over AGTP and HTTP."),
    ("console", "serve:console", "Run a service", "Serve a contract with a page to try and watch it."),
    ("mcp", "mcp:mcp", "Run a service", "Serve the endpoints of a service as MCP tools."),
    ("agents", "agents:agents", "Run a service", "Register, list, suspend and revoke agents."),
    ("keys", "keys:keys", "Run a service", "Create, show and rotate signing keys and API keys."),
    ("cases", "cases:cases", "Run a service", "List, accept and reject open decisions."),
    ("people", "cases:people", "Run a service", "Show what waits for people, and answer it."),
    ("audit", "audit:audit", "Run a service", "Verify, show and export the audit trail."),
    ("store", "store:store", "Run a service", "Inspect, export and import the store."),
    ("extension", "serve:extension", "Run a service", "Run a command that an extension of a service adds."),
    ("init", "init:init", "Write a contract", "Write a new service to start with."),
    ("format", "format:format_documents", "Write a contract", "Format AGIS documents."),
    ("import", "import_:import_", "Write a contract", "Create a service from an AGIS document or OpenAPI."),
    ("review", "review:review", "Write a contract", "Review the guesses of an import, one by one."),
    ("export", "export:export", "Write a contract", "Export a service as AGIS, OpenAPI, tools or others."),
    ("schema", "methods:schema", "Write a contract", "Print the JSON Schema of a document format."),
    ("discover", "discover:discover", "Use a service", "Show the endpoints of a service."),
    ("call", "call:call", "Use a service", "Call an endpoint of a service."),
    ("ask", "ask:ask", "Use a service", "Do what a sentence says with one or more services."),
    ("chat", "ask:chat", "Use a service", "Talk to one or more services."),
    ("propose", "propose:propose", "Use a service", "Ask a service for an endpoint that it lacks."),
    ("lint", "lint:lint", "Check a contract", "Check contracts for errors and style."),
    ("explain", "explain:explain", "Check a contract", "Explain a rule."),
    ("catalog", "catalog:catalog", "Check a contract", "Look up verbs and compare catalogs."),
    ("methods", "methods:methods", "Check a contract", "Look up the standard methods."),
    ("diff", "diff:diff", "Check a contract", "Compare two contracts and find breaking changes."),
    ("lsp", "lint:lsp", "Check a contract", "Run the language server for editors."),
    ("bench", "bench:bench", "Check a contract", "Measure how names of endpoints help to find them."),
    ("conform", "conform:conform", "Check a contract", "Run the AGTP-API or AGIS conformance checks."),
)
_BELOW: Final = {"semantic": {"negotiate": Lazy("bespeak.app.cli.semantic_negotiate", "negotiate")}}
"""Commands in groups of extensions that act for an agent, by group."""


def _table() -> dict[str, CommandEntry]:
    """Return the commands in the order of the help: those of extensions follow the ones that they name."""
    found: dict[str, CommandEntry] = {}
    added = [(known, one) for known in BUNDLED for one in known.commands if not one.below]
    for name, place, section, summary in _OWN:
        module, _, attribute = place.partition(":")
        found[name] = CommandEntry(Lazy(f"bespeak.app.cli.{module}", attribute), section, summary)
        for known, one in added:
            if one.after in found and one.name not in found:
                found[one.name] = CommandEntry(known.lazy(f"commands:{one.name}"), one.section, one.summary)
    return found


COMMANDS: Final = _table()


class CommandTable(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        with collector_paused():  # a quarter of the start would be spent on looking for garbage among modules
            command = entry.command.load()
        assert isinstance(command, click.Command)
        if isinstance(command, LazyGroup):
            for known in BUNDLED:
                command.lazy |= {
                    one.name: known.lazy(f"commands:{one.name}") for one in known.commands if one.below == cmd_name
                }
            command.lazy |= _BELOW.get(cmd_name, {})
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = get_close_matches(args[0], COMMANDS, n=1) if args[0] not in COMMANDS else []
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            with formatter.section(group):
                formatter.write_dl([(name, one.summary) for name, one in COMMANDS.items() if one.section == group])


@click.group(
    cls=CommandTable,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="A TARGET is a folder, an .agis, .toml or .py file, module:app, or an OpenAPI file. "
    "A SERVICE is agtp://HOST[:4480], https://HOST or a TARGET.\n\n"
    "Exit codes: 0 success, 1 findings or a refusal, 2 usage, configuration or internal error.",
)
@click.version_option(package_name="bespeak")
@click.pass_context
def bespeak(context: click.Context) -> None:
    """Write an agent-facing contract once; serve it, check it and publish it."""
    context.obj = TargetLoader(_load_service)


def _load_service(target: str) -> Service:
    from bespeak.app.server.target import load_target  # noqa: PLC0415 - few commands load a service

    return load_target(target).service


def main() -> NoReturn:
    """Run the console script. Turn every expected error into one message and an exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed before the start (`<&-`, `>&-`)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open to the end
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
