"""What is wrong with one document, collected while it is read, and the rules the readers report under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity, has_errors
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.source.span import Location

RULES: Final = {
    "D101": "The file cannot be read: it is missing, forbidden, too large or not UTF-8.",
    "D102": "The text is not well-formed YAML, JSON, TOML or brace notation.",
    "D103": "A key that must be there is missing.",
    "D104": "A value has the wrong type or form.",
    "D105": "Nobody reads this key.",
    "D106": "A value is none of those the key allows.",
    "D107": "The key is spelled as in an earlier release of the format.",
    "D108": "A handler is written in a form that AGTP-API 12 does not support.",
    "D109": "The same thing is said twice.",
    "D110": "A schema holds a value that JSON cannot express.",
    "D111": "Two files declare the same endpoint.",
    "D112": "A folder is reached by two names, perhaps through a link back into itself.",
    "D113": "The folder has nothing to serve.",
    "D114": "The file is of a kind this server does not use.",
    "D115": "An agent identity document is not complete.",
    "D116": "An endpoint of a manifest cannot be used.",
    "D117": "A method is not written in capitals.",
    "D118": "Nothing is declared, and a default is taken.",
    "D119": "A contract written in Python is not looked at.",
    "D160": "The document is no OpenAPI description that can be read as one.",
    "D161": "A reference in a description leads nowhere, in a circle, or to where nothing is fetched from.",
    "D162": "A schema of a description reaches more than one endpoint can carry, and is cut.",
    "D163": "A part of a schema in a description cannot be used, and is left out.",
    "D164": "A parameter of a description is not described so that it can be sent.",
    "D165": "A part of a description is not imported.",
    "D166": "Two operations of a description have one operationId.",
    "D167": "A description leaves open at which address its operations are called.",
    "D168": "A description leaves open how a body is sent.",
    "D169": "A security scheme of a description cannot be used.",
    "D196": "A document that is published holds private key material.",
    "D197": "An Agent Genesis does not hold: its id or its signature is not that of its content.",
    "D198": "The trust tier of an agent asks for a proof that is not named.",
    "D199": "The document has more findings than are shown.",
    "W101": "A document on the web cannot be had: there is no connection, no answer, or nobody to trust.",
    "W102": "An address is none that may be asked.",
    "W103": "What a server answers is not the document that was asked for.",
    "W104": "The robots.txt of a site does not let a document be asked for.",
    "W105": "A document of a service cannot be used.",
    "W106": "A capability cannot be used, and is left out.",
    "W107": "A document has more than is taken of it.",
    "W108": "A service says how its content may be used.",
    "W109": "A capability is at another host than its service.",
    "Y804": "legacy lists nothing but the five HTTP verbs.",
    "Y820": "The identity of the server is not given in full.",
    "Y821": "This server does not act on a setting.",
    "Y822": "Settings contradict each other.",
    "Y850": "A mode of authentication is none of those there are.",
    "Y851": "The modes of authentication exclude each other.",
    "Y852": "Tokens are to be verified, and it is not clear with which keys.",
    "Y853": "The keys of tokens would be fetched from where they are not safe.",
    "Y854": "Tokens would be verified with an algorithm that is not allowed.",
    "Y855": "A time of the authentication is out of its bounds.",
    "Y856": "Certificates are to be verified, and it is not said by which authorities.",
    "Y857": "A table is for a mode of authentication that is not in force.",
    "Y858": "A setting of the authentication is there and says nothing.",
    "Y870": "A field to be recorded names no endpoint.",
    "Y871": "Records are to be signed, and there is no key.",
    "Y872": "The distance of checkpoints is out of its bounds.",
    "Y873": "A field that sounds like a secret is to be recorded.",
    "Y874": "A setting of the audit trail has no effect.",
    "Y875": "The store would be at a place of which no kind is known.",
    "Y876": "The password of the database stands in the configuration.",
    "Y877": "A time of the idempotency keys is out of its bounds.",
    "Y878": "A setting of sessions or cases is out of its bounds.",
    "Y880": "A cost is an amount in one of the registered units.",
    "Y881": "A rate limit is written as a count for a time.",
    "Y890": "A category of the service is none of those there are.",
    "Y891": "A setting of the HTTP face is no address of the web.",
    "Y892": "Endpoints are published on the web, and nothing limits how often they are called.",
    "Y893": "A trusted proxy is no address and no network.",
    "Y894": "A language of the service is no tag of BCP 47.",
}
"""Every rule of this package by its id. Lint has the same Y804 for contracts that were not read from a file,
the server the same Y821, and a scan of a deployment reports D119."""

_MOST: Final = 100
"""A broken document can break every rule in every line; nobody reads more than these."""


class Findings:
    """The findings of one document. A place is looked up only when there is something to report at it."""

    __slots__ = ("found", "locate", "tolerant")

    def __init__(self, locate: Callable[[str], Location], *, tolerant: bool = False) -> None:
        self.locate = locate
        """The place of a pointer."""
        self.tolerant = tolerant
        """Somebody else's document: errors are warnings, and keys nobody knows are none of our business."""
        self.found: list[Diagnostic] = []

    @property
    def failed(self) -> bool:
        """Whether the document cannot be used."""
        return has_errors(self.found)

    @property
    def full(self) -> bool:
        """Whether more findings would help nobody."""
        return len(self.found) > _MOST

    def error(self, rule: str, message: str, at: str = "", advice: str = "", fix: Fix | None = None) -> None:
        """Report what keeps the document from being used."""
        severity: Severity = "warning" if self.tolerant else "error"
        self._add(Diagnostic(rule, severity, message, None, at, advice, fix))

    def warning(self, rule: str, message: str, at: str = "", advice: str = "", fix: Fix | None = None) -> None:
        """Report what the author should look at."""
        self._add(Diagnostic(rule, "warning", message, None, at, advice, fix))

    def info(self, rule: str, message: str, at: str = "", advice: str = "") -> None:
        """Report what the author may want to know."""
        self._add(Diagnostic(rule, "info", message, None, at, advice))

    def _add(self, finding: Diagnostic) -> None:
        if len(self.found) < _MOST:
            self.found.append(replace(finding, location=self.locate(finding.pointer)))
        elif len(self.found) == _MOST:
            # What is no longer looked at may hold errors, so that it counts as one.
            grave: Severity = "warning" if self.tolerant else "error"
            rest = f"only the first {_MOST} findings are shown"
            self.found.append(Diagnostic("D199", grave, rest, self.locate(""), help="Repair these first."))
