"""Lengths as platforms count them that think in UTF-16."""


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
