"""Names that a user may type: told and completed before anything that takes long is imported."""

from typing import Literal

Shape = Literal["moons", "circles", "rings", "spirals", "blobs", "pinwheel"]
#: What ``gedi data get`` gets.
KnownImages = Literal["mnist", "fashion-mnist", "svhn", "cifar10", "cifar100"]
#: Groups of images of digits, and what is known of each group.
DigitTask = Literal[
    "mnist-addition", "digits-addition", "mnist-sum", "digits-sum",
    "mnist-half", "mnist-even-odd", "mnist-math", "mnist-xor",
    "digits-half", "digits-even-odd", "digits-math", "digits-xor",
]  # fmt: skip
Recipe = Literal["lbfgs", "sgd"]  # of the linear probe

ACCELERATORS = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")
STRATEGIES = ("ddp", "fsdp")
PROFILES = ("laptop", "paper")
#: What an evaluation can measure.
PARTS = ("probe", "fid", "ood")
