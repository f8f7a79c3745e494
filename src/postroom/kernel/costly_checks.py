"""Checks that tenants wrote and that may take long: told by an estimate, and never made in a transaction.

A transaction that needs the answer to one ends with `ChecksNeeded` and changes nothing. Whoever carries it
out gets the answers, in a process that can be stopped, and carries it out again with them.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

# What may be done where all others wait: five milliseconds of work, in nanoseconds.
MOST_NS = 5_000_000
# The time of the processor, not of the clock: a busy machine is nobody's fault.
RULE_S = 0.25
SCHEMA_S = 1.0


class CostlyCheck(msgspec.Struct, frozen=True):
    """A rule and the facts of a message, or a schema and a body: JSON, both."""

    kind: Literal["rule", "schema"]
    document: bytes
    subject: bytes
    same: bytes
    """What must be equal for the answer to be the same: the subject, without what changes with every try."""

    @property
    def key(self) -> bytes:
        parts = hashlib.sha256(self.kind.encode())
        for part in (self.document, self.same):
            parts.update(len(part).to_bytes(8) + part)
        return parts.digest()

    @property
    def seconds(self) -> float:
        return RULE_S if self.kind == "rule" else SCHEMA_S


class CheckAnswer(msgspec.Struct, frozen=True):
    """What a check found: whether and why for a rule, where and what for a schema; or that it took long."""

    in_time: bool = True
    matched: bool = False
    why: str = ""
    problems: list[tuple[str, str]] = []
    seconds: float = 0.0
    undecided: bool = False


Answers = Mapping[bytes, CheckAnswer]
NO_ANSWERS: Answers = {}
AnswerChecks = Callable[[Sequence["CostlyCheck"]], Answers]


class ChecksNeeded(Exception):
    """A transaction cannot go on before these checks are answered; nothing of it was done."""

    def __init__(self, checks: Sequence[CostlyCheck]) -> None:
        super().__init__(f"{len(checks)} costly checks are to be answered first")
        self.checks = checks


class NeededChecks(msgspec.Struct):
    """Of one transaction: the answers it has, and the checks it would need answered."""

    _answers: Answers = NO_ANSWERS
    missing: list[CostlyCheck] = []

    def ask(self, check: CostlyCheck) -> CheckAnswer | None:
        """None: it is not answered, and this transaction will not be committed."""
        answer = self._answers.get(check.key)
        if answer is None:
            self.missing.append(check)
        return answer
