from collections.abc import Callable
from typing import Any

class Front:
    def __init__(
        self,
        kind: str,
        function: Callable[..., Any],
        known: dict[Any, Any] = ...,
        with_number: tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]] = ...,
    ) -> None: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...

class Launch:
    def __init__(self, *parts: object) -> None: ...

def connect(**connected: object) -> None: ...
def counters() -> tuple[int, int, int]: ...
