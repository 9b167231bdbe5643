"""Run the array API standard's official test suite on fklarray.

    python array_api_tests/run.py                            # every kernel compiled when it is met
    python array_api_tests/run.py --compile background --examples 50
    python array_api_tests/run.py --device cuda:0            # every array on a device
    python array_api_tests/run.py --suite PATH               # a checkout of the suite
    python array_api_tests/run.py --fresh                    # the newest one, cloned for this run

The suite is looked for in ``--suite``, in the folder that the environment variable
``FKLARRAY_ARRAY_API_TESTS`` names, and in ``../shared/array-api-tests`` beside this checkout; where
none is named and there is none, it is cloned. That it cannot be had is an error, as is a test that
fails, and more skipped tests than NumPy has.

Needs the extra ``test``. This folder has no ``__init__.py``, which would hide the suite's package
of the same name.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BESIDE = ROOT.parent / "shared" / "array-api-tests"
XFAILS = HERE / "xfails.txt"
REPOSITORY = "https://github.com/data-apis/array-api-tests"

# What the suite skips for NumPy: tests of what a library may leave out.
MOST_SKIPPED = 5
# Far below what the suite has: a run of less has not looked at everything.
FEWEST_TESTS = 1000


class UnusableError(Exception):
    """The suite cannot be run, or its result cannot be trusted; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite; return 0 if everything passed."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="array-api-tests-") as scratch:
        try:
            fresh = options.fresh or not (options.suite or _named() or BESIDE.is_dir())
            suite = clone(Path(scratch)) if fresh else find_suite(options.suite)
            report = Path(scratch, "report.json")
            code = subprocess.run(
                command(suite, report, options), env=environment(options), check=False
            ).returncode
            counts, faults = judge(report, code)
        except UnusableError as error:
            print(f"array_api_tests: {error}", file=sys.stderr)
            return 2
    what = f"compile={options.compile} device={options.device} examples={options.examples}"
    told = ", ".join(f"{counts.get(name, 0)} {name}" for name in ("failed", "passed", "skipped"))
    print(f"array_api_tests: {told} ({what})" + "".join(f"; {fault}" for fault in faults))
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", type=Path, help="folder of a checkout of the suite")
    parser.add_argument("--fresh", action="store_true", help=f"clone {REPOSITORY} first")
    parser.add_argument("--device", default="cpu", help="where arrays live: cpu, cuda:0")
    parser.add_argument("--compile", choices=["sync", "background", "off"], default="sync")
    parser.add_argument("--examples", type=int, default=100, help="Hypothesis examples per test")
    parser.add_argument("--seed", type=int, help="seed of Hypothesis; random without it")
    parser.add_argument("--workers", default="auto", help="processes; auto is one per core")
    return parser


def _named() -> str | None:
    return os.environ.get("FKLARRAY_ARRAY_API_TESTS")


def find_suite(given: Path | None) -> Path:
    """Return the suite's folder.

    Raises
    ------
    UnusableError
        If it is not there, or is no complete checkout.
    """
    suite = (given or Path(_named() or BESIDE)).resolve()
    for part in ("conftest.py", "array_api_tests/__init__.py", "array-api/src/array_api_stubs"):
        if not (suite / part).exists():
            raise UnusableError(
                f"no official suite in {suite} ({part} is missing); name a checkout of "
                f"{REPOSITORY}, submodules included, by --suite or FKLARRAY_ARRAY_API_TESTS, "
                "or let --fresh clone it"
            )
    return suite


def clone(scratch: Path) -> Path:
    """Return a new checkout of the suite.

    Raises
    ------
    UnusableError
        If it cannot be cloned.
    """
    suite = scratch / "suite"
    git = ["git", "clone", "--quiet", "--depth=1", "--recurse-submodules", "--shallow-submodules"]
    try:
        subprocess.run([*git, REPOSITORY, str(suite)], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnusableError(f"{REPOSITORY} cannot be cloned: {error}") from None
    return find_suite(suite)


def command(suite: Path, report: Path, options: argparse.Namespace) -> list[str]:
    """Return the command line that runs the suite."""
    return [
        *(sys.executable, "-m", "pytest", str(suite / "array_api_tests"), "--quiet", "--tb=short"),
        *("-c", str(suite / "pytest.ini"), f"--rootdir={suite}", "-p", "no:cacheprovider"),
        *("-p", "on_device"),
        *("-n", options.workers, f"--max-examples={options.examples}", "--disable-deadline"),
        *([] if options.seed is None else [f"--hypothesis-seed={options.seed}"]),
        *(f"--xfails-file={XFAILS}", "--json-report", f"--json-report-file={report}"),
        *("--json-report-omit", "log", "streams", "keywords", "collectors", "warnings"),
    ]


def environment(options: argparse.Namespace) -> dict[str, str]:
    """Return the environment of a run: what is tested, and folders that can be written to."""
    cache = ROOT / ".cache"
    cache.mkdir(exist_ok=True)
    kernels = cache / "test-kernels"
    kernels.mkdir(mode=0o700, exist_ok=True)
    return {
        "FKLARRAY_CACHE_DIR": str(kernels),
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "fklarray",
        "FKLARRAY_COMPILE": options.compile,
        "FKLARRAY_SUITE_DEVICE": options.device,
        "HYPOTHESIS_STORAGE_DIRECTORY": str(cache / "array-api-tests"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }


def judge(report: Path, code: int) -> tuple[Mapping[str, int], list[str]]:
    """Return pytest's counts of outcomes, and what is wrong with them.

    Raises
    ------
    UnusableError
        If pytest wrote no report.
    """
    if not report.is_file():
        raise UnusableError(f"pytest ended with exit code {code} before it could report anything")
    counts: Mapping[str, int] = json.loads(report.read_text("utf-8"))["summary"]
    faults = [
        f"{counts[outcome]} {outcome}"
        for outcome in ("error", "xfailed", "xpassed")
        if counts.get(outcome)
    ]
    if counts.get("skipped", 0) > MOST_SKIPPED:
        faults.append(f"more than the {MOST_SKIPPED} skipped for NumPy")
    if counts.get("total", 0) < FEWEST_TESTS:
        faults.append(f"only {counts.get('total', 0)} tests ran")
    if counts.get("failed") or (code and not faults):
        faults.append(f"pytest ended with exit code {code}")
    return counts, faults


if __name__ == "__main__":
    sys.exit(main())
