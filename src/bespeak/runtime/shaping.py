"""Token hints at one endpoint: the contract defines which parts of an output can be selected or omitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.compile import Validator
from bespeak.contract.schema.members import Members, members_of, without_empty
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.token_hints import (
    HINTS,
    UNCHANGED,
    TokenHints,
    Wanted,
    keep_changed,
    read_hints,
    read_place,
    select,
)

_MOST_NAMED: Final = 50
"""Maximum number of fields that a refusal lists."""
_MOST_SUGGESTED: Final = 5
_MOST_COMPARED: Final = 100
"""Maximum number of names compared for suggestions: a few milliseconds, whatever the caller asks for."""
_LONGEST: Final = 80


class Shaping:
    """Token hints at one endpoint. Nothing is computed before the first hint arrives."""

    def __init__(self, endpoint: Endpoint, output: Validator) -> None:
        self._endpoint = endpoint
        self._output = output

    @cached_property
    def members(self) -> Members:
        """Members of the output."""
        return members_of(self._endpoint.output_schema)

    @cached_property
    def _hints(self) -> frozenset[str]:
        """Names that are hints here: those the endpoint declares as input are not."""
        declared = members_of(self._endpoint.input_schema)
        return frozenset(name for name in HINTS if not declared.declares(name))

    def take(self, parameters: dict[str, str]) -> TokenHints | Refused | None:
        """Remove the hints from the query parameters; return None if there are none."""
        given = {name: parameters.pop(name) for name in self._hints & parameters.keys()}
        if not given:
            return None
        if self._endpoint.builtin:
            names = ", ".join(sorted(given))
            return Refused(
                status.BAD_REQUEST,
                "token-hints-not-supported",
                f"{self._endpoint} is a built-in method and returns its complete answer; omit {names}.",
                {"parameters": sorted(given)},
            )
        return self.read(given)

    def read(self, given: Mapping[str, str]) -> TokenHints | Refused:
        """Read hints that are known to be some."""
        hints = read_hints(given)
        return hints if isinstance(hints, Refused) else self._refuse(hints) or hints

    def apply(self, hints: TokenHints, output: Any) -> Any:
        """Apply the hints to an output, which stays valid; return UNCHANGED if nothing has changed."""
        try:
            return self._shaped(hints, output)
        except RecursionError:
            return output  # nested too deeply for Python: return all of it rather than fail

    def _shaped(self, hints: TokenHints, output: Any) -> Any:
        if hints.compact:
            output = self._compact(output)
        if hints.since is not None:
            place = read_place(self._endpoint.since or "")
            assert place is not None
            output = keep_changed(output, place, hints.since)
        return output if hints.fields is None or output is UNCHANGED else select(output, hints.fields)

    def _compact(self, output: Any) -> Any:
        if type(output) not in (dict, list):
            return output
        less = without_empty(output, self.members)
        # Walking the schema does not reveal dependencies between members, so validate the result.
        return less if self._output.is_valid(less) else output

    def _refuse(self, hints: TokenHints) -> Refused | None:
        if hints.since is not None and self._endpoint.since is None:
            return Refused(
                status.BAD_REQUEST,
                "since-not-supported",
                f"since: the contract of {self._endpoint} does not declare a time of change in its output.",
                {"parameter": "since"},
            )
        unknown = list(_unknown(hints.fields, self.members)) if hints.fields else []
        return _refuse_fields(unknown) if unknown else None


def _unknown(wanted: Wanted, members: Members, around: str = "") -> Iterator[tuple[str, str, Members]]:
    """Yield the fields that an output cannot have: the full name, the wrong part, and the available members."""
    for name, inside in wanted.items():
        found = members.step(name)
        if found is None:
            yield around + name, name, members
        elif inside is not None:
            yield from _unknown(inside, found, f"{around}{name}.")


def _refuse_fields(unknown: list[tuple[str, str, Members]]) -> Refused:
    whole, name, members = unknown[0]
    there = members.reachable
    around = whole[: len(whole) - len(name)]
    choice = f"available: {', '.join(there[:_MOST_NAMED])}" if there else "it has no fields"
    suggestions: dict[str, list[str]] = {}
    for given, part, inside in unknown[:_MOST_SUGGESTED]:
        near = get_close_matches(part[:_LONGEST], inside.reachable[:_MOST_COMPARED])
        if near:
            suggestions[given] = [given[: len(given) - len(part)] + one for one in near]
    details: Mapping[str, Any] = {
        "unknown": [given for given, _, _ in unknown],
        "available": [around + one for one in there[:_MOST_NAMED]],
        "suggestions": suggestions,
    }
    message = f"fields: {whole[:_LONGEST]!r} is not a field of the output; {choice}."
    return Refused(status.BAD_REQUEST, "unknown-fields", message, details)
