# SPDX-License-Identifier: GPL-2.0
"""A file that goes into a socket by sendfile(), and what keeps its bytes off the wire.

secret.py serve FILE PORT HOW [SHIELD]   one client; SHIELD is a shell command between accept() and sendfile()
secret.py ask HOST PORT HOW              connects and reads for ever

HOW: plain; tls: kernel TLS encrypts it; queued: the client does not read, so most of it is never sent.
"""
import os
import socket
import struct
import subprocess
import sys
import time

SO_SNDBUFFORCE, TCP_ULP, SOL_TLS, TLS_TX = 32, 31, 282, 1
TLS_1_2, TLS_CIPHER_AES_GCM_128 = 0x0303, 51


def encrypt(connection):
    key = struct.pack("HH8s16s4s8s", TLS_1_2, TLS_CIPHER_AES_GCM_128, b"i" * 8, b"k" * 16, b"s" * 4, bytes(8))
    connection.setsockopt(socket.SOL_TCP, TCP_ULP, b"tls")
    connection.setsockopt(SOL_TLS, TLS_TX, key)


def serve(path, port, how, shield=None):
    file = os.open(path, os.O_RDONLY)
    os.pread(file, 1 << 20, 0)
    listener = socket.create_server(("", int(port)))
    listener.settimeout(20)
    connection, _ = listener.accept()
    if how == "tls":
        encrypt(connection)
    connection.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 4 << 20)
    if shield:
        subprocess.run(["sh", "-ec", shield], check=True)
    connection.setblocking(False)
    sent, size = 0, os.fstat(file).st_size
    while sent < size:
        try:
            sent += os.sendfile(connection.fileno(), file, sent, size - sent)
        except BlockingIOError:
            break
    if sent < size:
        sys.exit(f"the socket took {sent} bytes only")
    time.sleep(0.5)
    print("sent", flush=True)
    time.sleep(30)


def ask(host, port, how):
    connection = socket.socket()
    if how == "queued":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((host, int(port)))
    while how != "queued" and connection.recv(1 << 20):
        pass
    time.sleep(30)


{"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
