"""`polypath run`: unmodified programs of the distribution with polypath instead of the kernel's SCTP."""

import json
import re
import subprocess

import pytest

from programs.exchange import Echo
from programs.table import tell
from support import program, statements
from support.namespaces import Namespace
from support.preload import bound, cut, run
from support.program import ROOT, make_file, sha256, wait_until
from support.statements import compiled

pytestmark = pytest.mark.needs("namespaces")


def addresses(hosts) -> tuple[str, str]:
    """The first address of each host."""
    return "10.81.0.1", "10.81.0.2"


# Options of the client, and what is exchanged.
IPERF3 = {
    "from the client": [],
    "from the server (--reverse)": ["--reverse"],
    "both ways (--bidir)": ["--bidir"],
    "four associations (-P 4)": ["-P", 4],
    # Version 3.12 takes the number of streams for the bit rate, too: --bitrate 0 undoes that.
    "four streams (--nstreams 4)": ["--nstreams", 4, "--bitrate", 0],
}


def iperf3(hosts, processes, *options: object, multihomed: bool = False, between=None) -> dict:
    """The client's report; `between` is called while data flows."""
    own, other = (bound(hosts, side) if multihomed else [] for side in ("a", "b"))
    server = processes.start(*run(*other), "iperf3", "--server", "--one-off", "--forceflush", inside=hosts.b.inside)
    server.said("listening")
    client = processes.start(*run("--doctor", *own), "iperf3", "--sctp", "--client", addresses(hosts)[1], "--json",
                             *options, inside=hosts.a.inside)
    if between:
        between(server)
    ended = client.wait()
    report = json.loads(ended.out)
    assert "error" not in report, report["error"]
    assert ended.code == 0, ended.err
    assert report["start"]["test_start"]["protocol"] == "SCTP"
    assert server.wait().code == 0, server.err
    return report


@pytest.mark.needs("iperf3")
@pytest.mark.parametrize("exchange", IPERF3)
def test_iperf3_measures_over_sctp(hosts, processes, exchange):
    report = iperf3(hosts, processes, "--time", 1, *IPERF3[exchange])
    # All of it arrived: the server counts too.
    sums = ["sum_received", "sum_received_bidir_reverse"] if "--bidir" in IPERF3[exchange] else ["sum_received"]
    for name in sums:
        assert report["end"][name]["bytes"] > 100_000, report["end"]
    tell("iperf3", exchange)


@pytest.mark.needs("iperf3", "nft")
def test_iperf3_survives_a_cut_of_the_primary_path(hosts, processes):
    """The path that carries the data is cut after some seconds; the last second has data again."""
    def between(server):
        # A line for each interval, whose limits a busy machine shifts.
        wait_until(lambda: server.out.count(" sec ") >= 3, 20, lambda: f"no data: {server.out}{server.err}")
        cut(hosts)

    report = iperf3(hosts, processes, "--time", 10, multihomed=True, between=between)
    assert report["intervals"][-1]["sum"]["bytes"] > 100_000, report["intervals"]
    assert hosts.a.sent("va2") > 1_000_000
    tell("iperf3", "from the client", cut=True)


@pytest.mark.needs("ncat")
def test_ncat_transfers_a_file(hosts, processes, tmp_path):
    expected = make_file(tmp_path / "file", 300_000)
    # ncat ends an SCTP connection when its standard input ends: the server's stays open.
    server = processes.start(*run(), "ncat", "--sctp", "--verbose", "--listen", 7000, "--recv-only",
                             inside=hosts.b.inside, stdin=subprocess.PIPE)
    server.said("Listening on 0.0.0.0")
    with (tmp_path / "file").open("rb") as file:
        client = processes.start(*run(), "ncat", "--sctp", "--send-only", addresses(hosts)[1], 7000,
                                 inside=hosts.a.inside, stdin=file)
    assert client.wait().code == 0, client.err
    assert server.wait().code == 0, server.err
    assert sha256(server.out_path) == expected
    assert f"Connection from {addresses(hosts)[0]}" in server.err
    tell("ncat", "a file of 300,000 bytes")


@pytest.mark.needs("socat")
def test_socat_serves_each_connection_in_a_child(hosts, processes, tmp_path):
    """The child of fork reads and writes the socket that its parent has accepted, then exits. SCTP has no
    half-closed state, so the client does not shut down after its line."""
    server = processes.start(*run(), "socat", "-d", "-d", "SCTP4-LISTEN:7000,fork", "SYSTEM:head -n 1 | rev",
                             inside=hosts.b.inside)
    server.said("listening on")
    for word in ("polypath", "multihoming"):
        (tmp_path / word).write_text(word + "\n")
        with (tmp_path / word).open("rb") as file:
            client = processes.start(*run(), "socat", "-t", 60, "-", f"SCTP4:{addresses(hosts)[1]}:7000,shut-none",
                                     inside=hosts.a.inside, stdin=file)
        ended = client.wait()
        assert (ended.code, ended.out) == (0, word[::-1] + "\n"), ended.err + server.err
    tell("socat", "a line and its answer, a server with a process for each association")


@pytest.mark.needs("ncat")
def test_a_refused_connection_is_refused(hosts, processes):
    """A host without the port answers the INIT with ABORT (RFC 9260 8.4): ECONNREFUSED, as in Linux."""
    other = processes.start(*run(), "ncat", "--sctp", "--verbose", "--listen", 7000, inside=hosts.b.inside)
    other.said("Listening on 0.0.0.0")
    client = processes.start(*run(), "ncat", "--sctp", addresses(hosts)[1], 7001, inside=hosts.a.inside)
    ended = client.wait()
    assert ended.code == 1
    assert "Connection refused" in ended.err


@pytest.mark.needs("netinet/sctp.h", "usrsctp.h")
@pytest.mark.parametrize("connects", [True, False], ids=["connects", "listens"])
def test_a_program_for_the_kernel_interoperates_with_usrsctp(hosts, processes, tmp_path, connects):
    """The peer of the interoperability tests, built for the kernel's SCTP, against the one with usrsctp."""
    words = {}
    for name, options in (("kernel", ["-DKERNEL", "-lsctp"]), ("usrsctp", ["-lusrsctp"])):
        command = ["gcc", "-O2", "-o", tmp_path / name, ROOT / "tests" / "interop" / "peer.c", *options]
        done = subprocess.run([*command, "-lpthread"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        words[name] = [str(tmp_path / name)]
    own, other = addresses(hosts)

    def start(host, name, local, remote, role):
        command = (run() if name == "kernel" else []) + words[name]
        return processes.start(*command, role, local, 5000, remote, 9899, 9899, inside=host.inside,
                               stdin=subprocess.PIPE)

    roles = ("connect", "listen") if connects else ("listen", "connect")
    order = ["usrsctp", "kernel"] if connects else ["kernel", "usrsctp"]
    made = {}
    for name in order:
        host, local, remote, role = ((hosts.a, own, other, roles[0]) if name == "kernel" else
                                     (hosts.b, other, own, roles[1]))
        made[name] = start(host, name, local, remote, role)
        if name == order[0]:
            made[name].said("ready")
    for process in made.values():
        process.said("up")
    for process in made.values():
        process.say("send 40 1000 3 ordered")
        process.say("send 10 60000 3 ordered")

    def totals(process, kind):
        found = re.findall(rf"^{kind} messages=(.*)$", process.out, re.MULTILINE)
        return found[-1] if found else None

    # Number of messages, bytes, and the digest of each stream's order.
    kernel, usrsctp = made["kernel"], made["usrsctp"]

    def arrived():
        for process in made.values():
            process.say("totals")
        sent, received = totals(kernel, "sent"), totals(usrsctp, "received")
        back, returned = totals(usrsctp, "sent"), totals(kernel, "received")
        return sent and sent.startswith("50 ") and sent == received and back and back == returned

    program.wait_until(arrived, 20, lambda: f"{kernel.out}{kernel.err}{usrsctp.out}")
    kernel.say("shutdown")
    for process in made.values():
        process.said("end reason=graceful")


@pytest.mark.needs("netinet/sctp.h")
def test_the_socket_api_behaves_as_its_rfc_says(processes, tmp_path):
    """Each line of the programs is a statement of RFC 6458 or of Linux's man pages; docs/run.md lists them.
    tests/interop/test_api.py compares them with Linux."""
    checked: set[str] = set()
    total = 0
    for name in statements.PROGRAMS:
        with Namespace() as alone:
            ended = processes.start(*run("--doctor"), compiled(tmp_path, name), inside=alone.inside).wait()
        results = statements.results(ended.out)
        failed = {statement for statement, result in results.items() if result == "failed"}
        known = {statement for statement, one in statements.differences(name).items() if one.polypath == "failed"}
        assert failed == known and ended.code == int(bool(failed)), f"{name} {ended.code}: {failed} {ended.err}"
        checked |= set(results)
        total += len(results)
        if name == "run-calls":
            # The report lists the requests that were refused.
            assert "not supported: setsockopt level 0 option 1 (1 times)" in ended.err
    page = (ROOT / "docs" / "run.md").read_text()
    assert f"{total:,} statements" in page, total
    table = page.partition("## What is supported")[2].partition("## Compared with Linux")[0]
    listed = set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE))
    assert listed == {name.split(":")[0] for name in checked}


ENDS = ("arguments", "ends", "forks", "limits", "threads", "closes_all")


@pytest.mark.needs("netinet/sctp.h")
@pytest.mark.parametrize("part", ENDS)
def test_sockets_end_as_those_of_the_kernel(hosts, processes, tmp_path, part):
    """Races, ends, fork, vfork, pthread_cancel, the limit of descriptors."""
    ended = processes.start(*run(), compiled(tmp_path, "run-ends"), ENDS.index(part), inside=hosts.a.inside).wait()
    failed = [line for line in ended.out.splitlines() if not line.startswith("ok ")]
    assert not failed and ended.code == 0 and ended.out, f"{ended.code}: {failed} {ended.out} {ended.err}"


SHARED = ("threads", "forks", "full", "ends")


@pytest.mark.needs("netinet/sctp.h")
@pytest.mark.parametrize("part", SHARED)
def test_threads_and_processes_share_sockets(hosts, processes, tmp_path, part):
    """Each message arrives once, full queues wake who waits, and a close at any moment leaves nothing behind."""
    ended = processes.start(*run(), compiled(tmp_path, "run-shared"), SHARED.index(part), inside=hosts.a.inside).wait()
    failed = [line for line in ended.out.splitlines() if not line.startswith("ok ")]
    assert not failed and ended.code == 0 and ended.out, f"{ended.code}: {failed} {ended.out} {ended.err}"


# Random calls of these seeds; others run with `polypath run -- run-random SEED`.
SEEDS = (1, 2, 3)


@pytest.mark.needs("netinet/sctp.h")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_agree_with_a_model(hosts, processes, tmp_path, seed):
    """No message is lost, repeated or changed, ends have causes, no call hangs, no descriptor is left."""
    ended = processes.start(*run(), compiled(tmp_path, "run-random"), seed, inside=hosts.a.inside).wait()
    assert ended.code == 0 and ended.out.startswith("ok "), f"{ended.code}: {ended.out} {ended.err}"


@pytest.mark.needs("sctp_test")
@pytest.mark.parametrize("style", ["many", "one"])
def test_sctp_test_exchanges_messages(hosts, processes, style):
    """lksctp-tools' program: messages of 1 to 32768 bytes, on one-to-many and one-to-one sockets."""
    options = ["-T"] if style == "one" else []
    own, other = addresses(hosts)
    server = processes.start(*run(), "stdbuf", "-oL", "sctp_test", "-H", other, "-P", 7000, "-l", *options,
                             inside=hosts.b.inside)
    program.wait_until(lambda: "listen(" in server.out, 20, lambda: server.out + server.err)
    client = processes.start(*run("--doctor"), "sctp_test", "-H", own, "-P", 7001, "-h", other, "-p", 7000, "-s",
                             "-c", 4, "-x", 3, "-o", 1, *options, inside=hosts.a.inside)
    ended = client.wait()
    assert ended.code == 0, ended.out + ended.err
    assert "every request of the program is supported" in ended.err
    sizes = re.findall(r"sendmsg\(sk=\d+, assoc=\d+\)\s+(\d+) bytes", ended.out)
    assert len(sizes) == 30, ended.out
    # The server reads in parts; the bytes of messages add up.
    program.wait_until(lambda: "SHUTDOWN_COMPLETE" in server.out, 20, lambda: server.out + server.err)
    received = sum(map(int, re.findall(r"Data (\d+) bytes", server.out)))
    assert received == sum(map(int, sizes)), server.out
    tell("sctp_test", f"30 messages of up to 32,768 bytes, one-to-{style}")


@pytest.mark.needs("sctp_darn")
def test_sctp_darn_sends_lines(hosts, processes):
    """lksctp-tools' interactive program."""
    own, other = addresses(hosts)
    server = processes.start(*run(), "stdbuf", "-oL", "sctp_darn", "-H", other, "-P", 7000, "-l",
                             inside=hosts.b.inside, stdin=subprocess.PIPE)
    program.wait_until(lambda: "listening" in server.out + server.err, 20, lambda: server.out + server.err)
    client = processes.start(*run(), "stdbuf", "-oL", "sctp_darn", "-H", own, "-P", 7001, "-h", other, "-p", 7000,
                             "-s", inside=hosts.a.inside, stdin=subprocess.PIPE)
    client.say("multihoming")
    program.wait_until(lambda: "multihoming" in server.out, 20, lambda: client.out + client.err + server.out)
    tell("sctp_darn", "a line")


# Which of the two ends are statically linked, so that their system calls are answered.
STATIC = {"both": (True, True), "server": (True, False), "client": (False, True)}


@pytest.mark.needs("netinet/sctp.h", "nft")
@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("ends", STATIC)
def test_static_programs_exchange_messages(hosts, processes, tmp_path, ends, is_cut):
    """With each other, and with one that has the preloaded library; one path is cut in between."""
    server, client = (compiled(tmp_path, "run-exchange", static=static) for static in STATIC[ends])
    Echo("a static C program",
         server=lambda addresses: [server, "server", 7000, *addresses],
         client=lambda remote, addresses: [client, "client", 7000, remote, 300, *addresses],
         exchange="").between(hosts, processes, is_cut=is_cut, reports=False)


@pytest.mark.needs("netinet/sctp.h")
def test_answered_calls_behave_as_those_of_the_kernel(hosts, processes, tmp_path):
    """Signals, processes, descriptors of a static program."""
    static = compiled(tmp_path, "run-supervised", static=True)
    ended = processes.start(*run("--doctor"), static, inside=hosts.a.inside).wait()
    results = statements.results(ended.out)
    assert ended.code == 0 and len(results) == 26 and set(results.values()) == {"ok"}, f"{ended.out} {ended.err}"
    # The one request that is refused.
    missed = [line for line in ended.err.splitlines() if "not supported" in line]
    assert missed == ["polypath run: not supported: dup2 of an SCTP socket to a small number, by system calls "
                      "(1 times)"], ended.err


# close does not wait when it is answered (docs/run.md).
ANSWERED = {"run-descriptors": {"SO_LINGER: close with 1 second and a full window": "0, early"}}


@pytest.mark.needs("netinet/sctp.h")
@pytest.mark.parametrize("name", statements.BY_NAME)
def test_answered_calls_behave_as_those_of_the_library(processes, tmp_path, name):
    """Every statement of the programs has the same result whether a library is preloaded or the system calls are
    answered."""
    found = []
    for options, static in (([], False), ([], True), (["--system-calls"], False)):
        with Namespace() as alone:
            words = [*run(*options), compiled(tmp_path, name, static=static)]
            ended = processes.start(*words, inside=alone.inside).wait()
        found.append((ended.code, statements.results(ended.out)))
    (code, results), *others = found
    assert results
    expected = {**results, **ANSWERED.get(name, {})}
    for other, answered in others:
        varied = {what: (expected.get(what), answered.get(what)) for what in {**expected, **answered}
                  if expected.get(what) != answered.get(what)}
        assert (other, varied) == (code, {})


# run-ends.c also states what a child of fork cannot do with a preloaded library.
ANSWERED_ENDS = [part for part in ENDS if part != "forks"]


@pytest.mark.needs("netinet/sctp.h")
@pytest.mark.parametrize("part", ANSWERED_ENDS)
def test_sockets_of_static_programs_end_as_those_of_the_kernel(hosts, processes, tmp_path, part):
    static = compiled(tmp_path, "run-ends", static=True)
    ended = processes.start(*run(), static, ENDS.index(part), inside=hosts.a.inside).wait()
    failed = [line for line in ended.out.splitlines() if not line.startswith("ok ")]
    assert not failed and ended.code == 0 and ended.out, f"{ended.code}: {failed} {ended.out} {ended.err}"


@pytest.mark.needs("netinet/sctp.h")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_of_static_programs_agree_with_a_model(hosts, processes, tmp_path, seed):
    static = compiled(tmp_path, "run-random", static=True)
    ended = processes.start(*run(), static, seed, inside=hosts.a.inside).wait()
    assert ended.code == 0 and ended.out.startswith("ok "), f"{ended.code}: {ended.out} {ended.err}"


def test_the_program_ends_as_without_polypath(processes):
    """Exit codes, signals that are passed on, and processes that go on after the program."""
    answered = run("--system-calls")
    assert processes.start(*answered, "sh", "-c", "exit 7").wait().code == 7
    assert processes.start(*answered, "sh", "-c", "kill -9 $$").wait().code == -9
    assert processes.start(*answered, "sh", "-c", "kill -TERM $PPID; sleep 60").wait().code == -15
    ended = processes.start(*answered, "sh", "-c", "(sleep 1; echo after) & exit 3").wait()
    assert (ended.code, ended.out) == (3, "after\n")
    ended = processes.start(*answered, "/does/not/exist").wait()
    assert (ended.code, ended.err) == (127, "polypath: cannot run /does/not/exist: no such file or directory\n")


def test_a_kernel_that_refuses_the_filter_is_reported(processes):
    """A filter that stops system calls is already there."""
    answered = run("--system-calls")
    ended = processes.start(*answered, *answered, "true").wait()
    assert ended.code == 1
    assert ended.err == ("polypath: the kernel does not let polypath answer system calls: device or resource busy\n"
                         "hint: another program answers them already, such as polypath run\n")
