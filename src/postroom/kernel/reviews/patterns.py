"""Patterns: reviews by name and version, with placeholders that a publisher fills.

A review keeps what its pattern said when it was published; later versions do not change it.
"""

import re
from typing import Any, Protocol

from postroom.errors import InvalidField, NotFound
from postroom.kernel.model import Document
from postroom.kernel.reviews.sections import HitlInvalid
from postroom.kernel.reviews.spec import check_spec
from postroom.kernel.templates import filled, holes

KIND = "pattern"
MOST = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VERSION = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}")
OWN = ("pattern", "version", "parameters")


class PatternNotFound(NotFound):
    """There is no review pattern "{name}" in version {version} in this scope. Register it first."""

    code = "PATTERN_NOT_FOUND"


class PatternDocuments(Protocol):
    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]: ...


def key_of(scope_id: int, name: str, version: str) -> str:
    return f"{scope_id}/{name}@{version}"


def check_pattern(name: Any, version: Any, spec: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidField("name", f"{name!r} is not a name of letters, digits, . _ and - (100 at most)")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise InvalidField("version", f"{version!r} is not a version like 1.0")
    if not isinstance(spec, dict):
        raise HitlInvalid(problem="it must be a JSON object")
    # With every placeholder filled by a text it must be a review; numbers may come from placeholders too.
    sample: dict[str, Any] = {}
    for path in sorted(holes(spec)):
        part = sample
        *above, last = path.split(".")
        for step in above:
            part = part.setdefault(step, {})
            if not isinstance(part, dict):
                raise InvalidField("spec", f"asks for {path} and for a part of it")
        part.setdefault(last, 1 if _is_number(spec, path) else "…")
    check_spec(filled(spec, sample))


def _is_number(spec: dict[str, Any], path: str) -> bool:
    seconds = [spec.get("timeout_s"), (spec.get("escalation") or {}).get("timeout_s")]
    return any(isinstance(text, str) and path in holes(text) for text in seconds)


def find(shelf: PatternDocuments, tenant: str, scope_id: int, name: str, version: str | None) -> Document:
    """That version, or the one registered last."""
    found = shelf.documents(tenant, KIND, f"{scope_id}/{name}@", "", MOST)
    if version is not None:
        found = [document for document in found if document.data["version"] == version]
    if not found:
        raise PatternNotFound(name=name, version=version or "any")
    return max(found, key=lambda document: (document.created_at, version_key(document.data["version"])))


def version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def expanded(shelf: PatternDocuments, tenant: str, scope_id: int, spec: Any) -> dict[str, Any]:
    """A spec as it stands, or the pattern it names with its placeholders filled; checked either way."""
    if isinstance(spec, dict) and isinstance(spec.get("pattern"), str) and "sections" not in spec:
        parameters = spec.get("parameters") or {}
        if not isinstance(parameters, dict):
            raise HitlInvalid(problem="parameters must be a JSON object")
        wanted = spec.get("version")
        if wanted is not None and not isinstance(wanted, str):
            raise HitlInvalid(problem="version must be a text like 1.0")
        pattern = find(shelf, tenant, scope_id, spec["pattern"], wanted).data
        own = {name: value for name, value in spec.items() if name not in OWN}
        made = filled(pattern["spec"], parameters)
        spec = {**made, **own, "pattern": pattern["name"], "version": pattern["version"]}
    check_spec(spec)
    return spec
