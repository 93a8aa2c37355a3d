"""All standard methods that an operator can enable, and the settings that choose them: `[methods]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from bespeak.contract.standard.acquire import ACQUIRE
from bespeak.contract.standard.communicate import COMMUNICATE
from bespeak.contract.standard.compute import COMPUTE
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.integrate import INTEGRATE
from bespeak.contract.standard.orchestrate import ORCHESTRATE
from bespeak.contract.standard.transact import TRANSACT
from bespeak.text.reading.settings import setting

ALL: Final = "*"
STANDARD: Final[Mapping[str, StandardMethod]] = {
    method.name: method for method in (*ACQUIRE, *COMPUTE, *TRANSACT, *INTEGRATE, *COMMUNICATE, *ORCHESTRATE)
}  # the methods by name, in the order of the draft
CATEGORIES: Final = tuple(dict.fromkeys(method.category for method in STANDARD.values()))


def is_choice(name: str) -> bool:
    """Return True if a name means methods: one of them, a category, or `*`."""
    return name == ALL or name.lower() in CATEGORIES or name.upper() in STANDARD


def choose_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Return the methods that names, categories or `*` mean, in the order of the draft; unknown ones mean none."""
    chosen = {name.upper() for name in names}
    return tuple(
        method.name
        for method in STANDARD.values()
        if ALL in chosen or method.name in chosen or method.category.upper() in chosen
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings:
    """Standard methods that the server offers at `/` beside those of every server."""

    enable: tuple[str, ...] = setting(
        (),
        "Names of methods, categories of them, or `*` for all.",
        parse=lambda name: name if is_choice(name) else None,
        form="a standard method, a category or *",
        advice="`bespeak methods list` shows them.",
        suggested=(ALL, *CATEGORIES, *STANDARD),
    )
