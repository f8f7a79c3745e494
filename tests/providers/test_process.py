"""A program of a turn is fed, read, limited, and ended with everything it started."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from postroom.providers import Cause, TurnLimits
from postroom.providers.leftovers import end_leftovers, find_leftovers
from postroom.providers.process import Child, Exit, ProcessCommand, ProcessLimitReached
from tests.providers.conftest import is_alive, until

PATIENT = TurnLimits(wall_clock=200, idle=100, grace=60, term=0.2)


def mark(folder: Path) -> str:
    """The whole path: tests that run side by side have folders of the same name."""
    return f"turn-{folder}"


def shell(script: str, folder: Path, *, stdin: bytes = b"", limits: TurnLimits = PATIENT) -> ProcessCommand:
    return ProcessCommand(
        program="/bin/sh",
        arguments=("-c", script),
        stdin=stdin,
        folder=folder,
        environment={"PATH": "/usr/bin:/bin", "POSTROOM_TURN_ID": mark(folder)},
        limits=limits,
    )


async def run(command: ProcessCommand) -> tuple[list[str], Child]:
    async with Child(command) as child:
        lines = [line async for line in child.lines()]
    return lines, child


def ended(child: Child) -> Exit:
    assert child.exit is not None
    return child.exit


async def pid_in(path: Path) -> int:
    """The process that has written its number there, once it has."""
    await until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(_text(path))


def _text(path: Path) -> str:
    return path.read_text()


async def test_the_prompt_arrives_on_stdin_whole(tmp_path: Path) -> None:
    prompt = ("-x " + "ü" * 150_000).encode()
    lines, child = await run(shell("wc -c; pwd", tmp_path, stdin=prompt))
    assert lines == [str(len(prompt)), str(tmp_path)]
    assert ended(child) == Exit(code=0)


async def test_a_program_that_does_not_read_its_prompt_is_no_problem(tmp_path: Path) -> None:
    lines, child = await run(shell("echo done", tmp_path, stdin=b"x" * 1_000_000))
    assert (lines, ended(child).code) == (["done"], 0)


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", -9), ("kill -15 $$", -15)])
async def test_the_exit_is_reported_as_it_was(tmp_path: Path, script: str, code: int) -> None:
    _, child = await run(shell(script, tmp_path))
    assert ended(child).code == code
    assert not ended(child).ordered


async def test_the_end_of_stderr_is_kept_and_only_that(tmp_path: Path) -> None:
    script = "yes noise | head -c 1000000 >&2; echo the reason >&2; exit 3"
    _, child = await run(shell(script, tmp_path))
    assert child.stderr.endswith("the reason\n")
    assert len(child.stderr) <= 16 * 1024


async def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    command = ProcessCommand(
        program=str(broken), arguments=(), stdin=b"", folder=tmp_path, environment={}, limits=PATIENT
    )
    lines, child = await run(command)
    assert lines == []
    assert "No such file" in (ended(child).error or "")


async def test_signals_are_not_blocked_or_ignored_in_the_program(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # as a script that starts an office with & does
    try:
        lines, _ = await run(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status", tmp_path))
    finally:
        signal.signal(signal.SIGQUIT, before)
    threads_own = 0b11 << 31  # 32 and 33 belong to the C library
    assert [int(line.split()[1], 16) & ~threads_own for line in lines] == [0, 0]


async def test_the_program_inherits_no_descriptor_of_ours(tmp_path: Path) -> None:
    lines, _ = await run(shell("ls /proc/self/fd", tmp_path))
    assert set(lines) <= {"0", "1", "2", "3"}  # 3 is the folder that ls reads


@pytest.mark.parametrize(
    ("limits", "cause"),
    [
        (TurnLimits(wall_clock=0.3, idle=600, term=0.2), Cause.WALL_CLOCK),
        (TurnLimits(wall_clock=600, idle=0.3, term=0.2), Cause.IDLE),
    ],
)
async def test_time_limits_end_a_program_that_hangs(tmp_path: Path, limits: TurnLimits, cause: Cause) -> None:
    with pytest.raises(ProcessLimitReached) as reached:
        await run(shell("sleep 600", tmp_path, limits=limits))
    assert reached.value.cause is cause
    assert find_leftovers(mark(tmp_path)) == []


async def test_a_program_that_talks_without_end_meets_the_wall_clock(tmp_path: Path) -> None:
    limits = TurnLimits(wall_clock=0.3, idle=600, term=0.2, output_bytes=10**12)
    with pytest.raises(ProcessLimitReached) as reached:
        await run(shell("yes", tmp_path, limits=limits))
    assert reached.value.cause is Cause.WALL_CLOCK


async def test_signs_of_life_on_stderr_count(tmp_path: Path) -> None:
    script = "while [ ! -e go ]; do sleep 0.01; done; echo working >&2; sleep 600"
    async with Child(shell(script, tmp_path)) as child:
        before = child._next_deadline()
        (tmp_path / "go").touch()
        await until(lambda: child.stderr == "working\n")
        assert child._next_deadline() > before


async def test_output_beyond_the_limit_ends_the_program(tmp_path: Path) -> None:
    limits = TurnLimits(wall_clock=200, idle=100, term=0.2, output_bytes=1_000_000)
    with pytest.raises(ProcessLimitReached) as reached:
        await run(shell("yes", tmp_path, limits=limits))
    assert reached.value.cause is Cause.OUTPUT_LIMIT


async def test_a_program_that_closes_its_output_and_stays_gets_the_grace_only(tmp_path: Path) -> None:
    limits = TurnLimits(wall_clock=600, idle=600, grace=0.2, term=0.2)
    async with asyncio.timeout(200):
        lines, child = await run(shell("echo hi; exec >&- 2>&-; sleep 600", tmp_path, limits=limits))
    assert lines == ["hi"]
    assert ended(child).ordered


CHILD = "sh -c 'echo $$ >> left; exec sleep 600' &"
SETSID = "setsid sh -c 'echo $$ >> left; exec sleep 600' &"
NO_PARENT = "setsid -f sh -c 'echo $$ >> left; exec sleep 600';"
DEAF = "setsid -f sh -c \"trap '' TERM INT HUP; echo \\$\\$ >> left; while :; do sleep 600; done\";"
NO_ENVIRONMENT = "env -i /usr/bin/setsid -f sh -c 'echo $$ >> left; exec sleep 600';"
STARTED = "while [ ! -s left ]; do sleep 0.01; done;"


@pytest.mark.parametrize("orphan", [CHILD, SETSID, NO_PARENT, DEAF, NO_ENVIRONMENT])
async def test_what_a_program_leaves_behind_is_ended_when_it_exits(tmp_path: Path, orphan: str) -> None:
    lines, child = await run(shell(f"{orphan} {STARTED} echo done", tmp_path))
    assert lines == ["done"]
    assert ended(child).code == 0
    assert ended(child).left >= 1
    assert ended(child).survivors == 0
    assert not is_alive(int((tmp_path / "left").read_text()))


@pytest.mark.parametrize("orphan", [CHILD, SETSID, NO_PARENT, DEAF, NO_ENVIRONMENT])
async def test_leaving_the_block_ends_the_whole_tree(tmp_path: Path, orphan: str) -> None:
    async with Child(shell(f"echo $$ > pid; {orphan} {STARTED} sleep 600", tmp_path)) as child:
        left = await pid_in(tmp_path / "left")
    assert ended(child).ordered
    assert not is_alive(left)
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; echo $$ > pid; while :; do sleep 600; done"
    async with Child(shell(script, tmp_path)) as child:
        pid = await pid_in(tmp_path / "pid")
    assert ended(child).code == -signal.SIGKILL
    assert not is_alive(pid)


async def test_a_program_gets_time_to_end_in_order_after_sigterm(tmp_path: Path) -> None:
    script = "trap 'echo saved > saved; exit 4' TERM; echo $$ > pid; while :; do sleep 0.01; done"
    limits = TurnLimits(wall_clock=600, idle=600, term=60)
    async with Child(shell(script, tmp_path, limits=limits)) as child:
        await pid_in(tmp_path / "pid")
    assert (tmp_path / "saved").exists()
    assert ended(child).code == 4


async def test_cancelling_twice_does_not_save_the_program(tmp_path: Path) -> None:
    async def turn() -> None:
        async with Child(shell(f"echo $$ > pid; {DEAF} {STARTED} sleep 600", tmp_path)) as child:
            async for _ in child.lines():
                pass

    task = asyncio.create_task(turn())
    pids = [await pid_in(tmp_path / name) for name in ("pid", "left")]
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not any(map(is_alive, pids)))
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})


OWNER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.providers.test_process import DEAF, STARTED, shell
from postroom.providers.process import Child

async def main():
    async with Child(shell("echo $$ > pid; " + DEAF + STARTED + " sleep 600", Path({folder!r}))) as child:
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_the_tree_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    source = OWNER.format(root=str(Path(__file__).parents[2]), folder=str(tmp_path))
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", source)
    try:
        pids = [await pid_in(tmp_path / name) for name in ("pid", "left")]
    finally:
        owner.kill()
        await owner.wait()
    await until(lambda: not any(map(is_alive, pids)))


async def test_processes_are_found_by_their_mark_when_the_minder_was_killed(tmp_path: Path) -> None:
    command = shell(f"echo $PPID > minder; {NO_PARENT} {STARTED} sleep 600", tmp_path)
    async with Child(command) as child:
        left = await pid_in(tmp_path / "left")
        assert left in find_leftovers(mark(tmp_path))
        os.kill(int((tmp_path / "minder").read_text()), signal.SIGKILL)
    assert ended(child).code is None
    assert ended(child).left >= 2
    assert not is_alive(left)


def test_nothing_is_found_for_a_turn_without_a_mark() -> None:
    assert find_leftovers("") == []
    assert end_leftovers("no-such-turn") == 0


async def test_many_turns_at_once_end_only_their_own(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(6)]
    for folder in folders:
        folder.mkdir()
    keeper = Child(shell(f"{NO_PARENT} {STARTED} sleep 600", tmp_path))
    async with keeper:
        kept = await pid_in(tmp_path / "left")
        await asyncio.gather(*(run(shell(f"{NO_PARENT} {STARTED} echo done", folder)) for folder in folders))
        assert not any(is_alive(int((folder / "left").read_text())) for folder in folders)
        assert is_alive(kept)
    assert not is_alive(kept)


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    await run(shell("echo warm", tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await run(shell("echo x; echo y >&2", tmp_path))
    assert len(os.listdir("/proc/self/fd")) <= before


def test_an_exit_reads_like_one() -> None:
    assert str(Exit(code=3)) == "exit code 3"
    assert str(Exit(code=-9)) == "signal 9"
    assert str(Exit()) == "no exit code"
