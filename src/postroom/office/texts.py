"""Texts that fit: a message holds so many bytes, and words of a model may hold anything."""

import msgspec

TEXT_BYTES = 96 * 1024
CUT = "\n\n[… cut here, it was too long]"


def clean(text: str) -> str:
    """Text that can be written as UTF-8: half a surrogate pair cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def fitted(text: str, most: int = TEXT_BYTES) -> str:
    """The text, cut where it would take more than `most` bytes as JSON."""
    if len(text) * 6 <= most or len(msgspec.json.encode(text)) <= most:
        return text
    kept = text.encode()[:most].decode(errors="ignore")
    while len(msgspec.json.encode(kept)) + len(CUT) > most:
        kept = kept[: len(kept) * 7 // 8]
    return kept + CUT


def excerpt(text: str, most: int) -> str:
    text = text.strip()
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
