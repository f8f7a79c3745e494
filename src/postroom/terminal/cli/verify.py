"""Walking the whole ledger: every link of the chain, and whether the store is what its ledger says.

It trusts nothing it reads: whatever a tampered file holds, the answer is a finding, never a crash.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from postroom.errors import LedgerBroken
from postroom.kernel import ledger
from postroom.kernel.content_check import ContentCheck
from postroom.kernel.ledger import Event, Folded, Head
from postroom.kernel.reader import Reader
from postroom.kernel.states import TERMINAL
from postroom.terminal.cli.documents import hexed
from postroom.terminal.cli.errors import HeadMissing, LedgerUnreadable, StateDiffers

AT_ONCE = 2000
Progress = Callable[[int, int], None]
"""Called with how many events were walked, and how many there are."""

_ODD = (
    AssertionError,
    AttributeError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)


class Verified(msgspec.Struct, frozen=True):
    events: int
    anchor: Head
    head: Head
    messages: int | None
    """How many messages agree with the ledger; None when that was not asked for, or cannot be known."""


def verify(
    reader: Reader,
    *,
    noted: str | None = None,
    heads: Mapping[int, str] | None = None,
    fold: bool = True,
    progress: Progress | None = None,
) -> Verified:
    """Raise `LedgerBroken` at the first thing that does not fit. `heads` are hashes that were noted, by the
    number of their event."""
    heads = heads or {}
    head, anchor = _ends(reader)
    cut = anchor.seq > 0
    told: dict[str, Folded] = _standing(reader) if fold and cut else {}
    contents = ContentCheck()
    pruned = cut
    found = noted is None or hexed(anchor.hash).startswith(noted)
    if cut and heads.get(anchor.seq, hexed(anchor.hash)) != hexed(anchor.hash):
        raise LedgerBroken(seq=anchor.seq, problem="another event was noted there: it was rewritten")
    for event in _chain(reader, anchor, head, progress):
        found = found or hexed(event.hash).startswith(noted or "")
        if heads.get(event.seq, hexed(event.hash)) != hexed(event.hash):
            raise LedgerBroken(seq=event.seq, problem="another event was noted there: it was rewritten")
        pruned = pruned or event.type == "archive.pruned"
        if fold:
            _follow(event, told, contents, cut=cut)
    if not found:
        problem = "it belongs to another store, or this ledger was rewritten"
        if anchor.seq:
            problem += f", or it lies before event {anchor.seq + 1}, where the kept part begins"
        raise HeadMissing(hash=noted, problem=problem)
    if heads and max(heads) > head.seq:
        problem = f"it ends here, but event {max(heads)} was noted: what came after is missing"
        raise LedgerBroken(seq=head.seq, problem=problem)
    if fold:
        _compare(told, reader, pruned=pruned)
        _compare_contents(contents, reader)
    return Verified(head.seq - anchor.seq, anchor, head, len(told) if fold else None)


def _ends(reader: Reader) -> tuple[Head, Head]:
    try:
        head, anchor = reader.head(), reader.anchor()
        if not (isinstance(head.seq, int) and isinstance(head.hash, bytes)):
            raise TypeError("head")
        if not (isinstance(anchor.seq, int) and isinstance(anchor.hash, bytes)):
            raise TypeError("anchor")
    except _ODD:
        raise LedgerUnreadable(problem="the note of where it begins and ends is damaged") from None
    return head, anchor


def _chain(reader: Reader, anchor: Head, head: Head, progress: Progress | None) -> Iterator[Event]:
    at = anchor
    while True:
        try:
            events = reader.events(at.seq, AT_ONCE)
        except _ODD:
            raise LedgerBroken(seq=at.seq + 1, problem="it cannot be read") from None
        for event in events:
            after = Head(event.seq, event.hash)
            try:
                ledger.verify([event], at, after)
            except _ODD:
                raise LedgerBroken(seq=event.seq, problem="its content is not what it must be") from None
            yield event
            at = after
        if progress is not None:
            progress(at.seq - anchor.seq, max(head.seq - anchor.seq, 0))
        if len(events) < AT_ONCE:
            break
    ledger.verify([], at, head)


def _standing(reader: Reader) -> dict[str, Folded]:
    try:
        return reader.standing()[0]
    except _ODD as error:
        raise StateDiffers(problem=f"how messages stood where it begins cannot be read ({error})") from None


def _follow(event: Event, told: dict[str, Folded], contents: ContentCheck, *, cut: bool) -> None:
    try:
        ledger.fold([event], told, cut=cut)
        contents.follow(event)
    except _ODD as error:
        raise LedgerBroken(seq=event.seq, problem=f"it makes no sense ({error})") from None


def _compare(told: dict[str, Folded], reader: Reader, *, pruned: bool) -> None:
    try:
        kept = reader.folded()
    except _ODD as error:
        raise StateDiffers(problem=f"a message cannot be read ({error})") from None
    for message_id, stored in kept.items():
        written = told.get(message_id)
        if written is None:
            raise StateDiffers(problem=f"the ledger knows nothing of message {message_id}")
        if written != stored:
            raise StateDiffers(
                problem=f"message {message_id} is {_said(stored)}, but by the ledger it is {_said(written)}",
            )
    for message_id, written in told.items():
        if message_id not in kept and not (pruned and written.state in TERMINAL):
            raise StateDiffers(problem=f"message {message_id} is gone; it was {_said(written)}")


def _compare_contents(contents: ContentCheck, reader: Reader) -> None:
    try:
        contents.compare(reader.reads)
    except _ODD as error:
        raise StateDiffers(problem=f"what a message or record says cannot be read ({error})") from None


def _said(folded: Folded) -> str:
    return f"{folded.state} in {folded.place} with {folded.attempts} attempts"
