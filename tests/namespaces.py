"""Hosts of a network of their own, each a network namespace of this machine."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextmanager
def network(hosts: int) -> Iterator[tuple[str, list[str]]]:
    """A network of this machine and some others, each a namespace: our address in it, and their names."""
    number = os.getpid() % 250
    bridge, base = f"prb{number}", f"10.213.{number}"
    names = [f"prw{number}x{each}" for each in range(hosts)]
    with ExitStack() as undo:
        try:
            ip("link", "add", bridge, "type", "bridge")
            undo.callback(ip, "link", "del", bridge)
            ip("addr", "add", f"{base}.1/24", "dev", bridge)
            ip("link", "set", bridge, "up")
            for each, name in enumerate(names):
                ip("netns", "add", name)
                undo.callback(ip, "netns", "del", name)
                ip("link", "add", f"{name}o", "type", "veth", "peer", "name", "eth0", "netns", name)
                # At once; with its namespace it would go some time later.
                undo.callback(ip, "link", "del", f"{name}o")
                ip("link", "set", f"{name}o", "master", bridge, "up")
                ip("-n", name, "addr", "add", f"{base}.{each + 10}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
                ip("-n", name, "link", "set", "lo", "up")
        except OSError as error:
            pytest.skip(f"network namespaces are not allowed here: {error}")
        yield f"{base}.1", names


def cut_off(name: str) -> None:
    """Nothing that is sent from or to this host arrives, and nobody is told."""
    ip("link", "set", f"{name}o", "down")


def rejoin(name: str) -> None:
    ip("link", "set", f"{name}o", "up")
