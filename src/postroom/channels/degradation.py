"""Makes a reply fit a platform: what the platform lacks is replaced here, by rule, and nowhere else."""

import re
from collections.abc import Sequence

import msgspec

from postroom.channels.capabilities import Capabilities
from postroom.channels.markdown import parse
from postroom.channels.model import Choice, Piece, PieceKind
from postroom.channels.splitting import split
from postroom.channels.styled_text import StyledText
from postroom.office.files import FileRefused
from postroom.office.message_files import FilesAway, MessageFiles, name_of
from postroom.office.tags import for_people
from postroom.services.chat_commands import COMMANDS, OF_GUARDS

_COMMAND = re.compile(rf"(?<!\S)/({'|'.join([*COMMANDS, *OF_GUARDS])})\b")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent answers, before any platform is thought of. The text is Markdown."""

    text: str = ""
    files: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    # What each choice stands for, where that is not its label.
    says: tuple[str, ...] = ()


def make_pieces(reply: Reply, capabilities: Capabilities, files: MessageFiles) -> list[Piece]:
    """Files first, then the text in parts; buttons hang on the last part."""
    pieces: list[Piece] = []
    remarks: list[str] = []
    for path in reply.files:
        if reason := _why_not(path, capabilities, files):
            remarks.append(f"(The file {name_of(path)} is not here: {reason}.)")
        else:
            pieces.append(Piece(kind=PieceKind.FILE, path=path))
    text = for_people(reply.text)
    buttons = _fit_buttons(reply.choices, capabilities)
    if reply.choices and not buttons:
        words = reply.says or [choice.label for choice in reply.choices]
        remarks.append("Answer with one of: " + " · ".join(words))
    text = "\n\n".join([text, *remarks]) if remarks else text
    if capabilities.command_sign != "/":
        text = _COMMAND.sub(rf"{capabilities.command_sign}\1", text)
    styled = parse(text)
    if not capabilities.markup:
        styled = StyledText(styled.plain())
    parts = split(styled, capabilities.text_limit, capabilities.measure)
    pieces += [Piece(kind=PieceKind.TEXT, text=part) for part in parts]
    if buttons and parts:
        pieces[-1] = msgspec.structs.replace(pieces[-1], choices=buttons)
    return pieces


def without_markup(piece: Piece) -> Piece:
    return msgspec.structs.replace(piece, text=StyledText(piece.text.plain()))


def _why_not(path: str, capabilities: Capabilities, files: MessageFiles) -> str | None:
    if not capabilities.file_bytes:
        return "this platform takes no files"
    try:
        found = files.check(path, max_bytes=capabilities.file_bytes)
    except FileRefused as refusal:
        return refusal.data["reason"]
    except FilesAway:
        return None  # it is looked at again when it is sent, and waits until it can be
    return None if found.size else "it is empty"


def _fit_buttons(choices: Sequence[Choice], capabilities: Capabilities) -> tuple[Choice, ...]:
    """All of them or none: half a choice misleads."""
    if not 0 < len(choices) <= capabilities.buttons:
        return ()
    if any(len(choice.label) > capabilities.button_chars for choice in choices):
        return ()
    return tuple(choices)
