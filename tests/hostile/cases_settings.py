"""Settings that must be refused, on the command line and in a YAML file."""

from itertools import pairwise

from calls import Called, Typed

from gedi.config import parse
from gedi.fitting import prepare

_BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n" for before, after in pairwise("abcdefghijklm")
)


def _set(name: str, setting: str, says: str, preset: str = "circles") -> Typed:
    return Typed(name, f"run {preset} --set '{setting}'", says)


def _yaml(name: str, content: str | bytes, says: str, more: str = "") -> Typed:
    return Typed(name, f"run mine.yaml {more}", says, {"mine.yaml": content})


NUMBERS = [
    _set("true for a number of iterations", "stage1.iterations=true", "stage1.iterations: must be a valid number"),
    _set("yes for a width", "walk.radius=yes", "walk.radius: must be a valid number, got True"),
    _set(
        "false for a weight",
        "stage2.density.generative=false",
        "stage2.density.generative: must be a valid number, got False",
    ),
    _set("true within a list", "model.hidden=[true, 100]", "model.hidden.0: must be a valid number"),
    _set("true within a pair", "stage1.betas=[true, 0.9]", "stage1.betas.0: must be a valid number"),
    _set("true for a seed", "seed=true", "seed: must be a valid number"),
    _set("true for channels", "data.channels=true", "data.channels: must be a valid number"),
    _set("true for an optional number", "data.limit=true", "data.limit: must be a valid number"),
    _set("a number in quotes", 'stage1.iterations="5"', "must be a valid number, got '5'"),
    _set("a number in quotes within a list", 'model.hidden=["5"]', "model.hidden.0: must be a valid number"),
    _set("a number for a switch", "density.metropolis=1", "density.metropolis: must be a valid boolean"),
    _set("a word for a switch", 'sampling.clamp="no"', "density.clamp: must be a valid boolean"),
    _set("half an iteration", "stage1.iterations=5.5", "stage1.iterations: must be a valid integer"),
    _set("not a number", "walk.radius=.nan", "walk.radius: must be a finite number"),
    _set("an infinite number", "data.mean=.inf", "data.mean: must be a finite number"),
    _set("a number that overflows", "data.std=1e999", "data.std: must be a finite number"),
    _set("a share that is none", "stage2.moves.align.moments=[.nan]", "align.moments.0: must be a finite number"),
    _set("infinitely many iterations", "stage2.iterations=.inf", "stage2.iterations: must be a finite number"),
    _set("more than a number can be", "walk.steps=99999999999999999999", "must be a number below 2^63"),
    _set("a number of five thousand digits", f"walk.steps={'9' * 5000}", "cannot be read as YAML"),
    _set("a hexadecimal of ten thousand digits", f"walk.steps=0x{'f' * 10000}", "must be a number below 2^63"),
    _set("a seed beyond what generators take", f"seed={2**64}", "seed: must be a number below 2^63"),
    _set("an empty value", "stage1.iterations=", "stage1.iterations: must be a valid number, got None"),
    _set("a list for a number", "stage1.iterations=[5]", "stage1.iterations: must be a valid number"),
    _set("a section for a number", "stage1.iterations={a: 1}", "stage1.iterations: must be a valid number"),
    _set("a number for a section", "walk=5", "walk: must be a valid dictionary"),
    _set("a section that is nothing", "stage1=null", "stage1: must be a valid dictionary"),
    _set("a key below a number", "seed.x=5", "seed: must be a valid number"),
    _set("a key that is not there", "walk.stps=5", "did you mean 'walk.steps'"),
    _set("a key of a hundred thousand letters", f"walk.{'x' * 100_000}=5", "unknown key 'walk.xxx"),
    _set("an empty key", "walk..steps=5", "unknown key 'walk.'"),
    _set("code for a value", "data.path=!!python/object/apply:os.system [ls]", "cannot be read as YAML"),
    _set("a thousand brackets", f"model.hidden={'[' * 1000}", "cannot be read as YAML"),
]
SIZES = [
    _set("a billion clusters", "model.clusters=1000000000", "most of it for model.clusters=1000000000"),
    _set("a million million points", "data.n_train=1000000000000", "most of it for data.n_train=1000000000000"),
    _set("as many points to test on", "data.n_test=1e12", "most of it for data.n_test=1000000000000"),
    _set("a billion billion chains", "density.buffer=1e18", "most of it for density.buffer"),
    _set("layers of a billion", "model.hidden=[1e9, 1e9]", "most of it for model.hidden"),
    _set("a latent without end", "model.latent=1e15", "of memory"),
    _set("a projector without end", "model.projector=1e15", "most of it for model.projector"),
    _set("an embedding without end", "model.embedding=1e15", "of memory"),
    _set("a billion finer clusters", "model.finer=1e12", "most of it for model.finer"),
    _set("a billion tries", "n_init=1000000000", "n_init: must be less than or equal to 1000"),
    _set("a network a million wide", "model.width=1e8", "most of it for model.width=100000000", "digits"),
    _set("a border of a million pixels", "data.pad=1e6", "most of it for data.pad=1000000", "digits"),
    _set("a border around every summand", "data.pad=1e6", "of memory", "digits-addition"),
    _set("a million million triplets", "data.triplets=1e14", "most of it for data.triplets", "digits-addition"),
    _set("a million million free images", "data.free=1e14", "most of it for data.free", "digits-addition"),
]
NAMES = [
    _yaml("a preset misspelt", "preset: cirlces\n", "unknown preset 'cirlces': did you mean 'circles'"),
    _yaml("a preset in a list", "preset: [1]\n", "preset must be a name, got list"),
    _yaml("a preset that is a section", "preset: {circles: 1}\n", "preset must be a name, got dict"),
    _yaml("a preset that is a number", "preset: 5\n", "preset must be a name, got int"),
    _yaml("a preset that is nothing", "preset:\n", "preset must be a name, got NoneType"),
    _yaml("a preset that climbs", "preset: ../../../somewhere\n", "unknown preset '../../../somewhere'"),
    _yaml("a preset from the root", "preset: /tmp/somewhere\n", "unknown preset '/tmp/somewhere'"),
    _yaml("a preset with a null byte", 'preset: "circles\\0"\n', "unknown preset"),
    _yaml("a preset of two lines", 'preset: "circles\\nmoons"\n', "unknown preset 'circles\\nmoons'"),
    _yaml("a preset in capitals", "preset: CIRCLES\n", "unknown preset 'CIRCLES'"),
    _yaml("a path with a null byte", 'data: {name: file, path: "a\\0b"}\n', "data.path: "),
    _yaml("a path that is empty", "data: {name: file, path: ''}\n", "data.path: "),
    _yaml("a profile beside a file", "preset: circles\n", "--profile is for presets", "--profile paper"),
    _yaml("a method that climbs", "method: ../../evil\n", "unknown method '../../evil'"),
    _yaml("a method in a list", "method: [gedi]\n", "method: must be a valid string"),
    Typed("a name set beside the preset", "run circles --set preset=moons", "not its name"),
    Typed("a name set that climbs", "run circles --set preset=../../x", "not its name"),
    Typed("a preset that climbs, typed", "run ../../x", "unknown preset '../../x'"),
    Called("a preset that climbs, from Python", lambda folder: parse({"preset": "../x"}), "preset: "),
    Called("a preset there is not, from Python", lambda folder: prepare(parse({"preset": "mine"})), "unknown preset"),
]
FILES = [
    _yaml("an empty file", "", "must hold sections and keys, got NoneType"),
    _yaml("a list", "- 1\n", "must hold sections and keys, got list"),
    _yaml("a word", "circles\n", "must hold sections and keys, got str"),
    _yaml("two documents", "seed: 1\n---\nseed: 2\n", "cannot be read as YAML"),
    _yaml("a key twice", "seed: 1\nseed: 2\n", "the key 'seed' stands twice"),
    _yaml("a key twice in a section", "walk: {steps: 1, steps: 2}\n", "the key 'steps' stands twice"),
    _yaml("a key that is a number", "1: 2\n", "keys should be strings"),
    _yaml("a key that is a list", "? [1]\n: 2\n", "cannot be read as YAML"),
    _yaml("a key that is nothing", "walk: {~: 2}\n", "keys should be strings"),
    _yaml(
        "code in Python", "seed: !!python/object/apply:os.system ['touch ran']\n", "could not determine a constructor"
    ),
    _yaml("a tag of one's own", "seed: !mine 5\n", "could not determine a constructor"),
    _yaml("a date that is none", "seed: 2001-99-99\n", "cannot be read as YAML"),
    _yaml("a date", "seed: 2001-01-01\n", "seed: must be a valid number"),
    _yaml("a truth that is none", "seed: !!bool maybe\n", "cannot be read as YAML"),
    _yaml("a billion laughs", _BOMB, "repeated by aliases without end"),
    _yaml("an alias of itself", "walk: &w {steps: *w}\n", "nested too deeply"),
    _yaml("an alias of nothing", "walk: *w\n", "found undefined alias"),
    _yaml("ten thousand brackets", "walk: " + "[" * 10_000, "nested too deeply"),
    _yaml("a tab", "walk:\n\tsteps: 1\n", "cannot be read as YAML"),
    _yaml("a null byte", b"seed: 1\0\n", "cannot be read as YAML"),
    _yaml("Latin-1", "data: {path: caf\xe9}\n".encode("latin-1"), "cannot be read as YAML"),
    _yaml("bytes of no text", bytes(range(128, 256)), "cannot be read as YAML"),
    _yaml("megabytes", b"#" * 2_000_000, "must be settings, got"),
    _yaml("a folder in its place", lambda path: path.mkdir(), "cannot be read as YAML"),
    Typed("a file that is not there", "run mine.yaml", "cannot be read as YAML"),
]
VERSIONS = [
    _yaml("settings of a later version", "version: 3\npreset: circles\n", "settings of version 3 are of a later gedi"),
    _yaml("a version in words", "version: two\n", "settings of version 'two' are of a later gedi"),
    _yaml("a version that is a list", "version: [2]\n", "settings of version [2]"),
    _yaml("a version that is true", "version: true\n", "settings of version True"),
    _yaml("a version that is nothing", "version:\n", "settings of version None"),
    _set("a later version, typed", "version=9", "settings of version 9 are of a later gedi"),
]
OLD_NAMES = [
    _set("a number for all sampling", "sampling=5", "unknown key 'sampling'"),
    _set("a number for all weights", "stage2.weights=5", "unknown key 'stage2.weights'"),
    _set("a setting that 0.1 had not", "sampling.stps=5", "unknown key 'density.stps': did you mean 'density.steps'"),
    _set("a cluster setting that 0.1 had not", "cluster.epsiln=5", "unknown key 'cluster'"),
    _set("a weight that 0.1 had not", "stage2.weights.clutter=5", "unknown objective 'clutter'"),
    _set("a weight of 0.1 in words", "stage2.weights.cluster_noise=much", "swapped.weight: must be a valid number"),
    _set("an alignment of 0.1 in words", "constraint.align=often", "align.moments: must be a valid tuple"),
    _yaml(
        "two widths where there is one now",
        "stage1: {denoising: 0.1}\nstage2: {denoising: 0.2}\n",
        "stage1.denoising=0.1 and stage2.denoising=0.2 must be alike",
    ),
    _yaml("old names below a number", "density: 5\nsampling: {steps: 1}\n", "density: must be"),
]
CALLS = NUMBERS + SIZES + NAMES + FILES + VERSIONS + OLD_NAMES
