"""The surroundings that tests lint documents in."""

from __future__ import annotations

from bespeak.catalog.bundled import load_bundled
from bespeak.lint.context import Context

CONTEXT = Context(catalog=load_bundled())
