"""What a person gets to read of an answer, and the files that go with it.

Files are copied when the answer is given: what is delivered later is what was checked, and nothing else.
"""

import shutil
from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.errors import BodyTooLarge
from postroom.office import tags
from postroom.office.files import FileRefused, Folders, open_outgoing, safe_name, sort_outgoing
from postroom.office.message_files import FilesAway, MessageFiles
from postroom.office.texts import clean, fitted

ATTACHED = "\n\n_(Full response attached as file)_"


class ReplyRules(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are signed and shortened. `files` is where files of the room go, None if it has none."""

    signature: bool = True
    long_text_chars: int = 4000
    file_bytes: int = 50 * 1024 * 1024
    files_per_message: int = 10
    files: MessageFiles | None = None


class ReplyText(msgspec.Struct, frozen=True):
    """The text as the person reads it, and what is attached, by the names that messages have for files.
    `metadata` is what plugins say about it to the channel."""

    text: str
    files: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    whole: str = ""
    """All of it, when `text` is only how it begins."""


def collect(answer: str, turn_id: str, folders: Folders | None, rules: ReplyRules) -> ReplyText:
    """The answer without its file tags, and copies of the files that may leave; of those that may not, the
    answer says so."""
    wanted = [part.path for part in tags.files_to_send(answer)]
    text = tags.without_files_to_send(answer).strip()
    if not wanted:
        return ReplyText(text)
    if folders is None or rules.files is None:
        return ReplyText(_joined(text, ["No file was sent: this room has no folder for files."]))
    allowed, refused = sort_outgoing(
        wanted, folders, max_bytes=rules.file_bytes, max_files=rules.files_per_message
    )
    copies: list[str] = []
    notes = [_told(refusal) for refusal in refused]
    for file in allowed:
        try:
            copies.append(_copied(str(file.path), folders, rules, turn_id))
        except FileRefused as refusal:
            notes.append(_told(refusal))
        except BodyTooLarge:
            notes.append(f'The file "{clean(file.name)}" was not sent: it grew too large while it was read.')
        except OSError as error:
            notes.append(f'The file "{clean(file.name)}" was not sent: {error.strerror or error}.')
    return ReplyText(_joined(text, notes), tuple(copies))


def finish(
    reply: ReplyText, agent: str, turn_id: str, rules: ReplyRules, notes: Sequence[str] = ()
) -> ReplyText:
    """Signed; and a text that is too long for a chat goes as a file besides, with its beginning to read."""
    text = _joined(reply.text or f"@{agent} has finished without a word.", notes)
    signature = f"\n\n- [{agent}]" if rules.signature else ""
    if len(text) <= rules.long_text_chars:
        return ReplyText(text + signature, reply.files)
    short = text[: rules.long_text_chars]
    as_text = ReplyText(fitted(text) + signature, reply.files, whole=text + signature)
    if rules.files is None:
        return as_text
    name = f"response_{turn_id[:8]}.md"
    try:
        with rules.files.receiving(_folder(turn_id), name, max_bytes=2**40) as file:
            file.write((text + signature).encode())
    except FilesAway:
        return as_text
    except OSError as error:
        reason = error.strerror or str(error)
        return ReplyText(f"{short}\n\n_(The rest could not be kept: {reason})_{signature}", reply.files)
    return ReplyText(short + ATTACHED + signature, (*reply.files, file.ref), whole=text + signature)


def _copied(path: str, folders: Folders, rules: ReplyRules, turn_id: str) -> str:
    assert rules.files is not None
    with (
        open_outgoing(path, folders, max_bytes=rules.file_bytes) as (found, source),
        rules.files.receiving(_folder(turn_id), found.name, max_bytes=rules.file_bytes) as target,
    ):
        shutil.copyfileobj(source, target)
    return target.ref


def _folder(turn_id: str) -> str:
    return f"sent/{safe_name(turn_id)}"


def _told(refusal: FileRefused) -> str:
    return clean(str(refusal))


def _joined(text: str, notes: Sequence[str]) -> str:
    return "\n\n".join(part for part in (text, *notes) if part)
