"""What commands cost that need no server: the processor time of a whole process, the median of several.

`scripts/bench commands [WORDS]` measures them in a home of their own, beside a process that only imports what
the command line stands on. Processor time is counted, not the clock: a busy machine changes little.
"""

import argparse
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MOST_S = 0.25
BARE = "import asyncio, typer, rich.table, apsw, msgspec"
PREPARE = ("queue create jobs", "agent add coder --provider script", "team add dev coder --leader coder")
COMMANDS = """
--version
--help
version
status
queue list
queue show jobs
publish jobs '{"n": 1}'
claim jobs
dead list
ledger verify
scope list
key list
rule list
review list
audit list
agent list
agent show coder
team list
provider list
settings list
settings get api.port
settings set logs.level info
schedule list
task list
project list
guards list
channel list
pairing pending
room read dev
memory list coder
inbox
send '@coder hello'
doctor
schema list
store info
""".strip().splitlines()


def processor_s(words: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, check=False, env=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 4):
        raise SystemExit(f"{shlex.join(words)} ended with {done.returncode}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench commands", description=__doc__)
    parser.add_argument("words", nargs="*", help="one command, instead of all")
    parser.add_argument("--tries", type=int, default=7)
    parser.add_argument("--gate", action="store_true", help="exit with 1 when a command takes longer")
    chosen = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="postroom-commands-") as folder:
        environment = {**os.environ, "POSTROOM_HOME": str(Path(folder) / "home"), "COLUMNS": "100"}
        ours = [sys.executable, "-m", "postroom"]
        for line in PREPARE:
            processor_s([*ours, *shlex.split(line)], environment)
        rows = [("(only imports of others)", [sys.executable, "-c", BARE])]
        commands = [shlex.join(chosen.words)] if chosen.words else COMMANDS
        rows += [(line, [*ours, *shlex.split(line)]) for line in commands]
        for name, words in rows:
            found = statistics.median(processor_s(words, environment) for _ in range(chosen.tries))
            over = found > MOST_S
            missed += over
            print(f"{found:8.3f} s  {name}{'  MISSED' if over else ''}", flush=True)
    return 1 if chosen.gate and missed else 0


if __name__ == "__main__":
    sys.exit(main())
