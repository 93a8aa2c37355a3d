"""Every test of monitors also runs with an audit trail: its records are commands among those of the steps."""

from __future__ import annotations

from tests.state.store.conftest import shared_place
from tests.stateful import audited_backend

__all__ = ["audited_backend", "shared_place"]
