// SPDX-License-Identifier: GPL-2.0
//! Another configuration while connections come and go.

use super::*;

#[test]
fn a_reload_loses_no_connection() {
    let place = nodes();
    let targets = [target("x").to_string(), target("x").to_string()];
    let text = |to: &str, more: &str| {
        format!("on = \"a\"\n[[listener]]\nlisten = \"tcp:80\"\nto = [{to}]\n{more}")
    };
    let one = format!("\"{}\"", targets[0]);
    let two = format!(
        "\"{}\", {{ to = \"{}\", weight = 3 }}",
        targets[0], targets[1]
    );
    let more = format!("[[listener]]\nlisten = \"tcp:81\"\nto = [{one}]\n");
    let path = file(&place, &text(&one, ""));
    let proxy = Proxy::start(&place, &[&path], &["80"]);
    // Connections one after the other, and one for the whole time, until it is told to stop.
    let script = "
import select, socket, sys
def say(s, text):
    s.sendall(text)
    got = b''
    while len(got) < len(text): got += s.recv(100) or sys.exit('the end came early')
    assert got == text, got
def start():
    s = socket.create_connection(('192.0.2.1', 80), timeout=30)
    assert s.recv(1) == b'x'
    return s
long, count = start(), 0
print('ready', flush=True)
while not select.select([0], [], [], 0)[0]:
    with start() as s: say(s, b'hello %d' % count)
    say(long, b'long %d' % count)
    count += 1
print(count)
";
    let mut child = spawn(
        place
            .command(&["exec", "b", "python3", "-c", script])
            .stdin(Stdio::piped()),
    );
    let mut ready = [0; 6];
    let mut output = child.stdout.take().expect("a pipe");
    output.read_exact(&mut ready).expect("a line");
    for (to, more) in [(&two, ""), (&one, &more[..]), (&two, &more), (&one, "")].repeat(3) {
        fs::write(&path, text(to, more)).expect("write");
        place.ok(&["proxy", "reload", "a"]);
    }
    // What is wrong changes nothing.
    fs::write(&path, text("\"nonsense\"", "")).expect("write");
    place.fails(
        &["proxy", "reload", "a"],
        1,
        "line 4, column 7: `nonsense` is no target",
    );
    // Nor does what the node can't have.
    let impossible = "[[listener]]\nlisten = \"tcp:203.0.113.9:82\"\nto = [\"127.0.0.1:1\"]\n";
    let other = format!(
        "on = \"a\"\n{impossible}{}",
        impossible.replace("203.0.113.9:82", "81")
    );
    fs::write(&path, other).expect("write");
    place.fails(&["proxy", "reload", "a"], 1, "203.0.113.9:82");
    let refused = place.run(&["connect", "b", ADDRESS, "81"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("refused"), "{said}");
    drop(child.stdin.take());
    let mut count = String::new();
    output.read_to_string(&mut count).expect("a line");
    let ended = finish(child);
    assert!(ended.status.success(), "{ended:?}");
    assert!(count.trim().parse::<u32>().expect("a number") > 0);
    let said = proxy.end();
    assert!(said.contains("the configuration is as it was"), "{said}");
}

/// The file is read beside the loop, as names are looked up: clients come and go meanwhile.
#[test]
fn a_file_that_is_slow_stops_nobody() {
    let place = nodes();
    let to = target("x:");
    let text = format!("on = \"a\"\n[[listener]]\nlisten = \"tcp:80\"\nto = [\"{to}\"]\n");
    let path = file(&place, &text);
    let proxy = Proxy::start(&place, &[&path], &["80"]);
    fs::remove_file(&path).expect("removed");
    nix::unistd::mkfifo(&*path, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let asker = spawn(&mut place.command(&["proxy", "reload", "a"]));
    // Opens once the proxy has.
    let mut slow = fs::File::options().write(true).open(&path).expect("opens");
    for _ in 0..3 {
        assert_eq!(says(&place, "80", "hello"), "x:hello");
    }
    slow.write_all(text.as_bytes()).expect("write");
    drop(slow);
    let said = finish(asker);
    assert!(said.status.success(), "{said:?}");
    assert_eq!(proxy.end(), "");
}

/// From all addresses to one and back: no SYN is refused in between.
#[test]
fn a_listener_that_moves_is_never_away() {
    let place = nodes();
    let to = target("x");
    let text = |listen: &str| {
        format!("on = \"a\"\n[[listener]]\nlisten = \"{listen}\"\nto = [\"{to}\"]\n")
    };
    let path = file(&place, &text("tcp:80"));
    let proxy = Proxy::start(&place, &[&path], &["80"]);
    // A handshake that was on its way when the old socket closed ends with a reset.
    let script = "
import select, socket
heard = refused = 0
print('ready', flush=True)
while not select.select([0], [], [], 0)[0]:
    try:
        with socket.create_connection(('192.0.2.1', 80), timeout=60) as s: heard += s.recv(1) == b'x'
    except ConnectionResetError: pass
    except ConnectionRefusedError: refused += 1
print(heard > 0, refused)
";
    let mut child = spawn(
        place
            .command(&["exec", "b", "python3", "-c", script])
            .stdin(Stdio::piped()),
    );
    let mut output = child.stdout.take().expect("a pipe");
    output.read_exact(&mut [0; 6]).expect("a line");
    for listen in ["tcp:192.0.2.1:80", "tcp:80"].repeat(6) {
        fs::write(&path, text(listen)).expect("write");
        place.ok(&["proxy", "reload", "a"]);
    }
    // One that the node can't have leaves the old one as it was, for itself alone.
    fs::write(&path, text("tcp:192.0.2.9:80")).expect("write");
    place.fails(&["proxy", "reload", "a"], 1, "192.0.2.9:80");
    let second = [
        "proxy", "--on", "a", "--name", "other", "--listen", "tcp:80",
    ];
    let second = [&second[..], &["--to", "127.0.0.1:1"]].concat();
    place.fails(&second, 1, "cannot listen on tcp:80");
    drop(child.stdin.take());
    let mut said = String::new();
    output.read_to_string(&mut said).expect("a line");
    finish(child);
    assert_eq!(said, "True 0\n");
    // Nor can another program that shares its port have a part of the clients.
    let sharer = "
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
try: s.bind(('192.0.2.1', 80))
except OSError as why: print(why.strerror)
else: print('bound')
";
    let shares = place.ok(&["exec", "a", "python3", "-c", sharer]);
    assert_eq!(shares, "Address already in use\n");
    let said = proxy.end();
    assert!(said.contains("the configuration is as it was"), "{said}");
}
