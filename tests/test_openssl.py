"""DTLS 1.2 handshakes with OpenSSL, in both directions. (OpenSSL 3 has neither DTLS 1.3 nor SCTP over DTLS.)"""

import os
import subprocess

import pytest

from support.program import Process, wait_until

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
LOCAL, PORT = f"127.0.93.{1 + WORKER}", "9899"
# RFC 7905, and the suite that WebRTC requires (RFC 8827 6.5).
SUITES = ("ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-GCM-SHA256")
WITHOUT_EXTENDED_MASTER_SECRET = """
openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = every
[every]
Options = -ExtendedMasterSecret
"""

pytestmark = pytest.mark.needs("openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> list[str]:
    """A key and a certificate created by OpenSSL, as options of its programs."""
    folder = tmp_path_factory.mktemp("certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-subj", "/CN=peer", "-keyout", key, "-out", cert],
                   check=True, capture_output=True, timeout=120)
    return ["-key", str(key), "-cert", str(cert)]


def fingerprint(certificate: list[str]) -> str:
    told = subprocess.run(["openssl", "x509", "-in", certificate[3], "-noout", "-fingerprint", "-sha256"],
                          check=True, capture_output=True, text=True, timeout=120)
    return told.stdout.strip().split("=")[1]


def called(processes, certificate, suite: str, *options: str, env: dict | None = None) -> Process:
    """OpenSSL connects to a polypath receiver."""
    receiver = processes.polypath("recv", "--bind", LOCAL, "-u", PORT, "-o", processes.folder, *options)
    receiver.said("waiting on")
    return processes.start("openssl", "s_client", "-dtls1_2", "-connect", f"{LOCAL}:{PORT}", *certificate,
                           "-cipher", suite, stdin=subprocess.PIPE, env={**os.environ, **(env or {})})


def calls(processes, certificate, suite: str, *options: str) -> tuple[Process, Process]:
    """A polypath sender connects to OpenSSL; returns both processes."""
    server = processes.start("openssl", "s_server", "-dtls1_2", "-accept", f"{LOCAL}:{PORT}", *certificate,
                             "-cipher", suite, "-Verify", "1", stdin=subprocess.PIPE)
    server.said("ACCEPT")
    file = processes.folder / "file"
    file.write_bytes(b"contents")
    return processes.polypath("send", file, LOCAL, "-u", PORT, *options), server


@pytest.mark.parametrize("suite", SUITES)
def test_openssl_calls(processes, certificate, suite):
    client = called(processes, certificate, suite, "--min-dtls", "1.2",
                    "--fingerprint", fingerprint(certificate)).said("Extended master secret")
    for line in ("Protocol  : DTLSv1.2", f"Cipher    : {suite}", "Extended master secret: yes"):
        assert line in client.out, client.out
    # The connection is still open.
    assert client.popen.poll() is None


@pytest.mark.parametrize("suite", SUITES)
def test_openssl_is_called(processes, certificate, suite):
    _, server = calls(processes, certificate, suite, "--min-dtls", "1.2",
                      "--fingerprint", fingerprint(certificate))
    server.said(f"CIPHER is {suite}")
    # The decrypted INIT arrives, with the SCTP ports of `polypath send` at its beginning.
    start = len(server.out_path.read_bytes())
    wait_until(lambda: len(server.out_path.read_bytes()) > start + 20, 10,
               lambda: f"no data: {server.out_path.read_bytes()!r}", alive=server.popen)


def test_the_older_version_needs_leave(processes, certificate):
    sender, _ = calls(processes, certificate, SUITES[0])
    sender.wait().complains("has no DTLS 1.3", "--min-dtls 1.2", within=5)


def test_a_caller_with_the_older_version_needs_leave(processes, certificate):
    ended = called(processes, certificate, SUITES[0]).wait()
    assert ended.code != 0
    assert "alert protocol version" in ended.err, ended.err
    processes.all[0].said("--min-dtls 1.2")


def test_another_certificate_is_refused(processes, certificate):
    sender, _ = calls(processes, certificate, SUITES[0], "--min-dtls", "1.2",
                      "--fingerprint", "0123-4567-89ab-cdef-0123")
    sender.wait().complains("is not the expected host", within=5)


def test_without_extended_master_secret_nothing_comes_up(processes, certificate, tmp_path):
    """RFC 7627 5.3."""
    config = tmp_path / "openssl.cnf"
    config.write_text(WITHOUT_EXTENDED_MASTER_SECRET)
    client = called(processes, certificate, SUITES[0], "--min-dtls", "1.2",
                    env={"OPENSSL_CONF": str(config)})
    ended = client.wait()
    assert ended.code != 0
    assert "alert insufficient security" in ended.err, ended.err
