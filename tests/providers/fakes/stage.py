"""What all fakes can do: keep sessions per folder, write events, and misbehave."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any, NoReturn

SAID = "final text"
SEPARATOR = "line one\u2028line two — ünïcödé 🙂"


class Stage:
    def __init__(self, program: str, arguments: list[str]) -> None:
        self.program = program
        self.arguments = arguments
        self.words = os.environ.get("FAKE", "").split()
        self.state = os.environ["FAKE_STATE"]
        self.prompt = ""

    def does(self, word: str) -> bool:
        return word in self.words

    def say(self, *events: dict[str, Any]) -> None:
        for event in events:
            sys.stdout.write(json.dumps(event, ensure_ascii=False) + "\n")
            sys.stdout.flush()
            if self.does("slowly"):
                time.sleep(0.1)

    def complain(self, text: str, code: int) -> NoReturn:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
        self.leave(code)

    def leave(self, code: int) -> NoReturn:
        sys.stdout.flush()
        os._exit(code)

    def answer(self) -> str:
        if self.does("echo"):
            return self.prompt
        if self.does("separator"):
            return SEPARATOR
        return "x" * 100_000 if self.does("long") else "" if self.does("empty") else SAID

    def read_prompt(self) -> None:
        self.prompt = self.read_input()
        call = {"argv": self.arguments, "env": dict(os.environ), "stdin": self.prompt, "cwd": os.getcwd()}
        with open(f"{self.state}/{self.program}.calls", "a") as file:
            file.write(json.dumps(call) + "\n")

    def read_input(self) -> str:
        return sys.stdin.buffer.read().decode()

    def sessions(self) -> dict[str, Any]:
        """One file each, since turns run side by side."""
        head = f"{self.program}.session."
        kept = {}
        for name in os.listdir(self.state):
            if name.startswith(head):
                with open(f"{self.state}/{name}") as file:
                    kept[name.removeprefix(head)] = json.load(file)
        return kept

    def keep_session(self, session: str, value: Any) -> None:
        path = f"{self.state}/{self.program}.session.{session}"
        with open(f"{path}.new".replace(".session.", ".new."), "w") as file:
            json.dump(value, file)
        os.replace(file.name, path)

    def misbehave_first(self) -> None:
        """Before the first event."""
        if self.does("ignore-term"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        elif self.program == "claude":
            signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
        if self.does("noisy"):
            sys.stderr.write("warning: noise\n" * 70_000 + "last words\n")
            sys.stderr.flush()
        for kind in ("child", "setsid", "stubborn"):
            if self.does(f"leave-{kind}"):
                self.leave_behind(kind)
        if self.does("silent"):
            self.hang()
        if self.does("crash"):
            self.complain("panicked at 'index out of range'", 101)
        if self.does("killed"):
            os.kill(os.getpid(), signal.SIGKILL)

    def misbehave_midway(self) -> None:
        """After the first event."""
        if self.does("garbage"):
            sys.stdout.write(
                '(node:1) Warning: something\n\n[1,2\n"text"\n{"type":"of the future","x":1}\n{}\n'
            )
        if self.does("huge"):
            sys.stdout.write('{"type":"huge","data":"' + "y" * 3_000_000 + '"}\n')
        if self.does("flood"):
            for _ in range(200):
                sys.stdout.write("z" * 100_000 + "\n")
        sys.stdout.flush()
        if self.does("hang"):
            self.hang()
        if self.does("partial"):
            sys.stdout.write('{"type":"assist')
            self.leave(1)

    def misbehave_last(self) -> None:
        """After the last event."""
        if self.does("linger"):
            self.hang()
        if self.does("close-and-linger"):
            sys.stdout.flush()
            os.close(1)
            self.hang()

    def hang(self) -> NoReturn:
        while True:
            time.sleep(60)

    def leave_behind(self, kind: str) -> None:
        """A process that outlives the program and holds its stdout open."""
        shell = "echo $$ >> $0/left; exec sleep 300"
        if kind == "stubborn":
            # In a session of its own, with no parent, no environment, and no ear for SIGTERM.
            shell = "trap '' TERM HUP INT; echo $$ >> $0/left; while :; do sleep 300; done"
        command = ["/bin/sh", "-c", shell, self.state]
        environment = {} if kind == "stubborn" else dict(os.environ)
        if kind == "child":
            subprocess.Popen(command, env=environment)
        elif os.fork() == 0:
            os.setsid()
            subprocess.Popen(command, env=environment)
            os._exit(0)
        while not self.has_left():
            time.sleep(0.005)

    def has_left(self) -> bool:
        """Whether the number of what is left behind is written down; the file is there a moment before it."""
        path = f"{self.state}/left"
        return os.path.exists(path) and os.path.getsize(path) > 0


class Options:
    """The options of a program: unknown ones are an error, as with the real ones."""

    def __init__(self, flags: set[str], valued: set[str], many: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self._flags, self._valued, self._many = flags, valued, many
        self.values: dict[str, list[str]] = {}
        self.rest: list[str] = []

    def parse(self, arguments: list[str]) -> str | None:
        """Returns the option that is not known, or has no value."""
        waiting = list(arguments)
        while waiting:
            argument = waiting.pop(0)
            if argument in self._flags:
                self.values[argument] = []
            elif argument in self._many:
                taken: list[str] = []
                while waiting and not waiting[0].startswith("-"):
                    taken.append(waiting.pop(0))
                self.values[argument] = taken
            elif argument in self._valued:
                if not waiting:
                    return argument
                self.values.setdefault(argument, []).append(waiting.pop(0))
            elif argument.startswith("-") and argument != "-":
                return argument
            else:
                self.rest.append(argument)
        return None

    def has(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str) -> str | None:
        return self.values[name][0] if self.values.get(name) else None
