"""Which settings are a host's own. On a database server all others are the office's, for every host."""

import copy
from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]

# How this host reaches the store and is reached itself, and what is about its disk, its log and its strength.
OF_HOST = (
    "api.host",
    "api.port",
    "api.remote",
    "api.token",
    "limits.turns_at_once",
    "logs",
    "store",
    "webhooks.ca_file",
    "workspace.path",
)


def is_of_host(name: str) -> bool:
    return any(f"{name}.".startswith(f"{each}.") for each in OF_HOST)


def split(document: Mapping[str, Any]) -> tuple[Document, Document]:
    """What is the host's, and what is the office's."""
    host: Document = {}
    office = copy.deepcopy(dict(document))
    for name in OF_HOST:
        section, _, field = name.partition(".")
        part = office.get(section)
        if not field and section in office:
            host[section] = office.pop(section)
        elif isinstance(part, dict) and field in part:
            host.setdefault(section, {})[field] = part.pop(field)
            if not part:
                del office[section]
    return host, office


def combine(host: Mapping[str, Any], office: Mapping[str, Any]) -> Document:
    """Of each only what is its own."""
    combined = split(office)[1]
    for section, own in split(host)[0].items():
        part = combined.get(section)
        combined[section] = {**part, **own} if isinstance(part, dict) and isinstance(own, dict) else own
    return combined
