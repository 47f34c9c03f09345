# SPDX-License-Identifier: GPL-2.0
"""What a `host` port has to carry across: `gateway.py serve ADDRESS...` on the host, `gateway.py ask ADDRESS` anywhere.

`ask` prints a line for each question, the same wherever it runs.
"""

import errno
import hashlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import time

SUM, GIVE, RESET, HEAR, HEARD, NOBODY, ECHO, DEAF = range(7001, 7009)
SIZE = 10_000_000
PATIENCE = 20
BYTES = bytes(i * i * 7 % 251 for i in range(65536)) * (SIZE // 65536 + 1)


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def read_all(sock):
    parts = hashlib.sha256()
    count = 0
    while data := sock.recv(1 << 16):
        parts.update(data)
        count += len(data)
    return f"{count} {parts.hexdigest()[:16]}"


class Server:
    def __init__(self):
        self.heard = {}
        self.deaf = []

    def sum(self, sock, peer):
        sock.sendall(f"{read_all(sock)} from {peer[0].removeprefix('::ffff:')}".encode())

    def give(self, sock, _):
        sock.sendall(BYTES[:SIZE])

    def reset(self, sock, _):
        sock.recv(1)
        reset(sock)

    def hear(self, sock, _):
        name = sock.recv(8)
        try:
            sock.recv(1)
            self.heard[name] = b"an end"
        except OSError as why:
            self.heard[name] = errno.errorcode[why.errno].encode()

    def tell(self, sock, _):
        name = sock.recv(8)
        end = time.time() + PATIENCE
        while name not in self.heard and time.time() < end:
            time.sleep(0.01)
        sock.sendall(self.heard.get(name, b"nothing"))

    def listen(self, address, port, answer):
        both = {"family": socket.AF_INET6, "dualstack_ipv6": True} if address == "::" else {"family": family(address)}
        sock = socket.create_server((address, port), **both, backlog=512)
        threading.Thread(target=self.accept, args=(sock, answer), daemon=True).start()

    def accept(self, listener, answer):
        while True:
            sock, peer = listener.accept()
            if answer is None:
                self.deaf.append(sock)
                continue
            threading.Thread(target=self.attend, args=(sock, peer, answer), daemon=True).start()

    def attend(self, sock, peer, answer):
        with sock:
            try:
                answer(sock, peer)
            except OSError:
                pass

    def echo(self, address):
        sock = socket.socket(family(address), socket.SOCK_DGRAM)
        if address == "::":
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((address, ECHO))
        while True:
            data, peer = sock.recvfrom(65536)
            sock.sendto(data, peer)

    def serve(self, addresses):
        for address in addresses:
            self.listen(address, SUM, self.sum)
            self.listen(address, GIVE, self.give)
            self.listen(address, RESET, self.reset)
            self.listen(address, HEAR, self.hear)
            self.listen(address, HEARD, self.tell)
            self.listen(address, DEAF, None)
            threading.Thread(target=self.echo, args=(address,), daemon=True).start()
        print("ready", flush=True)
        signal.pause()


class Client:
    def __init__(self, address):
        self.address = address

    def connect(self, port):
        sock = socket.socket(family(self.address), socket.SOCK_STREAM)
        sock.settimeout(PATIENCE)
        sock.connect(self.place(port))
        return sock

    def place(self, port):
        """With the link that an address is of."""
        kind = socket.SOCK_STREAM
        return socket.getaddrinfo(self.address, port, family(self.address), kind, 0, socket.AI_NUMERICHOST)[0][4]

    def up(self):
        """All bytes arrive; the server hears the end, and its answer comes after it."""
        with self.connect(SUM) as sock:
            sock.sendall(BYTES[:SIZE])
            sock.shutdown(socket.SHUT_WR)
            return sock.recv(100).decode()

    def down(self):
        with self.connect(GIVE) as sock:
            return read_all(sock)

    def is_reset(self):
        with self.connect(RESET) as sock:
            sock.sendall(b"x")
            return f"{sock.recv(1)}"

    def resets(self):
        name = os.urandom(8)
        sock = self.connect(HEAR)
        sock.sendall(name)
        time.sleep(0.2)
        reset(sock)
        with self.connect(HEARD) as sock:
            sock.sendall(name)
            return sock.recv(100).decode()

    def refused(self):
        self.connect(NOBODY)
        return "connected"

    def unreachable(self):
        """The host has no way there."""
        self.address = "240.0.0.1" if ":" not in self.address else "2001:db8:1::1"
        self.connect(NOBODY)
        return "connected"

    def echo(self):
        """A hundred datagrams of different lengths, from two sockets."""
        socks = [socket.socket(family(self.address), socket.SOCK_DGRAM) for _ in range(2)]
        missing = 0
        for sock in socks:
            sock.settimeout(PATIENCE)
            sock.connect((self.address, ECHO))
        for i in range(100):
            for mine, sock in enumerate(socks):
                data = bytes([mine]) + BYTES[: i * 90]
                sock.send(data)
                missing += sock.recv(65536) != data
        return f"{missing} missing"

    def no_echo(self):
        """Nobody is at the port: the datagram's sender hears it."""
        sock = socket.socket(family(self.address), socket.SOCK_DGRAM)
        sock.settimeout(PATIENCE)
        sock.connect((self.address, NOBODY))
        sock.send(b"x")
        return f"{sock.recv(1)}"

    def pushes_back(self):
        """Who sends to one that does not read is stopped."""
        sock = self.connect(DEAF)
        sock.setblocking(False)
        sent, since = 0, time.time()
        while time.time() - since < 1 and sent < 400 << 20:
            try:
                sent += sock.send(BYTES)
                since = time.time()
            except BlockingIOError:
                time.sleep(0.01)
        return "stopped" if sent < 100 << 20 else "not stopped"

    def ask(self):
        for name in ["up", "down", "is_reset", "resets", "refused", "unreachable", "echo", "no_echo", "pushes_back"]:
            address = self.address
            try:
                said = getattr(self, name)()
            except OSError as why:
                said = errno.errorcode.get(why.errno, str(why))
            self.address = address
            print(f"{name}: {said}", flush=True)

    def tagged(self, tag):
        """Many datagrams whose answers are this asker's alone."""
        sock = socket.socket(family(self.address), socket.SOCK_DGRAM)
        sock.settimeout(PATIENCE)
        own = other = 0
        for i in range(500):
            sock.sendto(f"{tag} {i}".encode(), (self.address, ECHO))
            data = sock.recv(100).decode()
            own += data == f"{tag} {i}"
            other += not data.startswith(f"{tag} ")
        print(f"{own} answers, {other} of others'")


    def published(self, tcp, udp):
        """Asks a server that is the node's, and whom it takes the asker for."""
        with self.connect(tcp) as sock:
            print("a peer that is gone is", "noticed" if asks_for_life(tcp) else "not noticed")
            sock.sendall(BYTES[:SIZE])
            sock.shutdown(socket.SHUT_WR)
            print("tcp:", sock.recv(100).decode())
        sock = socket.socket(family(self.address), socket.SOCK_DGRAM)
        sock.settimeout(PATIENCE)
        for i in range(100):
            sock.sendto(BYTES[: i * 90], self.place(udp))
            assert sock.recv(65536) == BYTES[: i * 90]
        print("udp: echoed")

def asks_for_life(port):
    """Whether the host's end of a connection to this port has a timer of TCP's keepalive (2: /proc/net/tcp's `tr`)."""
    end = time.time() + PATIENCE
    while time.time() < end:
        for path in ["/proc/net/tcp", "/proc/net/tcp6"]:
            with open(path) as lines:
                for words in (line.split() for line in lines):
                    if words[1].endswith(f":{port:04X}") and words[3] == "01" and words[5].startswith("02:"):
                        return True
        time.sleep(0.05)
    return False


def inspect(pid):
    """What a process has: mappings of its kernel's text, and kinds of open files."""
    text, writable = [], []
    with open(f"/proc/{pid}/maps") as lines:
        for line in lines:
            place, rights, offset, _, _, *name = line.split()
            if not name or not name[0].startswith("/memfd:ring3:"):
                continue
            first, last = (int(word, 16) for word in place.split("-"))
            piece = (int(offset, 16), int(offset, 16) + last - first)
            if "x" in rights:
                text.append(piece)
            if "w" in rights and "s" in rights:
                writable.append(piece)
    overlaps = [w for w in writable for t in text if w[0] < t[1] and t[0] < w[1]]
    print(f"text: {len(text)} mapping, {len(overlaps)} can be written")
    kinds = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        name = os.readlink(f"/proc/{pid}/fd/{fd}")
        kinds.add("link" if "ring3-link" in name else name.partition(":[")[0] if ":[" in name and "anon" not in name else name)
    print("files:", *sorted(kinds))


# More than a datagram takes.
BIG = [f"198.51.100.{at}" for at in range(1, 60)] + ["203.0.113.7"]


def answer(query, room):
    """To a question; one of more than `room` bytes is cut off, and says so."""
    places = {
        b"\1a\7example\3org\0": ["203.0.113.7"],
        b"\3own\7example\3net\0": ["192.0.2.1"],
        b"\3big\7example\3org\0": BIG,
    }
    end = query.index(b"\0", 12) + 5
    is_a = query[end - 4 : end] == b"\0\1\0\1"
    found = places.get(query[12 : end - 4].lower(), ["192.0.2.77"]) if is_a else []
    records = [b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(place) for place in found]
    cut = end + sum(map(len, records)) > room
    head = query[:2] + bytes([0x81 | cut << 1, 0x80, 0, 1, 0, 0 if cut else len(records)]) + b"\0" * 4
    return head + query[12:end] + (b"" if cut else b"".join(records))


def resolve_by_tcp(listener):
    while True:
        sock, _ = listener.accept()
        with sock, sock.makefile("rb") as asked:
            while len(head := asked.read(2)) == 2:
                said = answer(asked.read(*struct.unpack(">H", head)), 65535)
                sock.sendall(struct.pack(">H", len(said)) + said)


def resolve():
    """The host's resolver: a.example.org is 203.0.113.7, own.example.net 192.0.2.1, big.example.org has 60 addresses, all
    other names 192.0.2.77."""
    listener = socket.create_server(("127.0.0.53", 53))
    threading.Thread(target=resolve_by_tcp, args=(listener,), daemon=True).start()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.53", 53))
    while True:
        query, peer = sock.recvfrom(2000)
        sock.sendto(answer(query, 512), peer)


def asks(server):
    """What a resolver says to a question about a name, by UDP and by TCP."""
    question = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\1c\7example\3org\0\0\1\0\1"
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(PATIENCE)
    sock.sendto(question, (server, 53))
    said = [sock.recv(2000)]
    with socket.create_connection((server, 53), PATIENCE) as sock, sock.makefile("rb") as heard:
        sock.sendall(struct.pack(">H", len(question)) + question)
        said.append(heard.read(*struct.unpack(">H", heard.read(2))))
    refused = ["refused" if it[:2] == question[:2] and it[3] & 15 == 5 else f"{it}" for it in said]
    print(*refused, "by TCP")


def read(path):
    """Lines of JSON about what was refused, each once."""
    seen = []
    for number, line in enumerate(open(path), 1):
        entry = json.loads(line)
        assert entry["event"] == "refused" and entry["number"] == number and entry["time"] > 1e9, entry
        what = f"{entry['what']} {entry['whom']}"
        if what not in seen:
            seen.append(what)
    print(*seen, sep="\n")


if sys.argv[1] == "serve":
    Server().serve(sys.argv[2:])
elif sys.argv[1] == "resolve":
    resolve()
elif sys.argv[1] == "asks":
    asks(sys.argv[2])
elif sys.argv[1] == "read":
    read(sys.argv[2])
elif sys.argv[1] == "inspect":
    inspect(sys.argv[2])
elif sys.argv[1] == "tagged":
    Client(sys.argv[2]).tagged(sys.argv[3])
elif sys.argv[1] == "published":
    Client(sys.argv[2]).published(int(sys.argv[3]), int(sys.argv[4]))
else:
    Client(sys.argv[2]).ask()
