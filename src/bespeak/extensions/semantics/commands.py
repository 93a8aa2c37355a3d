"""`bespeak semantic`: publish, register and use ontologies; each command is imported when it runs."""

from __future__ import annotations

from typing import Any, Final

import click

from bespeak.contract.extensions import Lazy
from bespeak.errors import ConfigError
from bespeak.terminal import LazyGroup

_MODULES: Final = {
    "publish": "documents:publish",
    "register": "register:register",
    "sign": "register:sign",
    "confirm": "register:confirm",
    "list": "register:list_",
    "show": "register:show",
    "align": "align:align_",
    "explain": "align:explain",
    "validate": "documents:validate",
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


def _lazy(place: str) -> Lazy:
    module, _, attribute = place.partition(":")
    return Lazy(f"{__name__}_{module}", attribute)


@click.group(cls=SemanticGroup, lazy={name: _lazy(place) for name, place in _MODULES.items()})
def semantic() -> None:
    """Publish, register and inspect ontologies, so that services agree on meaning.

    Needs the extra: pip install 'bespeak[semantic]'.
    """
