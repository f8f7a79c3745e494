"""The audit and parts of streams in memory."""

import sys
from collections.abc import Sequence
from copy import copy
from typing import Any

from msgspec.structs import replace

from postroom.kernel.ledger import Event
from postroom.kernel.model import Document
from postroom.kernel.rows import Content, Row, Stored
from postroom.kernel.service_ports import ALL_DOCUMENTS, AuditEntry, AuditFilter, Chunk
from postroom.stores.memory.chain import Chain
from postroom.stores.memory.documents import Documents
from postroom.stores.memory.filters import labelled
from postroom.stores.memory.journal import Journal
from postroom.stores.memory.messages import MemoryMessages
from postroom.stores.memory.notes import Notes


class MemoryAudit:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._audit: list[AuditEntry] = []
        self._chunks: dict[tuple[str, int], Chunk] = {}
        self._kept_keys: dict[tuple[int, str], str] = {}

    # audit

    def add_audit(self, entries: Sequence[AuditEntry]) -> None:
        for entry in entries:
            self._audit.append(entry)
            self._journal.note(self._audit.pop)

    def audit(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        fields = ("scope_id", "event_type", "actor_id", "correlation_id", "message_id", "allowed")
        asked = [(name, value) for name in fields if (value := getattr(wanted, name)) is not None]
        entries = [entry for entry in self._audit if entry.tenant == wanted.tenant]
        if wanted.newest_first:
            entries.reverse()
        if after is not None:
            place = next((n for n, entry in enumerate(entries) if entry.id == after), len(entries))
            entries = entries[place + 1 :]
        return [
            entry
            for entry in entries
            if all(getattr(entry, name) == value for name, value in asked)
            and (wanted.since is None or entry.created_at >= wanted.since)
            and (wanted.until is None or entry.created_at < wanted.until)
            and (wanted.queue_ids is None or entry.queue_id in (0, *wanted.queue_ids))
        ][:limit]

    def forget_audit(self, tenant: str, message_ids: Sequence[str]) -> int:
        forgotten = 0
        for place, entry in enumerate(self._audit):
            if entry.tenant == tenant and entry.message_id in message_ids and entry.details != "{}":
                self._audit[place] = replace(entry, details="{}")
                self._journal.note(lambda place=place, entry=entry: self._audit.__setitem__(place, entry))
                forgotten += 1
        return forgotten

    def prune_audit(self, before: int, limit: int) -> int:
        """They come in the order of time."""
        count = 0
        while count < min(limit, len(self._audit)) and self._audit[count].created_at < before:
            count += 1
        dropped = self._audit[:count]
        del self._audit[:count]
        self._journal.note(lambda: self._audit.__setitem__(slice(0, 0), dropped))
        return count

    # parts of streams

    def add_chunk(self, stream_id: str, chunk: Chunk) -> bool:
        if (stream_id, chunk.number) in self._chunks:
            return False
        self._journal.set(self._chunks, (stream_id, chunk.number), chunk)
        return True

    def chunks(self, stream_id: str, after: int, limit: int) -> list[Chunk]:
        found = [chunk for (stream, n), chunk in self._chunks.items() if stream == stream_id and n > after]
        return sorted(found, key=lambda chunk: chunk.number)[:limit]

    def delete_chunks(self, stream_id: str) -> None:
        for place in [place for place in self._chunks if place[0] == stream_id]:
            self._journal.delete(self._chunks, place)

    # keys of messages that have moved

    def keep_key(self, queue_id: int, key: str, message_id: str) -> None:
        self._journal.set(self._kept_keys, (queue_id, key), message_id)

    def kept_key(self, queue_id: int, key: str) -> str | None:
        return self._kept_keys.get((queue_id, key))

    def forget_keys(self, message_id: str) -> None:
        for place in [place for place, id_ in self._kept_keys.items() if id_ == message_id]:
            self._journal.delete(self._kept_keys, place)


class MemoryServiceLookups:
    """Finding; the same in a transaction and for a reader."""

    _filing: MemoryAudit
    _documents: Documents

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        return self._documents.listed(tenant, kind, prefix, after, limit)

    def chunks(self, stream_id: str, after: int, limit: int) -> list[Chunk]:
        return self._filing.chunks(stream_id, after, limit)


class MemoryServiceWrites(MemoryServiceLookups):
    _messages: MemoryMessages
    _notes: Notes

    def ruled_scopes(self) -> frozenset[int]:
        return self._documents.ruled_scopes()

    def rules_of(self, tenant: str, scope_id: int) -> Sequence[Document]:
        return self.documents(tenant, "rule", f"{scope_id}/", "", ALL_DOCUMENTS)

    def forget_rules(self) -> None:
        """Nothing is remembered here."""

    def add_audit(self, entries: Sequence[AuditEntry]) -> None:
        self._filing.add_audit(entries)

    def add_chunk(self, stream_id: str, chunk: Chunk) -> bool:
        return self._filing.add_chunk(stream_id, chunk)

    def delete_chunks(self, stream_id: str) -> None:
        self._filing.delete_chunks(stream_id)

    def keep_key(self, queue_id: int, idempotency_key: str, message_id: str) -> None:
        self._filing.keep_key(queue_id, idempotency_key, message_id)

    def kept_key(self, queue_id: int, idempotency_key: str) -> str | None:
        return self._filing.kept_key(queue_id, idempotency_key)

    def pending_labelled(self, line: int, labels: Sequence[tuple[str, Any]], limit: int) -> list[Stored]:
        waiting = self._messages.pending(line, sys.maxsize)
        return [stored for stored in waiting if labelled(stored.content, tuple(labels))][:limit]

    def reroute(self, row: Row) -> None:
        self._messages.reroute(row)

    def rewrite(
        self, message_id: str, content: Content, *, result: bytes | None, failure_reason: str | None
    ) -> None:
        self._messages.rewrite(message_id, content, result=result, failure_reason=failure_reason)

    def erasable(self, tenant: str, scope_id: int | None, after: int, limit: int) -> list[Stored]:
        found = [
            Stored(copy(row), copy(content), archived)
            for row, content, archived in self._messages.walk(after, newest_first=False)
            if row.tenant == tenant and scope_id in (None, row.scope_id)
        ]
        return found[:limit]

    def forget_audit(self, tenant: str, message_ids: Sequence[str]) -> int:
        return self._filing.forget_audit(tenant, message_ids)

    def forget_records(self, tenant: str, message_ids: Sequence[str]) -> int:
        return self._notes.forget_records(tenant, message_ids)


class MemoryServiceReads(MemoryServiceLookups):
    _chain: Chain

    def audit(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        return self._filing.audit(wanted, after, limit)

    def events_about(
        self, tenant: str, correlation_id: str, since: int, until: int, limit: int
    ) -> list[Event]:
        return [
            event
            for event in self._chain.events(0, sys.maxsize)
            if (event.tenant, event.correlation_id) == (tenant, correlation_id)
            and since <= event.time <= until
        ][:limit]
