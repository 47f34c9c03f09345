# SPDX-License-Identifier: GPL-2.0
"""pass_storm.py ROUNDS - sockets in messages that go wrong in all ways; waits for a line, ends.

Processes are killed while they send and receive, messages are dropped, looked at only, or
received without room. Prints what /proc/net/sockstat says of TCP before and after.
"""
import array
import os
import random
import signal
import socket
import sys


def in_use():
    for line in open('/proc/net/sockstat'):
        if line.startswith('sockets:'):
            return int(line.split()[2])


def busy(u, fds):
    """Sends and receives until it is killed."""
    while True:
        socket.send_fds(u, [b'x'], fds)
        _, got, _, _ = socket.recv_fds(u, 10, 8)
        for fd in got:
            os.close(fd)


def one_round(number):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fds = [socket.socket(socket.AF_INET, kind) for kind in
           (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
    numbers = [f.fileno() for f in fds]
    way = number % 6
    if way == 0:        # killed in the middle
        pids = []
        for u in a, b:
            pid = os.fork()
            if not pid:
                busy(u, numbers)
            pids.append(pid)
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 0.02))
        signal.sigwait([signal.SIGALRM])
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
    elif way == 1:      # never received
        for _ in range(20):
            socket.send_fds(a, [b'x'], numbers)
    elif way == 2:      # no room
        socket.send_fds(a, [b'x'], numbers)
        b.recv(1)
    elif way == 3:      # looked at, then dropped
        socket.send_fds(a, [b'x'], numbers)
        for _ in range(3):
            _, ancillary, _, _ = b.recvmsg(1, socket.CMSG_LEN(8), socket.MSG_PEEK)
            got = array.array('i', ancillary[0][2])
            for fd in got:
                os.close(fd)
    elif way == 4:      # cannot be sent
        a.setblocking(False)
        try:
            while True:
                socket.send_fds(a, [b'x' * 1000], numbers)
        except BlockingIOError:
            pass
    else:               # received by a child that execs
        socket.send_fds(a, [b'x'], numbers)
        pid = os.fork()
        if not pid:
            _, got, _, _ = socket.recv_fds(b, 10, 8)
            for fd in got:
                os.set_inheritable(fd, True)
            os.execvp('true', ['true'])
        os.waitpid(pid, 0)
    for s in a, b, *fds:
        s.close()


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
before = in_use()
for n in range(int(sys.argv[1])):
    one_round(n)
print(before, flush=True)
sys.stdin.readline()
print(in_use(), flush=True)
