# SPDX-License-Identifier: GPL-2.0
"""A terminal, a shell in it, and in that `ring3 run -- bash`, which suspends itself and is fetched back."""
import os, pty, select, sys, time

pid, terminal = pty.fork()
if not pid:
    os.environ["PS1"] = ""
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
heard = b""

def wait_for(words, seconds=20):
    global heard
    end = time.monotonic() + seconds
    while words not in heard:
        if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit(f"waited for {words!r}, heard {heard!r}")
        heard += os.read(terminal, 4096)
    heard = heard.split(words, 1)[1]

def say(line):
    os.write(terminal, line.encode() + b"\n")

# What is typed comes back as an echo: so the words that are waited for are not typed as they are.
say("echo outer-$((20 + 1))")
wait_for(b"outer-21")
say(f"{sys.argv[1]} run -- bash --norc --noprofile -i")
say("echo inner-$((30 + 1))")
wait_for(b"inner-31")
for turn in range(2):
    say("suspend")
    time.sleep(1)
    say(f"echo outer-$((40 + {turn}))")
    wait_for(b"outer-%d" % (40 + turn))
    say("fg")
    time.sleep(0.5)
    say(f"echo inner-$((50 + {turn})) $(cat /proc/net/dev | wc -l)")
    wait_for(b"inner-%d 3" % (50 + turn))
say("exit 7")
say("echo ended-$?")
wait_for(b"ended-7")
print("well")
os.kill(pid, 9)
