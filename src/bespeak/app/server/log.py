"""The log of a server: lines of text or JSON on standard error, which callers cannot forge."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from bespeak.runtime.exchange import ACCESS_LOGGER
from bespeak.text.diagnostics.diagnostic import Diagnostic, printable

LEVELS: Final = ("error", "warning", "info", "debug")  # failures, warnings for operators, answers, particulars
FORMATS: Final = ("text", "json")
# Libraries that log request URLs, including their query, at the info and debug levels.
_CHATTY: Final = ("asyncio", "asyncpg", "httpcore", "httpx", "mcp")
_IN_TEXT: Final = ("principal", "request", "task", "audit", "response")  # what a line names by its id


def log_to_stderr(level: str, form: str = "text") -> None:
    handler = logging.StreamHandler(sys.stderr)
    text = TerminalLines if sys.stderr.isatty() else TextLines
    handler.setFormatter(JsonLines() if form == "json" else text())
    root = logging.getLogger()
    for earlier in [known for known in root.handlers if isinstance(known.formatter, TextLines | JsonLines)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def log_findings(findings: Iterable[Diagnostic]) -> None:
    """Log the findings about a deployment, for operators who only read the log."""
    logger = logging.getLogger(f"{__package__}.findings")
    for finding in findings:
        place = {"place": str(finding.location)} if finding.location else {}
        particulars = {"rule": finding.rule, **place, "help": finding.help or None}
        level = logging.getLevelNamesMapping()[finding.severity.upper()]
        logger.log(level, "%s", finding.message, extra={"particulars": particulars})


class TextLines(logging.Formatter):
    """Text format: `2026-11-16T09:30:00.125Z INFO bespeak.access: 200 QUERY /rooms request=... response=...`"""

    def format(self, record: logging.LogRecord) -> str:
        """Format one line; a traceback follows indented, so that none of its lines looks like an entry."""
        particulars: dict[str, Any] = getattr(record, "particulars", {})
        message = printable(record.getMessage())
        # A space in a value would start another field.
        named = {name: printable(particulars.get(f"{name}_id") or "").replace(" ", "\\x20") for name in _IN_TEXT}
        ids = "".join(f" {name}={text}" for name, text in named.items() if text)
        trace = "".join(f"\n    {printable(line)}" for line in _trace(self, record).splitlines())
        return f"{_time(record)} {record.levelname} {record.name}: {message}{ids}{trace}"


class TerminalLines(TextLines):
    """Text for somebody who watches: an answer is a short line, with the path as it was sent if nothing is there."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        if not hasattr(record, "asked"):
            refused = record.name == ACCESS_LOGGER and record.levelno == logging.INFO
            return f"{clock} {printable(record.getMessage())}" if refused else super().format(record)
        given: dict[str, Any] = record.particulars  # type: ignore[attr-defined] # set by the access log
        path = given["path"] if record.asked is None else record.asked.text
        caller = (given.get("agent_id") or "anonymous")[:12]
        line = f"{given['status']} {given['method']} {path} {caller} {given['ms']:.1f} ms {given['code'] or ''}"
        return f"{clock} {printable(line.rstrip())}"


class JsonLines(logging.Formatter):
    """JSON format: one object per entry, with the particulars of the request as members."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one line: JSON escapes line breaks and control characters."""
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: value for name, value in getattr(record, "particulars", {}).items() if value is not None}
        trace = _trace(self, record)
        if trace:
            entry["exception"] = trace
        try:
            return _escape(msgspec.json.encode(entry).decode())
        except UnicodeEncodeError:  # a lone surrogate, which UTF-8 does not have
            safe = {name: printable(value) if isinstance(value, str) else value for name, value in entry.items()}
            return _escape(msgspec.json.encode(safe).decode())


def _time(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return formatter.formatException(record.exc_info) if record.exc_info else ""


def _escape(line: str) -> str:
    """Encode as JSON, escaping all characters that terminals or line readers interpret: DEL, NEL, U+2028 and so on."""
    return line if line.isprintable() else "".join(c if c.isprintable() else _unicode_escape(c) for c in line)


def _unicode_escape(char: str) -> str:
    """Escape a character for JSON; use a surrogate pair beyond the first plane."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
