"""Documents of the services: rules, keys, lists and the like, found, listed, written and removed."""

from typing import Any

from postroom.kernel import service_commands
from postroom.kernel.model import Document, Scope
from postroom.kernel.ports import MANY
from postroom.services.access import Access
from postroom.services.calls import ServiceCall
from postroom.services.errors import NoSuchThing


def list_documents(access: Access, kind: str, prefix: str = "") -> list[Document]:
    """Oldest first."""
    found = access.reader.documents(access.tenant, kind, prefix, "", MANY)
    return sorted(found, key=lambda document: (document.created_at, document.key))


def find_document(access: Access, kind: str, key: str, what: str) -> Document:
    document = access.reader.document(access.tenant, kind, key)
    if document is None or document.gone:
        raise NoSuchThing(what=what, id=key.rpartition("/")[2])
    return document


def put(
    call: ServiceCall,
    kind: str,
    key: str,
    data: dict[str, Any],
    *,
    note: dict[str, Any],
    scope: Scope | None = None,
    label: str | None = None,
) -> service_commands.PutServiceDocument:
    """`note` is what the ledger says. With a `label`, it must not be there yet."""
    return service_commands.PutServiceDocument(
        kind=kind,
        key=key,
        data=data,
        note=note,
        new=label is not None,
        label=label or "",
        scope=scope.slug if scope is not None else None,
        **call.who,
    )


def drop(
    call: ServiceCall, kind: str, key: str, *, note: dict[str, Any], scope: Scope | None = None
) -> service_commands.DropServiceDocument:
    return service_commands.DropServiceDocument(
        kind=kind, key=key, note=note, scope=scope.slug if scope is not None else None, **call.who
    )
