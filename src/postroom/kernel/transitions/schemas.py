"""Schemas by name and version; a version, once there, never changes."""

from postroom.errors import InvalidField, SchemaTaken
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.facts import SCHEMA, schema_key
from postroom.kernel.model import Schema
from postroom.kernel.schemas import check_document
from postroom.kernel.transitions.context import TransitionContext


def register(ctx: TransitionContext, command: c.RegisterSchema) -> Schema:
    checks.check_name("name", command.name, ctx.limits)
    if "@" in command.name:
        raise InvalidField("name", "must not contain @, which divides a name from its version")
    scope = ctx.scope(command.scope)
    check_document(command.document)
    checks.small_json("document", command.document, ctx.limits.body_bytes)
    newest = ctx.session.schema(scope.id, command.name, None)
    version = command.version
    if version is None:
        version = newest.version + 1 if newest else 1
    if not isinstance(version, int) or not 1 <= version <= 10**9:
        raise InvalidField("version", f"is {version!r}, must be a whole number from 1")
    if ctx.session.schema(scope.id, command.name, version) is not None:
        raise SchemaTaken(name=command.name, version=version)
    schema = Schema(
        scope=scope.slug,
        name=command.name,
        version=version,
        document=command.document,
        created_at=ctx.now,
    )
    key = schema_key(scope.id, schema.name, schema.version)
    ctx.session.remember(SCHEMA, key, schema.document, ctx.now)
    ctx.emit("schema.registered", scope=scope.slug, data={"name": command.name, "version": version})
    return schema
