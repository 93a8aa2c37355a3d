"""D101-D110, D199: rules for the text, the keys and the values of any document."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

UNREADABLE: Final = Rule(
    "D101",
    "unreadable-file",
    "MUST",
    "reading files",
    "The file cannot be read: it is missing, forbidden, too large or not UTF-8.",
    why=(
        "Nothing is known about a file that cannot be read. Check its name and its permissions, save it as UTF-8, "
        "and split it if it is too large."
    ),
)
MALFORMED: Final = Rule(
    "D102",
    "malformed-text",
    "MUST",
    "reading files",
    "The text is not well-formed YAML, JSON, TOML or brace notation.",
    why=(
        "A text that is not in its notation has no meaning yet. Repair what stands at the place that is shown, or "
        "shortly before it."
    ),
    bad='[endpoint]\nmethod = "BOOK\n',
    good='[endpoint]\nmethod = "BOOK"\n',
    notation="toml",
)
MISSING_KEY: Final = Rule(
    "D103",
    "missing-key",
    "MUST",
    "reading files",
    "A key that must be there is missing.",
    why="A contract without the key says less than its callers need. Write the key where the finding points.",
    bad='[endpoint.semantic]\nintent = "Books a room for the guest"\n',
    good='[endpoint.semantic]\nintent = "Books a room for the guest"\nactor = "agent"\n',
    notation="toml",
)
WRONG_VALUE: Final = Rule(
    "D104",
    "wrong-value",
    "MUST",
    "reading files",
    "A value has the wrong type or form.",
    why="A value of another type or form is not taken for what it may have meant. Write it as the message says.",
    bad='[endpoint.semantic]\nis_idempotent = "false"\n',
    good="[endpoint.semantic]\nis_idempotent = false\n",
    notation="toml",
)
UNKNOWN_KEY: Final = Rule(
    "D105",
    "unknown-key",
    "SHOULD",
    "reading files",
    "Nobody reads this key.",
    why="What nobody reads has no effect, and most often the key is another one misspelled. Correct it, or remove it.",
    bad='[endpoint]\nrequired_errors = ["room_unavailable"]\n',
    good='[endpoint]\nerrors = ["room_unavailable"]\n',
    fix="unsafe",
    notation="toml",
)
WRONG_CHOICE: Final = Rule(
    "D106",
    "wrong-choice",
    "MUST",
    "reading files",
    "A value is none of those the key allows.",
    why="The key has a short list of values, and programs know only those. Choose one of them.",
    bad='[endpoint.handler]\ntype = "function"\n',
    good='[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.book_room"\n',
    fix="unsafe",
    notation="toml",
)
EARLIER_SPELLING: Final = Rule(
    "D107",
    "earlier-spelling",
    "SHOULD",
    "reading files",
    "The key is spelled as in an earlier release of the format.",
    why="The old spelling is still read, and other readers may not know it. Write the present one.",
    bad='[endpoint.handler]\ntype = "registered_function"\nreference = "rooms.handlers.book_room"\n',
    good='[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.book_room"\n',
    fix="safe",
    notation="toml",
)
DUPLICATE: Final = Rule(
    "D109",
    "said-twice",
    "MUST",
    "reading files",
    "The same thing is said twice.",
    why="Where two places say the same thing, sooner or later one of them is wrong. Keep one.",
    bad=(
        '[endpoint]\ninput = {}\n\n[endpoint.input_schema]\ntype = "object"\n'
        'properties = { room_id = { type = "string" } }\nadditionalProperties = false\n'
    ),
    good=(
        '[endpoint.input_schema]\ntype = "object"\nproperties = { room_id = { type = "string" } }\n'
        "additionalProperties = false\n"
    ),
    notation="toml",
)
NOT_JSON: Final = Rule(
    "D110",
    "not-json",
    "MUST",
    "reading files",
    "A schema holds a value that JSON cannot express.",
    why="Schemas are published as JSON, which has neither dates nor times. Write such a value as a text.",
    bad='[endpoint.output_schema]\ntype = "object"\ndefault = { date = 2026-11-15 }\n',
    good='[endpoint.output_schema]\ntype = "object"\ndefault = { date = "2026-11-15" }\n',
    notation="toml",
)
TOO_MANY_FINDINGS: Final = Rule(
    "D199",
    "too-many-findings",
    "MUST",
    "reading files",
    "The document has more findings than are shown.",
    why=(
        "A broken document can break every rule in every line, and nobody reads on. Repair what is shown and run again."
    ),
)

RULES: Final = (
    UNREADABLE,
    MALFORMED,
    MISSING_KEY,
    WRONG_VALUE,
    UNKNOWN_KEY,
    WRONG_CHOICE,
    EARLIER_SPELLING,
    DUPLICATE,
    NOT_JSON,
    TOO_MANY_FINDINGS,
)
