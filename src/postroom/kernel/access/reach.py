"""How far a rule or webhook reaches: it acts in the name of whoever made it, no further than lists let them.

Lists are asked when it acts, so that a queue that is closed later is closed to it too.
"""

from typing import Protocol

from postroom.kernel.access import acl
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Document, Queue
from postroom.kernel.ports import MANY

Principals = tuple[tuple[str, str], ...]


class ListedDocuments(Protocol):
    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]: ...


def may_act(
    reader: ListedDocuments, queue: Queue, acts_as: Principals | None, wanted: Permission, now: int
) -> bool:
    """`acts_as` None is an administrator, whom lists do not hold back."""
    if acts_as is None:
        return True
    for kind, prefix in ((acl.ENTRY, f"{queue.scope_id}/{queue.id}/"), (acl.GRANT, f"{queue.scope_id}/")):
        found = reader.documents(queue.tenant, kind, prefix, "", MANY)
        if found:
            entries = [acl.read(document.data) for document in found]
            return acl.judge(entries, frozenset(acts_as), wanted, now) is AccessVerdict.ALLOWED
    return True
