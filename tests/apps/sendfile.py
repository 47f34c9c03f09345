# SPDX-License-Identifier: GPL-2.0
"""Pieces of a file by sendfile(), asked for by clients who know what is in it.

sendfile.py serve FILE PORT       three forked workers; one of them has executed itself again
sendfile.py ask FILE HOST PORT N  eight clients ask for N random pieces each and compare
"""
import os
import random
import socket
import struct
import sys
import threading

ASK = struct.Struct("!QQ")


def all_of(connection, count):
    data = bytearray()
    while len(data) < count:
        more = connection.recv(min(count - len(data), 1 << 20))
        if not more:
            raise EOFError(f"{len(data)} of {count} bytes")
        data += more
    return data


def answer(connection, file):
    with connection:
        while True:
            try:
                offset, count = ASK.unpack(all_of(connection, ASK.size))
            except EOFError:
                return
            while count:
                sent = os.sendfile(connection.fileno(), file, offset, count)
                offset += sent
                count -= sent


def work(listener, path):
    file = os.open(path, os.O_RDONLY)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, file), daemon=True).start()


def serve(path, port):
    listener = socket.create_server(("", int(port)), backlog=64)
    for worker in range(3):
        if os.fork():
            continue
        if worker == 0:
            os.set_inheritable(listener.fileno(), True)
            os.execv(sys.executable, [sys.executable, __file__, "work", path, str(listener.fileno())])
        work(listener, path)
    os.wait()


def client(number, data, address, count, bad):
    dice = random.Random(number)
    try:
        with socket.create_connection(address, timeout=50) as connection:
            for _ in range(count):
                size = dice.choice((100, 4096, 32768, 65536, 70001, 300000, 1000000))
                offset = dice.randrange(len(data) - size)
                connection.sendall(ASK.pack(offset, size))
                if all_of(connection, size) != data[offset:offset + size]:
                    bad.append(f"client {number}: {size} bytes at {offset} are others")
    except OSError as why:
        bad.append(f"client {number}: {why}")


def ask(path, host, port, count):
    with open(path, "rb") as file:
        data = file.read()
    bad = []
    clients = [threading.Thread(target=client, args=(n, data, (host, int(port)), int(count), bad))
               for n in range(8)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    sys.exit("\n".join(bad) or 0)


if sys.argv[1] == "work":
    work(socket.socket(fileno=int(sys.argv[3])), sys.argv[2])
elif sys.argv[1] == "serve":
    serve(*sys.argv[2:])
else:
    ask(*sys.argv[2:])
