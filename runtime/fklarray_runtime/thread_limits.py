"""Our threads under threadpoolctl, with which scikit-learn, joblib and users limit thread pools."""

from __future__ import annotations

import importlib
from typing import Any

from fklarray_runtime.threads import set_threads, threads


def register_threads() -> None:
    """Let threadpoolctl, where it is installed, find and limit the threads of kernels."""
    try:
        threadpoolctl: Any = importlib.import_module("threadpoolctl")
    except ImportError:
        return

    class Threads(threadpoolctl.LibController):  # type: ignore[misc]
        """The pool of this process's kernels, known by the library that it is in."""

        user_api = "fklarray"
        internal_api = "fklarray"
        filename_prefixes = ("_native",)
        check_symbols = ("fkl_executor_set_threads",)

        def get_num_threads(self) -> int:
            return threads()

        def set_num_threads(self, num_threads: int) -> None:
            set_threads(max(num_threads, 1))

        def get_version(self) -> None:
            return None

    threadpoolctl.register(Threads)
