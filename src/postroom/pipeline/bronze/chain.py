"""Whether events are what their hashes say. A broken one is reported and goes on to quarantine."""

import hashlib

import msgspec
import numpy as np
import pyarrow as pa

from postroom.kernel import ledger
from postroom.pipeline.bronze.packed import Packed, raw

MOST_TOLD = 200
HASH_BYTES = 32
MISMATCH = "its content or place does not match its hash"


class Break(msgspec.Struct, frozen=True):
    """An event that does not fit, or a run of missing ones that ends before it."""

    seq: int
    problem: str


class ChainCheck:
    """Walks batches in order. `previous` is the hash before the first; None takes the first on trust."""

    def __init__(self, after: int, previous: bytes | None) -> None:
        self._seq = after
        self._previous = previous
        self.breaks: list[Break] = []
        self.count = 0

    def add(self, packed: Packed) -> None:
        batch = packed.batch
        if not batch.num_rows:
            return
        unlinked = self._count_on(batch.column("seq"))
        if self._previous is None:
            unlinked.add(0)
        hashes = batch.column("hash")
        accused = self._accused(packed)
        if accused:
            # Some texts can be written in two ways; only the kernel's decides.
            opened = packed.opened()
            for index in accused:
                if index in unlinked:
                    continue
                before = hashes[index - 1].as_py() if index else self._previous
                if not _fits(opened, index, before or b""):
                    self._tell(batch.column("seq")[index].as_py(), MISMATCH)
        self._previous = hashes[-1].as_py()

    def _accused(self, packed: Packed) -> list[int]:
        """The places whose hash came out otherwise. All of a batch is compared at once."""
        made = _hashed(*packed.chained(self._previous or b""))
        stored, places = raw(packed.batch.column("hash"))
        if not (np.diff(places) == HASH_BYTES).all():
            return list(range(packed.batch.num_rows))
        if made == stored.tobytes():
            return []
        shape = (packed.batch.num_rows, HASH_BYTES)
        differs = np.frombuffer(made, np.uint8).reshape(shape) != stored.reshape(shape)
        return np.flatnonzero(differs.any(axis=1)).tolist()

    def _count_on(self, seqs: pa.Array) -> set[int]:
        """Numbers follow one another; when they do not, they are looked at one by one.

        The places after a gap, where the hash before is not known.
        """
        first, last = seqs[0].as_py(), seqs[-1].as_py()
        if first == self._seq + 1 and last == self._seq + len(seqs):
            self._seq = last
            return set()
        unlinked = set()
        for index, seq in enumerate(seqs.to_pylist()):
            if seq != self._seq + 1:
                self._tell(seq, f"events {self._seq + 1} to {seq - 1} are missing")
                unlinked.add(index)
            self._seq = seq
        return unlinked

    def end(self, up_to: int) -> None:
        if self._seq != up_to:
            self._tell(up_to, f"events {self._seq + 1} to {up_to} are missing")

    def _tell(self, seq: int, problem: str) -> None:
        self.count += 1
        if len(self.breaks) < MOST_TOLD:
            self.breaks.append(Break(seq, problem))


def _hashed(text: bytes, ends: list[int]) -> bytes:
    """The hash of each part of a text, one after the other; `ends` begins with where the first begins."""
    sha256, made, begin = hashlib.sha256, list[bytes](), ends[0]
    add = made.append
    for end in ends[1:]:
        add(sha256(text[begin:end]).digest())
        begin = end
    return b"".join(made)


def _fits(batch: pa.RecordBatch, index: int, previous: bytes) -> bool:
    row = batch.slice(index, 1).to_pylist()[0]
    fields = tuple(row[name] for name in ledger.EventDraft.__struct_fields__)
    return ledger.link(row["seq"], fields, previous) == row["hash"]
