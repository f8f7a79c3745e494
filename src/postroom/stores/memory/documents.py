"""Documents by kind and key. Their keys are sorted when they are listed."""

from copy import deepcopy
from heapq import nsmallest

from msgspec.structs import replace

from postroom.kernel.model import Document
from postroom.stores.memory.journal import Journal

Name = tuple[str, str, str]
# When a document was written, its tenant and its key.
Place = tuple[int, str, str]


class Documents:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._documents: dict[Name, Document] = {}
        self._forgotten: dict[tuple[str, str], int] = {}
        self._has_rules = False

    def find(self, tenant: str, kind: str, key: str) -> Document | None:
        """Also one that is gone."""
        found = self._documents.get((tenant, kind, key))
        return _copy(found) if found is not None else None

    def listed(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        """Those that are there, by key."""
        names = sorted(
            name
            for name, document in self._documents.items()
            if name[:2] == (tenant, kind)
            and name[2] > after
            and name[2].startswith(prefix)
            and not document.gone
        )
        return [_copy(self._documents[name]) for name in names[: max(limit, 0)]]

    def ruled_scopes(self) -> frozenset[int]:
        """The scopes whose numbers begin the keys of rules; asked for at every transaction."""
        if not self._has_rules:
            return frozenset()
        numbers = (
            key.partition("/")[0]
            for (_, kind, key), document in self._documents.items()
            if kind == "rule" and not document.gone
        )
        return frozenset(int(number) for number in numbers if number.isdecimal())

    def changes(self, tenant: str, kind: str) -> int:
        """Also of those that were forgotten, so that the number never goes back."""
        there = sum(each.version for name, each in self._documents.items() if name[:2] == (tenant, kind))
        return there + self._forgotten.get((tenant, kind), 0)

    def untouched(self, kind: str, after: Place, before: int, limit: int) -> list[tuple[str, Document]]:
        found = [
            (each.updated_at, name)
            for name, each in self._documents.items()
            if name[1] == kind and not each.gone and each.updated_at < before
            if (each.updated_at, name[0], name[2]) > after
        ]
        return [(name[0], _copy(self._documents[name])) for _, name in nsmallest(limit, found)]

    def prune(self, before: int, limit: int) -> int:
        old = [name for name, each in self._documents.items() if each.gone and each.updated_at < before]
        for name in old[:limit]:
            version = self._journal.delete(self._documents, name).version
            forgotten = self._forgotten.get(name[:2], 0)
            self._journal.set(self._forgotten, name[:2], forgotten + version)
        return len(old[:limit])

    def save(self, tenant: str, document: Document) -> None:
        self._has_rules = self._has_rules or document.kind == "rule"
        self._journal.set(self._documents, (tenant, document.kind, document.key), _copy(document))


def _copy(document: Document) -> Document:
    """What callers do with the data must not reach what is kept."""
    return replace(document, data=deepcopy(document.data))
