"""The surroundings that tests lint documents in."""

from __future__ import annotations

from bespeak.checks.lint.context import Context
from bespeak.contract.catalog.bundled import load_bundled

CONTEXT = Context(catalog=load_bundled())
