"""The one error of the plain readers: why bytes were refused, and where."""

from typing import Literal

Reason = Literal[
    # The frame.
    "length_crc",
    "payload_crc",
    "truncated_header",
    "truncated_record",
    # Varints, tags and lengths.
    "truncated",
    "varint_too_long",
    "tag_too_large",
    "length_too_large",
    "length_overrun",
    # Fields and groups.
    "field_zero",
    "reserved_wire_type",
    "stray_end_group",
    "unterminated_group",
    "too_deep",
    # The messages.
    "wrong_wire_type",
    "packed_size",
    "invalid_utf8",
    # With strict=True only.
    "varint_overflow",
    "duplicate_key",
    "repeated_message",
]


class WireError(ValueError):
    """Refuse bytes that break the format.

    Attributes:
        reason: What is wrong, as a word to compare with.
        position: The byte at which it was found, counted from the start of the data that was read.
        detail: What is wrong, as a sentence: expected and got.
    """

    def __init__(self, reason: Reason, position: int, detail: str) -> None:
        super().__init__(reason, position, detail)
        self.reason: Reason = reason
        self.position = position
        self.detail = detail

    def __str__(self) -> str:
        return f"byte {self.position}: {self.detail}"
