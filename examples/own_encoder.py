"""An encoder of your own under the estimator: any module (n, *shape) -> (n, h), a timm network among them.

    python examples/own_encoder.py

With timm: ``GEDI(10, encoder="timm:resnet18")`` clusters its frozen features; to train a network of timm's further,
give the module itself, ``GEDI(10, encoder=timm.create_model(..., num_classes=0))``, without batch norm, since a
picture's density must not depend on its neighbours.
"""

from sklearn.datasets import load_digits
from torch import nn

from gedi import GEDI


def fitted(iterations: int | None = None) -> GEDI:
    """Ten clusters of handwritten digits, seen through a network of one's own."""
    encoder = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.LeakyReLU(0.2), nn.AvgPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.LeakyReLU(0.2), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    )  # fmt: skip
    images = (load_digits().images / 16)[:, None]
    return GEDI(10, encoder=encoder, iterations=iterations, random_state=0).fit(images)


if __name__ == "__main__":
    model = fitted()
    print(model.verdict_)
    model.save("digits-model")
    print("GEDI.load('digits-model', encoder=a network like it)")
