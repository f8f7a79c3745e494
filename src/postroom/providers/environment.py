"""The environment a provider's program gets: what it needs, and no secret that belongs to something else."""

import fnmatch
from collections.abc import Iterable, Mapping

from postroom.providers.protocol import TurnRequest

TURN_MARK = "POSTROOM_TURN_ID"
PLAIN = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
)
_SECRET_NAMES = ("*KEY", "*TOKEN", "*SECRET", "*PASSWORD", "*_PROXY", "*_proxy")


def child_environment(
    request: TurnRequest,
    parent: Mapping[str, str],
    *,
    own: Iterable[str] = (),
    settings: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """`own` are the names of the provider's own variables, taken from the parent. `settings` win over the
    parent, the request's additions over the settings, and our own marks over everything."""
    allowed = (*PLAIN, *own)
    passed = {name: value for name, value in parent.items() if _matches(name, allowed)}
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TERM": "dumb",
        **passed,
        **(settings or {}),
        **request.environment,
        "POSTROOM_AGENT_ID": request.agent_id,
        "TINYAGI_AGENT_ID": request.agent_id,
        TURN_MARK: request.turn_id,
    }


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """Values that must not appear in an error message, longest first so that no part of one stays."""
    found = {value for name, value in environment.items() if value and _matches(name, _SECRET_NAMES)}
    return sorted(found, key=len, reverse=True)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
