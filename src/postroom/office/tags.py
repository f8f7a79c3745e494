"""The bracket tags people and agents write: read into parts that lose no character, and texts made of them.

A tag inside a tag is text, and a tag that never closes is text too; it does not hide the tags after it.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec


class Text(msgspec.Struct, frozen=True):
    """Whatever is no tag."""

    source: str


class Unclosed(msgspec.Struct, frozen=True):
    """The opening of a tag whose closing bracket is missing. It counts as text, and can be reported."""

    source: str


class Mention(msgspec.Struct, frozen=True):
    """`[@a, b: text]`: a direct message to each of `ids`, which are in small letters."""

    source: str
    ids: tuple[str, ...]
    text: str


class RoomPost(msgspec.Struct, frozen=True):
    """`[#team: text]`: a post to the room of a team."""

    source: str
    team: str
    text: str


class SendFile(msgspec.Struct, frozen=True):
    """`[send_file: path]`: a file to send to the person."""

    source: str
    path: str


class AttachedFile(msgspec.Struct, frozen=True):
    """`[file: path]`: a file that came with a person's message."""

    source: str
    path: str


class TaskRef(msgspec.Struct, frozen=True):
    """`[task:id]`: the task a message is about."""

    source: str
    id: str


Part = Text | Unclosed | Mention | RoomPost | SendFile | AttachedFile | TaskRef

# Neither loop can run past the next bracket, and neither gives back what it took, so a scan stays linear.
_OPENING = re.compile(r"\[(?:([@#])([^\[\]:]*+):|(send_file|file|task):)")
_SENDING = re.compile(r"\[()()(send_file):")
_BRACKET = re.compile(r"[\[\]]")


def parse(text: str) -> list[Part]:
    """The parts of a text, in order. Their sources joined are the text."""
    parts: list[Part] = []
    done = 0
    for start, end, part in _tags(text, _OPENING):
        if done < start:
            parts.append(Text(text[done:start]))
        parts.append(part)
        done = end
    if done < len(text):
        parts.append(Text(text[done:]))
    return parts


def for_people(text: str) -> str:
    """With hand-offs and posts as sentences: who reads it in a chat knows nothing of tags."""
    shown: list[str] = []
    for part in parse(text):
        match part:
            case Mention(ids=ids, text=said):
                shown.append(f"→ {', '.join(f'@{each}' for each in ids)}: {said}")
            case RoomPost(team=team, text=said):
                shown.append(f"→ #{team}: {said}")
            case _:
                shown.append(part.source)
    return "".join(shown)


def shared_context(parts: Iterable[Part]) -> str:
    """What stands outside the mentions. Room posts and file tags belong to it."""
    return "".join(part.source for part in parts if not isinstance(part, Mention)).strip()


def files_to_send(text: str) -> list[SendFile]:
    """Every `[send_file: …]` of an answer, also inside other tags: the person sees the whole answer."""
    return [part for _, _, part in _tags(text, _SENDING) if isinstance(part, SendFile)]


def without_files_to_send(text: str) -> str:
    kept: list[str] = []
    done = 0
    for start, end, part in _tags(text, _SENDING):
        if isinstance(part, SendFile):
            kept.append(text[done:start])
            done = end
    kept.append(text[done:])
    return "".join(kept).strip()


def compose(shared: str, own: str) -> str:
    """The body of a direct message: the context all addressees share, then what is meant for this one."""
    return f"{shared}\n\n------\n\nDirected to you:\n{own}" if shared else own


def from_teammate(sender: str, body: str) -> str:
    return f"[Message from teammate @{sender}]:\n{body}"


def from_room(team: str, poster: str, text: str) -> str:
    return f"[Chat room #{team} — @{poster}]:\n{text}"


def with_attachments(text: str, paths: Iterable[str]) -> str:
    """A person's text followed by one `[file: …]` line for each file that came with it."""
    lines = "\n".join(f"[file: {path}]" for path in paths)
    return "\n\n".join(piece for piece in (text, lines) if piece)


def _tags(text: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int, Part]]:
    closings: dict[int, int] | None = None
    done = 0
    for match in opening.finditer(text):
        start = match.start()
        if start < done or not _is_tag(text, match):
            continue
        if closings is None:
            closings = _closings(text, start)
        close = closings.get(start)
        if close is None:
            yield start, match.end(), Unclosed(match[0])
            continue
        done = close + 1
        yield start, done, _tag(text[start:done], match, text[match.end() : close].strip())


def _is_tag(text: str, opening: re.Match[str]) -> bool:
    """Whether an opening with a closing bracket would be a tag: told without a look at all that it encloses,
    or refusing many openings, one inside the other, would take quadratic time."""
    if opening[1]:
        return bool(_ids(opening[2]))
    bracket = _BRACKET.search(text, opening.end())
    if bracket is None:
        return True
    inner = text[opening.end() : bracket.start()].split()
    if opening[3] == "task":
        return bracket[0] == "]" and len(inner) == 1
    return bracket[0] == "[" or bool(inner)


def _tag(source: str, opening: re.Match[str], inner: str) -> Part:
    sign, name, word = opening.groups()
    if sign == "@":
        return Mention(source, _ids(name), inner)
    if sign == "#":
        return RoomPost(source, name.strip().lower(), inner)
    if word == "send_file":
        return SendFile(source, inner)
    return AttachedFile(source, inner) if word == "file" else TaskRef(source, inner)


def _ids(name: str) -> tuple[str, ...]:
    return tuple(word for word in (part.strip().lower() for part in name.split(",")) if word)


def _closings(text: str, start: int) -> dict[int, int]:
    """Where each bracket opened from `start` on is closed. Brackets before a tag cannot change its own."""
    closings: dict[int, int] = {}
    open_: list[int] = []
    for match in _BRACKET.finditer(text, start):
        if match[0] == "[":
            open_.append(match.start())
        elif open_:
            closings[open_.pop()] = match.start()
    return closings
