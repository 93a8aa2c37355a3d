"""`bespeak lsp`: the language server that editors start."""

from __future__ import annotations

import click

from bespeak.errors import ConfigError


@click.command()
@click.option("--stdio", is_flag=True, help="Speak over standard input and output, which is what it always does.")
def lsp(stdio: bool) -> int:
    """Show findings, repairs, completions and explanations in an editor, by the Language Server Protocol.

    Editors start it and speak with it over standard input and output. It finds what `bespeak lint` finds, with the
    same settings, ignores and baseline.
    """
    try:
        from bespeak.app.lsp.features import serve  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise ConfigError("The language server needs pygls: pip install 'bespeak[lsp]'") from error
    return serve()
