"""Whose certificates receivers may show: those everybody trusts, and those of an authority of one's own."""

import logging
import ssl
from pathlib import Path

import httpx2

log = logging.getLogger("postroom.webhooks")


def trusting(file: str | None) -> ssl.SSLContext | None:
    """With a file that cannot be used, the others are delivered to as ever, and the log says why not all."""
    if file is None:
        return None
    context = httpx2.create_ssl_context()
    try:
        context.load_verify_locations(Path(file).expanduser())
    except OSError as error:
        log.error("webhooks.ca_file %s cannot be used: %s", file, error.strerror or error)
        return None
    return context
