"""`bespeak lsp`: the language server."""

from __future__ import annotations

import click

from bespeak.errors import ConfigError


@click.command()
@click.option("--stdio", is_flag=True, help="Accepted for compatibility; standard input and output are always used.")
def lsp(stdio: bool) -> int:
    """Run the language server: diagnostics, fixes, completion and hover in editors.

    Editors start it and speak the Language Server Protocol over standard input and output. It reports
    the same findings as `bespeak lint`, with the same settings, ignores and baseline.
    """
    try:
        from bespeak.app.lsp.server import serve  # noqa: PLC0415 - needs the lsp extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise ConfigError("The language server needs pygls: pip install 'bespeak[lsp]'") from error
    return serve()
