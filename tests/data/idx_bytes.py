"""Write the idx format, for tests of what reads it."""

import numpy as np

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def to_idx(values):
    header = bytes([0, 0, CODES[values.dtype.str[1:]], values.ndim])
    return header + np.array(values.shape, ">u4").tobytes() + values.astype(values.dtype.newbyteorder(">")).tobytes()
