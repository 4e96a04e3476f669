"""A ProbLog program is data from a stranger: it runs no Python and reads no file, whatever it calls."""

import sys

import pytest

from gedi.config import ConstraintConfig
from gedi.errors import UserError
from gedi.logic import Constraint
from gedi.logic.problog_guard import LIBRARIES
from gedi.rules import build_constraint

NET = "nn(net,[X],Y,[0,1]) :: digit(X,Y).\nq(X) :- digit(X,1).\n"

TRAP = """
from pathlib import Path
Path("sprung").write_text("by Python")
from problog.extern import problog_export
@problog_export("-int")
def one():
    return 1
"""

# each as it could stand in a program that is otherwise right
DIRECTIVES = {
    "a module": ":- use_module('evil.py').",
    "a module without its ending": ":- use_module(evil).",
    "a part of a module": ":- use_module('evil.py',[one/1]).",
    "a module by problog's own name for it": ":- '_use_module'(none,'evil.py').",
    "a module of another scope": ":- lists:use_module('evil.py').",
    "a file": ":- consult('facts').",
    "a file by problog's own name for it": ":- '_consult'(none,'facts').",
    "a list of files": ":- ['facts'].",
    "a list of more files": ":- [facts,evil].",
    "a file that loads a module": ":- consult('evil.pl').",
    "tables": ":- use_module(library(db)).\n:- csv_load('table.csv',t).",
    "a library that changes the program": ":- use_module(library(assert)).",
    "a library that keeps records": ":- use_module(library(record)).",
    "a library that changes the semiring": ":- use_module(library(aproblog)).",
    "a library that is not listed": ":- use_module(library(nlp4plp)).",
    "a library with the path of another file": ":- use_module(library('/tmp/evil.py')).",
    "a library above its folder": ":- use_module(library('../evil.py')).",
    "a state": ":- set_state(a).",
    "no state": ":- reset_state.",
    "a state that is checked": ":- check_state(a).",
    "a condition": ":- condition(a).",
}

# what makes q2 loads something when it is asked
BODIES = {
    "in a rule": "use_module('evil.py')",
    "a file in a rule": "consult(facts)",
    "a list in a rule": "[facts]",
    "called": "call(use_module('evil.py'))",
    "called with an argument": "call(use_module,'evil.py')",
    "a name that a variable has": "F = 'evil.py', use_module(F)",
    "built": "G =.. [use_module,'evil.py'], call(G)",
    "a file, built": "G =.. [consult,facts], call(G)",
    "a list, built": "G =.. ['.',facts,[]], call(G)",
    "from a fact": "goal(G), call(G)",
    "tried": "goal(G), try_call(G)",
    "negated": "name(F), \\+ use_module(F)",
    "found": "findall(F,(name(F),use_module(F)),L)",
    "found again": "findall(K,findall(F,(name(F),use_module(F)),K),L)",
    "all": "all(F,(name(F),use_module(F)),L)",
    "for all": "forall(name(F),use_module(F))",
    "mapped": "maplist(use_module,['evil.py'])",
    "folded": "name(F), maplist(consult,[facts])",
    "in a scope": "goal(G), a:G",
    "written together": "concat([evil,'.py'],F), use_module(F)",
    "a state in a rule": "call(set_state,a)",
    "a query inside": "subquery(digit(X,1),_)",
    "a query inside with evidence": "subquery(digit(X,1),_,[digit(X,0)])",
}
HELP = (
    ":- use_module(library(scope)).\n:- use_module(library(apply)).\n:- use_module(library(string)).\n"
    "goal(use_module('evil.py')).\nname('evil.py').\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder full of traps, which Python and problog would both find."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("evil.py", "engine_stack.py", "facts.py"):
        (tmp_path / name).write_text(TRAP)
    (tmp_path / "evil.pl").write_text(":- use_module('evil.py').\nrain.\n")
    (tmp_path / "facts.pl").write_text("0.5::rain.\n")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    return tmp_path


def assert_refused(folder, program, query):
    with pytest.raises(UserError, match=r"must load nothing but|must do without") as caught:
        Constraint.from_problog(program, query)
    assert len(str(caught.value).splitlines()) == 1
    assert not (folder / "sprung").exists()
    assert "engine_stack" not in sys.modules


@pytest.mark.parametrize("name", DIRECTIVES)
def test_a_directive_loads_nothing(name, folder):
    assert_refused(folder, f"{NET}{DIRECTIVES[name]}", "q(a)")


@pytest.mark.parametrize("name", BODIES)
def test_a_rule_loads_nothing_however_it_calls(name, folder):
    assert_refused(folder, f"{NET}{HELP}q2(X) :- {BODIES[name]}, digit(X,1).", "q2(a)")


@pytest.mark.parametrize(
    "query", ["use_module('evil.py')", "consult(facts)", "[facts]", "call(use_module('evil.py'))", "\\+consult(facts)"]
)
def test_a_query_loads_nothing(query, folder):
    assert_refused(folder, NET, query)
    assert_refused(folder, f"{NET}query({query}).", None)


def test_a_run_loads_nothing(folder):
    (folder / "theirs.pl").write_text(f"{NET}:- use_module('evil.py').")
    with pytest.raises(UserError, match="must load nothing but"):
        build_constraint(ConstraintConfig(rule="problog", path="theirs.pl", query="q(a)"), 2)
    assert not (folder / "sprung").exists()


def test_what_is_refused_is_refused_before_anything_runs(folder):
    program = f"{NET}:- error('this ran').\nnever :- use_module('evil.py')."
    assert_refused(folder, program, "q(a)")


def test_what_a_program_only_speaks_of_is_no_loading(folder):
    program = f"{NET}says(doctor,consult(facts)).\nq2(X) :- says(doctor,_), digit(X,1)."
    assert Constraint.from_problog(program, "q2(a)").solutions() == [(1,)]


@pytest.mark.parametrize(
    ("library", "goal"),
    [
        ("aggregate", "sum([1,0],N)"),
        ("apply", "maplist(succ,[0],[N])"),
        ("builtin", "forall(fail,fail), N = 1"),
        ("collect", "collectgroup(member(N,[1]),N,none,_), N = 1"),
        ("control", "on_fail(fail,true), N = 1"),
        ("cut", "cut(first(N))"),
        ("lists", "append([1],[],[N])"),
        ("scope", "a:member(N,[1])"),
        ("string", "concat([a,b],ab), N = 1"),
    ],
)
def test_listed_libraries_work(library, goal):
    program = f"{NET}:- use_module(library({library})).\n:- use_module(library(lists)).\nfirst(1,1).\nfirst(2,0).\n"
    c = Constraint.from_problog(f"{program}q2(X) :- {goal}, digit(X,N).", "q2(a)")
    assert c.solutions() == [(1,)]


def test_no_listed_library_opens_a_file_or_starts_anything():
    for path in LIBRARIES:
        with open(path) as file:
            text = file.read()
        for word in ("open(", "import os", "subprocess", "sys.", "eval(", "exec(", "consult", "__import__", "sqlite"):
            assert word not in text, (path, word)


def test_who_trusts_the_author_may_load_a_module(folder):
    program = f":- use_module('evil.py').\n{NET}q2(X) :- one(N), digit(X,N)."
    assert Constraint.from_problog(program, "q2(a)", allow=("python",)).solutions() == [(1,)]
    assert (folder / "sprung").read_text() == "by Python"


def test_who_trusts_the_author_may_load_files(folder):
    program = f":- consult(facts).\n{NET}q2(X) :- rain, digit(X,1)."
    c = Constraint.from_problog(program, "q2(a)", allow="files")
    assert c.variables == ("a",)
    assert not (folder / "sprung").exists()
    with pytest.raises(UserError, match=r"allow=\('python',\)"):  # one permission is not the other
        Constraint.from_problog(f":- consult('evil.pl').\n{NET}", "q(a)", allow="files")
    with pytest.raises(UserError, match=r"allow=\('files',\)"):
        Constraint.from_problog(program, "q2(a)", allow="python")


def test_a_table_needs_both(folder):
    program = f":- use_module(library(db)).\n:- csv_load('table.csv',t).\n{NET}q2(X) :- t(N,_), digit(X,N)."
    assert Constraint.from_problog(program, "q2(a)", allow=("files", "python")).solutions() == [(1,)]
    with pytest.raises(UserError, match=r"allow=\('files',\)"):
        Constraint.from_problog(program, "q2(a)", allow="python")


@pytest.mark.parametrize("allow", [None, 3, "Python", ["file"], [1], True])
def test_a_permission_must_exist(allow):
    with pytest.raises(UserError, match=r"files.*python"):
        Constraint.from_problog(NET, "q(a)", allow=allow)
