"""How both clients reach the service."""

from typing import Any

# A claim may wait for a minute, and the answer needs its time too.
TIMEOUT_S = 75.0


def options(url: str, key: str, tenant: str | None) -> dict[str, Any]:
    """What an HTTP client is made with."""
    headers = {"authorization": f"Bearer {key}"}
    if tenant is not None:
        headers["x-postroom-tenant"] = tenant
    return {"base_url": url.rstrip("/") + "/v1", "headers": headers, "timeout": TIMEOUT_S}
