"""Command line of fklarray: a demonstration, a report on the machine, the kernel cache."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit status.

    Parameters
    ----------
    arguments : list of str, optional
        Command line without the program's name.
    """
    parser = argparse.ArgumentParser(
        prog="python -m fklarray", description=__doc__, allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="run a recorded image pipeline on a photograph")
    demo.add_argument(
        "image",
        nargs="?",
        type=Path,
        help="a photograph (PNG, JPEG, ...); default: one that scikit-learn ships",
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("fklarray-demo"),
        help="folder of the two PNG files (default: %(default)s)",
    )
    commands.add_parser("doctor", help="tell what this machine offers, and what is missing")
    cache = commands.add_parser(
        "cache", help="show the cache of compiled kernels", allow_abbrev=False
    )
    cache.add_argument("--clear", action="store_true", help="delete all compiled kernels")
    commands.add_parser("build-tile", help="build the library of tile kernels with cargo")
    options = parser.parse_args(arguments)
    # Imported here, so that doctor works where the demo's packages are missing.
    if options.command == "demo":
        from fklarray.demo import run

        return run(options.image, options.output)
    from fklarray import doctor

    if options.command == "build-tile":
        return doctor.build_tile()
    if options.command == "cache":
        return doctor.clear_cache() if options.clear else doctor.show_cache()
    return doctor.run()


if __name__ == "__main__":
    raise SystemExit(main())
