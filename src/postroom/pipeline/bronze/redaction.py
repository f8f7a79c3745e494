"""Secrets that people paste into messages are taken out before anything reaches the lake."""

import pyarrow as pa

from postroom.pipeline.lake.compute import pc

MARK = "[redacted]"

# Each with what stays of it. RE2, as Arrow uses it.
PATTERNS = (
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----", MARK),
    (r"\bsk-[A-Za-z0-9_-]{16,}", MARK),
    (r"\b(?:gh[pousr]|github_pat|glpat)[_-][A-Za-z0-9_-]{20,}", MARK),
    (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", MARK),
    (r"\bAIza[0-9A-Za-z_-]{35}", MARK),
    (r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", MARK),
    (r"\b[0-9]{8,10}:[A-Za-z0-9_-]{35}\b", MARK),
    (r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", MARK),
    (r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{16,}", rf"\1{MARK}"),
    (r"(://[^/\s:@\"]+:)[^/\s@\"]+@", rf"\1{MARK}@"),
    (
        r"(?i)\b((?:api[_-]?key|passwo?r?d|passwd|secret|access[_-]?token)\\*\"?\s*(?:[:=]|is)\s*\\*\"?)"
        r"[^\s\"\\,;]{6,}",
        rf"\1{MARK}",
    ),
)
_ANY = "|".join(pattern.replace("(?i)", "") for pattern, _ in PATTERNS)


def redact(column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array | pa.ChunkedArray, pa.Array]:
    """The column without secrets, and which rows were changed."""
    hit = pc.fill_null(pc.match_substring_regex(column, _ANY, ignore_case=True), False)
    if not pc.any(hit).as_py():
        return column, hit
    changed = pc.filter(column, hit)
    for pattern, mark in PATTERNS:
        changed = pc.replace_substring_regex(changed, pattern, mark)
    return pc.replace_with_mask(column, hit, changed), hit
