"""Pieces of the OpenAPI document that many endpoints share."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a NUL character")
    return value


class ObjectBody(BaseModel):
    """What a client may send. Fields that are not known are ignored, as clients of many ages exist."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, allow_inf_nan=False, strict=True)


class AnswerModel(BaseModel):
    """What is sent back; only for the document."""

    model_config = ConfigDict(extra="allow")


class Ok(AnswerModel):
    ok: bool = True


class Error(AnswerModel):
    error: str = Field(description="A sentence for the person who must act", examples=["message is required"])
    code: str | None = Field(
        default=None, description="The same in every language", examples=["VALIDATION_ERROR"]
    )


def says(**facts: Any) -> Any:
    """What the services check of a field, for the document: they refuse it, with words of their own."""
    return Field(json_schema_extra=facts)


Word = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_without_nul)]
Text = Annotated[str, Field(max_length=1_000_000), AfterValidator(_without_nul)]
Said = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many")]
Number = Annotated[int, Path(ge=0, le=2**53, description="The number from the listing")]
Id = Annotated[str, Path(min_length=1, max_length=200)]

_TOLD = {
    400: "Something is missing, or the body is no JSON",
    401: "A token is needed",
    403: "The host, the origin or the right does not fit",
    404: "There is no such thing",
    409: "It does not fit the present state, or came before",
    413: "Too large",
    422: "A field is wrong, and named",
    429: "Too many, or too full",
    503: "The store cannot be used now",
}


def answers(model: Any = None, *statuses: int, example: Any = None) -> dict[int | str, dict[str, Any]]:
    """What an endpoint may answer: 200 with `model`, and refusals."""
    good: dict[str, Any] = {"description": "Done"}
    if model is not None:
        good["model"] = model
    if example is not None:
        good["content"] = {"application/json": {"example": example}}
    found: dict[int | str, dict[str, Any]] = {200: good}
    for status in sorted({401, 403, 413, 422, 429, 503, *statuses}):
        found[status] = {"model": Error, "description": _TOLD[status]}
    return found


# Who watches a server from outside asks these, and need not be anybody.
OPEN_PATHS = frozenset({"/healthz", "/readyz"})


def describe_access(document: dict[str, Any]) -> None:
    """Where the server is, and by what one is let in."""
    document["servers"] = [{"url": "/", "description": "This server"}]
    document.setdefault("components", {})["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": (
                "The owner's token or an API key, as Authorization: Bearer TOKEN. `postroom key create` makes"
                " keys for /v1; the owner's token is in the file `token` of the home folder."
            ),
        },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "postroom_session",
            "description": "A browser that is logged in, with the link that `postroom login` prints.",
        },
    }
    document["security"] = [{"token": []}, {"session": []}]
    for path, item in document["paths"].items():
        if path in OPEN_PATHS:
            for operation in item.values():
                operation["security"] = []
