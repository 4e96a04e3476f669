"""Short runs are the same, bit for bit, as when their digests were recorded: see pinned.py."""

import json

import pytest
from pinned import PINNED, RECORD, arithmetic

KNOWN = json.loads(RECORD.read_text())


@pytest.mark.parametrize("name", PINNED)
def test_a_run_is_what_it_was_bit_for_bit(name, tmp_path):
    if arithmetic() != KNOWN["arithmetic"]:
        pytest.skip("this machine rounds otherwise than the one that the digests were recorded on")
    assert PINNED[name](tmp_path) == KNOWN["runs"][name]
