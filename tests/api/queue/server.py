"""The service as a process of its own, for tests that kill things. Prints its address when it is ready."""

import asyncio
import socket
import sys

import uvicorn
from fastapi import FastAPI

import postroom
from postroom.api.queue import router
from postroom.services.container import Services


async def main(path: str, token: str) -> None:
    async with postroom.open(f"sqlite:///{path}") as room:
        app = FastAPI()
        app.include_router(router(Services(room), is_owner=lambda given: given == token))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen(100)
            print(f"http://127.0.0.1:{taken.getsockname()[1]}", flush=True)
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
            await server.serve(sockets=[taken])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
