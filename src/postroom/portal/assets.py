"""Style sheets, scripts and the icon: read once, named by what is in them, kept by browsers for good."""

import hashlib
from importlib.resources import files

from fastapi import FastAPI
from starlette.responses import Response

_FOLDER = files("postroom.portal") / "assets"
_FOR_GOOD = {"cache-control": "public, max-age=31536000, immutable"}
_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PARTS = {
    "portal.css": ("tokens.css", "portal.css"),
    "portal.js": ("portal.js",),
    "theme.js": ("theme.js",),
    "icon.svg": ("icon.svg",),
}
CONTENTS = {name: b"".join((_FOLDER / part).read_bytes() for part in parts) for name, parts in _PARTS.items()}


def asset_url(name: str) -> str:
    return f"/portal/{name}?v={hashlib.sha256(CONTENTS[name]).hexdigest()[:12]}"


def register(app: FastAPI) -> None:
    login = (_FOLDER / "tokens.css").read_bytes() + (_FOLDER / "login.css").read_bytes()
    app.get("/login.css", include_in_schema=False)(_serve(login, "text/css", {}))
    for name, content in CONTENTS.items():
        kind = _KINDS[name.rpartition(".")[2]]
        app.get(f"/portal/{name}", include_in_schema=False)(_serve(content, kind, _FOR_GOOD))


def _serve(content: bytes, kind: str, headers: dict[str, str]):
    def serve() -> Response:
        return Response(content, media_type=kind, headers=headers)

    return serve
