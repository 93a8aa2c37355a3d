"""Every rule that a comparison of contracts can name. Settings of the lint do not select them."""

from __future__ import annotations

from typing import Final

from bespeak.checks.evolution import approvals, change, contract_diff, endpoint_diff, schema_diff, version_bump
from bespeak.text.diagnostics.diagnostic import declared_in

RULES: Final = declared_in(change, contract_diff, endpoint_diff, schema_diff, approvals, version_bump)
"""All rules by id."""
