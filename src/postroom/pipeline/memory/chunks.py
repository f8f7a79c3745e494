"""`chunks`: what was said, in pieces short enough to be recalled, each with the message it comes from."""

import re
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from postroom.kernel import jsontext
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.tables import CHUNKS

LONGEST = 1200
OFFICE = ("office.mail", "office.note", "office.post", "office.reply")
NEEDED = (
    "id", "tenant", "subscription", "state", "message_type", "body", "created_at", "correlation_id",
    "channel", "sender", "sender_id", "agent", "from_agent", "ended_seq",
)  # fmt: skip
"""The columns of messages that are looked at here."""
_SAME = ("tenant", "correlation_id", "channel", "agent", "from_agent", "sender", "sender_id", "ended_seq")
_SENTENCE = re.compile(rf"(?s).{{1,{LONGEST}}}?(?:[.!?]\s|\n\n|\Z)|.{{{LONGEST}}}")


def chunks(messages: pa.Table) -> pa.Table:
    """Pieces are cut between sentences where that is possible. Words of people are not trusted as facts."""
    office = pc.is_in(messages["message_type"], value_set=pa.array(OFFICE))
    ended = pc.and_(pc.equal(messages["state"], "completed"), pc.is_null(messages["subscription"]))
    said = messages.filter(pc.and_(office, ended)).combine_chunks()
    pieces = [_cut(_text(body)) for body in said["body"].to_pylist()]
    lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
    rows = said.take(pa.array(np.repeat(np.arange(len(pieces)), lengths)))
    part = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    columns: dict[str, Any] = {
        "message_id": rows["id"],
        "part": part,
        **{name: rows[name] for name in _SAME},
        "said_at": rows["created_at"].cast(pa.timestamp("us", "UTC")),
        "text": pa.array([piece for each in pieces for piece in each], pa.string()),
        "trusted": pc.is_valid(rows["from_agent"]),
        "valid": pa.array(np.ones(len(rows), bool)),
    }
    return pa.table({name: columns[name] for name in CHUNKS.schema.names}).cast(CHUNKS.schema)


def _text(body: str | None) -> str:
    """What a body says: its text, or else all of it. Of one that was erased nothing is left."""
    try:
        found = None if body is None else jsontext.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if isinstance(found, dict):
        text = found.get("text")
        if text is None and found.get("erased") is None:
            text = found
        found = text
    if found is None:
        return ""
    return (found if isinstance(found, str) else jsontext.text(found)).strip(" ")


def _cut(text: str) -> list[str]:
    """Sentences put together while they fit. Most of what is said fits as it is, without a look at it."""
    if len(text) <= LONGEST:
        return [text] if text else []
    parts = [""]
    for sentence in _SENTENCE.findall(text):
        if len(parts[-1]) + len(sentence) <= LONGEST:
            parts[-1] += sentence
        else:
            parts.append(sentence)
    return [part for each in parts if (part := each.strip(" "))]
