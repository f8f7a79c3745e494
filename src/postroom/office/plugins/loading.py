"""Loading a plugin: its code is run for the first time, its hooks are found, and it is activated."""

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from postroom.office.plugins.api import Handler, PluginContext
from postroom.office.plugins.discovery import Candidate
from postroom.office.plugins.timed_calls import CallFailed, TimedCaller

HOOKS = ("transform_incoming", "transform_outgoing")
LOAD_S = 10.0


class Loaded(msgspec.Struct, frozen=True):
    hooks: dict[str, Callable[..., Any]]
    handlers: tuple[tuple[str, Handler], ...]


async def load(candidate: Candidate, caller: TimedCaller, home: Path, *, limit_s: float = LOAD_S) -> Loaded:
    """Raises `CallFailed` with the reason, whatever is wrong with the code."""
    made = await caller.call(_import, candidate, limit_s=limit_s)
    hooks: dict[str, Callable[..., Any]] = {}
    for name in HOOKS:
        hook = getattr(made, name, None)
        if hook is not None and not callable(hook):
            raise CallFailed(f"{name} is not a function")
        if hook is not None:
            hooks[name] = hook
    context = PluginContext(candidate.name, home)
    activate = getattr(made, "activate", None)
    if activate is not None:
        if not callable(activate):
            raise CallFailed("activate is not a function")
        await caller.call(activate, context, limit_s=limit_s)
    handlers = tuple(context.handlers)
    if not hooks and not handlers:
        raise CallFailed("it has no hook, and activate registers no handler")
    return Loaded(hooks, handlers)


def _import(candidate: Candidate) -> Any:
    if candidate.entry is not None:
        made = candidate.entry.load()
        return made() if inspect.isclass(made) else made
    assert candidate.path is not None
    return _import_file(candidate.name, candidate.path)


def _import_file(name: str, path: Path) -> Any:
    """Under a name of its own, so that it can neither hide nor be hidden by a module of others."""
    module_name = f"postroom_plugin_{name.replace('-', '_')}"
    search = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(module_name, path, submodule_search_locations=search)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(module_name, None)
        raise
    return module
