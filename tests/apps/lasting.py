# SPDX-License-Identifier: GPL-2.0
"""Programs that last: each in its own way, until it is ended."""
import os, select, signal, socket, sys, time

how = sys.argv[1]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
if how in ("deaf", "spins", "waits"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if how == "other":
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print(os.getpid(), flush=True)
if how == "receives":
    s.recv(1)
elif how == "spins":
    poll = select.epoll()
    poll.register(s, select.EPOLLIN)
    while True:
        try:
            poll.poll(0.1)
        except OSError:
            pass
elif how == "waits":
    while True:
        try:
            s.recv(1)
        except OSError:
            time.sleep(0.01)
elif how == "headless":
    # Its first thread ends before the other, when it is traced.
    import ctypes, threading
    threading.Thread(target=s.recv, args=(1,)).start()
    while not any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in open("/proc/self/status")):
        time.sleep(0.01)
    ctypes.CDLL(None).syscall(60, 0)
else:
    r, w = os.pipe()
    os.read(r, 1)
