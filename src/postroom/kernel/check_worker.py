"""The process that answers costly checks: one after the other, each under a limit of time and all of memory.

It reads from standard input and writes to standard output, and does nothing else. The operating system ends
it when a check takes longer than it may, whatever it is doing then.
"""

import math
import resource
import signal
import struct
import sys
import time
from typing import IO

import msgspec

from postroom.kernel import expressions
from postroom.kernel.costly_checks import CheckAnswer, CostlyCheck
from postroom.kernel.rules import matching
from postroom.kernel.rules.rule import Rule
from postroom.kernel.schemas import Validators

MOST_BYTES = 1024 * 1024 * 1024
LENGTH = struct.Struct(">I")


def read_frame(stream: IO[bytes]) -> bytes | None:
    """None when the other side is gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else None


def write_frame(stream: IO[bytes], body: bytes) -> None:
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


def answer(check: CostlyCheck, validators: Validators) -> CheckAnswer:
    subject = msgspec.json.decode(check.subject)
    started = time.thread_time()
    if check.kind == "rule":
        look = matching.considered(msgspec.json.decode(check.document, type=Rule), subject)
        return CheckAnswer(matched=look.matched, why=look.why, seconds=look.seconds, undecided=look.undecided)
    document = msgspec.json.decode(check.document)
    problems = validators.find_problems(check.document.decode(), document, subject)
    return CheckAnswer(problems=problems, seconds=time.thread_time() - started)


def main() -> None:
    source, target = sys.stdin.buffer, sys.stdout.buffer
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    validators = Validators(math.inf)
    write_frame(target, b"ready")
    while (frame := read_frame(source)) is not None:
        check = msgspec.msgpack.decode(frame, type=CostlyCheck)
        # Before anything is timed: that the libraries take long to load is nobody's fault.
        if check.kind == "rule":
            expressions.load()
        else:
            validators.find_problems("{}", {}, None)
        signal.setitimer(signal.ITIMER_PROF, check.seconds)
        found = answer(check, validators)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_frame(target, msgspec.msgpack.encode(found))


if __name__ == "__main__":
    main()
