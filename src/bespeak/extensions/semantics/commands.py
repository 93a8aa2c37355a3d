"""`bespeak semantic`: publish, register and use ontologies; each command is imported when it runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import click

from bespeak.contract.extensions import Lazy
from bespeak.errors import ConfigError
from bespeak.terminal import CommandFailedError, LazyGroup
from bespeak.text.diagnostics.diagnostic import Diagnostic

Read = TypeVar("Read")

_COMMANDS: Final = {
    "publish": ("documents", "publish"),
    "register": ("register", "register"),
    "sign": ("register", "sign"),
    "confirm": ("register", "confirm"),
    "list": ("register", "list_"),
    "show": ("register", "show"),
    "align": ("documents", "align_"),
    "explain": ("documents", "explain"),
    "validate": ("documents", "validate"),
}
"""Commands, with the rest of the name of the module of each and its attribute."""
_PACKAGES: Final = frozenset({"pyld", "pyoxigraph", "rapidfuzz"})  # packages of the extra


class SemanticGroup(LazyGroup):
    """Commands whose modules need the extra `semantic`, which not every command has to load."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if error.name not in _PACKAGES:
                raise
            raise ConfigError(f"{error.name} is not installed: pip install 'bespeak[semantic]'") from error


@click.group(
    cls=SemanticGroup,
    lazy={name: Lazy(f"{__name__}_{module}", attribute) for name, (module, attribute) in _COMMANDS.items()},
)
def semantic() -> None:
    """Publish, register and inspect ontologies, so that services agree on meaning.

    Needs the extra: pip install 'bespeak[semantic]'.
    """


def accepted(read: Read | None, findings: Iterable[Diagnostic], file: object) -> Read:
    """Print the findings of a document and return what was read; end the command line if it is refused."""
    from bespeak.terminal.console import print_findings  # noqa: PLC0415 - help does without

    print_findings(findings)
    if read is None:
        raise CommandFailedError(f"{file} cannot be used as it is; see the findings")
    return read
