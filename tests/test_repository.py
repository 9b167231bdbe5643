"""The rules on the repository itself: sizes, names, paths, imports and public names."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "fklarray": ROOT / "fklarray",
    "fklarray_codegen": ROOT / "codegen" / "fklarray_codegen",
    "fklarray_runtime": ROOT / "runtime" / "fklarray_runtime",
}
SOURCE_SUFFIXES = {".py", ".c", ".h", ".cpp", ".cu", ".cuh", ".rs"}
# Folders with the paths and names of the Fused Kernel Library, or with generated text.
FOREIGN_NAMES = "codegen/fklarray_codegen/include/fused_kernel/"
GOLDEN = "tests/golden/"


def _committed() -> list[str]:
    """List the files that are, or would be, committed; without git, those of a source release."""
    if not (ROOT / ".git").exists():
        files = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return sorted(path.as_posix() for path in files if not _is_product(path))
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z"]
    listing = [*git, "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in set(names.split("\0")) if name and (ROOT / name).is_file())


def _is_product(path: Path) -> bool:
    products = {"__pycache__", "build", "dist", "target", ".cache", ".hypothesis"}
    suffixes = (".egg-info", "_cache", "venv", "venv-ci")
    return any(part in products or part.endswith(suffixes) for part in path.parts)


COMMITTED = _committed()
SOURCES = [
    name for name in COMMITTED if Path(name).suffix in SOURCE_SUFFIXES and GOLDEN not in name
]
PYTHON = [name for name in SOURCES if name.endswith(".py")]


def _text(name: str) -> str:
    return (ROOT / name).read_bytes().decode("utf-8", errors="replace")


def _run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


# ------------------------------------------------------------------------------ sizes and names


def test_module_sizes() -> None:
    lines = {name: len(_text(name).splitlines()) for name in SOURCES}
    tests = sum(count for name, count in lines.items() if name.startswith("tests/"))
    print(f"{sum(lines.values()) - tests} lines of source, {tests} of tests")
    limits = {name: 500 if name.startswith("tests/") else 400 for name in SOURCES}
    assert not {name: count for name, count in lines.items() if count > limits[name]}


def _functions(name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(_text(name))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function, its docstring left out."""
    length = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        length -= (first.end_lineno or 0) - first.lineno + 1
    return length


def test_function_lengths() -> None:
    lengths = {
        f"{name}:{node.lineno} {node.name}": _length(node)
        for name in PYTHON
        for node in _functions(name)
    }
    assert not {place: length for place, length in lengths.items() if length > 50}


def test_no_module_has_an_empty_name() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "misc"}
    ours = [name for name in SOURCES if not name.startswith(FOREIGN_NAMES)]
    found = [
        name
        for name in ours
        if empty & {part.strip("_") for part in Path(name).with_suffix("").parts}
    ]
    assert not found


# ------------------------------------------------------------------------------- file contents

# Character classes keep this file from matching itself.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:[w]ork|[r]oot|[h]ome|[f]arm|tmp/[d]ev)/")
REGISTRY_HOST = re.compile(r"pypi[.]org|pythonhosted[.]org|crates[.]io|[n]pmjs|deb[.]debian[.]org")
# Cargo writes this identifier, which is no address that is asked, into every lock file.
CARGO_REGISTRY = re.compile(r"registry\+https://github[.]com/rust-lang/crates[.]io-index")


def test_no_machine_path_and_no_registry_host() -> None:
    found: dict[str, list[str]] = {}
    for name in COMMITTED:
        text = CARGO_REGISTRY.sub("", _text(name))
        found[name] = MACHINE_PATH.findall(text) + REGISTRY_HOST.findall(text)
    assert not {name: matches for name, matches in found.items() if matches}


def test_hooks_are_local_commands() -> None:
    config = _text(".pre-commit-config.yaml")
    assert set(re.findall(r"^\s*- repo: *(\S+)", config, re.MULTILINE)) == {"local"}
    assert set(re.findall(r"^\s*language: *(\S+)", config, re.MULTILINE)) == {"system"}
    assert len(re.findall(r"^\s*- id:", config, re.MULTILINE)) == config.count("language:")


def test_changelog_lists_this_version_or_unreleased_changes() -> None:
    version = tomllib.loads(_text("pyproject.toml"))["project"]["version"]
    headings = re.findall(r"^## \[([^\]]+)\]", _text("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] in {"Unreleased", version}


def test_readme_marks_one_test_command() -> None:
    commands = re.findall(
        r"^<!-- test command -->\n```sh\n(.+)\n```$", _text("README.md"), re.MULTILINE
    )
    assert len(commands) == 1
    assert "python -m pytest" in commands[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_package_has_design_and_types(package: str) -> None:
    assert (PACKAGES[package] / "DESIGN.md").is_file()
    assert (PACKAGES[package] / "py.typed").is_file()


# ------------------------------------------------------------------------------------- imports


def _imported(path: Path) -> set[str]:
    """Name the top-level packages that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


def test_one_module_sees_both_inner_packages() -> None:
    inner = {"fklarray_codegen", "fklarray_runtime"}
    modules = PACKAGES["fklarray"].rglob("*.py")
    assert [path.name for path in modules if inner <= _imported(path)] == ["evaluation.py"]


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        (
            "fklarray_codegen",
            {"numpy", "subprocess", "ctypes", "cffi", "fklarray_runtime", "fklarray"},
        ),
        ("fklarray_runtime", {"fklarray_codegen", "fklarray", "torch", "jax", "cupy"}),
        ("fklarray", {"torch", "jax", "cupy", "sklearn", "PIL"}),
    ],
)
def test_import_stays_light(package: str, forbidden: set[str]) -> None:
    code = f"import sys, {package}; print(*sys.modules)"
    assert forbidden.isdisjoint(_run_python(code).split())


RECORD_PROCESSES = """
import sys
started = []
starts = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn")
sys.addaudithook(lambda event, args: started.append((event, args)) if event in starts else None)
import fklarray
print(*started)
"""


def test_import_starts_no_process() -> None:
    assert _run_python(RECORD_PROCESSES).strip() == ""


# -------------------------------------------------------------------------------- public names


def _star_imported() -> list[str]:
    """Name the chapters: the modules that `fklarray/__init__.py` star-imports."""
    path = PACKAGES["fklarray"] / "__init__.py"
    tree = ast.parse(path.read_text("utf-8")) if path.is_file() else ast.Module([], [])
    return [
        f"fklarray.{node.module}" if node.level else str(node.module)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]


def _bindings(node: ast.stmt) -> list[str]:
    """Name what a top-level statement defines; imports define nothing of the module's own."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        names = [name for target in node.targets for name in ast.walk(target)]
    elif isinstance(node, ast.AnnAssign):
        names = [node.target]
    else:
        return []
    return [
        name.id for name in names if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    ]


def _check_all(name: str) -> None:
    module = importlib.import_module(name)
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    public = {bound for node in tree.body for bound in _bindings(node) if not bound.startswith("_")}
    exported = set(module.__all__)
    assert len(module.__all__) == len(exported), f"{name}.__all__ repeats a name"
    assert not public - exported, f"{name}.__all__ leaves names out"
    assert not {bound for bound in exported if not hasattr(module, bound)}, f"{name} lacks names"


def test_all_is_exact_in_every_chapter() -> None:
    chapters = _star_imported()
    assert chapters
    for name in chapters:
        _check_all(name)
