"""`bespeak conform URI`: the black-box conformance checks."""

from __future__ import annotations

import asyncio
from typing import Final

import click
from rich.text import Text

from bespeak.cli.console import console, print_json
from bespeak.conformance.check import Verdict
from bespeak.conformance.report import Report
from bespeak.conformance.run import run_conformance

_STYLES: Final = {Verdict.PASS: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}
_QUIET: Final = "dim"


@click.command()
@click.argument("uri")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--insecure", is_flag=True, help="Plain TCP also to a host that is not this machine.")
@click.option("--tls", is_flag=True, help="TLS also to this machine.")
@click.option("--ca-file", type=click.Path(exists=True, dir_okay=False), help="Trust these certificate authorities.")
@click.option("--agent-id", metavar="ID", help="The agent to ask as; otherwise one the server takes.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a request may take.",
)
@click.pass_context
def conform(
    context: click.Context,
    *,
    uri: str,
    as_json: bool,
    insecure: bool,
    tls: bool,
    ca_file: str | None,
    agent_id: str | None,
    timeout: float,
) -> None:
    """Check the server at URI against every item of AGTP-API 13.1, over the wire only.

    Nothing is changed on the server: each request must be refused, or goes to an endpoint that only informs.
    Exits with 0 if no check fails, with 1 if one does, with 2 if the server cannot be reached.
    """
    report = asyncio.run(
        run_conformance(uri, agent_id=agent_id, tls=tls, ca_file=ca_file, insecure=insecure, timeout=timeout)
    )
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    context.exit(0 if report.conforms else 1)


def _print(report: Report) -> None:
    out = console()
    for verdict, line in report.lines():
        text = Text(line)
        if verdict is not None:
            text.highlight_words([str(verdict)], _STYLES.get(verdict, _QUIET))
        out.print(text)
