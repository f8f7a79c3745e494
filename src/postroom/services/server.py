"""All services of a server: those of the work queue and those of the office."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from postroom.runtime import Room
from postroom.services.container import Services
from postroom.services.insights import LakeReader
from postroom.services.office import OfficeServices
from postroom.services.office_context import OfficeContext

if TYPE_CHECKING:
    from postroom.services.needs_you import NeedsYou


class ServerServices(OfficeServices, Services):
    """`options` are those of the work queue's services."""

    def __init__(
        self, room: Room, office: OfficeContext, lake_reader: LakeReader | None = None, **options: Any
    ) -> None:
        OfficeServices.__init__(self, office, lake_reader)
        Services.__init__(self, room, **options)

    @cached_property
    def needs_you(self) -> "NeedsYou":
        from postroom.services.needs_you import NeedsYou

        return NeedsYou(self)
