"""Many listeners of events, in a process of their own. What they hear is looked at when all is over.

    python -m benchmarks.web.listeners PORT COUNT

says `ready`, and after a line with the number of events to expect tells what was heard.
"""

import asyncio
import json
import re
import sys

from benchmarks.web.server import TOKEN

_ID = re.compile(rb"^id: (\d+)\.(\d+)\r?$", re.MULTILINE)
PATIENCE_S = 15.0


class Listener(asyncio.Protocol):
    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        head = f"GET /api/events/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        if not self.greeted.done() and b"event: connected" in data:
            self.greeted.set_result(None)

    def ids(self) -> list[tuple[int, int]]:
        return [(int(seq), int(part)) for seq, part in _ID.findall(b"".join(self._parts))]


async def main(port: int, count: int) -> None:
    loop = asyncio.get_running_loop()
    listeners: list[Listener] = []
    for _ in range(count):
        _, listener = await loop.create_connection(Listener, "127.0.0.1", port)
        await listener.greeted
        listeners.append(listener)
    print("ready", flush=True)
    expected = int(await loop.run_in_executor(None, sys.stdin.readline))
    end = loop.time() + PATIENCE_S
    while len(listeners[-1].ids()) < expected and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.25)
    heard = [listener.ids() for listener in listeners]
    found = {
        "fewest": min(map(len, heard)),
        "most": max(map(len, heard)),
        "same for all": all(each == heard[0] for each in heard),
        "in order": all(one < other for one, other in zip(heard[0], heard[0][1:], strict=False)),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
