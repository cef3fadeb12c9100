"""Reads captures with tshark, an independent implementation of SCTP."""

import subprocess
from pathlib import Path

# "TRUE" would be accepted but verify nothing.
CHECKSUMS = ["-o", "sctp.checksum:CRC 32c"]
GOOD = "1"
WRONG = 'sctp.checksum.status == "Bad" || _ws.malformed || _ws.expert.severity == error'


def _tshark(file: Path, ports: tuple[int, ...], *words: str, protocol: str = "sctp") -> list[str]:
    decode = [word for port in ports for word in ("-d", f"udp.port=={port},{protocol}")]
    done = subprocess.run(["tshark", "-n", "-r", str(file), *CHECKSUMS, *decode, *words],
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def fields(file: Path, names: list[str], only: str = "",
           ports: tuple[int, ...] = (9899,), protocol: str = "sctp") -> list[list[str]]:
    """These fields of each packet that matches the filter, with this protocol in UDP."""
    words = [word for name in names for word in ("-e", name)]
    rows = _tshark(file, ports, "-T", "fields", *words, *(["-Y", only] if only else []),
                   protocol=protocol)
    return [row.split("\t") for row in rows]


def decrypted(file: Path, secrets: Path, only: str) -> list[bytes]:
    """The plaintexts of DTLS records; `secrets` is an NSS key log."""
    rows = _tshark(file, (9899,), "-o", f"tls.keylog_file:{secrets}", "-d", "dtls.port==9899,data",
                   "-T", "fields", "-e", "data.data", "-Y", f"data && ({only})", protocol="dtls")
    return [bytes.fromhex(record) for row in rows for record in row.split(",")]


def assert_sound(file: Path, ports: tuple[int, ...] = (9899,), at_least: int = 1,
                 only: str = "") -> list[str]:
    """Check that every packet (that matches the filter) is well-formed SCTP with the right CRC32c, and return
    the chunk types. ICMP messages, which quote the beginning of a packet, are left out: a host whose raw
    socket is full reports that it does not support SCTP."""
    only = f"!icmp && !icmpv6 && ({only})" if only else "!icmp && !icmpv6"
    wrong = _tshark(file, ports, "-Y", f"({WRONG}) && {only}")
    assert not wrong, "\n".join(wrong[:5])
    rows = fields(file, ["sctp.checksum.status", "sctp.chunk_type"], only, ports)
    rows = ["\t".join(row) for row in rows]
    assert len(rows) >= at_least, f"only {len(rows)} packets"
    states = {row.split("\t")[0] for row in rows}
    assert states == {GOOD}, f"status of the checksums: {states}"
    return [kind for row in rows for kind in row.split("\t")[1].split(",")]
