"""Names of `text.language.names`, for the modules that still import them from here."""

from bespeak.text.language.names import CURSORS, LIMITS, OFFSETS, PAGES, is_plural, join, plural, stems, words

__all__ = ["CURSORS", "LIMITS", "OFFSETS", "PAGES", "is_plural", "join", "plural", "stems", "words"]
