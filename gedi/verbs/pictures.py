"""Images sorted by their clusters: into folders, or onto one picture."""

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch

from gedi.data.streaming import Part
from gedi.errors import UserError
from gedi.report.image_figures import cluster_gallery

_SHOWN = 16  # of each cluster on the picture


class Sorted:
    """Takes images with their clusters, part by part. The folders get their place only when all is there.

    Args:
        source: the folder that the images are files of.
        sort: where they are copied to, ``cluster-0`` and so on; None copies none.
        gallery: the picture; None draws none.
        clusters: how many there are.
    """

    def __init__(self, source: Path, sort: Path | None, gallery: Path | None, clusters: int) -> None:
        if sort is not None and sort.exists() and any(sort.iterdir()):
            raise UserError(f"--sort must name a folder that is empty or not there yet, got {str(sort)!r}")
        if gallery is not None and gallery.suffix.lower() != ".png":
            raise UserError(f"--gallery must end in .png, got {gallery.name!r}")
        self.source, self.sort, self.gallery, self.clusters = source, sort, gallery, clusters
        self._partial = None if sort is None else sort.with_name(f".{sort.name}.{os.getpid()}.partial")
        self._kept: dict[int, list[np.ndarray]] = {cluster: [] for cluster in range(clusters)}

    def __enter__(self) -> "Sorted":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._partial is not None:
            shutil.rmtree(self._partial, ignore_errors=True)

    def take(self, part: Part, found: Any) -> None:
        """Some images and the cluster of each."""
        if self.sort is None and self.gallery is None:
            return
        for name, image, cluster in zip(part.ids, part.points, found.tolist(), strict=True):
            if len(self._kept[cluster]) < _SHOWN:
                self._kept[cluster].append(image)
            if self._partial is not None:
                folder = self._partial / f"cluster-{cluster}"
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.source / str(name), folder / str(name).replace("/", "__"))

    def finish(self) -> None:
        """Draw the picture, and put the folders in their place."""
        if self._partial is not None and self.sort is not None:
            if self.sort.exists():
                self.sort.rmdir()  # it is empty
            self._partial.replace(self.sort)
        if self.gallery is None:
            return
        images = [image for cluster in range(self.clusters) for image in self._kept[cluster]]
        clusters = [cluster for cluster in range(self.clusters) for _ in self._kept[cluster]]
        stacked = torch.from_numpy(np.stack(images)).float()
        self.gallery.parent.mkdir(parents=True, exist_ok=True)
        high = 255.0 if images[0].dtype == np.uint8 else 1.0
        names = range(self.clusters)
        cluster_gallery(stacked, torch.tensor(clusters), None, names, self.gallery, classes=[], low=0.0, high=high)
