"""A terminal says so while the user waits for a compiler, and nothing else does."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

WAIT = """
import sys, time
from fklarray.progress import waiting
with waiting("builds a bridge"):
    time.sleep(float(sys.argv[1]))
print("done")
"""
FAIL = """
import threading, time
from fklarray.progress import waiting
try:
    with waiting("builds a bridge"), waiting("and another"):
        time.sleep(1)
        raise KeyError
except KeyError:
    pass
# Rich's own thread may still be ending.
assert "fklarray progress" not in [thread.name for thread in threading.enumerate()]
"""


def _on_a_terminal(code: str, *arguments: str) -> tuple[str, str]:
    """Run code whose stderr is a terminal; return what it wrote to stdout and there."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
        text=True,
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # nobody has it open any more
                break
            if not part:
                break
            shown += part
        out, _ = process.communicate()
    os.close(ours)
    assert process.returncode == 0, shown
    return out, shown.decode()


def test_long_waits_are_shown_on_a_terminal_and_gone_after() -> None:
    out, shown = _on_a_terminal(WAIT, "1.2")
    assert out == "done\n"
    assert "builds a bridge" in shown
    # The line is erased at the end.
    assert shown.rindex("\x1b[2K") > shown.rindex("builds a bridge")


def test_short_waits_are_not_shown() -> None:
    assert _on_a_terminal(WAIT, "0.05") == ("done\n", "")


def test_a_failure_ends_the_line_and_its_thread() -> None:
    _, shown = _on_a_terminal(FAIL)
    assert "builds a bridge" in shown
    assert "and another" not in shown


@pytest.mark.parametrize("code", [WAIT, "import sys; sys.stderr = None\n" + WAIT])
def test_nothing_is_shown_elsewhere(code: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", code, "0.8"], capture_output=True, text=True, check=True
    )
    assert (run.stdout, run.stderr) == ("done\n", "")
