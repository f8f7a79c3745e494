"""What was said, in pieces: nothing is lost, nothing is longer than it may be, and sentences stay whole."""

import json
from typing import Any

from postroom.pipeline.lake.tables import MESSAGES
from postroom.pipeline.memory.chunks import LONGEST, chunks
from tests.pipeline.tiny import columns

SHORT = "Please look at this. It is short.\n\nBut it has three parts!"
SENTENCES = " ".join(f"This is sentence number {number} of a long letter." for number in range(120))
ENDLESS = "x" * (2 * LONGEST + 7)
AT_THE_LIMIT = ("y" * 99 + " ") * 12


def said(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"m{number}",
        "message_type": "office.mail",
        "state": "completed",
        "body": json.dumps({"text": text}),
        "created_at": 0,
        "ended_seq": number,
        **more,
    }


def test_texts_become_pieces_that_fit() -> None:
    texts = [SHORT, SENTENCES, ENDLESS, AT_THE_LIMIT[:LONGEST].strip(), "  "]
    messages = [said(number, text) for number, text in enumerate(texts)]
    messages += [
        said(10, "not ended", state="dead"),
        said(11, "no mail", message_type="job"),
        said(12, "a copy", subscription="everybody"),
        said(13, "an agent's", from_agent="coder"),
    ]
    found: dict[str, list[Any]] = {}
    for row in sorted(chunks(columns(MESSAGES, messages)).to_pylist(), key=lambda row: row["part"]):
        found.setdefault(row["message_id"], []).append(row)

    assert set(found) == {"m0", "m1", "m2", "m3", "m13"}
    assert [row["text"] for row in found["m0"]] == [SHORT]
    assert [row["text"] for row in found["m3"]] == [texts[3]]
    assert [len(row["text"]) for row in found["m2"]] == [LONGEST, LONGEST, 7]
    assert " ".join(row["text"] for row in found["m1"]) == SENTENCES
    assert len(found["m1"]) == -(-len(SENTENCES) // LONGEST)
    for row in found["m1"]:
        assert len(row["text"]) <= LONGEST
        assert row["text"].endswith("letter.")
    assert [row["part"] for row in found["m1"]] == list(range(len(found["m1"])))
    assert (found["m13"][0]["trusted"], found["m0"][0]["trusted"]) == (True, False)


def test_of_what_was_erased_nothing_is_remembered() -> None:
    messages = [said(1, "", body='{"erased":true}'), said(2, "", body='"a word"'), said(3, "kept")]
    rows = chunks(columns(MESSAGES, messages)).to_pylist()
    assert sorted((row["message_id"], row["text"]) for row in rows) == [("m2", "a word"), ("m3", "kept")]
