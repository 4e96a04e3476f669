"""Settings that must be refused."""

from calls import Typed

CALLS = [
    Typed("a key that is not there", "run circles --set walk.stps=5", "did you mean 'walk.steps'"),
]
