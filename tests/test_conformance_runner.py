"""What runs the official suite can fail: for want of the suite, of tests, or of success."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "array_api_tests"


def _runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("array_api_tests_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = _runner()


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return a folder that looks like the suite, with tests of each outcome."""
    folder = tmp_path / "suite"
    for part in ("array_api_tests", "array-api/src/array_api_stubs"):
        (folder / part).mkdir(parents=True)
    (folder / "array_api_tests" / "__init__.py").touch()
    (folder / "pytest.ini").write_text("[pytest]\n")
    options = ("--max-examples", "--disable-deadline", "--xfails-file")
    (folder / "conftest.py").write_text(
        "def pytest_addoption(parser):\n"
        + "".join(f"    parser.addoption({option!r}, action='store')\n" for option in options[::2])
        + f"    parser.addoption({options[1]!r}, action='store_true')\n"
    )
    return folder


def _run(suite: Path, tests: str, capfd: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    (suite / "array_api_tests" / "test_some.py").write_text("import pytest\n" + tests)
    code = run.main(["--suite", str(suite), "--workers", "0", *more])
    return code, capfd.readouterr().out.splitlines()[-1]


MANY = "@pytest.mark.parametrize('n', range(1000))\ndef test_many(n): pass\n"
SKIPS = "@pytest.mark.parametrize('n', range({}))\ndef test_skipped(n): pytest.skip('left out')\n"


def test_success_is_reported_in_one_line(suite: Path, capfd: Any) -> None:
    code, line = _run(suite, MANY + SKIPS.format(5), capfd, "--compile", "off", "--examples", "3")
    assert code == 0
    assert line == (
        "array_api_tests: 0 failed, 1000 passed, 5 skipped (compile=off device=cpu examples=3)"
    )


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        (MANY + "def test_wrong(): assert False\n", "1 failed"),
        (MANY + "@pytest.mark.xfail\ndef test_wrong(): assert False\n", "1 xfailed"),
        (MANY + "@pytest.mark.xfail\ndef test_right(): pass\n", "1 xpassed"),
        (MANY + "@pytest.fixture\ndef f(): assert False\ndef test_no(f): pass\n", "1 error"),
        (MANY + SKIPS.format(6), "more than the 5 skipped"),
        ("def test_alone(): pass\n", "only 1 tests ran"),
        ("import nothing_of_this_name\n" + MANY, "only 0 tests ran"),
    ],
)  # fmt: skip
def test_anything_else_is_a_failure(tests: str, why: str, suite: Path, capfd: Any) -> None:
    code, line = _run(suite, tests, capfd)
    assert code == 1
    assert why in line


def test_an_absent_suite_is_an_error(
    tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FKLARRAY_ARRAY_API_TESTS", str(tmp_path))
    for arguments in ([], ["--suite", str(tmp_path / "nowhere")]):
        assert run.main(arguments) == 2
        assert "no official suite in" in capfd.readouterr().err


def test_a_crash_is_an_error(suite: Path, capfd: Any) -> None:
    (suite / "conftest.py").write_text("raise SystemExit(3)\n")
    assert run.main(["--suite", str(suite), "--workers", "0"]) == 2
    assert "before it could report" in capfd.readouterr().err


def test_a_fresh_checkout_is_cloned(
    suite: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (suite / "array_api_tests" / "test_some.py").write_text("import pytest\n" + MANY)
    (suite / "array-api" / "src" / "array_api_stubs" / "x.py").touch()
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-C", str(suite)]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(run, "REPOSITORY", suite.as_uri())
    assert run.main(["--fresh", "--workers", "0"]) == 0
    assert "1000 passed" in capfd.readouterr().out
    monkeypatch.setattr(run, "REPOSITORY", (suite / "gone").as_uri())
    assert run.main(["--fresh"]) == 2


def test_no_failure_is_expected() -> None:
    text = run.XFAILS.read_text("utf-8")
    assert all(line.startswith("#") for line in text.splitlines())


def test_an_unfinished_report_has_no_success(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"summary": {"passed": 1200, "total": 1200}}))
    assert run.judge(report, 0) == ({"passed": 1200, "total": 1200}, [])
    assert run.judge(report, 3)[1] == ["pytest ended with exit code 3"]
