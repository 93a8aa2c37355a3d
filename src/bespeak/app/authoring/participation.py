"""Decorators by which functions of a service take part in standard methods."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

from bespeak.contract.participant import Participant
from bespeak.errors import ContractError
from bespeak.runtime.bindings.participant import bind_participant
from bespeak.runtime.functions.reading import locate


class Participation:
    """The part of `App` that declares participants: each decorator builds one and gives it to `_join`."""

    _participants: list[Participant]
    _overrides: dict[Hashable, Callable[..., Any]]

    def _join(self, participant: Participant) -> None:
        """Add a participant. Raises ContractError if it cannot take part, with the place of its first function."""
        participant = replace(participant, overrides=self._overrides)
        fault = participant.find_fault(self._participants)
        for role, joined in participant.functions.items():
            bound = fault or bind_participant(participant, role, joined)
            if isinstance(bound, str):
                what = f"the {participant.kind} {participant.name[:80]!r} cannot be declared"
                raise ContractError(f"{locate(joined.function)}: {what}: {bound}")
        self._participants.append(participant)
