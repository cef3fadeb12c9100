"""Observation of running commands: the event log, metrics over HTTP, and `polypath top`."""

import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from support import namespaces
from support.capture import fields
from support.program import BRISK, ROOT, binary, make_file, wait_until

# Loopback addresses used only by these tests, and only by this worker.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
OWN = [f"127.0.{95 + path}.{1 + 2 * WORKER}" for path in (0, 1)]
PEER = [f"127.0.{95 + path}.{2 + 2 * WORKER}" for path in (0, 1)]


@pytest.fixture
def runtime(tmp_path, monkeypatch) -> Path:
    """The folder of the sockets that `polypath top` reads."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "polypath"


def records(path: Path) -> list[dict]:
    """The JSON texts of a sequence (RFC 7464): each after a record separator, and ended by a line feed."""
    first, *texts = path.read_bytes().split(b"\x1e")
    assert first == b"" and all(text.endswith(b"\n") for text in texts)
    return [json.loads(text) for text in texts]


def has_sent(path: Path, count: int) -> bool:
    """Whether the log, which is being written, has a sample with more than this number of bytes sent."""
    texts = path.read_text().split("\x1e") if path.exists() else []
    events = [json.loads(text) for text in texts if text.endswith("\n")]
    return any(event.get("data", {}).get("bytes_sent", 0) > count for event in events)


def of(events: list[dict], name: str) -> list[dict]:
    return [event for event in events if event["name"] == f"sctp:{name}"]


def test_the_log_of_a_transfer_with_a_cut(processes, runtime, tmp_path):
    """Both sides' logs have the states of the path that was cut, and end with the bytes of the summary."""
    (tmp_path / "scenario.toml").write_text(
        'schema = 1\nname = "log"\n' +
        "".join(f'[[path]]\nname = "{name}"\nrate = "10 Mbit/s"\ndelay = "10 ms"\nqueue = "50 packets"\n'
                for name in ("first", "second")) +
        '[transport]\nencapsulation = "udp"\n[workload]\nkind = "bulk"\nsize = "1 B"\n'
        f"[emulator]\nsenders = {json.dumps(OWN)}\nreceivers = {json.dumps(PEER)}\n")
    make_file(tmp_path / "file", 4_000_000)
    start = processes.polypath
    emulator = start("emulate", tmp_path / "scenario.toml", stdin=subprocess.PIPE).said("ready")
    receiver = start("recv", "--bind", ",".join(PEER), "-o", tmp_path / "received", "--json", "--plain",
                     "--log", tmp_path / "recv.sqlog", "--profile", "rfc9260", *BRISK).said("waiting on ")
    sender = start("send", tmp_path / "file", f"{PEER[0]}:9900", "--via", f"{PEER[1]}:9900", "--bind", ",".join(OWN),
                   "--json", "--plain", "--log", tmp_path / "send.sqlog", "--profile", "rfc9260", *BRISK)
    wait_until(lambda: has_sent(tmp_path / "send.sqlog", 500_000), 30, lambda: sender.err, alive=sender.popen)
    emulator.say("down first")
    summary = sender.wait().json
    assert receiver.wait().json["bytes"] == 4_000_000
    for name, side, moved in (("send", "client", "data_bytes_sent"), ("recv", "server", "data_bytes_received")):
        head, *events = records(tmp_path / f"{name}.sqlog")
        assert head["file_schema"] == "urn:ietf:params:qlog:file:sequential"
        assert head["serialization_format"] == "application/qlog+json-seq"
        assert head["trace"]["vantage_point"]["type"] == side
        reference = head["trace"]["common_fields"]["reference_time"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", reference["wall_clock_time"])
        assert all(set(event) == {"time", "name", "group_id", "data"} for event in events)
        assert len({event["group_id"] for event in events}) == 1
        (established,) = of(events, "association_established")
        assert established["data"] == {"inbound": side == "server"}
        assert events[-1]["name"] == "sctp:association_closed" and events[-1]["data"]["graceful"]
        changes = [(one["data"]["old"], one["data"]["new"]) for one in of(events, "path_state_updated")
                   if one["data"]["path"] == 0]
        if side == "client":
            assert ("active", "inactive") in changes
            assert 1 in [one["data"]["path"] for one in of(events, "current_path_updated")]
        samples = of(events, "metrics_updated")
        for path in (0, 1):
            own = [sample for sample in samples if sample["data"]["path"] == path]
            assert len(own) >= 2
            assert [one["time"] for one in own] == sorted(one["time"] for one in own)
            for counter in ("bytes_sent", "bytes_received", "packets_sent"):
                values = [one["data"][counter] for one in own]
                assert values == sorted(values), (path, counter)
            # The rate is that of the last tenth of a second; there may be ticks without a sample before it.
            for before, one in itertools.pairwise(own):
                seconds = (one["time"] - before["time"]) / 1000
                bits = 8 * (one["data"]["bytes_sent"] - before["data"]["bytes_sent"])
                assert one["data"]["sending_rate"] * seconds >= 0.99 * bits - 1
                if seconds < 0.15:
                    assert one["data"]["sending_rate"] * seconds <= 1.01 * bits + 1
        last = {sample["data"]["path"]: sample["data"] for sample in samples}
        assert sum(data[moved] for data in last.values()) >= 4_000_000
        if side == "client":
            assert last[0]["state"] == "inactive" and last[0]["timeouts"] >= 2
            for path in summary["paths"]:
                assert last[path["path"]]["bytes_sent"] >= path["bytes"]
                assert last[path["path"]]["congestion_window"] > 0 and last[path["path"]]["smoothed_rtt"] >= 19


def test_an_interrupted_receiver_ends_its_log(processes, runtime, tmp_path):
    """The log ends with the abort, and the socket is removed."""
    make_file(tmp_path / "file", 50_000_000)
    receiver = processes.polypath("recv", "--bind", PEER[0], "-u", "0", "-o", tmp_path / "received", "--plain",
                                  "--log", tmp_path / "log").said("waiting on ")
    port = re.search(r"UDP port (\d+)", receiver.err)[1]
    processes.polypath("send", tmp_path / "file", f"{PEER[0]}:{port}", "--plain", "--limit", "10Mbit/s")
    wait_until(lambda: has_sent(tmp_path / "log", 500), 30, lambda: receiver.err, alive=receiver.popen)
    receiver.popen.terminate()
    assert receiver.wait().code == 143
    last = records(tmp_path / "log")[-1]
    assert last["name"] == "sctp:association_closed" and last["data"]["reason"] == "aborted by this side"
    assert not (runtime / f"{receiver.popen.pid}.socket").exists()


def test_a_log_that_cannot_be_written(processes, tmp_path):
    ended = processes.polypath("recv", "--log", tmp_path / "none" / "log", "--udp-port", "0").wait()
    ended.complains("cannot create", "no such file or directory")


@pytest.fixture
def perf(processes, runtime):
    """A server with metrics, and a client that sends to it until it is stopped."""
    server = processes.polypath("perf", "-s", "--bind", ",".join(PEER), "-u", "0", "--plain", "--anyone",
                                "--metrics", "0").said("waiting on")
    port = re.search(r"UDP port (\d+)", server.err)[1]
    client = processes.polypath("perf", "-c", f"{PEER[0]}:{port}", "--via", f"{PEER[1]}:{port}", "--bind",
                                ",".join(OWN), "--plain", "-t", "600", "--limit", "20Mbit/s").said("Mbit/s")
    return server, client


def families(text: str) -> set[str]:
    """The metrics that the parser of Prometheus' own client finds."""
    return {family.name for family in text_string_to_metric_families(text)}


def get(server, path: str, method: str = "GET") -> tuple[int, str, str]:
    host, port = re.search(r"metrics at http://([\d.]+):(\d+)/metrics", server.err).groups()
    assert host == "127.0.0.1"
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    connection.request(method, path)
    response = connection.getresponse()
    return response.status, response.getheader("Content-Type"), response.read().decode()


LINE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="[^"\\]*",?)*)\} (-?[0-9.e+-]+)')


def parse(text: str) -> dict[str, dict[tuple, float]]:
    """OpenMetrics 1.0, as strictly as the specification is for what is used here."""
    assert text.endswith("\n# EOF\n")
    found: dict[str, dict[tuple, float]] = {}
    family, kind = "", ""
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            assert family not in found and kind in {"counter", "gauge", "stateset"}
            found[family] = {}
        elif line.startswith("# UNIT "):
            name, unit = line.split()[2:]
            assert name == family and name.endswith(f"_{unit}")
        elif line.startswith("# HELP "):
            assert line.split()[2] == family and line.endswith(".")
        else:
            name, labels, value = LINE.fullmatch(line).groups()
            assert name == family + ("_total" if kind == "counter" else "")
            key = tuple(sorted(re.findall(r'([a-z_]+)="([^"]*)"', labels)))
            assert key not in found[family]
            found[family][key] = float(value)
            assert kind != "counter" or float(value) >= 0
    return found


def test_metrics(perf):
    server, client = perf
    status, kind, text = get(server, "/metrics")
    assert (status, kind) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    first = parse(text)
    assert families(text) == set(first)
    paths = {dict(key)["local"]: value for key, value in first["polypath_path_received_data_bytes"].items()}
    assert sorted(paths) == PEER and sum(paths.values()) > 1_000_000
    for local in PEER:
        states = {dict(key)["polypath_path_state"]: value for key, value in first["polypath_path_state"].items()
                  if dict(key)["local"] == local}
        assert states == {"unconfirmed": 0, "active": 1, "potentially_failed": 0, "inactive": 0, "removed": 0}
    assert all(0 < value < 1 for value in first["polypath_path_smoothed_rtt_seconds"].values())
    assert list(first["polypath_endpoint_established_associations"].values()) == [1]
    wait_until(lambda: sum(parse(get(server, "/metrics")[2])["polypath_path_received_data_bytes"].values())
               > sum(paths.values()) + 1_000_000, 10, "the counters do not grow", alive=client.popen)
    second = parse(get(server, "/metrics")[2])
    for family, values in first.items():
        if second[family].keys() == values.keys() and family.endswith(("_packets", "_datagrams")):
            assert all(second[family][key] >= value for key, value in values.items()), family


def test_other_requests_for_metrics(perf):
    """Neither an unknown path nor clients that send nothing, or too much, keep others from a reply."""
    server, _ = perf
    assert get(server, "/")[0] == 404
    assert get(server, "/metrics", "POST")[0] == 405
    host, port = re.search(r"http://([\d.]+):(\d+)/", server.err).groups()
    silent = [socket.create_connection((host, int(port))) for _ in range(4)]
    with socket.create_connection((host, int(port)), timeout=20) as endless:
        endless.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 9000)
        with contextlib.suppress(ConnectionResetError):
            assert endless.recv(1) == b""
    assert get(server, "/metrics")[0] == 200
    for one in silent:
        one.close()
    assert server.popen.poll() is None


def test_top(perf, processes, runtime):
    server, client = perf
    assert stat.S_IMODE(runtime.stat().st_mode) == 0o700
    ended = processes.start(*top("--json")).wait()
    assert ended.code == 0, ended.err
    shown = {one["process"]: one for one in map(json.loads, ended.out.splitlines())}
    for process in perf:
        (association,) = shown[process.popen.pid]["associations"]
        assert shown[process.popen.pid]["command"] == "polypath perf" and association["established"]
        assert [path["state"] for path in association["paths"]] == ["active", "active"]
    table = processes.start(*top("--once", "--interval", "0.5")).wait()
    assert table.code == 0, table.err
    head, *rows = table.out.splitlines()
    assert head.split()[:8] == ["process", "command", "association", "path", "local", "remote", "state", "sending"]
    assert [row.split()[0] for row in rows].count(str(client.popen.pid)) == 2
    # A killed process leaves its socket, and no reply comes from it; one that ends removes its own.
    server.popen.send_signal(signal.SIGKILL)
    server.popen.wait()
    client.popen.send_signal(signal.SIGINT)
    client.wait()
    assert [file.name for file in runtime.iterdir()] == [f"{server.popen.pid}.socket"]
    ended = processes.start(*top("--json")).wait()
    pids = {server.popen.pid, client.popen.pid}
    assert ended.code == 0 and not {json.loads(line)["process"] for line in ended.out.splitlines()} & pids


def top(*words: str) -> list[str]:
    return [binary(), "top", *words]


def test_the_page_has_all_events_and_metrics(perf):
    """docs/observe.md lists every metric, and every field and event of the log's schema."""
    page = (ROOT / "docs" / "observe.md").read_text()
    assert [family for family in parse(get(perf[0], "/metrics")[2]) if f"`{family}`" not in page] == []
    source = (ROOT / "crates/polypath-cli/src/observe/qlog.rs").read_text()
    names = re.findall(r'put\("([a-z_]+)"', source) + re.findall(r'\("([a-z_]+)", json!', source)
    assert len(names) > 25
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.needs("namespaces", "dumpcap", "editcap", "tshark")
def test_a_capture_with_the_secrets(processes, runtime, tmp_path):
    """--key-log has the secrets of each connection in the capture, and editcap puts them into the file."""
    make_file(tmp_path / "file", 300_000)
    pcap, secrets = tmp_path / "transfer.pcapng", tmp_path / "secrets.txt"
    with namespaces.Namespace() as host:
        def start(*words, **how):
            return processes.polypath(*words, inside=host.inside, **how)

        sniffer = processes.start("dumpcap", "-q", "-i", "lo", "-f", "udp port 9899", "-w", pcap, inside=host.inside)
        wait_until(lambda: pcap.exists() and pcap.stat().st_size > 0, 15, "dumpcap does not start", alive=sniffer.popen)
        receiver = start("recv", "--bind", "127.0.0.1,127.0.0.2", "-o", tmp_path / "received",
                         "--key-log", tmp_path / "others.txt").said("waiting on ")
        sender = start("send", tmp_path / "file", "127.0.0.1", "--via", "127.0.0.2", "--key-log", secrets)
        assert sender.wait().code == 0, sender.err
        assert receiver.wait().code == 0, receiver.err
        sniffer.popen.terminate()
        sniffer.popen.wait()
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    lines = [line.split() for line in secrets.read_text().splitlines()]
    assert sorted(map(tuple, lines)) == sorted(tuple(line.split()) for line in
                                               (tmp_path / "others.txt").read_text().splitlines())
    labels = {"CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0",
              "SERVER_TRAFFIC_SECRET_0"}
    randoms = {random for label, random, secret in lines}
    assert all({label for label, of, _ in lines if of == random} == labels for random in randoms)
    seen = {row[0].replace(":", "") for row in
            fields(pcap, ["dtls.handshake.random"], "dtls.handshake.type == 1", protocol="dtls")}
    assert randoms and randoms <= seen, (randoms, seen)
    readable = tmp_path / "readable.pcapng"
    subprocess.run(["editcap", "--inject-secrets", f"tls,{secrets}", pcap, readable], check=True)
    assert secrets.read_bytes() in readable.read_bytes()
