"""Whether what the ledger points to is still what its events tell of: contents, results, records, documents
and audit entries.

What was written before events carried digests, or whose events are pruned, is believed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from postroom.errors import LedgerBroken
from postroom.kernel import digests
from postroom.kernel.digests import (
    AUDIT_TOMBSTONES,
    DIGEST,
    DOCUMENT,
    RECORD_DIGEST,
    RESULT_DIGEST,
    TOMBSTONES,
)
from postroom.kernel.ledger import Event
from postroom.kernel.ports import ALL_AUDIT, AuditEntry, FactFilter, Reads, RecordFilter, RowFilter
from postroom.kernel.rows import Stored

T = TypeVar("T")

AT_ONCE = 1000
# Without one of these in its data, an event notes nothing of what it points to.
_MARKS = (f'{DIGEST}":', f'"{TOMBSTONES}":')
FORGOTTEN = "{}"


class NotedMessage(msgspec.Struct):
    """`result` is None when it has none; `knows_result`, when the ledger would tell of one."""

    seq: int
    content: str | None = None
    result: str | None = None
    knows_result: bool = False
    is_erased: bool = False


class NotedDocument(msgspec.Struct):
    seq: int
    version: int
    digest: str


class AuditSpan(msgspec.Struct):
    seq: int
    first: str
    last: str
    entries: int
    digest: str


class ContentCheck:
    """Follows the events of a ledger in their order, then compares."""

    def __init__(self) -> None:
        self._messages: dict[str, NotedMessage] = {}
        self._records: dict[int, tuple[int, str]] = {}
        self._documents: dict[tuple[str, str], dict[str, NotedDocument]] = {}
        self._spans: list[AuditSpan] = []
        self._erased_audit: dict[str, tuple[str, str]] = {}

    def follow(self, event: Event) -> None:
        if event.type == "message.completed":
            self._follow_completion(event)
        if not any(mark in event.data for mark in _MARKS):
            return
        details = event.details
        if event.type == digests.AUDIT_DIGESTED:
            fields = {name: details[name] for name in ("first", "last", "entries", DIGEST)}
            self._spans.append(AuditSpan(event.seq, **fields))
        elif event.message_id is not None and DIGEST in details:
            known = self._messages.setdefault(event.message_id, NotedMessage(event.seq))
            known.seq, known.content = event.seq, details[DIGEST]
            known.knows_result = known.knows_result or event.type == "message.published"
        if RECORD_DIGEST in details:
            self._records[details["record"]] = (event.seq, details[RECORD_DIGEST])
        if DOCUMENT in details:
            self._follow_document(event, details[DOCUMENT])
        for message_id, (content, result) in (details.get(TOMBSTONES) or {}).items():
            self._messages[message_id] = NotedMessage(
                event.seq, content, result, knows_result=True, is_erased=True
            )
        for entry_id, (before, after) in (details.get(AUDIT_TOMBSTONES) or {}).items():
            self._erased_audit[entry_id] = (before, after)

    def _follow_completion(self, event: Event) -> None:
        assert event.message_id is not None, "a completion is of a message"
        digest = event.details.get(RESULT_DIGEST)
        known = self._messages.get(event.message_id)
        if known is None and digest is not None:
            known = self._messages[event.message_id] = NotedMessage(event.seq, knows_result=True)
        if known is not None:
            known.result = digest
            known.knows_result = known.knows_result or digest is not None

    def _follow_document(self, event: Event, noted: dict[str, Any]) -> None:
        by_name = self._documents.setdefault((event.tenant, noted["kind"]), {})
        by_name[noted["name"]] = NotedDocument(event.seq, noted["version"], noted[DIGEST])

    # comparing

    def compare(self, reads: Reads) -> None:
        """Raise `LedgerBroken` at the first thing that is not what its event tells of."""
        for stored in _pages(lambda last: reads.page(RowFilter(), last.row.seq if last else 0, AT_ONCE)):
            self._compare_message(stored)
        wanted = RecordFilter()
        for record in _pages(
            lambda last: reads.records(
                msgspec.structs.replace(wanted, after=last.number if last else 0), AT_ONCE
            )
        ):
            known = self._records.get(record.number)
            if known is None or known[1] == digests.record_digest(record.number, record.data):
                continue
            about = self._messages.get(record.message_id or "")
            if record.data != FORGOTTEN or about is None or not about.is_erased:
                raise _broken(known[0], f"record {record.number} is not the one it tells of")
        for (tenant, kind), by_name in self._documents.items():
            self._compare_documents(reads, tenant, kind, by_name)
        self._compare_audit(_pages(lambda last: reads.audit(ALL_AUDIT, last.id if last else None, AT_ONCE)))

    def _compare_message(self, stored: Stored) -> None:
        row = stored.row
        known = self._messages.get(row.id)
        if known is None:
            return
        if known.content not in (None, digests.content_digest(row.id, stored.content)):
            raise _broken(known.seq, f"the content of message {row.id} is not the one it tells of")
        result = None if row.result is None else digests.result_digest(row.id, row.result)
        if known.knows_result and result != known.result:
            raise _broken(known.seq, f"the result of message {row.id} is not the one the ledger tells of")

    def _compare_documents(
        self, reads: Reads, tenant: str, kind: str, by_name: dict[str, NotedDocument]
    ) -> None:
        for fact in _pages(
            lambda last: reads.scan(
                FactFilter(kind=kind, tenant=tenant, after=last.key if last else ""), AT_ONCE
            )
        ):
            known = by_name.get(digests.document_name(kind, fact.key))
            # The room itself goes on counting in some, without an event for each time.
            if known is None or fact.version > known.version:
                continue
            if known.digest != digests.document_digest(kind, fact.key, fact.version, fact.data):
                raise _broken(known.seq, f"the document {kind}/{fact.key} is not the one it tells of")

    def _compare_audit(self, entries: Iterator[AuditEntry]) -> None:
        """The oldest may be pruned, also amid a span; from the first whole one on all must fit."""
        spans = {span.first: position for position, span in enumerate(self._spans)}
        position: int | None = None
        found: list[str] = []
        for entry in entries:
            if position is None:
                position = spans.get(entry.id)
                if position is None:
                    continue
            if position == len(self._spans):
                break
            span = self._spans[position]
            found.append(self._digest_of(entry, span))
            if entry.id == span.last or len(found) == span.entries:
                if digests.joint_digest(found) != span.digest or entry.id != span.last:
                    raise _broken(span.seq, f"audit entries up to {span.last} are not those it tells of")
                position, found = position + 1, []
        if position is None:
            position = len(self._spans)
        if position < len(self._spans):
            span = self._spans[position]
            raise _broken(span.seq, f"audit entries up to {span.last} are missing")

    def _digest_of(self, entry: AuditEntry, span: AuditSpan) -> str:
        """As it was when its digest was noted, also when its details were erased since."""
        digest = digests.audit_digest(entry)
        before, after = self._erased_audit.get(entry.id, (digest, digest))
        if digest not in (before, after):
            raise _broken(span.seq, f"the audit entry {entry.id} is not the one it tells of")
        return before


def _broken(seq: int, problem: str) -> LedgerBroken:
    return LedgerBroken(seq=seq, problem=problem)


def _pages(read: Callable[[T | None], Sequence[T]]) -> Iterator[T]:
    last: T | None = None
    while found := read(last):
        yield from found
        if len(found) < AT_ONCE:
            return
        last = found[-1]
