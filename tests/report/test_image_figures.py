"""Pictures of images: what was given is on paper, pixel for pixel."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from gedi.report.figures import COLOURS
from gedi.report.image_figures import cluster_gallery, energy_histogram, image_grid, sample_comparison, walk_strip

SIDE, TILE = 8, 56  # of an image, and on paper
RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
FRAME = to_rgb(COLOURS[1])
RING = (TILE + 6) ** 2 - TILE**2  # pixels of a frame


def plain(*colours):
    """An image of each colour."""
    return torch.tensor(colours)[:, :, None, None].expand(-1, -1, SIDE, SIDE)


def marks(path, colour):
    """Where a colour is on paper, (pixels, 2)."""
    return np.argwhere(np.abs(imread(path)[:, :, :3] - np.asarray(colour)).max(axis=2) < 2 / 255)


def places(path, colour):
    """The corners of the tiles of a colour; together they must be whole."""
    at = {tuple(p) for p in marks(path, colour).tolist()}
    corners = []
    while at:
        top, left = min(at)
        tile = {(top + i, left + j) for i in range(TILE) for j in range(TILE)}
        assert tile <= at
        at -= tile
        corners.append((top, left))
    return corners


def count(path, colour):
    return len(marks(path, colour))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "figure.png"


def test_a_grid_shows_every_image_in_its_order(path):
    assert image_grid(plain(RED, GREEN, BLUE, RED, GREEN), path, columns=3, title="five") == path
    (top, left), (below, again) = places(path, RED)
    step = TILE + 6
    assert places(path, GREEN) == [(top, left + step), (below, left + step)]
    assert places(path, BLUE) == [(top, left + 2 * step)]
    assert (below, again) == (top + step, left)


def test_every_pixel_of_an_image_is_a_square_on_paper(path):
    image = torch.rand(1, 3, SIDE, SIDE)
    image[0, :, 0, 0] = torch.tensor(RED)
    image_grid(image, path, low=0, high=1)
    top, left = marks(path, RED)[0]
    tile = imread(path)[top : top + TILE, left : left + TILE, :3]
    expected = image[0].permute(1, 2, 0).repeat_interleave(7, 0).repeat_interleave(7, 1)
    np.testing.assert_allclose(tile, expected, atol=1 / 255)


@pytest.mark.parametrize("title", ["", "a title that is far longer than the one image below it is wide"])
def test_fewer_images_than_columns_take_no_more_paper_than_they_need(path, title):
    image_grid(plain(RED), path, columns=8, title=title)
    assert len(places(path, RED)) == 1
    paper = imread(path)[:, :, :3]
    assert (paper.shape[1] > 4 * TILE) == bool(title)
    dark = np.argwhere(paper.sum(axis=2) < 0.5)  # the title
    assert bool(len(dark)) == bool(title)
    if title:
        assert dark[:, 1].min() > 0  # none of it is cut off
        assert dark[:, 1].max() < paper.shape[1] - 1


def test_gray_images_are_gray_and_their_range_is_the_argument(path):
    images = torch.tensor([-1.0, 0.5, 3.0])[:, None, None, None].expand(-1, 1, SIDE, SIDE)
    image_grid(images, path, low=0.0, high=2.0)
    assert len(places(path, (0.0, 0.0, 0.0))) == 1  # cut
    assert len(places(path, (0.25, 0.25, 0.25))) == 1
    white = count(path, (1.0, 1.0, 1.0))
    image_grid(images, path, low=2.0, high=0.0)  # as ink on paper
    assert len(places(path, (0.75, 0.75, 0.75))) == 1
    assert len(places(path, (0.0, 0.0, 0.0))) == 1
    assert count(path, (1.0, 1.0, 1.0)) == white
    image_grid(images, path)  # from the darkest to the brightest
    assert len(places(path, (0.375, 0.375, 0.375))) == 1
    image_grid(images.expand(-1, 2, -1, -1), path)
    assert len(places(path, (0.375, 0.375, 0.375))) == 1


def test_a_constant_image_has_no_range_and_is_drawn(path):
    image_grid(torch.full((2, 1, SIDE, SIDE), 7.0), path)
    assert len(places(path, (0.0, 0.0, 0.0))) == 2


@pytest.mark.parametrize("size", [(28, 28), (32, 32), (100, 60)])
def test_images_of_any_size_have_whole_pixels(path, size):
    image_grid(torch.tensor(BLUE)[:, None, None].expand(3, 3, *size), path, low=0, high=1)
    zoom = 2 if size[0] < 60 else 1
    assert count(path, BLUE) == 3 * zoom**2 * size[0] * size[1]


def test_a_gallery_has_a_row_for_each_cluster_and_frames_what_is_wrong(path):
    images = plain(RED, GREEN, BLUE, RED, GREEN)
    predicted, labels = torch.tensor([0, 1, 1, 0, 3]), torch.tensor([0, 1, 2, 0, 3])
    cluster_gallery(images, predicted, labels, "abcd", path)
    step = TILE + 6
    first, second = places(path, RED)
    assert second == (first[0], first[1] + step)
    assert places(path, GREEN) == [(first[0] + step, first[1]), (first[0] + 3 * step, first[1])]  # cluster 2 is empty
    assert places(path, BLUE) == [(first[0] + step, first[1] + step)]
    assert count(path, FRAME) == RING
    assert marks(path, FRAME).min(axis=0).tolist() == [first[0] + step - 3, first[1] + step - 3]
    cluster_gallery(images, predicted, None, "abcd", path)
    assert count(path, FRAME) == 0


def test_clusters_without_a_meaning_are_measured_by_their_commonest_class(path):
    images = plain(RED, RED, RED, GREEN, BLUE, BLUE)
    predicted = torch.tensor([1, 1, 1, 1, 0, 0])
    labels = torch.tensor([0, 0, 0, 5, 4, 4])  # as symbols, all of them wrong
    cluster_gallery(images, predicted, labels, range(3), path, classes="uvwxyz")
    assert count(path, FRAME) == RING
    (green,) = places(path, GREEN)
    assert marks(path, FRAME).min(axis=0).tolist() == [green[0] - 3, green[1] - 3]
    cluster_gallery(images, predicted, labels, range(3), path)
    assert count(path, FRAME) == 6 * RING


def test_the_commonest_class_is_that_of_all_members_and_not_of_those_shown(path):
    images = plain(RED, GREEN, BLUE, BLUE, BLUE)
    labels = torch.tensor([0, 1, 2, 2, 2])
    cluster_gallery(images, torch.zeros(5, dtype=torch.long), labels, ["all"], path, columns=2, classes="abc")
    assert len(places(path, RED) + places(path, GREEN)) == 2
    assert count(path, BLUE) == 0
    assert count(path, FRAME) == 2 * RING


def test_gray_galleries_can_be_ink_on_paper(path):
    images = torch.stack([torch.zeros(1, SIDE, SIDE), torch.ones(1, SIDE, SIDE)])
    cluster_gallery(images, torch.tensor([0, 1]), torch.tensor([0, 0]), range(2), path, low=1, high=0)
    framed = marks(path, FRAME).min(axis=0)
    inside = imread(path)[framed[0] + 3 :, framed[1] + 3 :, :3][:TILE, :TILE]
    assert inside.max() == 0


def test_a_walk_is_a_row_from_its_start_to_its_end(path):
    starts = plain(RED, GREEN)
    walk = torch.stack([starts, *[torch.rand(2, 3, SIDE, SIDE) * 0.5 + 0.2] * 20, starts.flip(0)])
    walk_strip(walk, path, columns=4)
    (top, left), (below, right) = places(path, RED)
    step = TILE + 6
    assert (below, right) == (top + step, left + 3 * step)
    assert places(path, GREEN) == [(top, right), (below, left)]
    walk_strip(walk[:2], path)  # fewer steps than columns
    assert imread(path).shape[1] < imread(walk_strip(walk, path, columns=9)).shape[1]


def test_walks_and_samples_that_leave_the_range_are_cut_to_it(path):
    mixed = (0.2, 0.6, 0.4)
    starts = plain(RED, mixed)
    beyond = starts * 9 - 4  # red stays red, and the mixture turns green
    walk_strip(torch.stack([starts, beyond]), path)
    assert [len(places(path, colour)) for colour in (RED, mixed, GREEN)] == [2, 1, 1]
    sample_comparison(starts, starts, beyond, path)
    assert [len(places(path, colour)) for colour in (RED, mixed, GREEN)] == [3, 2, 1]


def test_a_comparison_is_three_grids_side_by_side(path):
    sample_comparison(plain(RED, RED, RED), plain(GREEN), plain(BLUE, BLUE), path, columns=2, low=0, high=1)
    red, green, blue = (places(path, colour) for colour in (RED, GREEN, BLUE))
    assert (len(red), len(green), len(blue)) == (3, 1, 2)
    assert max(x for _, x in red) + TILE < green[0][1] < blue[0][1] - TILE
    assert red[0][0] == green[0][0] == blue[0][0]  # as high as one another


def test_without_persistent_chains_a_comparison_is_two_grids(path):
    sample_comparison(plain(RED, RED, RED), plain(GREEN), None, path, columns=2, low=0, high=1)
    assert (len(places(path, RED)), len(places(path, GREEN)), len(places(path, BLUE))) == (3, 1, 0)


def test_energies_are_drawn_on_one_axis_the_denser_to_the_right(path):
    energies = {"data": torch.randn(3000), "far": torch.randn(500) * 0.3 + 6}
    assert energy_histogram(energies, path, {"far": 0.99}, title="both") == path
    high, wide = imread(path).shape[:2]
    data, far = (marks(path, to_rgb(colour)) for colour in COLOURS[:2])
    data, far = (at[at[:, 0] > high / 2, 1] for at in (data, far))  # below the legend
    assert data.max() > 0.9 * wide
    assert far.min() < 0.1 * wide
    assert far.max() < data.min()


def test_the_legend_has_the_auroc_of_those_that_have_one(path, monkeypatch):
    said = []
    monkeypatch.setattr(
        "gedi.report.image_figures.save", lambda figure, path: said.extend(figure.axes[0].get_legend().get_texts())
    )
    energy_histogram({"in": torch.randn(9), "out": torch.randn(9)}, path, {"out": 0.876})
    assert [text.get_text() for text in said] == ["in", "out (AUROC 0.88)"]


def test_each_histogram_has_area_one_whatever_lies_far_out(path, monkeypatch):
    drawn = []
    monkeypatch.setattr("gedi.report.image_figures.save", lambda figure, path: drawn.extend(figure.axes[0].patches))
    stray = torch.cat([torch.randn(2000), torch.tensor([1e6])])
    energy_histogram({"stray": stray, "few": torch.randn(50), "same": torch.zeros(4)}, path)
    assert len(drawn) == 6
    for patch in drawn:
        values, edges, _ = patch.get_data()
        assert (values * np.diff(edges)).sum() == pytest.approx(1)
        assert abs(edges).max() < 10


def test_equal_energies_are_one_bar(path):
    assert energy_histogram({"all": torch.zeros(5)}, path).exists()
