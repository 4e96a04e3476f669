"""``gedi embed DATA --encoder NAME``: features of images by a pretrained network, as a table to fit."""

from pathlib import Path

from gedi.errors import UserError
from gedi.features import features_of, is_named
from gedi.verbs import say
from gedi.verbs.asking import bar
from gedi.verbs.inputs import image_stream
from gedi.verbs.outputs import RowWriter


def embed_frozen(
    encoder: str, data: str, side: int | None, out: Path | None, data_dir: Path | None, *, quiet: bool = False
) -> None:
    """Write a row of features for every image of DATA."""
    if not is_named(encoder):
        raise UserError(f"--encoder must be a name such as timm:resnet18 or hf:facebook/dinov2-small, got {encoder!r}")
    stream = image_stream(data, side, data_dir)
    say(*stream.notes, quiet=quiet)
    with RowWriter(out) as writer, bar(stream.total, quiet) as advance:
        for part in stream.parts:
            features = features_of(encoder, part.points)
            writer.write({stream.id: part.ids, **{f"f{i}": column for i, column in enumerate(features.T)}})
            advance(len(part.points))
