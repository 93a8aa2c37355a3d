"""The surroundings that tests lint documents in."""

from __future__ import annotations

from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.document import load_bundled

CONTEXT = LintContext(catalog=load_bundled())
