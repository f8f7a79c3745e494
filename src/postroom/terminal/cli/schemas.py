"""`postroom schema`: JSON Schemas that bodies must match."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, ago, table
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import json_object

app = group("schema", "Schemas: what the bodies of a queue must look like.")

Scope = Annotated[str, option("NAME", "The scope it belongs to.", "--scope")]


@command(
    app,
    "add",
    examples=[
        "postroom schema add order order.schema.json",
        "postroom schema add order - --scope billing < order.schema.json",
        "postroom queue set billing/orders --schema order",
    ],
)
async def add(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "The schema's name.")],
    file: Annotated[str, argument("FILE", "A JSON Schema (2020-12); - reads it from stdin.")],
    scope: Scope = "default",
    version: Annotated[int | None, option("N", "Its version. Default the next one.", "--version")] = None,
) -> None:
    """Register a schema. A version, once there, never changes; a queue uses it with --schema."""
    document = read_object(file)
    async with at.services(make=True) as services:
        made = (await services.schemas.register(at.caller, scope, name, document, version)).schema
    at.out.show(
        documents.schema(made),
        f'The schema "{made.name}" is registered in the scope "{made.scope}" as version {made.version}.',
    )


def read_object(file: str) -> dict[str, Any]:
    name = "The standard input" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return json_object(data.decode())
    except OSError as error:
        raise Unclear(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unclear(f"{name} is not UTF-8 text") from None
    except typer.BadParameter as error:
        raise Unclear(f"{name} {error.message.removesuffix('.')}") from None


@command(app, "list", examples=["postroom schema list", "postroom schema list --scope billing --json"])
async def list_schemas(at: CommandContext, scope: Scope = "default") -> None:
    """List the schemas of a scope; --json also gives their documents."""
    now = at.clock.now()
    async with at.services() as services:
        found = [each.schema for each in await services.schemas.list_all(at.caller, scope)]
    at.out.show(
        [documents.schema(schema) for schema in found],
        table(
            ["schema", Column("version", right=True), "registered", Column("title", free=True)],
            [
                (schema.name, schema.version, ago(schema.created_at, now), schema.document.get("title"))
                for schema in found
            ],
        )
        if found
        else f'The scope "{scope}" has no schemas.',
    )
