"""A `claude` that does what its message says, however bad, and answers with what came of it.

The message is a JSON list of orders, each a list of a word and what it is about.
"""

import json
import os
import shutil
import signal
import socket
import sys
import time
import uuid
from typing import Any, NoReturn


def read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(200).decode(errors="replace")


def write(path: str) -> str:
    with open(path, "w") as file:
        file.write("hostile")
    return "written"


def look(path: str) -> list[str]:
    return sorted(os.listdir(path))


def read_by_symlink(path: str) -> str:
    os.symlink(path, name := uuid.uuid4().hex)
    return read(name)


def read_by_hard_link(path: str) -> str:
    os.link(path, name := uuid.uuid4().hex)
    return read(name)


def move_away(path: str) -> str:
    os.rename(path, name := uuid.uuid4().hex)
    return read(name)


def delete(path: str) -> str:
    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    return "deleted"


def read_of_parent(name: str) -> str:
    """Of the process outside that minds this one, if it can be seen at all."""
    return read(f"/proc/{os.getppid()}/{name}")


def connect(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=10):
        return "connected"


def kill_parent(_: object) -> str:
    os.kill(os.getppid(), signal.SIGKILL)
    return "sent"


def leave_daemon(mark: str) -> str:
    """In a session of its own, without a parent, without an environment, and deaf."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            code = (
                "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(600)"
            )
            os.execve(sys.executable, [sys.executable, "-IS", "-c", code, mark], {})
        os._exit(0)
    os.wait()
    return "left"


def hang(_: object) -> NoReturn:
    while True:
        time.sleep(60)


ORDERS = {
    each.__name__: each
    for each in (
        *(read, write, look, read_by_symlink, read_by_hard_link, move_away, delete, read_of_parent),
        *(connect, kill_parent, leave_daemon, hang),
    )
}


def obey(word: str, about: Any) -> Any:
    try:
        return ORDERS[word](about)
    except OSError as error:
        return f"refused: {type(error).__name__}"


def say(**event: Any) -> None:
    sys.stdout.write(json.dumps({**event, "session_id": session}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    session = sys.argv[sys.argv.index("--session-id") + 1]
    text = json.loads(sys.stdin.readline())["message"]["content"][0]["text"]
    say(type="system", subtype="init")
    done = [obey(*order) for order in json.loads(text)]
    say(type="result", subtype="success", is_error=False, result=json.dumps(done))
