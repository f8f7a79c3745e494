"""Documents of the service as routes use them: listed, found or refused, written, removed."""

from typing import Any

from postroom.api.v1.refusals import NoSuchThing
from postroom.api.v1.visits import Visit
from postroom.kernel import service
from postroom.kernel.model import Document

MOST = 10_000


async def listed(visit: Visit, kind: str, prefix: str = "") -> list[Document]:
    """Oldest first."""
    found = await visit.house.ask(lambda reader: reader.documents(visit.tenant, kind, prefix, "", MOST))
    return sorted(found, key=lambda document: (document.created_at, document.key))


async def found(visit: Visit, kind: str, key: str, what: str) -> Document:
    document = await visit.house.ask(lambda reader: reader.document(visit.tenant, kind, key))
    if document is None or document.gone:
        raise NoSuchThing(what=what, id=key.rpartition("/")[2])
    return document


async def file(
    visit: Visit,
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
        service.File(
            kind=kind, key=key, data=data, note=note or {}, new=new, label=label, scope=scope, **visit.who
        )
    )


async def unfile(
    visit: Visit,
    kind: str,
    key: str,
    what: str,
    *,
    note: dict[str, Any] | None = None,
    scope: str | None = None,
) -> None:
    await found(visit, kind, key, what)
    await visit.house.run(service.Unfile(kind=kind, key=key, note=note or {}, scope=scope, **visit.who))
