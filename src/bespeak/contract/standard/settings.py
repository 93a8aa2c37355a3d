"""Settings of the standard methods: `[methods]`."""

from __future__ import annotations

from dataclasses import dataclass

from bespeak.contract.standard.methods import ALL, CATEGORIES, STANDARD, is_choice
from bespeak.text.reading.setting import setting


def _known(name: str) -> str | None:
    return name if is_choice(name) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings:
    """Standard methods that the server offers at `/` beside those of every server."""

    enable: tuple[str, ...] = setting(
        (),
        "Names of methods, categories of them, or `*` for all.",
        parse=_known,
        form="a standard method, a category or *",
        advice="`bespeak methods list` shows them.",
        suggested=(ALL, *CATEGORIES, *STANDARD),
    )
