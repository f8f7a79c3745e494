"""An object store that speaks the real protocol over loopback, in this process."""

import contextlib
import logging
import os
from collections.abc import Iterator

import httpx2
import pytest

BUCKET = "lakes"


@contextlib.contextmanager
def object_store() -> Iterator[str]:
    """The URL of an empty bucket; the environment says where it is, to us and to whatever we start."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            environment.setenv(name, value)
        httpx2.put(f"{address}/{BUCKET}", timeout=120).raise_for_status()
        try:
            yield f"s3://{BUCKET}"
        finally:
            server.stop()
