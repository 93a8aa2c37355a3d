"""V551-V562: rules for catalog documents (AGTP-API 3.1, 4.2)."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

NOT_JSON: Final = Rule(
    "V551",
    "catalog-malformed",
    "MUST",
    "AGTP-API 4.2",
    "The text is not well-formed JSON.",
    why="A catalog that is no JSON gives no verbs at all. Repair what stands at the place that is shown.",
)
MISSING_KEY: Final = Rule(
    "V552",
    "catalog-missing-key",
    "MUST",
    "AGTP-API 4.2",
    "A key that must be there is missing.",
    why="Every verb is judged by its entry, and a catalog by its version. Add the key that is missing.",
)
WRONG_TYPE: Final = Rule(
    "V553",
    "catalog-wrong-value",
    "MUST",
    "AGTP-API 4.2",
    "A value has the wrong type or is empty.",
    why="A value in another form is not guessed at. Write it as the message says.",
)
BAD_NAME: Final = Rule(
    "V554",
    "catalog-verb-name",
    "MUST",
    "AGTP-API 4.2",
    "A verb is not 3 to 32 capital letters, or is an HTTP method.",
    why="A verb that no request can carry, or that means something else to HTTP, cannot be called. Rename it.",
)
UNKNOWN_CATEGORY: Final = Rule(
    "V555",
    "catalog-unknown-category",
    "MUST",
    "AGTP-API 4.2",
    "A verb is in a category that the document does not define.",
    why="Agents look for verbs by category. Use one that the document defines, or define it.",
)
UNKNOWN_VERB: Final = Rule(
    "V556",
    "catalog-unknown-verb",
    "MUST",
    "AGTP-API 4.2",
    "A successor, a preferred or an embedded verb is not in the catalog.",
    why="Whoever follows the name finds nothing. Correct it, or add the verb.",
)
BAD_VERSION: Final = Rule(
    "V557",
    "catalog-version",
    "MUST",
    "AGTP-API 4.2",
    "A version is not MAJOR.MINOR.PATCH.",
    why=(
        "Which of two catalogs is the newer one is decided by their numbers. Write three numbers with points "
        "between them."
    ),
)
FLOOR_INCOMPLETE: Final = Rule(
    "V558",
    "catalog-floor-incomplete",
    "MUST",
    "AGTP-API 4.2",
    "A floor method is not embedded.",
    why="Every server supports the twelve floor methods, whatever its catalog. Add what is missing.",
)
LEGACY_SET: Final = Rule(
    "V559",
    "catalog-legacy-verbs",
    "MUST",
    "AGTP-API 4.2",
    "The legacy verbs are not the five HTTP verbs.",
    why="Servers map these five for old callers and no others. List exactly them, each with its verb.",
)
UNKNOWN_KEY: Final = Rule(
    "V560",
    "catalog-unknown-key",
    "SHOULD",
    "AGTP-API 4.2",
    "Nobody reads this key, or two keys mean the same.",
    why="What nobody reads has no effect. Correct the spelling, or remove the key.",
)
ODD_DEPRECATION: Final = Rule(
    "V561",
    "catalog-odd-deprecation",
    "SHOULD",
    "AGTP-API 4.2",
    "A deprecation has no effect, or contradicts the version of the catalog.",
    why=(
        "Authors plan by these versions: a deprecation in a later catalog than this, or an end before the "
        "beginning, helps nobody. Correct them."
    ),
)
UNREADABLE: Final = Rule(
    "V562",
    "catalog-unreadable",
    "MUST",
    "AGTP-API 4.2",
    "The file cannot be read, or is too large.",
    why="Without a catalog no method can be judged. Check the path, the permissions and the size of the file.",
)

RULES: Final = (
    NOT_JSON,
    MISSING_KEY,
    WRONG_TYPE,
    BAD_NAME,
    UNKNOWN_CATEGORY,
    UNKNOWN_VERB,
    BAD_VERSION,
    FLOOR_INCOMPLETE,
    LEGACY_SET,
    UNKNOWN_KEY,
    ODD_DEPRECATION,
    UNREADABLE,
)
