"""Checkpoints: whole or not there, two kept, damage found, a full disk told."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gedi.checkpoints import Checkpoints, write_whole
from gedi.config import override, parse
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.fitting import Stopped, prepare, train
from gedi.presets import preset
from gedi.runs import execute

TINY = [
    *("data.n_train=200", "data.n_test=50", "stage1.iterations=8", "stage2.iterations=7", "walk.steps=2"),
    *("density.buffer=200", "density.steps=2", "log_every=2", "n_init=2", "good_enough=0"),
]
OPTIONS = [word for setting in TINY for word in ("--set", setting)]


@pytest.fixture
def two(tmp_path):
    """A folder with the states 1 and 2."""
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for number in (1, 2):
        checkpoints.save({"number": number, "x": torch.full((3,), float(number))})
    return checkpoints


@pytest.fixture
def gedi(monkeypatch, gedi):
    """The program, but for the pictures, which take longer than the rest."""
    monkeypatch.setattr("gedi.report.write_report", lambda directory: directory.write("report.html", "drawn"))
    return gedi


def names(checkpoints):
    return [path.name for path in checkpoints.files()]


def test_a_state_comes_back_bit_for_bit_strides_and_all(tmp_path, g):
    image = torch.randn(2, 3, 4, 5, generator=g).to(memory_format=torch.channels_last)
    state = {
        "image": image,
        "special": torch.tensor([0.0, -0.0, torch.inf, 1e-45]),
        "stream": g.get_state(),
        "nested": {"best": None, "losses": [0.1, 2.5], "seconds": {"stage1": 1.5}},
    }
    Checkpoints(tmp_path).save(state)
    loaded = Checkpoints(tmp_path).load()
    assert loaded["nested"] == state["nested"]
    assert loaded["image"].stride() == image.stride()
    for name in ("image", "special", "stream"):
        assert loaded[name].numpy().tobytes() == state[name].numpy().tobytes()


def test_no_folder_holds_no_state(tmp_path):
    assert Checkpoints(tmp_path / "nowhere").load() is None
    assert not (tmp_path / "nowhere").exists()


def test_the_last_two_are_kept_and_the_newest_is_loaded(tmp_path):
    for number in range(1, 13):
        Checkpoints(tmp_path).save({"number": number})
        assert names(Checkpoints(tmp_path)) == [f"{k:06}.pt" for k in range(max(1, number - 1), number + 1)]
        assert Checkpoints(tmp_path).load() == {"number": number}


def test_a_million_checkpoints_stay_in_order(tmp_path):
    (tmp_path / "999999.pt").write_bytes(b"")
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save({"number": 1_000_000})
    assert names(checkpoints) == ["999999.pt", "1000000.pt"]
    assert checkpoints.load() == {"number": 1_000_000}


def exchanged(content, other):
    """The line of one file with the data of another."""
    return content[: content.index(b"\n")] + other[other.index(b"\n") :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content, other: b"",
        lambda content, other: content[:-1],
        lambda content, other: content[: len(content) // 2],
        lambda content, other: content[:20],
        lambda content, other: content + b"\0",
        lambda content, other: content[content.index(b"\n") + 1 :],
        lambda content, other: b"\n" + content,
        lambda content, other: content.replace(b"\n", b" ", 1),
        lambda content, other: bytes(len(content)),
        exchanged,
    ],
    ids=[
        "empty",
        "cut by one",
        "cut in half",
        "cut in its line",
        "longer",
        "no line",
        "moved",
        "no end",
        "0",
        "parted",
    ],
)
def test_a_damaged_one_is_passed_over_and_named(two, damage):
    old, new = two.files()
    new.write_bytes(damage(new.read_bytes(), old.read_bytes()))
    assert two.load()["number"] == 1
    assert two.damaged == {new: "is damaged"}


@given(place=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found_wherever_it_is(tmp_path_factory, place, bit):
    checkpoints = Checkpoints(tmp_path_factory.mktemp("flip"))
    checkpoints.save({"number": 1})
    checkpoints.save({"number": 2})
    newest = checkpoints.files()[-1]
    content = bytearray(newest.read_bytes())
    content[place % len(content)] ^= 1 << bit
    newest.write_bytes(content)
    assert checkpoints.load() == {"number": 1}


def test_a_damaged_one_does_not_push_out_a_good_one(two):
    old, new = two.files()
    new.write_bytes(b"")
    two.load()
    two.save({"number": 3})
    assert names(two) == [old.name, "000003.pt"]
    (two.folder / "000003.pt").write_bytes(b"")
    assert Checkpoints(two.folder).load()["number"] == 1


def test_if_all_are_damaged_the_error_says_what_to_do(two):
    for path in two.files():
        path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(
        UserError, match=r"\(000002.pt is damaged, 000001.pt is damaged\): start anew with --overwrite"
    ) as said:
        two.load()
    assert str(two.folder) in str(said.value)
    assert "\n" not in str(said.value)


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_loading_runs_no_code_even_under_a_right_digest(tmp_path):
    Checkpoints(tmp_path / "c").save({"x": Hostile(tmp_path / "ran")})
    with pytest.raises(UserError, match=r"000001.pt holds no state"):
        Checkpoints(tmp_path / "c").load()
    assert not (tmp_path / "ran").exists()


def test_what_a_kill_left_half_written_is_ignored_and_swept_away(two):
    left = two.folder / "000003.pt.tmp"
    left.write_bytes(two.files()[-1].read_bytes()[:100])
    assert Checkpoints(two.folder).load()["number"] == 2
    two.save({"number": 3})
    assert names(two) == ["000002.pt", "000003.pt"]
    assert not left.exists()


def test_data_are_safe_before_their_name_is_and_the_name_before_the_older_ones_go(two, monkeypatch):
    steps = []

    def spied(module, name, describe):
        real = getattr(module, name)

        def call(*args, **options):
            steps.append(describe(*args))
            return real(*args, **options)

        monkeypatch.setattr(module, name, call)

    spied(os, "fsync", lambda handle: ("sync", Path(os.readlink(f"/proc/self/fd/{handle}")).name))
    spied(os, "replace", lambda source, target: ("rename", Path(source).name, Path(target).name))
    spied(Path, "unlink", lambda path: ("remove", path.name))
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no names of open files here")
    two.save({"number": 3})
    assert [step for step in steps if step != ("remove", "000003.pt.tmp")] == [
        ("sync", "000003.pt.tmp"),
        ("rename", "000003.pt.tmp", "000003.pt"),
        ("sync", "checkpoints"),
        ("remove", "000001.pt"),
    ]


def failing(number):
    def fail(*args, **options):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("step", ["os.fsync", "os.replace", "io.open"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_write_that_fails_is_told_and_leaves_what_was_there(two, monkeypatch, step, number):
    before = {path: path.read_bytes() for path in two.folder.iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr(step, failing(number))
        with pytest.raises(UserError) as said:
            two.save({"number": 3})
    for part in (str(two.folder), os.strerror(number), "--resume"):
        assert part in str(said.value)
    assert {path: path.read_bytes() for path in two.folder.iterdir()} == before
    assert two.load()["number"] == 2


def test_an_interrupt_leaves_no_half_written_file(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"old")

    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "x", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"


def tiny():
    return prepare(parse(override(preset("circles"), TINY)))


def weights(run):
    return torch.cat([x.flatten() for x in run.trainer.model.state_dict().values()])


def chains(run):
    return run.trainer.state.density["chains"].rows


@pytest.mark.parametrize(("every", "seconds", "patience"), [(1, 60, 0.5), (3, 60, 0.5), (500, 0, 0), (500, 60, 1e9)])
def test_where_the_training_pauses_changes_no_bit(monkeypatch, every, seconds, patience):
    whole = tiny()
    whole.trainer.fit()
    monkeypatch.setattr("gedi.fitting.CHECKPOINT_EVERY", every)
    monkeypatch.setattr("gedi.fitting.CHECKPOINT_SECONDS", seconds)
    monkeypatch.setattr("gedi.fitting._PATIENCE", patience)
    places = []
    paused = tiny()
    train(paused, lambda state: places.append((state["course"]["at"], state["state"]["iteration"])))
    assert torch.equal(weights(whole), weights(paused))
    assert torch.equal(chains(whole), chains(paused))
    steps = [(0, k) for k in range(1, 8)] + [(leg, k) for leg in (1, 2) for k in range(7)] + [(3, 0)]  # 8 + 7 + 7
    expected = {1: steps, 3: [*steps[2::3], steps[-1]], 500: steps if seconds == 0 else steps[-1:]}
    assert places == expected[every]


def test_a_training_asked_to_stop_hands_over_its_state_and_can_go_on():
    whole = tiny()
    train(whole)
    states = []
    with pytest.raises(Stopped):
        train(tiny(), states.append, stop=lambda: True)
    (state,) = states
    assert (state["course"]["at"], state["state"]["iteration"]) == (0, 1)
    rest = tiny()
    rest.trainer.load_state_dict(state)
    train(rest)
    assert torch.equal(weights(whole), weights(rest))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing befell."""
    directory = RunDirectory.create(tmp_path_factory.mktemp("run") / "whole")
    execute(tiny(), directory)
    return directory


def same(a, b):
    for name in ("model/model.safetensors", "model/points.safetensors", "metrics.jsonl"):
        assert (a.path / name).read_bytes() == (b.path / name).read_bytes(), name
    assert a.results()["metrics"] == b.results()["metrics"]
    assert not list(b.path.rglob("*.tmp"))


@pytest.mark.parametrize("names", [["000008.pt"], ["config.yaml"], ["model.safetensors", "results.json"]])
def test_a_full_disk_is_one_line_and_once_there_is_room_the_run_ends_the_same(
    gedi, whole, tmp_path, monkeypatch, names
):
    monkeypatch.setattr("gedi.fitting.CHECKPOINT_EVERY", 2)
    path, replace = tmp_path / "cut", os.replace
    for number, name in enumerate(names):

        def full(source, target, name=name):
            if Path(target).name == name:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)
        code, out, err = gedi("run", "circles", "--out", path, *OPTIONS, *["--resume"][:number])
        assert (code, out) == (2, "")
        assert len(err.strip().splitlines()) == 1
        assert f"cannot be written: {os.strerror(errno.ENOSPC)}" in err
        assert str(path) in err
        assert not list(path.rglob("*.tmp"))
        if name == "000008.pt":
            assert [p.name for p in RunDirectory(path).checkpoints.files()] == ["000006.pt", "000007.pt"]
            assert RunDirectory(path).load_checkpoint()["logged"] == 7
    monkeypatch.setattr(os, "replace", replace)
    code, _, err = gedi("run", "circles", "--out", path, "--resume", *OPTIONS)
    assert code == 0
    assert err == (f"gedi: {str(path)!r} holds no run yet: it starts anew\n" if names == ["config.yaml"] else "")
    same(whole, RunDirectory.open(path))


def test_a_full_disk_while_a_line_is_logged_is_told_too(tmp_path, monkeypatch):
    monkeypatch.setattr("io.open", failing(errno.ENOSPC))
    with pytest.raises(UserError, match="cannot be written: No space left"):
        RunDirectory(tmp_path).append_metrics({"loss": 1.0})


def test_a_run_with_a_damaged_checkpoint_says_so_and_ends_the_same(gedi, whole, tmp_path, monkeypatch):
    monkeypatch.setattr("gedi.fitting.CHECKPOINT_EVERY", 6)
    append = RunDirectory.append_metrics

    def stop(self, record):
        append(self, record)
        if record.get("restart") == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(RunDirectory, "append_metrics", stop)
    code, _, err = gedi("run", "circles", "--overwrite", "--out", tmp_path / "cut", *OPTIONS)
    assert code == 130
    assert err == f"stopped; go on with: gedi run circles --out {tmp_path / 'cut'} {' '.join(OPTIONS)} --resume\n"
    monkeypatch.setattr(RunDirectory, "append_metrics", append)
    cut = RunDirectory.open(tmp_path / "cut")
    newest = cut.checkpoints.files()[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    with (cut.path / "metrics.jsonl").open("a") as lines:
        lines.write('{"stage": "sta')  # and a line that a kill cut short
    code, _, err = gedi("run", "circles", "--out", cut.path, "--resume", *OPTIONS)
    assert code == 0
    assert err == f"gedi: {str(newest)!r} is damaged; the checkpoint before it is used\n"
    same(whole, cut)


def test_a_run_whose_every_checkpoint_is_damaged_is_refused_untouched_and_can_start_anew(gedi, whole, tmp_path):
    run = RunDirectory(Path(shutil.copytree(whole.path, tmp_path / "run")))
    for path in run.checkpoints.files():
        path.write_bytes(b"")
    before = {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()}
    code, _, err = gedi("run", "circles", "--out", run.path, "--resume", *OPTIONS)
    assert code == 2
    assert "--overwrite" in err
    assert len(err.strip().splitlines()) == 1
    assert {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()} == before
    assert gedi("run", "circles", "--out", run.path, "--overwrite", *OPTIONS)[0] == 0
    same(whole, run)


@pytest.mark.parametrize("place", ["gedi.runs.measured_run", "gedi.report.write_report"])
def test_a_run_stopped_after_its_training_only_does_the_rest(gedi, whole, tmp_path, monkeypatch, place):
    def stop(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(place, stop)
        code, _, err = gedi("run", "circles", "--out", tmp_path / "cut", *OPTIONS)
    assert code == 130
    assert "--resume" in err
    monkeypatch.setattr("gedi.training.Trainer.step", None)  # no iteration is made again
    assert gedi("run", "circles", "--out", tmp_path / "cut", "--resume", *OPTIONS)[0] == 0
    same(whole, RunDirectory.open(tmp_path / "cut"))
    assert (tmp_path / "cut" / "report.html").is_file()


def test_a_run_killed_at_its_first_write_can_go_on(tmp_path):
    (tmp_path / "config.yaml.tmp").write_text("seed: 0\nmeth")
    RunDirectory.create(tmp_path)


def test_a_replacement_that_was_killed_can_be_made_again(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    for name in ("config.yaml", "results.json", "a", "z"):
        (tmp_path / name).write_text("{}")
    unlink, removed = Path.unlink, []

    def killed(path, *args, **options):
        if len(removed) == 3:
            raise KeyboardInterrupt
        removed.append(path.name)
        unlink(path, *args, **options)

    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        RunDirectory.create(tmp_path, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"config.yaml", ".lock"}
    removed.clear()
    RunDirectory.create(tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_seconds_add_up_over_interruptions(gedi, whole, tmp_path):
    run = RunDirectory(Path(shutil.copytree(whole.path, tmp_path / "run")))
    state = run.load_checkpoint()
    run.save_checkpoint({**state, "spent": 1000.0})
    gedi("run", "circles", "--out", run.path, "--resume", *OPTIONS)
    results = json.loads((run.path / "results.json").read_text())
    assert 1000 < results["seconds"]["total"] < 1100
    assert results["seconds"]["stage1"] == state["seconds"]["stage1"]


def test_checkpoints_of_another_version_are_told_as_such(gedi, whole, tmp_path):
    run = RunDirectory(Path(shutil.copytree(whole.path, tmp_path / "run")))
    state = run.load_checkpoint()
    del state["batches"]
    for _ in range(2):  # so that no older one is left
        run.save_checkpoint(state)
    code, _, err = gedi("run", "circles", "--out", run.path, "--resume", *OPTIONS)
    assert code == 2
    assert "lacks 'batches', as another version of gedi may have written it" in err
    assert len(err.strip().splitlines()) == 1
