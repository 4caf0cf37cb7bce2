"""The description of the one shape of all errors, and of when each status is sent."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Remedy(BaseModel):
    """A call that helps: a verb with its arguments, and the command that does the same."""

    verb: str
    arguments: dict[str, Any]
    command: str


class ErrorDetail(BaseModel):
    """What went wrong."""

    kind: str
    message: str
    choices: list[str]
    remedy: Remedy | None = None


class Error(BaseModel):
    """The one shape of all errors."""

    error: ErrorDetail
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "error": {
                    "kind": "notfound",
                    "message": "unknown study 'pilo'; did you mean 'pilot'?",
                    "choices": ["pilot"],
                }
            }
        }
    )


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": description}
    for status, description in {
        400: "The request cannot be read, or names another host",
        401: "No token, or one that is unknown or revoked",
        402: "A budget is reached",
        403: "The token does not allow it",
        404: "Something named does not exist",
        405: "The resource has no such method",
        409: "It conflicts with something that exists",
        413: "The request is too long",
        422: "A value is refused; the choices say which are not",
        429: "Too many requests; Retry-After says when",
        500: "The server failed",
        502: "A provider or a source did not answer",
        503: "The database is not available, or the lab not ready",
        507: "The database has no room",
    }.items()
}
STREAM_ERRORS: dict[int | str, dict[str, Any]] = {  # which would be described as events
    status: {
        "description": described["description"],
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    for status, described in ERRORS.items()
}
