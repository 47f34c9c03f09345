# SPDX-License-Identifier: GPL-2.0
"""Sockets between processes by all of Python's ways; prints one word for each that works."""
import array
import multiprocessing as mp
import os
import socket
import socketserver
import threading
from multiprocessing import reduction


def echo_client(port, text):
    with socket.create_connection(('127.0.0.1', port), timeout=20) as c:
        c.sendall(text)
        return c.recv(100)


def listener():
    s = socket.socket()
    s.bind(('127.0.0.1', 0))
    s.listen(16)
    return s, s.getsockname()[1]


def serve_handle(conn, n):
    """Gets accepted connections by number."""
    for _ in range(n):
        fd = reduction.recv_handle(conn)
        with socket.socket(fileno=fd) as c:
            c.sendall(c.recv(100).upper())


def serve_queue(queue):
    """Gets sockets as objects: from the other process's resource sharer, by its address."""
    while (c := queue.get()) is not None:
        with c:
            c.sendall(c.recv(100).upper())


def serve_accept(s):
    c, _ = s.accept()
    with c:
        c.sendall(c.recv(100).upper())


def handles(ctx):
    ours, theirs = ctx.Pipe()
    p = ctx.Process(target=serve_handle, args=(theirs, 5))
    p.start()
    s, port = listener()
    for i in range(5):
        got = []
        t = threading.Thread(target=lambda: got.append(echo_client(port, b'abc')))
        t.start()
        c, _ = s.accept()
        reduction.send_handle(ours, c.fileno(), p.pid)
        c.close()
        t.join()
        assert got == [b'ABC'], got
    p.join()
    assert p.exitcode == 0


def queues(ctx):
    q = ctx.Queue()
    p = ctx.Process(target=serve_queue, args=(q,))
    p.start()
    s, port = listener()
    for i in range(5):
        got = []
        t = threading.Thread(target=lambda: got.append(echo_client(port, b'abc')))
        t.start()
        c, _ = s.accept()
        q.put(c)
        t.join()
        c.close()
        assert got == [b'ABC'], got
    q.put(None)
    p.join()
    assert p.exitcode == 0


def arguments(ctx):
    s, port = listener()
    p = ctx.Process(target=serve_accept, args=(s,))
    p.start()
    assert echo_client(port, b'arg') == b'ARG'
    p.join()
    assert p.exitcode == 0


def send_fds():
    a, b = socket.socketpair()
    s, port = listener()
    r, w = os.pipe()
    if os.fork() == 0:
        _, fds, _, _ = socket.recv_fds(b, 10, 3)
        os.write(fds[1], b'x')
        serve_accept(socket.socket(fileno=fds[0]))
        os._exit(0)
    socket.send_fds(a, [b'go'], [s.fileno(), w])
    assert os.read(r, 1) == b'x'
    assert echo_client(port, b'fds') == b'FDS'
    assert os.wait()[1] == 0


if __name__ == '__main__':
    send_fds()
    print('send_fds', flush=True)
    for method in 'fork', 'spawn', 'forkserver':
        ctx = mp.get_context(method)
        for test in handles, queues, arguments:
            test(ctx)
            print(method, test.__name__, flush=True)
