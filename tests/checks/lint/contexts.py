"""The surroundings that tests lint documents in."""

from __future__ import annotations

from bespeak.checks.lint.subject import Context
from bespeak.contract.catalog.document import load_bundled

CONTEXT = Context(catalog=load_bundled())
