"""Man pages and shell completions, with the programs that read them."""

import shutil
import subprocess

import pytest

from support.program import binary

COMMANDS = ["recv", "send", "forward", "serve", "perf", "doctor", "top", "run", "sim", "emulate", "policies",
            "profiles", "completions", "man"]


def run(*words: object, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(str, words)), check=False, capture_output=True, text=True, timeout=60, **kwargs)


@pytest.mark.needs("groff")
def test_man_pages(tmp_path):
    """There is a page for each command; groff formats all of them without a warning."""
    made = run(binary(), "man", "--output", tmp_path / "man1")
    assert made.returncode == 0, made.stderr
    pages = {page.stem for page in (tmp_path / "man1").iterdir()}
    assert {"polypath", *(f"polypath-{command}" for command in COMMANDS)} <= pages
    for page in sorted((tmp_path / "man1").iterdir()):
        shown = run("groff", "-man", "-Tutf8", "-ww", "-rLL=80n", page)
        assert shown.returncode == 0 and not shown.stderr, (page, shown.stderr)
    assert "Exit codes" in run("groff", "-man", "-Tascii", "-P-c", tmp_path / "man1" / "polypath.1").stdout


@pytest.mark.needs("bash")
@pytest.mark.parametrize("words, found", [
    (["", "se"], {"send", "serve"}),
    (["recv", "--over"], {"--overwrite"}),
    (["forward", "--code"], {"--code", "--code-file"}),
    (["completions", "f"], {"fish"}),
])
def test_bash_completions(words, found):
    words = ["polypath", *filter(None, words)]
    script = (f"source <({binary()} completions bash)\n"
              f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
              f"_polypath polypath {words[-1]} {words[-2]}\n"
              'printf "%s\\n" "${COMPREPLY[@]}"\n')
    done = run("bash", "-c", script)
    assert set(done.stdout.split()) == found, (done.stdout, done.stderr)


@pytest.mark.parametrize("shell", [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)])
def test_completions_are_valid(shell, tmp_path):
    """The shell itself reads the completions without an error."""
    file = tmp_path / "completions"
    file.write_text(run(binary(), "completions", shell).stdout)
    checked = run(shell, "-n", file)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr


@pytest.mark.parametrize("words, hint", [
    (["sned"], "did you mean \"send\"?"),
    (["recv", "--bnid", "::1"], "did you mean \"--bind\"?"),
    (["completions", "bsah"], "did you mean \"bash\"? allowed: bash,"),
    (["recv", "--profile", "cmt-fp"], "did you mean \"cmt-pf\"? allowed: "),
    (["recv", "--config", "rto_mni=1s"], "did you mean \"rto_min\"? allowed: "),
    (["recv", "--policy", "failovr=standard"], "did you mean \"failover\"? allowed: "),
    (["recv", "--udp-port", "many"], "see `polypath recv --help`"),
])
def test_suggestions(words, hint):
    done = run(binary(), *words)
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and not done.stdout
    assert len(lines) == 2 and lines[0].startswith("polypath: ") and lines[1].startswith(f"hint: {hint}"), lines
