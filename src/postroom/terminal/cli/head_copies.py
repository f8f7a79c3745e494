"""Heads of the ledger in other places: sent to an address, kept as git notes, and read back from there, from
a file or from the lake. Whoever can rewrite the store cannot rewrite those."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import msgspec

from postroom.kernel.ledger import Head
from postroom.terminal.cli.errors import HeadMissing, HeadNotKept, HeadsUnreadable, Unclear
from postroom.terminal.cli.lake_access import lake_of
from postroom.terminal.cli.output import json_text
from postroom.terminal.cli.store_access import CommandContext

NOTES = "postroom"
GIT = "git:"
LAKE = "lake"
PATIENCE_S = 30.0

_PLAIN = re.compile(r"(?:head )?(\d+) ([0-9a-f]{64})")


class HeadLine(msgspec.Struct, frozen=True):
    """As `ledger head --json` prints it, and as the file beside the store has it."""

    seq: int
    hash: str


class KnownHeads(msgspec.Struct, frozen=True):
    """Hashes by the number of their event; or the beginning of one, of which the number is not known."""

    by_number: dict[int, str] = {}
    prefix: str | None = None

    def check_within(self, anchor: Head) -> None:
        """Heads that lie before what is kept prove nothing, which must not look like a proof."""
        last = max(self.by_number, default=anchor.seq)
        if last < anchor.seq:
            problem = f"events up to {anchor.seq} were pruned since, and none that is kept was noted"
            raise HeadMissing(hash=self.by_number[last], problem=problem)


def post_head(url: str, head: dict[str, object]) -> None:
    """As JSON. Kept means that the other side said so."""
    import httpx2

    if not url.startswith(("http://", "https://")):
        raise Unclear("--post is an address that begins with http:// or https://")
    try:
        answer = httpx2.post(url, json=head, timeout=PATIENCE_S, trust_env=False)
    except httpx2.HTTPError as error:
        raise HeadNotKept(place=url, reason=str(error) or type(error).__name__) from error
    if not answer.is_success:
        raise HeadNotKept(place=url, reason=f"it answered {answer.status_code}")


def add_git_note(folder: str, head: dict[str, object]) -> None:
    """To the commit that is checked out there; `git push origin refs/notes/postroom` takes it further."""
    _git(folder, "notes", f"--ref={NOTES}", "append", "-m", json_text(head), "HEAD")


def read_heads(at: CommandContext, named: str) -> KnownHeads:
    """From `lake`, `git:FOLDER` or a file; else it is a hash itself."""
    if named == LAKE:
        return KnownHeads(by_number=_in_lake(at))
    if named.startswith(GIT):
        return KnownHeads(by_number=_in_notes(named.removeprefix(GIT)))
    file = Path(named).expanduser()
    if file.is_file():
        return KnownHeads(by_number=_in_lines(file.read_text("utf-8", "replace").splitlines(), named))
    text = named.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{8,64}", text):
        raise Unclear(
            "--head is a hash as `postroom ledger head` prints it, at least its first 8 digits; a file of"
            " heads; git:FOLDER; or lake"
        )
    return KnownHeads(prefix=text)


def _in_lines(lines: Iterable[str], place: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            plain = _PLAIN.fullmatch(text)
            head = (
                HeadLine(int(plain[1]), plain[2])
                if plain
                else msgspec.json.decode(text.encode(), type=HeadLine)
            )
        except msgspec.MsgspecError:
            raise HeadsUnreadable(place=place, problem=f"line {number} is no head") from None
        if found.setdefault(head.seq, head.hash) != head.hash:
            raise HeadsUnreadable(place=place, problem=f"it has two hashes for event {head.seq}")
    if not found:
        raise HeadsUnreadable(place=place, problem="it has none")
    return found


def _in_notes(folder: str) -> dict[int, str]:
    notes = [line.split()[0] for line in _git(folder, "notes", f"--ref={NOTES}", "list").splitlines()]
    lines = [line for note in notes for line in _git(folder, "cat-file", "blob", note).splitlines()]
    return _in_lines(lines, f"{GIT}{folder}")


def _in_lake(at: CommandContext) -> dict[int, str]:
    """The last event of each part of the lake's ledger."""
    from postroom.pipeline.lake.reading import read_batches
    from postroom.pipeline.lake.tables import LEDGER

    lake = lake_of(at, None)
    found: dict[int, str] = {}
    for file in lake.files(LEDGER):
        for batch in read_batches(file.uri, ["seq", "hash"]):
            rows = zip(batch.column("seq").to_pylist(), batch.column("hash").to_pylist(), strict=True)
            seq, hash_ = max(rows)
            found[seq] = hash_.hex()
    if not found:
        raise HeadsUnreadable(place=str(lake.location), problem="it has none; fill it: postroom pipeline run")
    return found


def _git(folder: str, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HeadNotKept(place=f"{GIT}{folder}", reason=str(error)) from error
    if done.returncode:
        raise HeadNotKept(place=f"{GIT}{folder}", reason=done.stderr.strip() or "git failed")
    return done.stdout
