"""Trust between scopes of one tenant: whether one may route or publish into another."""

from collections.abc import Iterable
from typing import Any, Literal, Protocol

import msgspec

from postroom.kernel.model import Document

KIND = "trust"
MOST = 10_000
Crossing = Literal["route", "publish"]


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Directed: from `source_id` to `target_id`, both scopes."""

    id: str
    source_id: int
    target_id: int
    permissions: tuple[Crossing, ...]
    enabled: bool = True
    created_at: int = 0


def read(data: dict[str, Any]) -> Trust:
    return msgspec.convert(data, Trust)


class TrustDocuments(Protocol):
    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]: ...


def may_cross(shelf: TrustDocuments, tenant: str, source_id: int, target_id: int, crossing: Crossing) -> bool:
    """Whether one scope may do this in another, as the tenant has it at the moment."""
    if source_id == target_id:
        return True
    found = shelf.documents(tenant, KIND, f"{source_id}/", "", MOST)
    return trusted([read(each.data) for each in found], source_id, target_id, crossing)


def trusted(trusts: Iterable[Trust], source_id: int, target_id: int, crossing: Crossing) -> bool:
    return source_id == target_id or any(
        trust.enabled and (trust.source_id, trust.target_id) == (source_id, target_id)
        for trust in trusts
        if crossing in trust.permissions
    )
