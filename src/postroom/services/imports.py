"""Taking over an office that another program kept on this machine."""

import asyncio
import contextlib

from postroom.office.imports.importer import Importer, ImportReport
from postroom.office.imports.source import open_source
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeContext, OfficeService, require_owner


class ImportService(OfficeService):
    def __init__(self, context: OfficeContext) -> None:
        super().__init__(context)
        self._one_at_a_time = asyncio.Lock()

    async def run(
        self, caller: Caller, kind: str, folder: str | None = None, *, dry_run: bool = True
    ) -> ImportReport:
        """Tell what an installation holds, or take it over; it stays as it is."""
        require_owner(caller)
        context = self._context
        control, room = await context.control(), await context.room()
        async with self._one_at_a_time, contextlib.AsyncExitStack() as stack:
            opening = open_source(kind, folder)
            source = await asyncio.to_thread(opening.__enter__)
            stack.push_async_callback(asyncio.to_thread, opening.__exit__, None, None, None)
            importer = Importer(
                room,
                context.file,
                context.home,
                context.clock,
                lambda: control.office.directory,
                lambda: control.office.schedules,
                control.apply,
            )
            return await importer.move(source, dry_run=dry_run)
