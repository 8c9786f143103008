"""Test suites that are not ours against a gateway: `make gateway-suites DEEPL_PYTHON=DIR ...`.

The checkouts are the caller's; nothing of them is kept. LibreTranslate's tests of its API run once,
and answers are judged by DeepL's openapi.json. DeepL's suites run twice: against the gateway
as a real server, and behind a proxy that plays DeepL's mock server. A test that fails and is not in
`expected.toml`, or is there and passes, fails the run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway import openapi
from gateway.deepl_shim import DeepLShim
from gateway.stack import KEY, stack

EXPECTED: Final = Path(__file__).with_name("expected.toml")
_BUILD: Final = Path("build/gateway-suites")
_PYTHON_NEEDS: Final = ("pydantic<2", "click", "pytest", "requests", "keyring")
Outcomes = dict[str, str]
"""`passed`, `failed` or `skipped` by the name of the test."""


def main() -> int:
    """Run the suites, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, help="checkout of deepl-python")
    parser.add_argument("--node", type=Path, help="checkout of deepl-node")
    parser.add_argument("--libretranslate", type=Path, help="checkout of LibreTranslate")
    parser.add_argument("--openapi", type=Path, help="DeepL's openapi.json")
    given = parser.parse_args()
    if not any(vars(given).values()):
        parser.error("give --python DIR, --node DIR, --libretranslate DIR or --openapi FILE")
    _BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, stack(Path(folder)) as gateway:
        return asyncio.run(_all(given, f"http://localhost:{gateway.port}"))


async def _all(given: argparse.Namespace, url: str) -> int:
    python, node = given.python, given.node
    wrong = 0
    if given.openapi is not None:
        found = await asyncio.to_thread(lambda: list(openapi.problems(given.openapi, url, KEY)))
        wrong += len(found)
        print(f"openapi.json: {openapi.count()} answers, {len(found)} problems")
        print("".join(f"  {problem}\n" for problem in found), end="")
    if given.libretranslate is not None:
        outcomes = await asyncio.to_thread(_libretranslate, given.libretranslate, url)
        wrong += _judged("libretranslate", "real", outcomes)
    async with DeepLShim(url, KEY) as shim:
        for mode in ("real", "shim"):
            env = _environment(url, shim, mode)
            if python is not None:
                outcomes = await asyncio.to_thread(_python, python, env)
                wrong += _judged("deepl-python", mode, outcomes)
            if node is not None:
                outcomes = await asyncio.to_thread(_node, node, env)
                wrong += _judged("deepl-node", mode, outcomes)
    return 1 if wrong else 0


def _environment(url: str, shim: DeepLShim, mode: str) -> dict[str, str]:
    common = {name: value for name, value in os.environ.items() if not name.startswith("DEEPL_")}
    common.pop("PYTHONPATH", None)
    if mode == "real":
        return {**common, "DEEPL_AUTH_KEY": KEY, "DEEPL_SERVER_URL": url}
    return {
        **common,
        "DEEPL_AUTH_KEY": "mock_server",
        "DEEPL_SERVER_URL": f"http://localhost:{shim.port}",
        "DEEPL_MOCK_SERVER_PORT": str(shim.port),
        "DEEPL_PROXY_URL": f"http://localhost:{shim.proxy_port}",
        "DEEPL_MOCK_PROXY_SERVER_PORT": str(shim.proxy_port),
    }


def _python(checkout: Path, env: Mapping[str, str]) -> Outcomes:
    venv = _BUILD.absolute() / "venv"
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", *_PYTHON_NEEDS]
        subprocess.run(install, check=True)
    return _pytest([str(python), "-m", "pytest"], checkout, env)


def _libretranslate(checkout: Path, url: str) -> Outcomes:
    """Run the tests of the API without their conftest.py, which starts LibreTranslate itself."""
    ours = str(Path(__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": ours, "LIBRETRANSLATE_URL": url, "LIBRETRANSLATE_KEY": KEY}
    with tempfile.TemporaryDirectory() as folder:
        for file in (checkout / "libretranslate/tests/test_api").glob("test_*.py"):
            shutil.copy(file, folder)
        plugin = ["-p", "gateway.libretranslate_client", "--rootdir", folder]
        return _pytest([sys.executable, "-m", "pytest", *plugin], Path(folder), env)


def _pytest(command: list[str], folder: Path, env: Mapping[str, str]) -> Outcomes:
    report = _BUILD.absolute() / "python.xml"
    report.unlink(missing_ok=True)
    subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"],
        cwd=folder, env=env, check=False, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - of our own pytest
    return {f"{case.get('classname')}::{case.get('name')}": _outcome(case) for case in cases}


def _outcome(case: ET.Element) -> str:
    kinds = {child.tag for child in case}
    if kinds & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in kinds else "passed"


def _node(checkout: Path, env: Mapping[str, str]) -> Outcomes:
    """Run each file in a process: in one, the library that forbids connections leaks."""
    npm = shutil.which("npm") or ""
    if not npm:
        raise SystemExit("npm is missing: install Node.js, or leave DEEPL_NODE out")
    if not (checkout / "node_modules").exists():
        subprocess.run([npm, "ci", "--no-audit", "--no-fund", "--silent"], cwd=checkout, check=True)
    found: Outcomes = {}
    report = _BUILD.absolute() / "node.json"
    for file in sorted(path for path in (checkout / "tests").rglob("*.test.ts")):
        report.unlink(missing_ok=True)
        subprocess.run(
            [npm, "exec", "--", "jest", str(file.relative_to(checkout)), "--json",
             f"--outputFile={report}", "--silent", "--coverage=false"],
            cwd=checkout, env=env, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for result in json.loads(report.read_text())["testResults"]:
            for case in result["assertionResults"]:
                name = f"{file.stem.removesuffix('.test')} > {case['fullName']}"
                outcome = str(case["status"])
                found[name] = "skipped" if outcome == "pending" else outcome
    return found


def _judged(suite: str, mode: str, found: Outcomes) -> int:
    """Print counts and surprises; return how many surprises there are."""
    (_BUILD / f"{suite}-{mode}.json").write_text(json.dumps(found, indent=1))
    expected = {
        test: each["reason"]
        for each in tomllib.loads(EXPECTED.read_text(encoding="utf-8"))[
            suite.removeprefix("deepl-")
        ]
        for test in each["tests"]
        if mode in each["modes"]
    }
    counts = Counter(found.values())
    known = sum(found.get(name) == "failed" for name in expected)
    print(
        f"{suite}, {mode} mode: {counts['passed']} of {len(found)} pass, "
        f"{counts['skipped']} are skipped by the suite, {known} fail as expected"
    )
    failed = {name for name, outcome in found.items() if outcome == "failed"}
    surprises = [f"failed: {name}" for name in sorted(failed - expected.keys())]
    surprises += [
        f"expected to fail, but did not: {name}" for name in sorted(expected.keys() - failed)
    ]
    for surprise in surprises:
        print(f"  {surprise}")
    return len(surprises)


if __name__ == "__main__":
    sys.exit(main())
