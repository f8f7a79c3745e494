"""Access lists of queues, as an administrator writes them."""

import uuid

import msgspec

from postroom.kernel import service_commands
from postroom.kernel.access import acl
from postroom.kernel.access.acl import AclEntry, Principal
from postroom.kernel.access.permissions import Permission
from tests.services.conftest import ServedRoom


async def close_queue(
    served: ServedRoom, path: str, principal: tuple[str, str], *permissions: Permission
) -> None:
    """Only this principal may, and only this."""
    queue = await served.room.queue(path)
    entry = AclEntry(
        id=str(uuid.uuid4()),
        principal_type=Principal(principal[0]),
        principal_id=principal[1],
        permissions=permissions,
    )
    await served.room.run(
        service_commands.PutServiceDocument(
            kind=acl.ENTRY, key=f"{queue.scope_id}/{queue.id}/{entry.id}", data=msgspec.to_builtins(entry)
        )
    )
