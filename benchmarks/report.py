"""What ran where, and the results as JSON and as Markdown."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from cases import ELEMENTS
from libraries import Library

COPY = "np.copyto"
OURS = "fklarray"
LOOP = "loop in C"
PEER = "the best peer"
# At the largest size: a case, whose time, and what that divided by ours is at least.
AIMS: tuple[tuple[str, str, float], ...] = (
    ("six_ops", COPY, 1 / 1.1),
    ("six_ops", "NumPy", 8),
    ("six_ops", PEER, 2),
    ("exp_sin", LOOP, 1 / 1.3),
    ("exp_sin", PEER, 6),
    ("sum", LOOP, 0.9),
    *((case, "NumPy", 6) for case in ("columns", "sum_exp", "normalise", "softmax")),
    *((case, PEER, 1.5) for case in ("columns", "sum_exp", "normalise", "softmax")),
)
# At these sizes no peer is to be faster, NumPy among them.
SMALL = (10_000, 100_000)
COMPILE_AIM_S = 0.35
HOST_AIM_US = 8


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return None


def _cpu_model() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo") or "", re.MULTILINE)
    return found[1] if found else platform.machine()


def _commit() -> str | None:
    folder = Path(__file__).parent
    # The clone may belong to another user.
    git = ["git", "-c", f"safe.directory={folder.parent.resolve()}", "-C", str(folder)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--verify", "HEAD"], capture_output=True, text=True, check=True
        )
        changes = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + (" with changes" if changes.stdout.strip() else "")


def _compiler() -> str:
    from fklarray.evaluation import kernel_cache
    from fklarray_runtime import find_compiler

    compiler = find_compiler(kernel_cache().directory)
    # Names and options, no folders.
    command = " ".join(Path(part).name for part in compiler.command)
    return f"{command} ({compiler.kind} {compiler.version})"


def machine(libraries: list[Library]) -> dict[str, Any]:
    """Describe the machine and the versions, without any path of it."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "system": f"{platform.system()} {platform.release()}",
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "compiler": _compiler(),
        "fklarray_commit": _commit(),
        "versions": {library.name: library.version for library in libraries},
        "threads": {library.name: library.threads for library in libraries},
    }


def write(results: dict[str, Any], stem: Path) -> tuple[Path, Path]:
    """Write the results beside each other.

    Parameters
    ----------
    results : dict
        What `run.py` measured.
    stem : Path
        Path of both files, without a suffix.

    Returns
    -------
    Path, Path
        The JSON and the Markdown file.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1)
    # Lists of numbers on one line.
    text = re.sub(r"\[\s+[^\[\]{}\"]+\s\]", lambda found: " ".join(found[0].split()), text)
    as_json, as_markdown = stem.with_name(f"{stem.name}.json"), stem.with_name(f"{stem.name}.md")
    as_json.write_text(text + "\n", "utf-8")
    as_markdown.write_text(markdown(results), "utf-8")
    return as_json, as_markdown


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def markdown(results: dict[str, Any]) -> str:
    """Render the results as Markdown."""
    lines = [f"# Benchmarks on the {results['device'].upper()}, {results['date']}", ""]
    if results["quick"]:
        lines += ["A quick run, to see that everything works: not for comparison.", ""]
    if results["errors"]:
        lines += ["**Errors**", "", *(f"- {error}" for error in results["errors"]), ""]
    lines += _machine_lines(results)
    lines += _aim_lines(results)
    lines += _summary_lines(results["cases"])
    lines += _host_lines(results["host"])
    lines += _compile_lines(results["compile"])
    lines += ["## All candidates", ""]
    lines += [
        "Best and median of the rounds in microseconds; ratios are of the best. The first call "
        "includes compiling where the library does; fklarray compiles once for all sizes.",
        "",
    ]
    for name in dict.fromkeys(case["case"] for case in results["cases"]):
        lines += _case_lines([case for case in results["cases"] if case["case"] == name])
    return "\n".join(lines).rstrip() + "\n"


def _machine_lines(results: dict[str, Any]) -> list[str]:
    about = results["machine"]
    loads = (*about["load_average_before"], *results["load_average_after"])
    rows = [
        ["CPU", f"{about['cpu']}, {about['cores']} cores"],
        ["Frequency governor", about["governor"] or "not readable"],
        [
            "Load average over 1, 5, 15 minutes",
            "before {}, {}, {}, after {}, {}, {}".format(*loads),
        ],
        ["System", f"{about['system']}, Python {about['python']}"],
        ["Compiler", about["compiler"]],
        ["fklarray commit", about["fklarray_commit"] or "unknown"],
        *(
            [name, f"{version}, threads: {about['threads'][name]}"]
            for name, version in about["versions"].items()
        ),
        ["Absent", ", ".join(results["absent"]) or "none"],
        ["Not asked for", ", ".join(results["left_out"]) or "nothing"],
    ]
    return [
        *(line.replace("---:", "---") for line in _table(["", ""], rows)),
        f"Up to {results['rounds']} rounds; the candidates take turns within each. "
        f"{COPY} copies as many bytes as the result has.",
        "",
    ]


def others(case: dict[str, Any], *left_out: str) -> dict[str, float]:
    """Return the best times of a case's other candidates, in microseconds."""
    return {
        name: timing["best_us"]
        for name, timing in case["candidates"].items()
        if name not in (OURS, COPY, LOOP, *left_out)
    }


def _ratio(case: dict[str, Any], against: str) -> float | None:
    ours = case["candidates"].get(OURS)
    if against == PEER:
        other = min(others(case, "NumPy").values(), default=None)
    else:
        other = case["candidates"].get(against, {}).get("best_us")
    return None if ours is None or other is None else float(other / ours["best_us"])


def _aim(what: str, wanted: str, found: str, *, is_reached: bool) -> list[str]:
    return [what, wanted, found, "yes" if is_reached else "**no**"]


def _aim_lines(results: dict[str, Any]) -> list[str]:
    cases = {(case["case"], case["elements"]): case for case in results["cases"]}
    rows = []
    for name, against, least in AIMS:
        case = cases.get((name, ELEMENTS[-1]))
        found = _ratio(case, against) if case else None
        if found is not None:
            what = f"{name}, {ELEMENTS[-1]:,} elements: time of {against} / ours"
            wanted, is_reached = f">= {least:.2f}", found >= least
            rows.append(_aim(what, wanted, f"{found:.2f}", is_reached=is_reached))
    for (name, elements), case in cases.items():
        if elements in SMALL and OURS in case["candidates"]:
            found = min(others(case).values()) / case["candidates"][OURS]["best_us"]
            what = f"{name}, {elements:,} elements: time of the best other / ours"
            rows.append(_aim(what, ">= 1", f"{found:.2f}", is_reached=found >= 1))
    seconds = results["compile"]["median_of_graphs"]["compile_s"]
    is_reached = seconds <= COMPILE_AIM_S
    what = "cold compile, seconds"
    rows.append(_aim(what, f"<= {COMPILE_AIM_S}", f"{seconds:.2f}", is_reached=is_reached))
    host = results["host"]["steps"]["record + flush + np.from_dlpack"]["best_us"]
    what = "record, flush and export six operations, us"
    is_reached = host <= HOST_AIM_US
    rows.append(_aim(what, f"<= {HOST_AIM_US}", f"{host:.1f}", is_reached=is_reached))
    return ["## Aims", "", *_table(["Aim", "Wanted", "Measured", "Reached"], rows)]


def _summary_lines(cases: list[dict[str, Any]]) -> list[str]:
    rows = []
    for case in cases:
        ours = case["candidates"].get(OURS)
        if ours is None:
            continue
        rivals = others(case)
        rival = min(rivals, key=rivals.__getitem__)
        rows.append(
            [
                case["case"],
                f"{case['elements']:,}",
                _number(ours["best_us"]),
                f"{ours['times_as_fast_as_numpy']:.2f}",
                f"{ours['times_copyto']:.2f}",
                f"{rivals[rival] / ours['best_us']:.2f} ({rival})",
            ]
        )
    head = [
        "Case",
        "Elements",
        "Best, us",
        "NumPy / fklarray",
        f"fklarray / {COPY}",
        "Best other / fklarray",
    ]
    return ["## fklarray", "", *_table(head, rows)]


def _host_lines(host: dict[str, Any]) -> list[str]:
    lines = [f"## Host cost: six operations on {host['elements']} float32", ""]
    for kind, title in (("steps", "Call"), ("parts", "Internal call on its own")):
        rows = [
            [name, _number(timing["best_us"]), _number(timing["median_us"])]
            for name, timing in host[kind].items()
        ]
        lines += _table([title, "Best, us", "Median, us"], rows)
    return lines


def _compile_lines(cost: dict[str, Any]) -> list[str]:
    rows = []
    for name, graph in cost["graphs"].items():
        every = ", ".join(f"{seconds:.2f}" for seconds in graph["compile_s"]["all"])
        rows.append(
            [
                name,
                f"{graph['compile_s']['median']:.2f} ({every})",
                f"{graph['first_call_s']['median']:.2f}",
                f"{graph['second_process_first_call_s']['median']:.4f}",
                str(graph["second_process_kernels_compiled"]),
            ]
        )
    head = ["Graph", "Compile: median (all), s", "First call, s"]
    head += ["First call of a second process, s", "Kernels it compiled"]
    return ["## Cold compile: new process, empty cache", "", *_table(head, rows)]


def _case_lines(sizes: list[dict[str, Any]]) -> list[str]:
    rows = []
    for case in sizes:
        for name, timing in case["candidates"].items():
            first = timing.get("first_call_us")
            rows.append(
                [
                    name,
                    f"{case['elements']:,}",
                    _number(first),
                    _number(timing["best_us"]),
                    _number(timing["median_us"]),
                    f"{timing['times_as_fast_as_numpy']:.2f}",
                    f"{timing['times_copyto']:.2f}",
                ]
            )
        rows += [[name, f"{case['elements']:,}", why] + [""] * 4 for name, why in case["failed"]]
    head = ["Candidate", "Elements", "First call, us", "Best, us", "Median, us"]
    head += ["NumPy / this", f"this / {COPY}"]
    return [f"### {sizes[0]['case']}", "", sizes[0]["formula"], "", *_table(head, rows)]
