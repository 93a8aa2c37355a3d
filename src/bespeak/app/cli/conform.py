"""`bespeak conform`: conformance checks for servers, and for AGIS validators."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from bespeak.app.conformance.run import ConformanceReport, run_conformance
from bespeak.app.conformance.subject import Verdict
from bespeak.terminal import FILE, FOLDER, seconds_option
from bespeak.terminal.console import console, json_option, print_json

_STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.WARN: "yellow",
    Verdict.COULD_NOT_TELL: "cyan",
    Verdict.FAIL: "bold red",
}


@click.command()
@click.argument("uri", required=False)
@click.option("--agis", is_flag=True, help="Check a validator with the AGIS document set instead of a server.")
@click.option(
    "--validator",
    metavar="COMMAND",
    help="With --agis: command to run, where {} is the file and exit code 0 means valid.  [default: bespeak]",
)
@click.option(
    "--documents", type=FOLDER, help="With --agis: folder with your own valid, invalid and borderline documents."
)
@json_option
@click.option("--insecure", is_flag=True, help="Allow plain TCP to other hosts.")
@click.option("--tls", is_flag=True, help="Use TLS for localhost too.")
@click.option("--ca-file", type=FILE, help="Trust these certificate authorities.")
@click.option("--agent-id", metavar="ID", help="Agent-ID to send.  [default: one the server accepts]")
@seconds_option("--timeout", 10.0, "Timeout for each request.")
@click.pass_context
def conform(
    context: click.Context,
    /,
    *,
    uri: str | None,
    agis: bool,
    validator: str | None,
    documents: Path | None,
    as_json: bool,
    **connection: Any,
) -> None:
    """Check the server at URI, agtp://HOST[:4480], against AGTP-API 13.1.

    The checks are black-box and do not change the server: each request must be refused, or goes to an informational
    endpoint. Proposals are withdrawn at the end, also after an interruption. A check passes only if a response shows
    what it states, and says could-not-tell if none does.
    Exit codes: 0 no check failed, 1 a check failed, 2 the server cannot be reached.

    With --agis, a validator is checked with the AGIS conformance documents: it must accept the valid ones, reject the
    invalid ones and report no errors for the borderline ones (AGIS 9.3).

    \b
    Examples:
    bespeak conform agtp://127.0.0.1
    bespeak conform --agis
    bespeak conform --agis --validator "my-validator --quiet {}"
    """
    if agis:
        if uri is not None:
            raise click.UsageError("--agis checks a validator; do not give a URI")
        context.exit(0 if _conform_agis(validator, documents, as_json=as_json) else 1)
    if uri is None:
        raise click.UsageError("give the URI of the server to check, or --agis")
    if validator is not None or documents is not None:
        raise click.UsageError("--validator and --documents require --agis")
    report = asyncio.run(_until_terminated(run_conformance(uri, **connection)))
    if as_json:
        print_json(report.to_json())
    else:
        out = console()
        for verdict, line in report.lines():
            text = Text(line)
            if verdict is not None:
                text.highlight_words([str(verdict)], _STYLES.get(verdict, "dim"))
            out.print(text)
    context.exit(0 if report.conforms else 1)


async def _until_terminated(checking: Coroutine[Any, Any, ConformanceReport]) -> ConformanceReport:
    """Run the checks; SIGTERM ends them like Ctrl-C, so that what they have made is released."""
    task = asyncio.ensure_future(checking)
    with suppress(NotImplementedError):  # on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _conform_agis(validator: str | None, documents: Path | None, *, as_json: bool) -> bool:
    from bespeak.app.conformance.document_set import KINDS, command_validator, find_cases, hold, own_validator  # noqa: PLC0415 - servers do not need them

    judge = own_validator() if validator is None else command_validator(validator)
    results = list(hold(judge, find_cases(documents)))
    wrong = [result for result in results if result.wrong]
    if as_json:
        print_json({"conforms": not wrong, "documents": [result.to_json() for result in results]})
        return not wrong
    out = console()
    for result in wrong:
        out.print(Text(f"{result.case.name} {result.wrong}"))
    for kind in KINDS:
        of_kind = [result for result in results if result.case.kind == kind]
        out.print(Text(f"{kind:<11} {sum(not each.wrong for each in of_kind)} of {len(of_kind)} correct"))
    return not wrong
