"""How a command is declared: its own parameters, the options that all share, and examples in its help."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from postroom.terminal.cli.options import JsonOption, StoreOption
from postroom.terminal.cli.plain_words import PlainCommand, PlainGroup

Function = Callable[..., Any]


@dataclass(frozen=True)
class Shared:
    """What was said before the name of the command."""

    store: str | None = None
    as_json: bool = False


@dataclass(frozen=True)
class GatheredOptions:
    """Many options that reach their command as one dictionary of those that were given."""

    parameter: str
    options: Mapping[str, Any]

    def of(self, given: dict[str, Any]) -> dict[str, Any]:
        values = {name: given.pop(name) for name in self.options}
        return {name: value for name, value in values.items() if value is not None and value != []}


def command(
    app: typer.Typer,
    name: str,
    *,
    examples: Sequence[str],
    gather: GatheredOptions | None = None,
    store: bool = True,
    json: bool = True,
    panel: str | None = None,
    aliases: Sequence[str] = (),
    hidden: bool = False,
) -> Callable[[Function], Function]:
    """Register a function, asynchronous or not, whose first parameter is the entrance it works through. Help
    does not list `aliases`: they are for hands that know them from elsewhere."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def run(**given: Any) -> None:
            from postroom.terminal.cli.output import Output
            from postroom.terminal.cli.store_access import CommandContext

            context: typer.Context = given.pop("context")
            before = context.obj if isinstance(context.obj, Shared) else Shared()
            chosen = given.pop("store_", None) or before.store
            as_json = given.pop("json_", False) or before.as_json
            if gather is not None:
                given[gather.parameter] = gather.of(given)
            work = function(CommandContext(chosen, Output(as_json=as_json)), **given)
            if inspect.iscoroutine(work):
                import asyncio

                asyncio.run(work)

        own = list(inspect.signature(function).parameters.values())[1:]
        parameters = [_keyword("context", typer.Context)]
        parameters += [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in own
            if gather is None or each.name != gather.parameter
        ]
        if gather is not None:
            parameters += [_keyword(field, hint, None) for field, hint in gather.options.items()]
        if store:
            parameters.append(_keyword("store_", StoreOption, None))
        if json:
            parameters.append(_keyword("json_", JsonOption, False))
        run.__dict__["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        about, epilog = _about(function), _epilog(examples)
        options: Any = {"cls": PlainCommand, "help": about, "epilog": epilog}
        app.command(name, rich_help_panel=panel, hidden=hidden, **options)(run)
        for alias in aliases:
            app.command(alias, hidden=True, **options)(run)
        return function

    return decorate


def _keyword(name: str, hint: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _about(function: Function) -> str:
    """The docstring with each paragraph on one line, for help to wrap as wide as the terminal is."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(_escape(" ".join(paragraph.split())) for paragraph in paragraphs)


def _epilog(examples: Sequence[str]) -> str:
    return "[bold]Examples[/]\n" + "\n".join(f"  {_escape(line)}" for line in examples)


def _escape(text: str) -> str:
    if not re.search(r"\[[a-z#/@]", text):
        return text  # nothing that could be markup: the usual case, which needs no import
    from rich.markup import escape

    return escape(text)


def group(name: str, about: str) -> typer.Typer:
    """A set of commands under one name; alone, the name shows their help."""
    app = typer.Typer(name=name, cls=PlainGroup, help=about, add_completion=False, rich_markup_mode="rich")

    def alone(context: typer.Context) -> None:
        show_help_when_alone(context)

    app.callback(invoke_without_command=True)(alone)
    return app


def show_help_when_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        text = context.get_help()
        if text:
            typer.echo(text)
