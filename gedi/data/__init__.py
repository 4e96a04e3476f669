"""Data sets: drawn from known densities, or read from files."""

from gedi.data.addition import addition_dataset, draw_triplets, free_images
from gedi.data.array_shards import write_shards
from gedi.data.arrays import load_arrays, load_points
from gedi.data.catalogue import CATALOGUE
from gedi.data.dataset import Dataset
from gedi.data.digits import load_digits
from gedi.data.download import fetch
from gedi.data.files import FileState, find_folder, load_images, verify
from gedi.data.fingerprint import differences, fingerprint
from gedi.data.folder import load_folder
from gedi.data.idx import read_idx
from gedi.data.image_arrays import load_image_arrays
from gedi.data.images import ImageSet, unit_range
from gedi.data.pixels import Pixels, StoredImages, chunks
from gedi.data.projection import Projection
from gedi.data.rsbench import TASKS, task_dataset
from gedi.data.scaled import ScaledRows
from gedi.data.scales import Scales, scales_of
from gedi.data.scaling import Scaling
from gedi.data.sharded import ShardSet, load_shards
from gedi.data.shards import Shards, is_sharded, spread
from gedi.data.sums import sum_dataset
from gedi.data.table import Table, Wishes
from gedi.data.toy import SHAPES, NoisyCurve, draw_toy

__all__ = [
    "CATALOGUE",
    "SHAPES",
    "TASKS",
    "Dataset",
    "FileState",
    "ImageSet",
    "NoisyCurve",
    "Pixels",
    "Projection",
    "ScaledRows",
    "Scales",
    "Scaling",
    "ShardSet",
    "Shards",
    "StoredImages",
    "Table",
    "Wishes",
    "addition_dataset",
    "chunks",
    "differences",
    "draw_toy",
    "draw_triplets",
    "fetch",
    "find_folder",
    "fingerprint",
    "free_images",
    "is_sharded",
    "load_arrays",
    "load_digits",
    "load_folder",
    "load_image_arrays",
    "load_images",
    "load_points",
    "load_shards",
    "read_idx",
    "scales_of",
    "spread",
    "sum_dataset",
    "task_dataset",
    "unit_range",
    "verify",
    "write_shards",
]
