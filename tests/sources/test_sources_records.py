"""The count of records by whole arrays is that of a reader that looks at one byte after the other."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aegis.sources import records
from aegis.sources.records import Counter, FileRecords, count_records


def by_hand(content: bytes, escape: str) -> tuple[list[int], int, int, int]:
    """Return where records end, the bytes of the longest, how many end in CR LF, how many are empty."""
    ends, longest, windows, empty, start = [], 0, 0, 0, 0
    inside = escaped = False
    for place, byte in enumerate(content):
        character = chr(byte)
        if character == '"' and not escaped:
            inside = not inside
        escaped = escape != '"' and character == escape and not escaped
        if character == "\n" and not inside:
            ends.append(place)
            returned = content[place - 1 : place] == b"\r"
            longest = max(longest, place - start - returned)
            windows += returned
            empty += place - start == returned
            start = place + 1
    return ends, max(longest, len(content) - start), windows, empty


contents = st.text('"\n\r,a\\', max_size=400).map(str.encode) | st.text('"\n', max_size=300).map(
    str.encode
)


@settings(max_examples=300, deadline=None)
@given(content=contents, chunk=st.integers(1, 200), escape=st.sampled_from(['"', "\\"]))
@example(content=b'"\\\\"\n"\\\\\\"\n"\n', chunk=200, escape="\\")
@example(content=b'"\\\\"\n"\\\\\\"\n"\n', chunk=3, escape="\\")
def test_records_end_where_a_reader_of_bytes_ends_them(
    content: bytes, chunk: int, escape: str
) -> None:
    counter = Counter('"', escape)
    ends: list[int] = []
    for place in range(0, len(content), chunk):
        ends += (counter.add(content[place : place + chunk]) + place).tolist()
    expected, longest, windows, empty = by_hand(content, escape)
    result = counter.result()
    assert ends == expected
    assert (result.longest, result.windows, result.ended) == (longest, windows, len(expected))
    unended = content[expected[-1] + 1 :] if expected else content
    assert (result.empty, result.number) == (empty, len(expected) - empty + bool(unended))
    if escape == '"':
        assert result.open == bool(content.count(b'"') % 2)
    assert result.returns == content.count(b"\r") - windows
    assert result.broken == (content.count(b"\r") - windows) + content.count(b"\n") - len(expected)


@settings(max_examples=100, deadline=None)
@given(content=contents, at_once=st.integers(1, 100))
def test_a_file_is_counted_alike_however_much_is_looked_at_once(
    content: bytes, at_once: int
) -> None:
    def counted() -> FileRecords:
        return count_records(io.BytesIO(content), '"', '"')

    usual, records.CHUNK = records.CHUNK, at_once
    try:
        in_parts = counted()
    finally:
        records.CHUNK = usual
    assert in_parts == counted()


def test_line_ends_within_fields_are_counted_where_records_end_in_cr_alone() -> None:
    counted = count_records(io.BytesIO(b'a\r"b\nc\r"\rd\r'), '"', '"')
    assert (counted.old, counted.ended, counted.broken) == (True, 3, 2)


@pytest.mark.parametrize(
    ("content", "mixed"),
    [
        (b"a\r\nb\n", True),  # one record of two ends in CR LF
        (b"a\r\nb\r\n", False),
        (b"a\nb\n", False),
        (b'"a\nb"\r\nc\r\n', True),
        (b'"a\r\nb"\nc\n', False),
    ],
)
def test_line_ends_are_mixed_from_one_record_on(content: bytes, mixed: bool) -> None:
    assert count_records(io.BytesIO(content), '"', '"').mixed is mixed


@pytest.mark.parametrize(
    ("content", "line_end", "number"),
    [
        (b"a\nb\n", "\n", 2),
        (b"a\r\nb\r\n", "\r\n", 2),
        (b"a\rb\r\rc", "\r", 3),
        (b'"a\nb"\rc\r', "\r", 2),
        (b'"a\rb"', "\r", 1),
        (b'"a\nb"', "\n", 1),
    ],
)
def test_records_end_in_what_stands_outside_quotes(
    content: bytes, line_end: str, number: int
) -> None:
    counted = count_records(io.BytesIO(content), '"', '"')
    assert (counted.line_end, counted.number, counted.open) == (line_end, number, False)
