"""Documents of the service as routes use them: listed, found or refused, written, removed."""

from typing import Any

from postroom.api.queue.request_context import RequestContext
from postroom.kernel import service_commands
from postroom.kernel.model import Document
from postroom.services.errors import NoSuchThing

MOST = 10_000


async def listed(visit: RequestContext, kind: str, prefix: str = "") -> list[Document]:
    """Oldest first."""
    found = await visit.house.ask(lambda reader: reader.documents(visit.tenant, kind, prefix, "", MOST))
    return sorted(found, key=lambda document: (document.created_at, document.key))


async def found(visit: RequestContext, kind: str, key: str, what: str) -> Document:
    document = await visit.house.ask(lambda reader: reader.document(visit.tenant, kind, key))
    if document is None or document.gone:
        raise NoSuchThing(what=what, id=key.rpartition("/")[2])
    return document


async def file(
    visit: RequestContext,
    kind: str,
    key: str,
    data: dict[str, Any],
    *,
    note: dict[str, Any] | None = None,
    new: bool = False,
    label: str = "",
    scope: str | None = None,
) -> Document:
    return await visit.house.run(
        service_commands.PutServiceDocument(
            kind=kind, key=key, data=data, note=note or {}, new=new, label=label, scope=scope, **visit.who
        )
    )


async def unfile(
    visit: RequestContext,
    kind: str,
    key: str,
    what: str,
    *,
    note: dict[str, Any] | None = None,
    scope: str | None = None,
) -> None:
    await found(visit, kind, key, what)
    await visit.house.run(
        service_commands.DropServiceDocument(kind=kind, key=key, note=note or {}, scope=scope, **visit.who)
    )
