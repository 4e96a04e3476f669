"""Sums of images of digits as labels: this library's recipe, and DeepProbLog's training for as many seconds.

    python benchmarks/sums.py [--seeds 1] [--first 200] [--digits 1] [--seconds S] [--data-dir DIR] [--set key=value]...

DeepProbLog trains its standard example (``addition(X, Y, Z) :- digit(X, A), digit(Y, B), Z is A + B``, exact
inference, circuits kept, batches of two, Adam at 1e-3) with the same convolutional network, on the same pairs, on one
thread, for the seconds of the processor that the recipe took (or for those given). Both are judged on the whole test
set: the digit itself must be named. It needs ``pip install -c constraints.txt deepproblog==2.1.0``.
"""

import argparse
import json
import time
import warnings

import torch

from gedi.config import override, parse
from gedi.fitting import learn, prepare
from gedi.nn import Classifier, ConvEncoder
from gedi.presets import preset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says that PySwip is missing, which its exact engine does not use
    from deepproblog.dataset import DataLoader
    from deepproblog.dataset import Dataset as Examples
    from deepproblog.engines import ExactEngine
    from deepproblog.model import Model
    from deepproblog.network import Network
    from deepproblog.query import Query
    from deepproblog.train import train_model
    from deepproblog.utils.stop_condition import StopCondition
    from problog.logic import Constant, Term

DIGITS = "nn(net,[X],Y,[0,1,2,3,4,5,6,7,8,9]) :: digit(X,Y).\n"
PROGRAMS = {
    1: DIGITS + "addition(X,Y,Z) :- digit(X,A), digit(Y,B), Z is A + B.\n",
    2: DIGITS + "addition(A,B,C,D,Z) :- digit(A,W), digit(B,X), digit(C,Y), digit(D,V), Z is 10*W + X + 10*Y + V.\n",
}


class Seconds(StopCondition):
    """Ends after so many seconds of this process."""

    def __init__(self, seconds):
        self.seconds, self.began = seconds, time.process_time()

    def is_stop(self, train_object):
        return time.process_time() - self.began >= self.seconds


class Pairs(Examples):
    """Queries over images of a data set in groups, each with its sum."""

    def __init__(self, data):
        self.answers, self.size = data.answers, data.group_size

    def __len__(self):
        return len(self.answers)

    def to_query(self, i):
        names = [Term(f"i{j}") for j in range(self.size)]
        tensors = [Term("tensor", Term("train", Constant(self.size * i + j))) for j in range(self.size)]
        return Query(Term("addition", *names, Constant(self.answers[i])), dict(zip(names, tensors, strict=True)))


def theirs(data, seconds, seed):
    """DeepProbLog's digit accuracy after so many seconds of the processor, and how many pairs it saw."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    encoder = ConvEncoder(data.train.shape[1:], 16, 64, generator=generator)
    net = torch.nn.Sequential(encoder, Classifier(64, 10, generator), torch.nn.Softmax(dim=-1))
    network = Network(net, "net", batching=True)
    network.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    model = Model(PROGRAMS[data.group_size // 2], [network], load=False)
    model.set_engine(ExactEngine(model), cache=True)
    points = data.train[:]
    model.add_tensor_source("train", {(Constant(i),): x for i, x in enumerate(points)})
    trained = train_model(model, DataLoader(Pairs(data), 2, shuffle=True, seed=seed), Seconds(seconds), log_iter=10**9)
    net.eval()
    with torch.no_grad():
        said = torch.cat([net(data.test[at : at + 1000]).argmax(dim=1) for at in range(0, len(data.test), 1000)])
    return float((said == data.test_labels).float().mean()), 2 * trained.i


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--digits", type=int, choices=(1, 2), default=1, help="of each number")
    parser.add_argument("--seconds", type=float, help="of DeepProbLog's training; else as many as the recipe took")
    parser.add_argument("--without", action="append", default=[], choices=("ours", "theirs"))
    parser.add_argument("--data-dir")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="section.key=value")
    options = parser.parse_args()
    torch.set_num_threads(1)
    name = "mnist-sum" if options.digits == 1 else "mnist-sum-2"
    for seed in range(options.first, options.first + options.seeds):
        config = parse(override(preset(name), [*options.settings, f"seed={seed}"]))
        prepared = prepare(config, data_dir=options.data_dir)
        found = {"preset": name, "seed": seed, "pairs": prepared.data.groups}
        seconds = options.seconds
        if "ours" not in options.without:
            began, wall = time.process_time(), time.perf_counter()
            metrics = learn(prepared).metrics
            spent = time.process_time() - began
            found |= {"accuracy": metrics["accuracy"], "satisfied": metrics["constraint_satisfied"]}
            found |= {"seconds": round(spent, 1), "wall": round(time.perf_counter() - wall, 1)}
            print(json.dumps(found), flush=True)
            seconds = seconds or spent
        if "theirs" not in options.without:
            accuracy, pairs = theirs(prepared.data, seconds or 60.0, seed)
            found |= {"deepproblog": accuracy, "its pairs": pairs, "its seconds": round(seconds or 60.0, 1)}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
