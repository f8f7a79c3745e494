"""The use cases: one method for each thing a person or program can ask for. Every entrance calls these.

Permission, validation, limits and the audit are here and nowhere else; entrances translate.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postroom.services.callers import Caller, CallerKind
    from postroom.services.container import ServiceRequest, Services

__all__ = ["Caller", "CallerKind", "ServiceRequest", "Services"]

# A command that asks one service does not import all of them.
_WHERE = {
    "Caller": "callers",
    "CallerKind": "callers",
    "ServiceRequest": "container",
    "Services": "container",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"postroom.services.{_WHERE[name]}"), name)
    return found
