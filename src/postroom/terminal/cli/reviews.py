"""`postroom review`: questions that wait for a person."""

from typing import Annotated, Any

from postroom.clock import iso
from postroom.errors import MessageNotFound
from postroom.kernel import jsontext, service_commands
from postroom.kernel.ports import MessageFilter, Reader
from postroom.kernel.reviews import answering, patterns
from postroom.kernel.reviews.spec import field_of
from postroom.kernel.rows import Stored
from postroom.kernel.templates import filled
from postroom.runtime import SyncRoom
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.completion import scopes as complete_scopes
from postroom.terminal.cli.options import MessageId, argument, option
from postroom.terminal.cli.output import Column, ago, facts, json_text, table
from postroom.terminal.cli.schemas import read_object
from postroom.terminal.cli.store_access import CommandContext

app = group("review", "Reviews: questions that wait for a person.")

Scope = Annotated[
    str, option("NAME", "The scope. Default default.", "--scope", autocompletion=complete_scopes)
]
MOST = 5000


def _open(room: SyncRoom, scope: str) -> list[Stored]:
    tenant = room._core.options.tenant
    room.scope(scope)
    wanted = MessageFilter(tenant=tenant, scope=scope, states=("pending", "claimed"), reviews=True)
    found = room._core.read(lambda reader: reader.page(wanted, None, MOST))
    return sorted(found, key=lambda stored: (stored.row.expires_at or 2**62, stored.row.seq))


def _title(spec: dict[str, Any]) -> str:
    """What it is about; a question that others wrote may have any shape."""
    sections = [section for section in spec.get("sections") or () if isinstance(section, dict)]
    shown = next((section for section in sections if section.get("type") == "context"), {})
    return str(spec.get("title") or shown.get("title") or shown.get("content") or "a decision")


@command(app, "list", examples=["postroom review list", "postroom review list --scope moderation --json"])
def list_reviews(at: CommandContext, scope: Scope = "default") -> None:
    """List what waits for an answer, the most urgent first."""
    now = at.clock.now()
    with at.looking(at_messages=True) as room:
        found = _open(room, scope)
        names = room._core.read(lambda reader: reader.queue_names())
    specs = [jsontext.decode(stored.content.hitl_spec or "{}") for stored in found]
    rows = [
        (
            stored.row.id,
            names[stored.row.queue_id][1],
            spec.get("assignee"),
            ago(stored.row.expires_at, now),
            _title(spec),
        )
        for stored, spec in zip(found, specs, strict=True)
    ]
    titles = [Column("review", whole=True), "queue", "for", "due", Column("about", free=True)]
    shown = [
        {"id": row[0], "queue": row[1], "assignee": row[2], "title": row[4], "spec": spec}
        for row, spec in zip(rows, specs, strict=True)
    ]
    at.out.show(shown, table(titles, rows) if rows else "Nothing waits for an answer.")


def _stored(room: SyncRoom, message_id: str) -> Stored:
    tenant = room._core.options.tenant
    stored = room._core.read(lambda reader: reader.get(message_id))
    if stored is None or stored.row.tenant != tenant:
        raise MessageNotFound(message_id=message_id)
    return stored


@command(app, "show", examples=["postroom review show 01890a5d-…"])
def show(at: CommandContext, message_id: MessageId) -> None:
    """Show a review as a reviewer sees it, and how it was decided."""
    with at.looking() as room:
        stored = _stored(room, message_id)
        spec = answering.spec_of(stored.row, stored.content)
        record = room.latest_record(answering.RECORD, message_id)
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
    due = iso(stored.row.expires_at) if stored.row.expires_at else None
    pairs += [("due", due), ("state", stored.row.state)]
    decided = None
    if record is not None:
        decided = {**record.data, "at": iso(record.data["at"])}
        said = ", ".join(f"{field}: {value}" for field, value in decided["answer"].items())
        pairs += [("decided", said), ("by", decided["by"]), ("on", decided["at"])]
    document = {
        "id": message_id,
        "state": stored.row.state,
        "spec": spec,
        "seen": answering.seen_mark(stored.content),
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
def answer(
    at: CommandContext,
    message_id: MessageId,
    values: Annotated[list[str], argument("FIELD=VALUE", "A value for each field of the review.")],
) -> None:
    """Decide a review. The first answer counts; a second or late one is refused."""
    from postroom.terminal.cli.errors import Unclear

    answers: dict[str, Any] = {}
    for text in values:
        field, equals, value = text.partition("=")
        if not equals or not field:
            raise Unclear(f"{text!r} is not field=value")
        answers[field] = value
    with at.room() as room:
        stored = _stored(room, message_id)
        spec = answering.spec_of(stored.row, stored.content)
        for section in spec["sections"]:
            if section["type"] == "input" and section.get("kind") in ("number", "boolean"):
                field = section["field"]
                if field in answers:
                    answers[field] = jsontext.decode(answers[field])
        room.run(service_commands.AnswerReview(message_id=message_id, answer=answers, actor=room.actor))
    at.out.show({"id": message_id, "answer": answers}, "The review is answered.")


pattern = group("pattern", "Patterns: reviews by name, with placeholders.")
app.add_typer(pattern)


@command(pattern, "add", examples=["postroom review pattern add moderation 1.0 spec.json --scope moderation"])
def add_pattern(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "The pattern's name.")],
    version: Annotated[str, argument("VERSION", "Its version, like 1.0.")],
    file: Annotated[str, argument("FILE", "The spec as JSON; - reads it from stdin.")],
    scope: Scope = "default",
) -> None:
    """Register a version of a pattern. Once there, it never changes."""
    spec = read_object(file)
    with at.room(make=True) as room:
        number = room.scope(scope).id
        data = {"name": name, "version": version, "spec": spec}
        room.run(
            service_commands.PutServiceDocument(
                kind=patterns.KIND,
                key=patterns.key_of(number, name, version),
                data=data,
                note={"name": name, "version": version},
                new=True,
                label=f"{name} {version}",
                scope=scope,
                actor=room.actor,
            )
        )
    at.out.show(data, f'The pattern "{name}" is registered in version {version}.')


@command(pattern, "list", examples=["postroom review pattern list --scope moderation"])
def list_patterns(at: CommandContext, scope: Scope = "default") -> None:
    """List patterns of a scope."""
    now = at.clock.now()
    with at.looking() as room:
        number, tenant = room.scope(scope).id, room._core.options.tenant

        def look(reader: Reader) -> list[Any]:
            return reader.documents(tenant, patterns.KIND, f"{number}/", "", MOST)

        found = room._core.read(look)
    rows = [(each.data["name"], each.data["version"], ago(each.created_at, now)) for each in found]
    shown = table(["pattern", "version", "registered"], rows) if rows else "There are no patterns yet."
    at.out.show([each.data for each in found], shown)


@command(
    pattern,
    "preview",
    examples=["""postroom review pattern preview moderation --parameters '{"text": "hello"}'"""],
)
def preview(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "The pattern's name, or name@version.")],
    parameters: Annotated[
        dict[str, Any] | None, option("JSON OBJECT", "What the placeholders are filled with.", "--parameters")
    ] = None,
    scope: Scope = "default",
) -> None:
    """Show a pattern as a reviewer would get it."""
    with at.looking() as room:
        number, tenant = room.scope(scope).id, room._core.options.tenant
        wanted, _, version = name.partition("@")
        found = room._core.read(lambda reader: patterns.find(reader, tenant, number, wanted, version or None))
    spec = filled(found.data["spec"], parameters or {})
    at.out.show(spec, json_text(spec))
