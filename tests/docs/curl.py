"""The options of curl that the pages use, for machines without curl: `python curl.py URL ...`."""

from __future__ import annotations

import argparse
import ssl
import sys
from pathlib import Path

import httpx


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("curl", add_help=False)
    parser.add_argument("url")
    parser.add_argument("-s", "--silent", action="store_true")
    parser.add_argument("-i", "--include", action="store_true")
    parser.add_argument("-I", "--head", action="store_true")
    parser.add_argument("-X", "--request")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("--cacert")
    parser.add_argument("-F", "--form", action="append", default=[])
    given = parser.parse_args(arguments)
    headers = [tuple(part.strip() for part in line.split(":", 1)) for line in given.header]
    if given.json is not None:
        headers += [("Content-Type", "application/json"), ("Accept", "application/json")]
    form = dict(part.split("=", 1) for part in given.form)
    paths = {name: Path(value[1:]) for name, value in form.items() if value.startswith("@")}
    files = {name: (path.name, path.read_bytes()) for name, path in paths.items()}
    sent = {"data": {name: value for name, value in form.items() if name not in files}, "files": files} if form else {}
    method = given.request or ("HEAD" if given.head else "POST" if given.json is not None or form else "GET")
    trust = ssl.create_default_context(cafile=given.cacert) if given.cacert else True
    sent |= {"content": given.json, "headers": headers, "verify": trust}
    answer = httpx.request(method, given.url, trust_env=False, **sent)
    if given.include or given.head:
        lines = [f"{answer.http_version} {answer.status_code} {answer.reason_phrase}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.multi_items()]
        sys.stdout.write("\n".join(lines) + "\n\n")
    sys.stdout.write(answer.text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
