"""The Python API is told as it is: every public name has a docstring, and an example that runs."""

import ast
import doctest
import inspect
import io
import runpy
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.errors import PostroomError
from postroom.kernel.model import QueueSettings
from postroom.kernel.ports import MessageFilter
from postroom.runtime.core import RoomOptions
from postroom.runtime.options import FilterOptions, OpenOptions, QueueOptions

SCRIPT = Path(__file__).parents[2] / "scripts" / "reference"
PUBLIC = {
    name: getattr(postroom, name)
    for name in postroom.__all__
    if name != "__version__"
    and not (isinstance(found := getattr(postroom, name), type) and issubclass(found, PostroomError))
}


def public_members(kind: type) -> dict[str, Any]:
    return {
        name: found
        for name, found in vars(kind).items()
        if not name.startswith("_") and (inspect.isfunction(found) or isinstance(found, property))
    }


def list_documented() -> dict[str, Any]:
    found = dict(PUBLIC)
    for kind in (postroom.Room, postroom.SyncRoom, postroom.TypedQueue, postroom.SyncTypedQueue):
        found |= {f"{kind.__name__}.{name}": each for name, each in public_members(kind).items()}
    return found


DOCUMENTED = list_documented()
EXAMPLES = {
    name: doc
    for name, found in DOCUMENTED.items()
    if ">>> " in (doc := inspect.cleandoc(found.__doc__ or ""))
}


async def run_example(source: str, scope: dict[str, Any]) -> str:
    """What it prints, the value it ends with, or the last line of what it raises. `await` is allowed."""
    tree = ast.parse(source)
    if isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.parse(f"__show({ast.unparse(tree.body[-1].value)})").body[0]
    code = compile(tree, "<example>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    scope["__show"] = lambda value: None if value is None else print(repr(value))
    with redirect_stdout(io.StringIO()) as out:
        try:
            result = eval(code, scope)
            if inspect.iscoroutine(result):
                await result
        except Exception as error:
            print("Traceback (most recent call last):\n" + traceback.format_exception_only(error)[-1])
    return out.getvalue()


@pytest.mark.parametrize("name", EXAMPLES)
async def test_the_example_of_a_public_name_runs_as_it_stands(name: str) -> None:
    steps = doctest.DocTestParser().get_examples(EXAMPLES[name])
    with postroom.open_sync("memory://", actor="shop", housekeeping=False) as room:
        room.create_queue("orders")
        scope: dict[str, Any] = {**PUBLIC, "postroom": postroom, "room": room}
        for step in steps:
            wanted = step.want
            if step.exc_msg is not None:
                wanted = f"Traceback (most recent call last):\n{step.exc_msg}"
            printed = await run_example(step.source, scope)
            said = doctest.OutputChecker().check_output(
                wanted.rstrip() + "\n", printed.rstrip() + "\n", doctest.ELLIPSIS
            )
            assert said or wanted.split() == printed.split(), f"{step.source}gave {printed!r}, not {wanted!r}"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_public_name_has_a_docstring_and_an_example(name: str) -> None:
    doc = inspect.cleandoc(DOCUMENTED[name].__doc__ or "")
    assert doc, "no docstring"
    kind, _, member = name.partition(".")
    if member and kind in ("TypedQueue", "SyncTypedQueue"):
        return  # the example of the class uses them
    if kind == "Room" and hasattr(postroom.SyncRoom, member):
        # One verb, one sentence: the example is with the room for threads.
        other = inspect.cleandoc(getattr(postroom.SyncRoom, member).__doc__ or "")
        assert doc == other.partition(">>> ")[0].strip() or member in DIFFERENT
    else:
        assert ">>> " in doc, "no example"


# What is said of them differs between threads and an event loop.
DIFFERENT = {"run", "look", "unit", "read_events", "worker", "run_workers", "queue"}


def test_every_error_that_a_room_can_raise_is_exported() -> None:
    from postroom import errors

    kinds = {
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, PostroomError)
    }
    assert kinds <= set(postroom.__all__)


def test_the_page_is_what_the_script_writes() -> None:
    """docs/reference/python.md: so the examples above are those of the page."""
    script = runpy.run_path(str(SCRIPT))
    assert script["PAGE"].read_text("utf-8") == script["write_page"](), (
        "run .venv/bin/python scripts/reference"
    )


def test_typed_options_name_what_there_is() -> None:
    assert set(QueueOptions.__annotations__) == set(QueueSettings.__struct_fields__)
    assert set(OpenOptions.__annotations__) == set(RoomOptions.__struct_fields__)
    fields = set(MessageFilter.__struct_fields__) - {"tenant", "states"}
    assert set(FilterOptions.__annotations__) == fields | {"state"}
