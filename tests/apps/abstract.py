# SPDX-License-Identifier: GPL-2.0
"""abstract.py serve NAME: listens and says "ready", answers "hello", for ever; abstract.py ask NAME: prints the answer, or why there is none."""
import socket
import sys

s = socket.socket(socket.AF_UNIX)
name = "\0" + sys.argv[2]
if sys.argv[1] == "ask":
    try:
        s.connect(name)
        print(s.recv(10).decode())
    except OSError as error:
        print(error.strerror)
else:
    try:
        s.bind(name)
    except OSError as error:
        sys.exit(error.strerror)
    s.listen()
    print("ready", flush=True)
    while True:
        s.accept()[0].send(b"hello")
