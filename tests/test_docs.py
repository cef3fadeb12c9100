"""The documentation: commands that the program takes, figures, links."""

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support import namespaces
from support.program import ROOT, arrived, binary, make_file, sha256, wait_until

DOCS = ROOT / "docs"
# Written by commands, with output and packets in them.
GENERATED = {"claims.md", "interoperability.md"}
PAGES = sorted(page for page in DOCS.glob("*.md") if page.name not in GENERATED)
BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```|((?:^ {4}.*\n)+)", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """The commands of polypath in a page's blocks of code, without what a shell does with their output."""
    found = []
    for block in BLOCK.finditer(page.read_text()):
        text = (block[1] or block[2]).replace("\\\n", " ")
        for line in text.splitlines():
            words = shlex.split(line, comments=True) if line.strip().startswith("polypath ") else []
            end = next((at for at, word in enumerate(words) if word in {"|", ">", "&", "||", "&&", "--"}), len(words))
            if words:
                found.append(words[:end])
    return found


COMMANDS = sorted({(page.name, *words) for page in PAGES for words in commands(page)})


def test_the_pages_have_commands():
    assert len({command[0] for command in COMMANDS}) >= 8 and len(COMMANDS) >= 30


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command[0]}: {shlex.join(command[1:])}")
def test_the_program_takes_the_command(command):
    """The program reads options in order, so that it prints help only if it takes all those before."""
    done = subprocess.run([binary(), *command[2:], "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: polypath" in done.stdout


def test_links_name_files():
    """Relative links of all pages lead to files of the repository."""
    pages = [*DOCS.glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "python/README.md"))]
    links = [(page, link) for page in pages
             for link in re.findall(r"\]\(([^)#\s]+)", page.read_text()) if not link.startswith("http")]
    assert len(links) > 100
    assert [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in DOCS.glob("*.md") if f"{page.name}\n" not in navigation] == [], "add it to mkdocs.yml"


@pytest.mark.needs("namespaces")
def test_policy_routing():
    """The rules of howto-routing.md choose the uplink by the source address."""
    page = (DOCS / "howto-routing.md").read_text()
    rules, checks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    with namespaces.Namespace() as host:
        for device, address in (("eth0", "192.0.2.20"), ("wwan0", "198.51.100.20")):
            host.ip("link", "add", device, "type", "veth", "peer", "name", f"{device}-far")
            host.ip("link", "set", f"{device}-far", "up")
            host.ip("addr", "add", f"{address}/24", "dev", device)
            host.ip("link", "set", device, "up")
        for line in rules.splitlines():
            host.run(*line.split())
        chosen = [host.run(*line.split()) for line in checks.splitlines()]
    assert "dev eth0" in chosen[0] and "dev wwan0" in chosen[1]


@pytest.mark.needs("namespaces")
def test_two_emulated_paths(processes, tmp_path):
    """The tutorial's commands as written, with a smaller file, on a loopback interface of their own."""
    page = (DOCS / "tutorial-emulator.md").read_text()
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    emulate, mkdir, recv, head, send, sim = lines
    assert mkdir == ["mkdir", "received"] and head[:2] == ["head", "-c"]
    assert sim == ["polypath", "sim", "scenarios/demo.toml"]
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (tmp_path / "received").mkdir()
    sent = make_file(tmp_path / "big.bin", 6_000_000)
    with namespaces.Namespace() as host:
        def start(words: list[str], **more):
            return processes.start(binary(), *words[1:], inside=host.inside, cwd=tmp_path, **more)

        emulator = start(emulate, stdin=subprocess.PIPE).said("ready")
        receiver = start(recv).said("waiting on ")
        sender = start([*send, "--json"])
        wait_until(lambda: arrived(tmp_path / "received") > 1_000_000, 30, lambda: sender.err + receiver.err,
                   alive=sender.popen)
        emulator.say("down first")
        wait_until(lambda: "path 0 is " in sender.err, 30, lambda: sender.err, alive=sender.popen)
        emulator.say("up first")
        summary = sender.wait().json
        assert receiver.wait().code == 0, receiver.err
    assert sha256(tmp_path / "received" / "big.bin") == sent == summary["sha256"]
    assert all(path["bytes"] > 500_000 for path in summary["paths"])
    assert any(change["path"] == 0 for change in summary["changes"])


def test_the_figure_is_drawn(tmp_path):
    """`make figures` draws both themes: two areas, a line, units on both axes, labels of at least 7 pt."""
    script = ROOT / "scripts" / "readme-figure.py"
    subprocess.run([script, "--polypath", binary(), "--out", tmp_path], check=True)
    for theme in ("light", "dark"):
        assert (DOCS / "figures" / f"one-path-cut-{theme}.svg").exists()
        root = ElementTree.parse(tmp_path / f"one-path-cut-{theme}.svg").getroot()
        labels = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {"time (s)", "delivered data (Mbit/s)", "the cable is cut", "both together"} <= set(labels)
        # 13 px of a figure that is 720 px wide: 7 pt in a column of 13.7 cm.
        assert int(root.get("font-size")) >= 13
        assert len({element.get("fill") for element in root.iter("{http://www.w3.org/2000/svg}path")}) >= 3


def test_a_recording_shows_each_line_at_its_time():
    sys.path.insert(0, str(ROOT / "scripts"))
    recording = importlib.import_module("recording")
    printed = "import time; print('a < b', flush=True); time.sleep(0.5); print('x' * 150)"
    lines = recording.record([sys.executable, "-c", printed])
    assert [text for _, text in lines] == ["a < b", "x" * 150] and lines[1][0] - lines[0][0] > 0.4
    root = ElementTree.fromstring(recording.drawing(lines, "dark"))
    rows = list(root.iter("{http://www.w3.org/2000/svg}text"))
    wide = recording.COLUMNS
    assert [row.text for row in rows] == ["$ make demo", "a < b", "x" * wide, "x" * (150 - wide)]
    hidden = [float(row[0].get("dur").rstrip("s")) for row in rows[2:]]
    assert hidden[0] == hidden[1] == round(lines[1][0], 2)


def test_the_rates_of_the_figure(tmp_path):
    """Both paths carry data before the cut, the second one alone during it, and both afterwards."""
    sys.path.insert(0, str(ROOT / "scripts"))
    figure = importlib.import_module("readme-figure")
    capture = tmp_path / "run.pcapng"
    subprocess.run([binary(), "sim", figure.SCENARIO, "--pcap", capture], check=True, stdout=subprocess.DEVNULL)
    rates = figure.rates(capture.read_bytes())
    # 70 MB, without the last bin.
    total = sum(map(sum, rates.values())) * 1e6 / 8 * figure.BIN
    assert 0.97 * 70e6 < total <= 70e6

    def mean(link: str, begin: float, end: float) -> float:
        bins = rates[link][round(begin / figure.BIN):round(end / figure.BIN)]
        return sum(bins) / len(bins)

    cable, mobile = figure.PATHS
    assert mean(cable, 1, 4) > 40 and mean(mobile, 1, 4) > 14
    assert mean(cable, 4.1, 8) == 0 and mean(mobile, 4.1, 8) > 14
    assert mean(cable, 9, 11) > 40


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_recording(theme):
    """The README's recording is small, shows the cut and the whole file, and has labels of at least 7 pt in 16 cm."""
    file = DOCS / "figures" / f"demo-{theme}.svg"
    assert file.stat().st_size < 20_000
    root = ElementTree.parse(file).getroot()
    lines = ["".join(line.itertext()) for line in root.iter("{http://www.w3.org/2000/svg}text")]
    text = "\n".join(lines)
    assert lines[0] == "$ make demo" and "path 0 is cut" in text and "SHA-256   equal on both sides" in text
    width = float(root.get("viewBox").split()[2])
    assert float(root.get("font-size")) / width * 16 / 2.54 * 72 >= 7
    # Monospaced letters are 0.61 of their size wide: no line is cut off.
    assert max(map(len, lines)) * 0.61 * float(root.get("font-size")) <= width
