"""D101-D110, D199: rules for the text, the keys and the values of any document."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNREADABLE: Final = Rule(
    ("D101", "unreadable-file", "MUST", "reading files"),
    "The file cannot be read: it is missing, not permitted, too large or not UTF-8.",
    why=(
        "A file that cannot be read cannot be checked. Check its name and permissions, save it as UTF-8, and split it "
        "if it is too large."
    ),
)
MALFORMED: Final = Rule(
    ("D102", "malformed-text", "MUST", "reading files"),
    "The text is not well-formed YAML, JSON, TOML or brace notation.",
    why="The document cannot be parsed. Fix the syntax at the reported position, or shortly before it.",
    bad='[endpoint]\nmethod = "BOOK\n',
    good='[endpoint]\nmethod = "BOOK"\n',
)
MISSING_KEY: Final = Rule(
    ("D103", "missing-key", "MUST", "reading files"),
    "A required key is missing.",
    why="Callers need the information that the key carries. Add the key where the finding points.",
    bad='[endpoint.semantic]\nintent = "Books a room for the guest"\n',
    good='[endpoint.semantic]\nintent = "Books a room for the guest"\nactor = "agent"\n',
)
WRONG_VALUE: Final = Rule(
    ("D104", "wrong-value", "MUST", "reading files"),
    "A value has the wrong type or form.",
    why="The reader does not guess what a value of another type or form was meant to be. Write it as the message says.",
    bad='[endpoint.semantic]\nis_idempotent = "false"\n',
    good="[endpoint.semantic]\nis_idempotent = false\n",
)
UNKNOWN_KEY: Final = Rule(
    ("D105", "unknown-key", "MUST", "reading files"),
    "The key is not known.",
    why=(
        "An unknown key has no effect, and is most often a misspelling of another one. That one may guard something, "
        "so a server does not start with an unknown key in its configuration, and leaves out an endpoint that has one. "
        "Correct it, or remove it. A key of your own starts with `x-` and is only warned of."
    ),
    bad='[endpoint]\nrequired_errors = ["room_unavailable"]\n',
    good='[endpoint]\nerrors = ["room_unavailable"]\n',
    fix="unsafe",
)
WRONG_CHOICE: Final = Rule(
    ("D106", "wrong-choice", "MUST", "reading files"),
    "A value is not one of those that the key allows.",
    why="The key has a fixed list of values, and programs know only those. Choose one of them.",
    bad='[endpoint.handler]\ntype = "function"\n',
    good='[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.book_room"\n',
    fix="unsafe",
)
EARLIER_SPELLING: Final = Rule(
    ("D107", "earlier-spelling", "SHOULD", "reading files"),
    "The key is spelled as in an earlier release of the format.",
    why="The old spelling is still read here, but other readers may not know it. Write the current one.",
    bad='[endpoint.handler]\ntype = "registered_function"\nreference = "rooms.handlers.book_room"\n',
    good='[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.book_room"\n',
    fix="safe",
)
DUPLICATE: Final = Rule(
    ("D109", "said-twice", "MUST", "reading files"),
    "The same thing is declared twice.",
    why="When two places declare the same thing, sooner or later they disagree. Keep one.",
    bad=(
        '[endpoint]\ninput = {}\n\n[endpoint.input_schema]\ntype = "object"\n'
        'properties = { room_id = { type = "string" } }\nadditionalProperties = false\n'
    ),
    good=(
        '[endpoint.input_schema]\ntype = "object"\nproperties = { room_id = { type = "string" } }\n'
        "additionalProperties = false\n"
    ),
)
NOT_JSON: Final = Rule(
    ("D110", "not-json", "MUST", "reading files"),
    "A schema contains a value that JSON cannot express.",
    why="Schemas are published as JSON, which has no dates and times. Write such a value as a string.",
    bad='[endpoint.output_schema]\ntype = "object"\ndefault = { date = 2026-11-15 }\n',
    good='[endpoint.output_schema]\ntype = "object"\ndefault = { date = "2026-11-15" }\n',
)
TOO_MANY_FINDINGS: Final = Rule(
    ("D199", "too-many-findings", "MUST", "reading files"),
    "The document has more findings than are shown.",
    why="A broken document can break a rule on every line. Fix the findings that are shown and run again.",
)
