"""Telegram's formatted text: HTML and entities, checked as strictly as Telegram checks them. Offsets are
UTF-16 units.
"""

import html
import re
from typing import Any

from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal

ENTITY_TYPES = {
    "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic",
    "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre",
    "text_link", "text_mention", }  # fmt: skip
HTML_ENTITIES = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
    "s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler",
    "a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote",
}  # fmt: skip

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)((?:\s+[^<>]*)?)>")
_TOKEN = re.compile(r"<[^>]*>|&[^;\s&<]{1,10};|<")
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def read_formatted(
    parameters: CallParameters, field: str, entities_field: str
) -> tuple[str, list[dict[str, Any]]]:
    """The text of a call and its entities, however the caller gave them."""
    text = parameters.text(field)
    mode = parameters.text("parse_mode")
    given = parameters.structure(entities_field, [])
    if mode and mode.upper() != "HTML":
        raise NotImplementedByFake(f"parse_mode={mode}; send HTML or entities")
    text, entities = _parse_html(text) if mode else (text, given)
    _check_entities(text, entities)
    stripped = text.lstrip()
    gone = utf16_length(text) - utf16_length(stripped)
    stripped = stripped.rstrip()
    end = utf16_length(stripped)
    moved = [_clip(entity, gone, end) for entity in entities]
    return stripped, [entity for entity in moved if entity["length"] > 0]


def find_marks(text: str) -> list[dict[str, Any]]:
    """The entities Telegram finds by itself in what people write: commands and mentions."""
    marks = []
    for kind, pattern in (
        ("bot_command", r"(?<!\S)/[A-Za-z0-9_]{1,32}(?:@\w+)?"),
        ("mention", r"(?<!\w)@\w{3,32}"),
    ):
        for found in re.finditer(pattern, text):
            offset = utf16_length(text[: found.start()])
            marks.append({"type": kind, "offset": offset, "length": utf16_length(found.group())})
    return marks


def _clip(entity: dict[str, Any], gone: int, end: int) -> dict[str, Any]:
    start = max(entity["offset"] - gone, 0)
    stop = min(entity["offset"] + entity["length"] - gone, end)
    return {**entity, "offset": start, "length": stop - start}


def _check_entities(text: str, entities: list[dict[str, Any]]) -> None:
    whole = utf16_length(text)
    for entity in entities:
        if entity["type"] not in ENTITY_TYPES:
            raise NotImplementedByFake(f"entities of type {entity['type']}")
        if entity["offset"] < 0 or entity["length"] < 0 or entity["offset"] + entity["length"] > whole:
            raise Refusal(
                400, f"Bad Request: entity beginning at offset {entity['offset']} ends after the text"
            )


def _parse_html(source: str) -> tuple[str, list[dict[str, Any]]]:
    text = ""
    entities: list[dict[str, Any]] = []
    stack: list[tuple[str, dict[str, Any]]] = []
    position = 0
    for token in _TOKEN.finditer(source):
        text += source[position : token.start()]
        position = token.end()
        where = len(source[: token.start()].encode())
        if token.group().startswith("&"):
            text += html.unescape(token.group())
            continue
        tag = _TAG.fullmatch(token.group())
        if tag is None:
            raise _cannot_parse(f'Unsupported start tag "{token.group()[1:]}" at byte offset {where}')
        closing, name = bool(tag[1]), tag[2].lower()
        if closing:
            if not stack or stack[-1][0] != name:
                raise _cannot_parse(f"Unexpected end tag at byte offset {where}")
            _, entity = stack.pop()
            entity["length"] = utf16_length(text) - entity["offset"]
            entities.append(entity)
        else:
            stack.append((name, _open_entity(name, tag[3], utf16_length(text), where)))
    if stack:
        raise _cannot_parse(f'Can\'t find end tag corresponding to start tag "{stack[-1][0]}"')
    return text + source[position:], _merge_code(entities)


def _open_entity(name: str, attributes: str, offset: int, where: int) -> dict[str, Any]:
    values = {key.lower(): html.unescape(a or b) for key, a, b in _ATTRIBUTE.findall(attributes)}
    kind = HTML_ENTITIES.get(name)
    if name == "span" and values.get("class") == "tg-spoiler":
        kind = "spoiler"
    if kind is None:
        raise _cannot_parse(f'Unsupported start tag "{name}" at byte offset {where}')
    entity: dict[str, Any] = {"type": kind, "offset": offset, "length": 0}
    if name == "a":
        entity["url"] = values.get("href", "")
    if name == "blockquote" and "expandable" in attributes:
        entity["type"] = "expandable_blockquote"
    if name == "code" and values.get("class", "").startswith("language-"):
        entity["language"] = values["class"].removeprefix("language-")
    return entity


def _merge_code(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`<pre><code class="language-x">` is one entity; entities stand in the order of their offsets."""
    merged = []
    for entity in entities:
        inside = next(
            (
                pre
                for pre in entities
                if entity["type"] == "code" and pre["type"] == "pre" and pre["offset"] == entity["offset"]
            ),
            None,
        )
        if inside is None:
            merged.append(entity)
        elif "language" in entity:
            inside["language"] = entity["language"]
    return sorted(merged, key=lambda entity: (entity["offset"], -entity["length"]))


def _cannot_parse(why: str) -> Refusal:
    return Refusal(400, f"Bad Request: can't parse entities: {why}")
