"""Reading captures with tshark, which knows SCTP from elsewhere than we do."""

import subprocess
from pathlib import Path

# "TRUE" would be taken and verify nothing.
CHECKSUMS = ["-o", "sctp.checksum:CRC 32c"]
GOOD = "1"
WRONG = 'sctp.checksum.status == "Bad" || _ws.malformed || _ws.expert.severity == error'


def _tshark(file: Path, ports: tuple[int, ...], *words: str) -> list[str]:
    decode = [word for port in ports for word in ("-d", f"udp.port=={port},sctp")]
    done = subprocess.run(["tshark", "-n", "-r", str(file), *CHECKSUMS, *decode, *words],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def assert_sound(file: Path, ports: tuple[int, ...] = (9899,), at_least: int = 1) -> list[str]:
    """Every packet is SCTP, is well-formed and has the right CRC32c; returns the chunk types."""
    wrong = _tshark(file, ports, "-Y", WRONG)
    assert not wrong, "\n".join(wrong[:5])
    rows = _tshark(file, ports, "-T", "fields", "-e", "sctp.checksum.status", "-e", "sctp.chunk_type")
    assert len(rows) >= at_least, f"only {len(rows)} packets"
    states = {row.split("\t")[0] for row in rows}
    assert states == {GOOD}, f"status of the checksums: {states}"
    return [kind for row in rows for kind in row.split("\t")[1].split(",")]
