"""The small language in which the `script` provider is told how to behave.

{"rules": [
  {"match": "ask (?P<mate>\\w+)", "reply": "I pass it on.", "hand_off": {"$mate": "Please: $prompt"}},
  {"match": "flaky", "fail": "overloaded", "times": 2, "reply": "Third time lucky."},
  {"match": "slow", "seconds": 30, "chunks": 10, "reply": "Done, step by step."}
]}
"""

import itertools
import re
from collections.abc import Mapping
from string import Template

import msgspec

from postroom.providers.protocol import ErrorKind

DEFAULT_REPLY = (
    "This is @$agent. I have read your message: “$excerpt”. "
    "I am the offline script provider, so I can show how the post room works, but not think."
)
EXCERPT_CHARS = 200


class ScriptRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do when `match` is found in the prompt, and `agent`, if given, is the whole agent id.

    `reply`, and the keys and values of `hand_off`, may use $agent, $prompt, $excerpt, $session, $turn, and
    the named groups of `match`. `fail` with `times` fails that often per agent, then replies; else always.
    """

    match: str = ""
    agent: str = ""
    reply: str = DEFAULT_REPLY
    hand_off: Mapping[str, str] = {}
    tools: tuple[str, ...] = ()
    chunks: int = 1
    seconds: float = 0.0
    fail: ErrorKind | None = None
    times: int | None = None
    retry_after: float | None = None
    hang: bool = False

    def __post_init__(self) -> None:
        try:
            re.compile(self.match)
        except re.error as error:
            raise ValueError(f"{self.match!r} is no regular expression: {error}") from None


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first rule that matches decides. `pace` stretches every duration: 0 is no waiting at all."""

    rules: tuple[ScriptRule, ...] = ()
    pace: float = 1.0


def read_script(text: str | bytes) -> Script:
    return msgspec.json.decode(text, type=Script)


class Match(msgspec.Struct, frozen=True):
    rule: ScriptRule
    number: int
    values: Mapping[str, str]

    def fill(self, template: str) -> str:
        return Template(template).safe_substitute(self.values)

    def answer(self) -> str:
        handed = [
            f"[@{self.fill(mate)}: {self.fill(text)}]"
            for mate, text in self.rule.hand_off.items()
            if self.fill(mate)
        ]
        return "\n".join(part for part in (self.fill(self.rule.reply), *handed) if part)


FALLBACK = ScriptRule()


def find_rule(script: Script, agent_id: str, prompt: str, session_id: str, turn: int) -> Match:
    values = {
        "agent": agent_id,
        "prompt": prompt,
        "excerpt": _excerpt(prompt),
        "session": session_id,
        "turn": str(turn),
    }
    for number, rule in enumerate(script.rules):
        if rule.agent and rule.agent != agent_id:
            continue
        found = re.search(rule.match, prompt, re.IGNORECASE | re.DOTALL)
        if found:
            groups = {name: text or "" for name, text in found.groupdict().items()}
            return Match(rule, number, {**values, **groups})
    return Match(FALLBACK, -1, values)


def pieces(text: str, count: int) -> list[str]:
    """The text in `count` pieces of about equal length, none of them empty, that join to the same text."""
    count = max(1, min(count, len(text)))
    bounds = [len(text) * position // count for position in range(count + 1)]
    return [text[start:end] for start, end in itertools.pairwise(bounds)]


def _excerpt(prompt: str) -> str:
    text = " ".join(prompt.split())
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 1] + "…"
