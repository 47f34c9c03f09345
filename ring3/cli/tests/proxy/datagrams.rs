// SPDX-License-Identifier: GPL-2.0
//! UDP.

use super::*;

/// Sources on node `b`, two listeners, one answer for each word: it comes to the one who has asked, from where it asked.
#[test]
fn datagrams_come_to_whom_they_are_for() {
    let place = nodes();
    let server = |name: &'static str| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let address = socket.local_addr().expect("an address");
        std::thread::spawn(move || {
            let mut words = [0; 2048];
            while let Ok((len, from)) = socket.recv_from(&mut words) {
                let answer = [name.as_bytes(), &words[..len]].concat();
                let _ = socket.send_to(&answer, from);
            }
        });
        address
    };
    let (one, two) = (server("one "), server("two "));
    let text = format!(
        "on = \"a\"\n[[listener]]\nlisten = \"udp:53\"\nto = [\"{one}\"]\n[[listener]]\nlisten = \"udp:54\"\nto = [\"{two}\"]\n[[listener]]\nlisten = \"tcp:80\"\nto = [\"{one}\"]\n"
    );
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80"]);
    let script = "
import socket
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(30)]
answers = {}
for turn in range(2):
    for i, s in enumerate(sockets):
        port, name = ((53, b'one '), (54, b'two '))[i % 2]
        word = b'%d %d' % (turn, i)
        # A datagram may be lost, as on any wire: then it is said again. What comes is right.
        s.settimeout(2)
        for _ in range(10):
            s.sendto(word, ('192.0.2.1', port))
            try: answer, source = s.recvfrom(100)
            except TimeoutError: continue
            while answer != name + word:
                assert answer.startswith(name) and answer.endswith(b' %d' % i), (answer, word)
                answer, source = s.recvfrom(100)
            assert source == ('192.0.2.1', port), source
            answers[word] = True
            break
print(len(answers))
";
    assert_eq!(python(&place, script, &[]).trim(), "60");
    // Room for what many clients send at once: 212992 bytes held 300 of 900.
    let socket = place.ok(&["exec", "a", "--", "ss", "-uanmH", "sport = :53"]);
    assert!(socket.contains(",rb8388608,"), "{socket}");
    assert_eq!(proxy.end(), "");
}
