"""Run every check against a live server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bespeak.agent.client.errors import UnreachableError
from bespeak.agent.client.tls import choose_tls
from bespeak.app.conformance.check import Check, Outcome, could_not_tell, failed
from bespeak.app.conformance.checks import (
    advisories,
    codes,
    endpoints,
    headers,
    input,  # noqa: A004 - item 10 is about input
    inventory,
    manifest,
    negotiation,
    paths,
    policy,
    vocabulary,
)
from bespeak.app.conformance.direct import direct_sender
from bespeak.app.conformance.report import Report, Result
from bespeak.app.conformance.subject import Subject
from bespeak.errors import BespeakError, RemoteProtocolError
from bespeak.protocol.locator import parse_uri

_LAST: Final = headers.CHECKS
"""Checks about all exchanges, which run last."""

CHECKS: Final[tuple[Check, ...]] = (
    *sorted(
        (
            *endpoints.CHECKS,
            *vocabulary.CHECKS,
            *paths.CHECKS,
            *policy.CHECKS,
            *manifest.CHECKS,
            *negotiation.CHECKS,
            *codes.CHECKS,
            *input.CHECKS,
            *advisories.CHECKS,
            *inventory.CHECKS,
        ),
        key=lambda check: check.id,
    ),
    *_LAST,
)
"""All checks, in the order of the items of AGTP-API 13.1."""


async def run_conformance(
    uri: str,
    *,
    agent_id: str | None = None,
    tls: bool = False,
    ca_file: str | Path | None = None,
    verify: bool = True,
    insecure: bool = False,
    timeout: float = 10.0,  # noqa: ASYNC109 - the deadline of each request
) -> Report:
    """Run every check against the server at an agtp URI. `timeout` applies to each request.

    Raises UnreachableError if the server does not answer at all, ConfigError for an unusable URI.
    """
    locator = parse_uri(uri)
    context = choose_tls(locator, tls=tls, ca_file=ca_file, verify=verify, insecure=insecure)
    send = direct_sender(locator.host, locator.port, tls=context, timeout=timeout)
    try:
        subject = await Subject.meet(send, agent_id)
    except (OSError, UnicodeError, RemoteProtocolError) as error:
        raise UnreachableError(f"{locator} does not answer DISCOVER: {_reason(error)}") from error
    try:
        results = [Result(check, check.judge(await _run(check, subject))) for check in CHECKS]
    finally:
        await subject.release()
    return Report(str(locator), subject.manifest, subject.agent_id, tuple(results))


async def _run(check: Check, subject: Subject) -> Outcome:
    if check.needs_manifest and not subject.has_manifest:
        return could_not_tell("the server did not return its manifest", subject.manifest_answer)
    try:
        return await check.run(subject)
    except OSError as error:  # also a timeout: a slow or overloaded server has not answered yet
        return could_not_tell(f"no answer: {_reason(error)}")
    except BespeakError as error:
        return failed(f"no answer: {_reason(error)}")
    except RecursionError:
        return failed("a response is nested too deeply to be parsed")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return str(error) or type(error).__name__
