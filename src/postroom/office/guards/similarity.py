"""Whether two texts say nearly the same.

Short texts are never alike: "yes" and "ok, done" are said often and mean something new each time. Neither are
texts with different numbers, since "review #12" and "review #13" are two tasks.
"""

import re
import unicodedata

WORDS = 8
SHINGLE = 3
ALIKE = 0.8
# Of a longer text the beginning and the end are compared, so that the work is bounded.
HALF_CHARS = 4_000

_HEADER = re.compile(r"\A\[(?:Message from teammate|Chat room)[^\]]*\]:\s*")
_DIRECTED = re.compile(r"\n------\n\s*Directed to you:\n", re.DOTALL)
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")


class TextFingerprint:
    """What is compared of a text: its words by three, its numbers, and what was meant for the reader."""

    def __init__(self, text: str) -> None:
        text = _HEADER.sub("", text)
        own = _DIRECTED.split(text)[-1]
        if len(text) > 2 * HALF_CHARS:
            text = text[:HALF_CHARS] + " " + text[-HALF_CHARS:]
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
        self.own = _WORD.findall(unicodedata.normalize("NFKC", own[-HALF_CHARS:]).casefold())
        self.long_enough = len(words) >= WORDS
        self.numbers = _NUMBER.findall(text)
        self.shingles = {
            tuple(words[start : start + SHINGLE]) for start in range(max(1, len(words) - SHINGLE + 1))
        }

    def like(self, other: "TextFingerprint") -> bool:
        if not (self.long_enough and other.long_enough) or self.numbers != other.numbers:
            return False
        # The same background may go with many questions.
        if min(len(self.own), len(other.own)) < WORDS and self.own != other.own:
            return False
        common = len(self.shingles & other.shingles)
        return common >= ALIKE * (len(self.shingles) + len(other.shingles) - common)
