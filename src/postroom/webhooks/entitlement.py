"""What a webhook may be told: no more than whoever made it, or last changed it, may see when it is told.

Asked when a delivery is made and again when it is sent: in between, a queue may be closed, or the webhook led
elsewhere.
"""

from postroom.kernel.access.permissions import Permission
from postroom.kernel.access.reach import may_act
from postroom.kernel.reader import Reader
from postroom.kernel.webhooks import Webhook
from postroom.runtime import Room

OWN_SCOPES = frozenset({"office"})


class Entitlement:
    """`own_scopes` of the office's tenant hold its own mail, which is told to the owner's webhooks alone."""

    def __init__(self, room: Room, own_scopes: frozenset[str] = OWN_SCOPES) -> None:
        self._room = room
        self._own_scopes = own_scopes

    def covers(self, reader: Reader, hook: Webhook, tenant: str, scope: str, queue: str) -> bool:
        """Whether it may be told of a message in this queue."""
        if not hook.own_mail and scope in self._own_scopes and tenant == self._room.tenant:
            return False
        if hook.acts_as is None:
            return True
        found = reader.queue(tenant, scope, queue)
        now = self._room.clock.now()
        return found is not None and may_act(reader, found, hook.acts_as, Permission.VIEW, now)
