"""Wireshark 4.4 of Debian 13 decrypts DTLS 1.3 with the secrets of --key-log, which Debian 12's cannot."""

import shutil
import subprocess

import pytest

from conftest import clean_root
from support import namespaces
from support.program import make_file, wait_until


@pytest.fixture
def captured(processes, tmp_path):
    """A capture of an encrypted transfer over two paths, without and with its secrets."""
    make_file(tmp_path / "file", 300_000)
    pcap, secrets, readable = (tmp_path / name for name in ("transfer.pcapng", "secrets.txt", "readable.pcapng"))
    with namespaces.Namespace() as host:
        sniffer = processes.start("dumpcap", "-q", "-i", "lo", "-f", "udp port 9899", "-w", pcap, inside=host.inside)
        wait_until(lambda: pcap.exists() and pcap.stat().st_size > 0, 15, "dumpcap does not start", alive=sniffer.popen)
        receiver = processes.polypath("recv", "--bind", "127.0.0.1,127.0.0.2", "-o", tmp_path / "received",
                                      inside=host.inside).said("waiting on ")
        sender = processes.polypath("send", tmp_path / "file", "127.0.0.1", "--via", "127.0.0.2", "--key-log", secrets,
                                    inside=host.inside)
        assert sender.wait().code == 0, sender.err
        assert receiver.wait().code == 0, receiver.err
        sniffer.popen.terminate()
        sniffer.popen.wait()
    subprocess.run(["editcap", "--inject-secrets", f"tls,{secrets}", pcap, readable], check=True)
    return pcap, readable


def test_a_newer_wireshark_reads_the_packets(captured, tmp_path):
    with clean_root("trixie", tmp_path) as root:
        root.install("tshark")
        shown = []
        for file in captured:
            shutil.copy(file, root.folder / "tmp")
            done = root.run(f"tshark -n -r /tmp/{file.name} -d udp.port==9899,dtls -d dtls.port==9899,sctp "
                            "-Y sctp -T fields -e sctp.chunk_type 2>/dev/null", user="root")
            shown.append(done.out.splitlines())
    encrypted, readable = shown
    assert encrypted == []
    kinds = {kind for line in readable for kind in line.split(",")}
    # DATA, INIT, INIT ACK, SACK, HEARTBEAT and its ACK, COOKIE ECHO and COOKIE ACK.
    assert {"0", "1", "2", "3", "4", "5", "10", "11"} <= kinds
