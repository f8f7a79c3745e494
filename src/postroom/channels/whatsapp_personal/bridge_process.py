"""Runs the bridge in a process of its own, which ends with ours: neonize is a library in Go that writes to
stdout, keeps threads and ends its whole process when it fails."""

import asyncio
import sys
from pathlib import Path

from postroom.channels.line_rpc import MOST_LINE_BYTES, Streams

MODULE = "postroom.channels.whatsapp_personal.bridge"
END_S = 5.0


class BridgeProcess:
    def __init__(self, session: Path) -> None:
        self._session = session
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> Streams:
        """Anew; the one before has ended, or does now."""
        await self.stop()
        self._session.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            MODULE,
            str(self._session),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MOST_LINE_BYTES,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        return process.stdout, process.stdin

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(END_S):
                await process.communicate()
        except TimeoutError:
            process.kill()
            await process.communicate()
