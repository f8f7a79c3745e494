"""A process that has loaded everything and brings lives forth by fork, so that each begins at once.

`python -m tests.acceptance.crashes.nursery`: reads a line of JSON for each life, and answers with one.
"""

import asyncio
import json
import os
import sys
import traceback
from pathlib import Path

from tests.acceptance.crashes.life import live
from tests.acceptance.histories import life as histories


def bear(order: dict) -> dict:
    folder = Path(order["folder"])
    report, said = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(report)
            # So that the whole life can be ended, and what it leaves behind be told apart.
            if "plan" in order:
                life = histories.live(folder, order["plan"], order["fatal"])
            else:
                life = live(folder, order["kind"], order["fatal"], order["parent"])
            taken = asyncio.run(life)
            os.write(said, str(taken).encode())
            code = 0
        except BaseException:
            with open(folder / "trouble.txt", "a") as file:
                traceback.print_exc(file=file)
        finally:
            os._exit(code)
    os.close(said)
    with os.fdopen(report, "rb") as file:
        taken = file.read()
    _, status = os.waitpid(child, 0)
    return {
        "pid": child,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "steps": int(taken or 0),
    }


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(bear(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
