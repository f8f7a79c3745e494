"""A Redis server of a test's own: in a temporary folder, on its own socket."""

import atexit
import functools
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis


def find_server() -> str | None:
    return shutil.which("redis-server")


class RedisServer:
    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._socket = folder / "redis"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    def start(self) -> None:
        command = [self._program, "--port", "0", "--unixsocket", str(self._socket), "--save", ""]
        command += ["--dir", str(self._folder), "--logfile", str(self._folder / "redis.log")]
        self._process = subprocess.Popen(command)
        end = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "redis.log").read_text()
            assert time.monotonic() < end, "Redis does not start"
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
                tried.connect(str(self._socket))
        except OSError:
            return False
        return True

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def send(self, *words: str | bytes) -> None:
        """One command."""
        with redis.Redis.from_url(self.url) as client:
            client.execute_command(*words)


@functools.cache
def shared_server() -> RedisServer | None:
    """One for all tests of this process that do it no harm; None where Redis is not installed."""
    program = find_server()
    if program is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="postroom-redis-"))
    server = RedisServer(program, folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.stop)
    return server
