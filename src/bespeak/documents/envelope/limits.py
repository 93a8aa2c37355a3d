"""Bounds of the work that a semantic payload of a stranger can cause."""

from __future__ import annotations

from typing import Final

from bespeak.documents.ontology.limits import Limits

MOST_BYTES: Final = 64 * 1024
"""Bytes of an envelope as JSON."""
MOST_REGISTRATION: Final = 1024 * 1024
"""Bytes of a capability registration as JSON."""
MOST_ITEMS: Final = 2_000
"""Members and items of an envelope that pyld reads: it takes some microseconds for each."""
MOST_REGISTRATION_ITEMS: Final = 50_000
MOST_DEPTH: Final = 48
"""Nesting of objects and lists, schemas of inputs included."""
MOST_VALUES: Final = 250
"""Values of one member, such as references or term bindings."""
MOST_TEXT: Final = 1_000
"""Characters of a term, a version or a language."""
MOST_SCHEMA: Final = 64 * 1024
"""Characters of an input or output constraint."""
MOST_TABLES: Final = 256
"""Contexts whose meaning is kept, and the bytes that each may have to be kept."""
MOST_KEY: Final = 4_096

CONTEXT_LIMITS: Final = Limits(size=4 * MOST_REGISTRATION, depth=MOST_DEPTH, contexts=8, context_terms=200)
