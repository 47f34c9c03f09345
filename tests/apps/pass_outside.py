# SPDX-License-Identifier: GPL-2.0
"""pass_outside.py RING3 NODE OTHER - a process outside the nodes gets sockets of theirs.

Runs itself on nodes, with a unix socket that it has made; prints what happens.
"""
import os
import socket
import subprocess
import sys
import tempfile
import time


def connection():
    """A TCP connection within the node."""
    s = socket.socket()
    s.bind(('127.0.0.1', 0))
    s.listen(1)
    c = socket.create_connection(s.getsockname())
    return c, s.accept()[0]


def end(c):
    c.settimeout(10)
    try:
        return 'data' if c.recv(10) else 'end'
    except OSError as e:
        return type(e).__name__


def inside(what, argument):
    if what == 'named':
        u = socket.socket(socket.AF_UNIX)
        u.connect(argument)
        c, _ = connection()
        try:
            socket.send_fds(u, [b'x'], [c.fileno()])
            print('sent', flush=True)
        except OSError as e:
            print(e.strerror, flush=True)
        # What is no descriptor of the node's passes.
        socket.send_fds(u, [b'x'], [0])
        print('host descriptor sent', flush=True)
        return
    u = socket.socket(fileno=int(argument))
    if what == 'send':
        c, far = connection()
        # Whoever closes this end without reading resets the connection.
        far.sendall(b'from the far side')
        socket.send_fds(u, [b'x'], [c.fileno()])
        c.close()
        print(end(far), flush=True)
    else:
        fds = socket.recv_fds(u, 10, 4)[1]
        for fd in fds:
            s = socket.socket(fileno=fd)
            print('received', s.family.name, flush=True)
            if s.family == socket.AF_INET:
                print(s.recv(100).decode(), flush=True)
        print(len(fds), 'descriptors', flush=True)


def start(node, what, argument, fds=()):
    return subprocess.Popen([ring3, 'exec', node, '--', sys.executable, __file__, what,
                             str(argument)], pass_fds=fds, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def show(p):
    out, err = p.communicate(timeout=30)
    print(out, end='')
    for line in err.splitlines():
        print('stderr:', ' '.join('PID' if w.isdigit() else w for w in line.split()))


def ticket():
    """Something that a process of the node has passed us, and that process."""
    a, b = socket.socketpair()
    p = start(node, 'send', b.fileno(), [b.fileno()])
    b.close()
    fd = socket.recv_fds(a, 10, 4)[1][0]
    return p, socket.socket(fileno=fd)


def outside():
    print('a name, and a server outside')
    with tempfile.TemporaryDirectory() as folder:
        l = socket.socket(socket.AF_UNIX)
        l.bind(folder + '/s')
        l.listen(1)
        p = start(node, 'named', folder + '/s')
        u, _ = l.accept()
        show(p)
        print(len(socket.recv_fds(u, 10, 4)[1]), 'received')

    print('a pair')
    p, t = ticket()
    print(t.family.name, t.recv(10))
    t.send(b'hello')
    time.sleep(0.3)
    try:
        t.send(b'hello')
        print('sent')
    except OSError as e:
        print(type(e).__name__)
    show(p)

    print('closed unused')
    p, t = ticket()
    t.close()
    show(p)

    print('passed on, twice')
    for way in (node, node), (other,):
        p, t = ticket()
        for to in way:
            a, b = socket.socketpair()
            socket.send_fds(a, [b'x'], [t.fileno()])
            show(start(to, 'receive', b.fileno(), [b.fileno()]))
        t.close()
        show(p)


if len(sys.argv) == 3:
    inside(*sys.argv[1:])
else:
    ring3, node, other = sys.argv[1:]
    outside()
