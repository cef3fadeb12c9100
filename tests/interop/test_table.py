"""The document is as `make interop` writes it; what stands in it, the other tests check."""

from interop import table


def test_the_table_is_complete_and_as_written():
    cells = table.read()
    for key, outcome in cells.items():
        known = table.known(*key)
        assert known is None or outcome == known, key
