"""Write the formats of CIFAR, for tests of what reads them."""

import io
import tarfile

import numpy as np


def to_rows(images, *labels):
    """A .bin file: the label bytes, then the pixels, image by image."""
    return np.column_stack([*labels, images.reshape(len(images), -1)]).astype(np.uint8).tobytes()


def to_batch(images, **lists):
    """A Python batch as Python 2 wrote it (protocol 2, byte strings), opcode by opcode."""
    pixels = images.reshape(len(images), -1)
    uint8 = (
        b"cnumpy\ndtype\n" + _text("u1") + b"K\0K\x01\x87R" + b"(K\x03" + _text("|") + b"NNN" + _int(-1) * 2 + b"K\0tb"
    )
    shape = _int(pixels.shape[0]) + _int(pixels.shape[1]) + b"\x86"
    content = b"T" + len(pixels.tobytes()).to_bytes(4, "little") + pixels.tobytes()
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85" + _text("b") + b"\x87R"
    items = _text("data") + array + b"(K\x01" + shape + uint8 + b"\x89" + content + b"tb"
    for name, values in lists.items():
        items += _text(name) + b"](" + b"".join(_int(v) if isinstance(v, int) else _text(v) for v in values) + b"e"
    return b"\x80\x02}(" + _text("batch_label") + _text("training batch 1 of 5") + items + b"u."


def _int(value):
    return b"J" + value.to_bytes(4, "little", signed=True)


def _text(value):
    return b"U" + bytes([len(value)]) + value.encode()


def to_tar(files):
    """A tar archive of contents by name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()
