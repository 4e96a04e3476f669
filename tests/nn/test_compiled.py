"""Compiling: the same passes, and without a compiler that works the module stays as it was."""

import copy
import shutil

import pytest
import torch
from torch import nn

from gedi.nn.compiled import compile_encoder


def encoder():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_an_encoder_that_cannot_be_compiled_stays_as_it_was(monkeypatch):
    def refuse(*args, **options):
        def call(*args, **options):
            raise RuntimeError("no working C++ compiler")

        return call

    monkeypatch.setattr(torch, "compile", refuse)
    ours = encoder()
    plain = copy.deepcopy(ours)
    assert compile_encoder(ours, (3,)) is False
    x = torch.randn(5, 3)
    assert torch.equal(ours(x), plain(x))


@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
def test_an_own_module_that_refuses_the_trial_is_left_alone_too():
    class Picky(nn.Module):
        def forward(self, x):
            raise ValueError("only on Sundays")

    assert compile_encoder(Picky(), (3,)) is False


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler on this machine")
@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
def test_a_compiled_encoder_gives_the_same_passes():
    ours = encoder()
    plain = copy.deepcopy(ours)
    assert compile_encoder(ours, (3,)) is True
    x = torch.randn(5, 3)
    torch.testing.assert_close(ours(x), plain(x))
    for module in (ours, plain):
        module(x).square().sum().backward()
    torch.testing.assert_close(ours[0].weight.grad, plain[0].weight.grad)
    assert list(ours.state_dict()) == list(plain.state_dict())
