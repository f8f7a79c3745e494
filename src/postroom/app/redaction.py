"""Secrets that must not stand in logs: those we know, and what looks like one."""

import re
from collections.abc import Iterable

MASK = "********"
_SHORTEST = 8
_LOOKS_LIKE = re.compile(
    r"(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"
    r"|\bsk-[A-Za-z0-9_-]{10,}"
    r"|\bprk_[A-Za-z0-9_-]{10,}"
    r"|\b(?:ghp|gho|xox[abps])[-_][A-Za-z0-9-]{10,}"
    r"|\b\d{8,12}:[A-Za-z0-9_-]{30,}"
    r"|(?<=code=)[A-Za-z0-9_-]{20,}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
)


class Redactor:
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._words: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self.know(secrets)

    def know(self, secrets: Iterable[str]) -> None:
        """These too; what was a secret once stays one."""
        self._words |= {word for word in secrets if len(word) >= _SHORTEST}
        words = sorted(self._words, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, words))) if words else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return _LOOKS_LIKE.sub(MASK, text)
