# SPDX-License-Identifier: GPL-2.0
"""Asks a server without end and looks at every byte of its answers (src/apps/neighbours.rs).

check.py http ADDRESS PORT FILE     fetches /large, which has to hold what FILE does
check.py redis ADDRESS PORT SEED    sets keys and gets them

Says "." when it got on (20 ms apart at least), and ends with "corrupt ...", "poisoned" or
"failed ...". A server that hangs up, or is not there, is nothing special.
"""
import errno
import random
import socket
import sys
import time

GONE = (ConnectionError, TimeoutError, socket.timeout)
last = 0


def end(status, words):
    print(words, flush=True)
    sys.exit(status)


def tick():
    global last
    if time.monotonic() > last + 0.02:
        last = time.monotonic()
        print('.', flush=True)


def fetch(stream, wanted):
    stream.write(b'GET /large HTTP/1.1\r\nHost: x\r\n\r\n')
    stream.flush()
    head = stream.readline()
    if not head:
        raise ConnectionError
    if not head.startswith(b'HTTP/1.1 200'):
        end(9, f'corrupt head: {head}')
    length = 0
    while line := stream.readline().strip():
        if line.lower().startswith(b'content-length:'):
            length = int(line.split()[1])
    body = stream.read(length)
    if body != wanted[:len(body)] or length not in (0, len(wanted)):
        end(9, f'corrupt: {len(body)} of {length} bytes')
    if len(body) < len(wanted):
        raise ConnectionError


def set_and_get(stream, rng):
    key, value = rng.randrange(100), rng.randbytes(rng.choice((10, 1000, 100000)))
    text = value.hex().encode()
    for words in (b'SET', b'own%d' % key, text), (b'GET', b'own%d' % key):
        stream.write(b'*%d\r\n' % len(words))
        for word in words:
            stream.write(b'$%d\r\n%s\r\n' % (len(word), word))
    stream.flush()
    if not (said := stream.readline()):
        raise ConnectionError
    if said != b'+OK\r\n':
        end(9, f'corrupt: {said[:40]}')
    if not (said := stream.readline()):
        raise ConnectionError
    if said != b'$%d\r\n' % len(text):
        end(9, f'corrupt: {said[:40]}')
    got = stream.read(len(text) + 2)
    if got != (text + b'\r\n')[:len(got)]:
        end(9, 'corrupt value')
    if len(got) < len(text) + 2:
        raise ConnectionError


def main():
    kind, address, port, last_word = sys.argv[1:]
    if kind == 'http':
        with open(last_word, 'rb') as file:
            once = (fetch, file.read())
    else:
        once = (set_and_get, random.Random(int(last_word)))
    while True:
        try:
            with socket.create_connection((address, int(port)), timeout=2) as s:
                stream = s.makefile('rwb')
                while True:
                    once[0](stream, once[1])
                    tick()
        except GONE:
            time.sleep(0.01)
        except OSError as error:
            if error.errno == errno.EIO:
                end(5, 'poisoned')
            if error.errno not in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL):
                end(1, f'failed: {error}')
            time.sleep(0.01)


main()
