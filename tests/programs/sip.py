"""A SIP client over a one-to-one SCTP socket: sends OPTIONS requests to ADDRESS and prints each status line.

usage: sip.py ADDRESS PORT COUNT
"""

import socket
import sys
import time

address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP) as client:
    client.settimeout(60)
    client.connect((address, port))
    own = "{}:{}".format(*client.getsockname())
    for number in range(count):
        lines = [f"OPTIONS sip:{address}:{port};transport=sctp SIP/2.0",
                 f"Via: SIP/2.0/SCTP {own};branch=z9hG4bK{number}", "Max-Forwards: 10",
                 f"From: <sip:client@{own}>;tag=1", f"To: <sip:{address}:{port}>", f"Call-ID: {number}@{own}",
                 f"CSeq: {number + 1} OPTIONS", "Content-Length: 0", "", ""]
        client.send("\r\n".join(lines).encode())
        print(number, client.recv(65536).partition(b"\r\n")[0].decode(), flush=True)
        time.sleep(0.2)
