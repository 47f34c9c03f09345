# SPDX-License-Identifier: GPL-2.0
"""dask.py ADDRESS - runs commands on the workers of a Dask cluster, for `ring3 sim --dask`

Reads requests and writes answers, each a line of JSON; the first line says who the workers are.

    {"id": 1, "run": [WORD, ...]}                    a command, on any worker
    {"id": 2, "each": [WORD, ...], "folder": PATH}   on each worker, one after the other; a hash of what it leaves in the folder

The folder is one that all workers and the asking machine see under the same name. A command that did not come to an end has the status null,
and the reason instead of its standard error.
"""

import json
import sys
import threading


def run(words):
    import subprocess

    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as why:
        return {"status": None, "stderr": f"cannot start {words[0]}: {why.strerror}"}
    return {"status": done.returncode, "stderr": done.stderr.decode(errors="replace")}


def run_and_hash(words, folder):
    import hashlib
    import os
    import shutil

    done = run(words)
    # A run that came to its end leaves this, however its processes ended.
    if not os.path.exists(os.path.join(folder, "result.json")):
        return {**done, "hash": None}
    whole = hashlib.sha256()
    for top, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(top, name)
            whole.update(os.path.relpath(path, folder).encode() + b"\0")
            with open(path, "rb") as file:
                whole.update(hashlib.sha256(file.read()).digest())
    shutil.rmtree(folder, ignore_errors=True)
    return {**done, "hash": whole.hexdigest()}


def main():
    try:
        from distributed import Client
    except ImportError:
        sys.exit("Dask's `distributed' is missing: apt install python3-distributed, or pip install distributed")
    try:
        client = Client(sys.argv[1], timeout=10)
    except (OSError, ValueError) as why:
        sys.exit(f"no scheduler at {sys.argv[1]}: {why}")
    lock = threading.Lock()

    def say(answer):
        with lock:
            print(json.dumps(answer), flush=True)

    def tell(number, future):
        try:
            say({"id": number, **future.result()})
        except Exception as why:  # Whatever a worker, its network or its Python has to complain of.
            say({"id": number, "status": None, "stderr": f"a worker failed: {why!r}"})

    workers = client.scheduler_info(n_workers=-1)["workers"] if has_limit(client) else client.scheduler_info()["workers"]
    say({"workers": sorted(workers), "threads": sum(worker["nthreads"] for worker in workers.values())})
    for line in sys.stdin:
        request = json.loads(line)
        number = request["id"]
        if "run" in request:
            future = client.submit(run, request["run"], pure=False)
            future.add_done_callback(lambda future, number=number: tell(number, future))
            continue
        each = []
        for worker in sorted(workers):
            future = client.submit(run_and_hash, request["each"], request["folder"], workers=[worker], pure=False)
            try:
                each.append({"worker": worker, **future.result()})
            except Exception as why:
                each.append({"worker": worker, "status": None, "stderr": f"it failed: {why!r}", "hash": None})
        say({"id": number, "each": each})


def has_limit(client):
    """Newer versions tell of five workers unless asked for all."""
    import inspect

    return "n_workers" in inspect.signature(client.scheduler_info).parameters


main()
