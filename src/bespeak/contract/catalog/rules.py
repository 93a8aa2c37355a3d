"""V551-V562: rules for catalog documents (AGTP-API 3.1, 4.2)."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

NOT_JSON: Final = Rule(
    ("V551", "catalog-malformed", "MUST", "AGTP-API 4.2"),
    "The catalog is not well-formed JSON.",
    why="A catalog that cannot be parsed provides no verbs. Fix the syntax at the reported position.",
)
MISSING_KEY: Final = Rule(
    ("V552", "catalog-missing-key", "MUST", "AGTP-API 4.2"),
    "A required key is missing.",
    why="Each verb is checked against its entry, and a catalog is identified by its version. Add the missing key.",
)
WRONG_TYPE: Final = Rule(
    ("V553", "catalog-wrong-value", "MUST", "AGTP-API 4.2"),
    "A value has the wrong type or is empty.",
    why="The reader does not guess what a value of another form was meant to be. Write it as the message says.",
)
BAD_NAME: Final = Rule(
    ("V554", "catalog-verb-name", "MUST", "AGTP-API 4.2"),
    "A verb is not 3 to 32 capital letters, or is an HTTP method.",
    why="A verb that a request cannot carry, or that has another meaning in HTTP, cannot be called. Rename it.",
)
UNKNOWN_CATEGORY: Final = Rule(
    ("V555", "catalog-unknown-category", "MUST", "AGTP-API 4.2"),
    "A verb has a category that the document does not define.",
    why="Agents look for verbs by category. Use a category that the document defines, or define it.",
)
UNKNOWN_VERB: Final = Rule(
    ("V556", "catalog-unknown-verb", "MUST", "AGTP-API 4.2"),
    "A successor, a preferred or an embedded verb is not in the catalog.",
    why="A reader that follows the name finds no entry. Correct it, or add the verb.",
)
BAD_VERSION: Final = Rule(
    ("V557", "catalog-version", "MUST", "AGTP-API 4.2"),
    "A version is not MAJOR.MINOR.PATCH.",
    why="The numbers decide which of two catalogs is newer. Write three numbers separated by dots.",
)
FLOOR_INCOMPLETE: Final = Rule(
    ("V558", "catalog-floor-incomplete", "MUST", "AGTP-API 4.2"),
    "A floor method is not embedded.",
    why="Every server supports the twelve floor methods, whatever its catalog. Add the missing ones.",
)
LEGACY_SET: Final = Rule(
    ("V559", "catalog-legacy-verbs", "MUST", "AGTP-API 4.2"),
    "The legacy verbs are not the five HTTP verbs.",
    why="Servers map exactly these five for old callers. List all five, each with its verb.",
)
UNKNOWN_KEY: Final = Rule(
    ("V560", "catalog-unknown-key", "SHOULD", "AGTP-API 4.2"),
    "A key is not known, or two keys mean the same.",
    why="An unknown key has no effect. Correct the spelling, or remove the key.",
)
ODD_DEPRECATION: Final = Rule(
    ("V561", "catalog-odd-deprecation", "SHOULD", "AGTP-API 4.2"),
    "A deprecation has no effect, or contradicts the version of the catalog.",
    why=(
        "Authors plan by these versions. A deprecation in a later catalog than this one, or a removal before the "
        "deprecation, misleads them. Correct the versions."
    ),
)
UNREADABLE: Final = Rule(
    ("V562", "catalog-unreadable", "MUST", "AGTP-API 4.2"),
    "The catalog file cannot be read, or is too large.",
    why="Without a catalog no method can be checked. Check the path, the permissions and the size of the file.",
)
