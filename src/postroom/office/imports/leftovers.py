"""What an import does not take over, told by name: nobody should find out later that something is missing."""

from collections.abc import Iterator

from postroom.office.imports.source import DATABASES, OPEN, ImportSource

# What is taken over as a whole, or is nothing by itself.
TAKEN_FILES = frozenset({"settings.json", "pairing.json", "schedules.json", "tasks.db", "chats", "queue"})
# A person may want to know why.
WHY = {
    "logs": "its log files are of the other program",
    "files": "files are copied when a message that goes on names them",
    "channels": "sessions of its channel clients do not fit here",
    "events": "its event files were for its own pages",
}
MOST_NAMED = 20


def describe(source: ImportSource) -> list[str]:
    return [f"not taken over: {each}" for each in _find(source)]


def _find(source: ImportSource) -> Iterator[str]:
    if source.database is not None:
        for table, count in source.database.strange_tables().items():
            yield f"the table {table} ({count} rows), which nobody here knows"
    ended = sum(mail.status not in (*OPEN, "dead") for mail in source.mail)
    if ended:
        yield f"{ended} messages that are done, as messages; what was said is in the history"
    delivered = sum(answer.status == "acked" for answer in source.answers)
    if delivered:
        yield f"{delivered} answers that were delivered, as messages; what was said is in the history"
    known = TAKEN_FILES | {name for names in DATABASES.values() for name in names}
    strange = sorted(
        each.name
        for each in source.path.iterdir()
        if each.name not in known and not each.name.endswith(("-wal", "-shm", "-journal", ".pid"))
    )
    for name in strange[:MOST_NAMED]:
        yield f"{source.path / name}" + (f" ({WHY[name]})" if name in WHY else "")
    if len(strange) > MOST_NAMED:
        yield f"{len(strange) - MOST_NAMED} other files in {source.path}"
