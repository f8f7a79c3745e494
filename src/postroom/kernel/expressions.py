"""Conditions in CEL, bounded: by their length, by one level of loops, and by how much a loop may look at.

CEL always ends, and its regular expressions take time in proportion to the text. A loop that mentions the
message looks at all of it once for each of its parts, and one that collects copies what it has at each step:
so the bound falls with both. What is collected by `map` can grow without end, and no condition needs it.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from postroom.errors import InvalidField
from postroom.kernel import jsontext

LONGEST = 2000
LOOPED_BYTES = 16 * 1024
SMALL_FACT = 100
VARIABLES = frozenset(
    {
        "labels",
        "body",
        "message_type",
        "content_type",
        "priority_tier",
        "priority_score",
        "source_type",
        "source_id",
        "correlation_id",
        "attempts",
        "hops",
        "queue",
        "scope",
        "state",
        "result",
        "failure_reason",
        "failure_kind",
        "id",
        "age_s",
    }
)
# Comments and texts: raw ones have no escapes, and those in three quotes hold single ones.
_TEXTS = re.compile(
    r"""//[^\n]*
      | (?:[rR][bB]?|[bB][rR])(?:\"{3}.*?\"{3} | '{3}.*?'{3} | "[^"\r\n]*" | '[^'\r\n]*')
      | [bB]?(?:\"{3}(?:[^\\]|\\.)*?\"{3} | '{3}(?:[^\\]|\\.)*?'{3}
               | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*')""",
    re.VERBOSE | re.DOTALL,
)
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(")
_MAP = re.compile(r"\.\s*map\s*\(")
_FILTER = re.compile(r"\.\s*filter\s*\(")
_LOOK = re.compile(r"[=!<>]=|[<>]|\b(?:in|contains|startsWith|endsWith|size|string|bytes)\b")
_MATCHES = re.compile(r"\bmatches\s*\(")
# One text and nothing else, whose escapes hide no braces.
_LITERAL_PATTERN = re.compile(
    r"""\bmatches\s*\(\s*((?:[rR]?"[^"\\\r\n]*"|[rR]?'[^'\\\r\n]*'|[rR]"[^"\r\n]*"|[rR]'[^'\r\n]*'
        |"(?:[^"\\\r\n]|\\[\\"'nrt])*"|'(?:[^'\\\r\n]|\\[\\"'nrt])*'))\s*\)""",
    re.VERBOSE,
)
_REPEATED = re.compile(r"\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}")
# Braces by their number, and the mode in which comments may stand between them.
_UNWEIGHED = re.compile(r"\\[xuU]|\(\?[a-zA-Z-]*x")
_MENTION = re.compile(r"\b(?:body|labels|result)\b")
# What the library has, besides its operators. Others would compile, and then never hold.
FUNCTIONS = frozenset(
    {
        *("size", "contains", "startsWith", "endsWith", "matches", "type", "dyn"),
        *("string", "int", "uint", "double", "bytes", "timestamp", "duration"),
        *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
        *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
    }
)


def load() -> Any:
    """Late, since it takes long to import and most rooms have no rules."""
    import cel

    return cel


def _compile(text: str) -> Any:
    return load().compile(text)


class TooMuch(Exception):
    """The message is too large for a condition that loops over it."""


class Expression:
    def __init__(self, text: str) -> None:
        self.text = text
        self._program = _compile(text)
        self._names = [name for name in self._program.variables() if name in VARIABLES]
        code = plain(text)
        self._most_looped = _most_looped(code)
        self._looks = len(_LOOK.findall(code))
        self._joins = code.count("+")
        self._pattern_weight = _weigh_patterns(text, code)

    def estimate_ns(self, sizes: Mapping[str, int]) -> float:
        """About how long it takes at most, with facts of so many bytes; measured, and rather too much."""
        size = sum(sizes.get(name, SMALL_FACT) for name in self._names)
        each_byte = 10 + 5 * self._looks + self._joins**2 + 8 * self._pattern_weight
        if self._most_looped is not None:
            each_byte += size * max(1, self._looks)
        return size * each_byte

    def holds(self, facts: dict[str, Any]) -> bool:
        """Missing fields and values of another kind do not match; they are no error."""
        seen = {name: facts.get(name) for name in self._names}
        if self._most_looped is not None and len(jsontext.encode(seen)) > self._most_looped:
            raise TooMuch
        try:
            return self._program.execute(seen) is True
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic of the library is no Exception
            return False


def plain(text: str) -> str:
    """The expression without its comments and without what its texts say."""
    return _TEXTS.sub(lambda found: " " if found[0].startswith("//") else '""', text)


def _weigh_patterns(text: str, code: str) -> float:
    """Of all regular expressions together; without end when one is not simply written down."""
    literals = [found[1] for found in _LITERAL_PATTERN.finditer(text)]
    if len(literals) != len(_MATCHES.findall(code)):
        return math.inf
    return sum(weigh_pattern(literal) for literal in literals)


@lru_cache(maxsize=1000)
def weigh_pattern(pattern: str) -> float:
    """How many steps a byte of text may cost: its length, times what it repeats."""
    if _UNWEIGHED.search(pattern):
        return math.inf
    weight = float(len(pattern) + 4 * pattern.count("\\"))
    for least, most in _REPEATED.findall(pattern):
        weight *= max(1, *(int(number[:9]) for number in (least, most) if number))
    return weight


def estimate_match_ns(pattern: str, length: int) -> float:
    return 8 * weigh_pattern(pattern) * length


def _most_looped(text: str) -> int | None:
    """How many bytes of a message its loops may look at; None without loops."""
    if not _LOOP.search(text):
        return None
    most = LOOPED_BYTES / math.sqrt(max(1, len(_MENTION.findall(text))))
    return int(most / 4 if _FILTER.search(text) else most)


def check(text: Any) -> None:
    """What can never be right is refused when the rule is made."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise InvalidField("expression", f"must be a CEL expression of 1 to {LONGEST} characters")
    code = plain(text)
    if re.search("[\"'`]", code.replace('""', "")):
        raise InvalidField("expression", "is not CEL: a text in it has no end")
    if _MAP.search(code):
        raise InvalidField("expression", "has a map, which could take too long; use exists, all or filter")
    _check_loops(code)
    try:
        program = _compile(text)
    except Exception as error:
        raise InvalidField("expression", f"is not CEL: {str(error).splitlines()[0]}") from None
    unknown = sorted(name for name in program.variables() if name not in VARIABLES)
    if unknown and not _LOOP.search(code):
        known = ", ".join(sorted(VARIABLES))
        raise InvalidField("expression", f"asks for {unknown[0]!r}; known are {known}")
    strange = sorted(name for name in program.functions() if name.isalpha() and name not in FUNCTIONS)
    if strange:
        known = ", ".join(sorted(FUNCTIONS))
        raise InvalidField("expression", f"calls {strange[0]!r}; known functions are {known}")


def _check_loops(text: str) -> None:
    """No loop and no regular expression inside a loop: each alone is quick, together they are not."""
    depth = 0
    loops: list[int] = []
    position = 0
    while position < len(text):
        loop = _LOOP.match(text, position)
        if loop:
            if loops:
                raise InvalidField("expression", "has a loop inside a loop, which could take too long")
            depth += 1
            loops.append(depth)
            position = loop.end()
            continue
        if loops and re.match(r"\.?\s*matches\s*\(", text[position:]):
            raise InvalidField(
                "expression", "has a regular expression inside a loop, which could take too long"
            )
        if text[position] == "(":
            depth += 1
        elif text[position] == ")":
            if loops and loops[-1] == depth:
                loops.pop()
            depth -= 1
        position += 1


@lru_cache(maxsize=1000)
def compiled(text: str) -> Expression:
    return Expression(text)


@lru_cache(maxsize=1000)
def _matcher(pattern: str) -> Any:
    return _compile(f"text.matches({jsontext.text(pattern)})")


def matches(text: str, pattern: str) -> bool:
    """By the linear-time regular expressions of CEL, never by a kind that can run away."""
    try:
        return _matcher(pattern).execute({"text": text}) is True
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # as above
        return False


def check_pattern(pattern: str, place: str) -> None:
    if len(pattern) > LONGEST:
        raise InvalidField(place, f"has more than {LONGEST} characters")
    try:
        _matcher(pattern).execute({"text": ""})
    except Exception:
        raise InvalidField(place, f"{pattern!r} is not a regular expression") from None
