"""freeDiameter's configuration, which nextepc's daemons have, too."""

import subprocess
from pathlib import Path

REALM = "localdomain"


def identity(name: str) -> str:
    return f"{name}.{REALM}"


def configured(folder: Path, name: str, peer: str, address: str | None, *lines: str) -> Path:
    """The configuration of a peer over SCTP alone, which connects to another one that has an address. It needs a
    certificate even if it encrypts nothing."""
    key, certificate, path = (folder / f"{name}.{end}" for end in ("key", "pem", "conf"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", f"/CN={identity(name)}"], check=True, capture_output=True)
    connect = f'ConnectTo = "{address}"; ' if address else ""
    path.write_text("\n".join([
        f'Identity = "{identity(name)}";', f'Realm = "{REALM}";', "No_TCP;", "TcTimer = 2;", "TwTimer = 6;",
        f'TLS_Cred = "{certificate}", "{key}";', f'TLS_CA = "{certificate}";', *lines,
        f'ConnectPeer = "{identity(peer)}" {{ No_TLS; {connect}}};', ""]))
    return path


def opened(peer: str) -> str:
    """What a daemon writes once it has exchanged capabilities with a peer."""
    return f"-> 'STATE_OPEN'\t'{identity(peer)}'"
