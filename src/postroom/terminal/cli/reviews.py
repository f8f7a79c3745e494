"""`postroom review`: questions that wait for a person."""

from typing import Annotated, Any

from postroom.clock import iso
from postroom.kernel import jsontext
from postroom.kernel.reviews.sections import field_of
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import MessageId, argument, option
from postroom.terminal.cli.output import Column, ago, facts, json_text, table
from postroom.terminal.cli.schemas import read_object
from postroom.terminal.cli.store_access import CommandContext

app = group("review", "Reviews: questions that wait for a person.")

Scope = Annotated[str, option("NAME", "The scope. Default default.", "--scope")]


def _title(spec: dict[str, Any]) -> str:
    """What it is about; a question that others wrote may have any shape."""
    sections = [section for section in spec.get("sections") or () if isinstance(section, dict)]
    shown = next((section for section in sections if section.get("type") == "context"), {})
    return str(spec.get("title") or shown.get("title") or shown.get("content") or "a decision")


@command(app, "list", examples=["postroom review list", "postroom review list --scope moderation --json"])
async def list_reviews(at: CommandContext, scope: Scope = "default") -> None:
    """List what waits for an answer, the most urgent first."""
    now = at.clock.now()
    async with at.services(at_messages=True) as services:
        found = await services.reviews.list_open(at.caller, scope)
    rows = [
        (
            each.found.message.id,
            each.found.message.queue,
            each.assignee,
            ago(each.due_at, now),
            _title(each.spec),
        )
        for each in found
    ]
    titles = [Column("review", whole=True), "queue", "for", "due", Column("about", free=True)]
    shown = [
        {"id": row[0], "queue": row[1], "assignee": row[2], "title": row[4], "spec": each.spec}
        for row, each in zip(rows, found, strict=True)
    ]
    at.out.show(shown, table(titles, rows) if rows else "Nothing waits for an answer.")


@command(app, "show", examples=["postroom review show 01890a5d-…"])
async def show(at: CommandContext, message_id: MessageId) -> None:
    """Show a review as a reviewer sees it, and how it was decided."""
    async with at.services() as services:
        found = await services.reviews.read(at.caller, message_id)
    spec, message = found.spec, found.found.message
    pairs: list[tuple[str, Any]] = []
    for section in spec["sections"]:
        if section["type"] == "context":
            pairs.append((section.get("title") or "about", section["content"]))
        elif section["type"] == "decision":
            options = [
                str(option if isinstance(option, str) else option["id"]) for option in section["options"]
            ]
            pairs.append((field_of(section), " | ".join(options)))
        else:
            needed = "needed" if section.get("required") else "if you like"
            pairs.append((section["field"], f"{section.get('kind', 'text')}, {needed}"))
    due = iso(found.due_at) if found.due_at else None
    pairs += [("due", due), ("state", message.state)]
    decided = None
    if found.decided is not None:
        decided = {**found.decided, "at": iso(found.decided["at"])}
        said = ", ".join(f"{field}: {value}" for field, value in decided["answer"].items())
        pairs += [("decided", said), ("by", decided["by"]), ("on", decided["at"])]
    document = {
        "id": message_id,
        "state": message.state,
        "spec": spec,
        "seen": found.seen,
        "decided": decided,
    }
    at.out.show(document, facts(pairs))


@command(
    app,
    "answer",
    examples=[
        "postroom review answer 01890a5d-… decision=approve",
        'postroom review answer 01890a5d-… decision=reject note="not ours"',
    ],
)
async def answer(
    at: CommandContext,
    message_id: MessageId,
    values: Annotated[list[str], argument("FIELD=VALUE", "A value for each field of the review.")],
) -> None:
    """Decide a review. The first answer counts; a second or late one is refused."""
    answers: dict[str, Any] = {}
    for text in values:
        field, equals, value = text.partition("=")
        if not equals or not field:
            raise Unclear(f"{text!r} is not field=value")
        answers[field] = value
    async with at.services(change=True) as services:
        spec = (await services.reviews.read(at.caller, message_id)).spec
        answers = {field: _value(spec, field, value) for field, value in answers.items()}
        await services.reviews.answer(at.caller, message_id, answers)
    at.out.show({"id": message_id, "answer": answers}, "The review is answered.")


def _value(spec: dict[str, Any], field: str, text: str) -> Any:
    """What a text stands for in a field that asks for a number or for yes or no."""
    kinds = {part.get("field"): part.get("kind") for part in spec["sections"] if part["type"] == "input"}
    return jsontext.decode(text) if kinds.get(field) in ("number", "boolean") else text


pattern = group("pattern", "Patterns: reviews by name, with placeholders.")
app.add_typer(pattern)


@command(pattern, "add", examples=["postroom review pattern add moderation 1.0 spec.json --scope moderation"])
async def add_pattern(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "The pattern's name.")],
    version: Annotated[str, argument("VERSION", "Its version, like 1.0.")],
    file: Annotated[str, argument("FILE", "The spec as JSON; - reads it from stdin.")],
    scope: Scope = "default",
) -> None:
    """Register a version of a pattern. Once there, it never changes."""
    spec = read_object(file)
    async with at.services(make=True) as services:
        await services.patterns.create(at.caller, scope, name, version, spec)
    data = {"name": name, "version": version, "spec": spec}
    at.out.show(data, f'The pattern "{name}" is registered in version {version}.')


@command(pattern, "list", examples=["postroom review pattern list --scope moderation"])
async def list_patterns(at: CommandContext, scope: Scope = "default") -> None:
    """List patterns of a scope."""
    now = at.clock.now()
    async with at.services() as services:
        found = await services.patterns.list_all(at.caller, scope)
    rows = [(each.name, each.version, ago(each.created_at, now)) for each in found]
    shown = table(["pattern", "version", "registered"], rows) if rows else "There are no patterns yet."
    documents = [{"name": each.name, "version": each.version, "spec": each.spec} for each in found]
    at.out.show(documents, shown)


@command(
    pattern,
    "preview",
    examples=["""postroom review pattern preview moderation --parameters '{"text": "hello"}'"""],
)
async def preview(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "The pattern's name, or name@version.")],
    parameters: Annotated[
        dict[str, Any] | None, option("JSON OBJECT", "What the placeholders are filled with.", "--parameters")
    ] = None,
    scope: Scope = "default",
) -> None:
    """Show a pattern as a reviewer would get it."""
    async with at.services() as services:
        spec = await services.patterns.preview(at.caller, scope, name, parameters or {})
    at.out.show(spec, json_text(spec))
