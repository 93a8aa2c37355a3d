"""Policy for violations of the consistency rules, which the draft only recommends (IoA 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from bespeak.contract.ontology.verdict import Status, Violation


class ProfilePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from a violation. Rules for members always reject."""

    consistency: Status = "reject"
    """Status for a violation of a consistency rule."""
    rules: Mapping[str, Status] = {}
    """Status by the id of a consistency rule, before the general one."""
    strict_domains: bool = False
    """True if a concept of a sub-domain is not within a domain."""

    def status_of(self, violation: Violation) -> Status:
        """Return the status that a violation of a consistency rule leads to."""
        return self.rules.get(violation.rule, self.consistency)


DEFAULT_POLICY: Final = ProfilePolicy()
