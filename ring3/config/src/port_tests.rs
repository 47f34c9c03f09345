// SPDX-License-Identifier: GPL-2.0
use super::*;

fn port(spec: &str) -> PortSpec {
    spec.parse().unwrap_or_else(|e| panic!("{spec}: {e}"))
}

fn error(spec: &str) -> String {
    spec.parse::<PortSpec>().unwrap_err().to_string()
}

#[test]
fn every_key() {
    let spec = "tap:r3tap0,addr=10.1.0.2/24,addr=fd00::2/64,gw=10.1.0.1,gw=fe80::1,\
                host=10.1.0.1/24,mtu=9000,mac=02:00:00:00:0a:FF,pcap=/tmp/x.pcap";
    assert_eq!(
        port(spec),
        PortSpec {
            kind: PortKind::Tap {
                name: "r3tap0".into()
            },
            addrs: vec![
                "10.1.0.2/24".parse().unwrap(),
                "fd00::2/64".parse().unwrap()
            ],
            gw: vec!["10.1.0.1".parse().unwrap(), "fe80::1".parse().unwrap()],
            host: vec!["10.1.0.1/24".parse().unwrap()],
            mtu: Some(9000),
            mac: Some([2, 0, 0, 0, 10, 255]),
            log: None,
            pcap: Some("/tmp/x.pcap".into()),
            ..PortSpec::new(PortKind::Host)
        }
    );
}

#[test]
fn every_kind() {
    assert_eq!(port("host").kind, PortKind::Host);
    assert_eq!(port("passt").kind, PortKind::Passt);
    assert_eq!(port("link:ab").kind, PortKind::Link { name: "ab".into() });
    assert_eq!(
        port("packet:eth0").kind,
        PortKind::Packet {
            ifname: "eth0".into()
        }
    );
    assert_eq!(
        port("vhost:vm.sock").kind,
        PortKind::Vhost {
            socket: "vm.sock".into()
        }
    );
    assert!(error(&format!("vhost:/{}", "x".repeat(107))).contains("at most 107 bytes"));
    assert_eq!(
        port("xdp:eth0").kind,
        PortKind::Xdp {
            ifname: "eth0".into()
        }
    );
}

#[test]
fn prints_what_it_parses() {
    for spec in [
        "host,loopback=yes",
        "host,tcp=8080:80,tcp=127.0.0.1@1-9:11-19,udp=[::1]@53:53,allow=192.0.2.0/24,allow=*:443,deny=[2001:db8::1/128]:1-80",
        "passt",
        "passt,loopback=yes",
        "passt,loopback=no",
        "link:ab,addr=10.0.0.1/24,addr=fd00::1/64",
        "switch:lan,addr=10.0.0.1/24",
        "tap:t,addr=10.1.0.2/24,gw=10.1.0.1,host=10.1.0.1/24,mtu=1500,mac=02:00:00:00:00:01,pcap=a=b",
        "packet:eth0,addr=10.1.0.0/31",
        "xdp:eth0,mtu=1770",
        "vhost:/run/a,,b.sock,addr=10.1.0.1/24,mtu=9000",
    ] {
        assert_eq!(port(spec).to_string(), spec);
    }
}

#[test]
fn names_what_there_is() {
    assert_eq!(
        error("tun:x"),
        "port `tun:x`: unknown kind `tun`; the kinds are link, switch, tap, host, passt, packet, xdp, vhost"
    );
    assert_eq!(
        error("link:ab,adr=10.0.0.1/24"),
        "port `link:ab,adr=10.0.0.1/24`: unknown key `adr`; the keys are addr, gw, host, mtu, mac, loopback, tcp, udp, allow, deny, log, pcap"
    );
}

#[test]
fn what_is_wrong() {
    for (spec, words) in [
        ("", "is empty; a port is KIND[:NAME]"),
        (",addr=10.0.0.1/24", "is empty"),
        ("LINK:ab", "unknown kind `LINK`"),
        ("link", "link needs a name"),
        ("link:", "link needs a name"),
        ("tap", "tap needs a name"),
        ("packet,mtu=1500", "packet needs a name"),
        ("xdp", "xdp needs a name"),
        ("xdp:eth0,mtu=1771", "an xdp port takes at most 1770"),
        ("passt:x", "passt takes no name"),
        ("vhost", "vhost needs a name: vhost:SOCKET"),
        ("vhost:/run/", "is a folder's"),
        ("vhost:/x,tcp=80", "for host ports only, this one is vhost"),
        ("link:a/b", "name `a/b` has a character"),
        ("tap:much-too-long-name", "is too long for an interface"),
        ("link:ab,", "`` is not key=value"),
        ("link:ab,addr", "`addr` is not key=value"),
        ("link:ab,addr=", "key `addr` has no value"),
        ("link:ab,=x", "unknown key ``"),
        ("link:ab,mtu=1500,mtu=1500", "key `mtu` is given twice"),
        (
            "link:ab,mac=02:00:00:00:00:01,mac=02:00:00:00:00:01",
            "twice",
        ),
        ("link:ab,pcap=a,pcap=b", "key `pcap` is given twice"),
        (
            "tap:t,loopback=yes",
            "key `loopback` is for host and passt ports only, this one is tap",
        ),
        ("passt,loopback=1", "loopback=1: use yes or no"),
        (
            "passt,tcp=80",
            "key `tcp` is for host ports only, this one is passt",
        ),
        ("host,udp=9-1", "the range ends before it begins"),
        ("host,allow=x", "no name with a dot"),
        ("host:x", "host takes no name"),
        (
            "link:ab,host=10.0.0.1/24",
            "for tap ports only, this one is link",
        ),
    ] {
        let text = error(spec);
        assert!(text.contains(words), "{spec}: {text}");
        assert!(!text.contains('\n'), "{spec}: one line");
    }
}

#[test]
fn malformed_addresses() {
    for (value, why) in [
        ("addr=10.0.0.1", "its prefix length is missing"),
        ("addr=fd00::1", "its prefix length is missing"),
        ("addr=ten/8", "it is no IP address before the /"),
        ("addr=ten", "it is no IP address"),
        ("addr=10.0.0/24", "it is no IP address before the /"),
        ("addr=10.0.0.256/24", "it is no IP address before the /"),
        ("addr=10.0.0.1/33", "its prefix length is not 0 to 32"),
        ("addr=10.0.0.1/", "its prefix length is not 0 to 32"),
        ("addr=10.0.0.1/+4", "its prefix length is not 0 to 32"),
        ("addr=10.0.0.1/24/8", "its prefix length is not 0 to 32"),
        ("addr=fd00::1/129", "its prefix length is not 0 to 128"),
        ("addr=10.0.0.0/24", "it is the network's or the broadcast"),
        ("addr=10.0.0.255/24", "it is the network's or the broadcast"),
        ("addr=224.0.0.1/4", "it is a multicast address"),
        ("addr=ff02::1/64", "it is a multicast address"),
        ("addr=127.0.0.1/8", "it is a loopback address"),
        ("addr=::/0", "it is the unspecified address"),
        ("addr=10.0.0.1/24,gw=x", "malformed address `x` in gw"),
        ("addr=10.0.0.1/24,gw=10.0.0.2/24", "a gateway has no prefix"),
        (
            "addr=10.0.0.1/24,gw=10.0.1.1",
            "gateway 10.0.1.1 is on no subnet",
        ),
        ("gw=10.0.0.1", "gateway 10.0.0.1 is on no subnet"),
        (
            "addr=10.0.0.1/24,addr=10.0.0.1/16",
            "addr 10.0.0.1 is given twice",
        ),
        (
            "addr=10.0.0.1/24,host=10.0.0.1/24",
            "addr and host are both 10.0.0.1",
        ),
        ("host=10.0.0.1", "malformed address `10.0.0.1` in host"),
    ] {
        let text = error(&format!("tap:t,{value}"));
        assert!(text.contains(why), "{value}: {text}");
    }
}

#[test]
fn numbers() {
    for (value, why) in [
        ("mtu=x", "mtu `x` is no number"),
        ("mtu=-1", "mtu `-1` is no number"),
        ("mtu=67", "is out of range: use 68 to 65521"),
        ("mtu=65536", "is out of range"),
        ("mtu=1279,addr=fd00::1/64", "too small for the IPv6 address"),
        ("mac=1:2:3:4:5:6", "is malformed"),
        ("mac=02:00:00:00:00", "is too short"),
        ("mac=02:00:00:00:00:00:01", "is too long"),
        ("mac=01:00:00:00:00:00", "is a multicast address"),
        ("mac=00:00:00:00:00:00", "is all zero"),
        ("mac=+2:00:00:00:00:01", "is malformed"),
    ] {
        let text = error(&format!("link:ab,{value}"));
        assert!(text.contains(why), "{value}: {text}");
    }
    assert_eq!(port("link:ab,mtu=68").mtu, Some(68));
    assert_eq!(port("link:ab,mtu=65521").mtu, Some(65521));
}

#[test]
fn passt_may_learn_its_network() {
    assert_eq!(
        port("passt,gw=10.0.0.1").gw,
        ["10.0.0.1".parse::<IpAddr>().unwrap()]
    );
}

#[test]
fn a_comma_in_a_path() {
    for (spec, path) in [
        ("link:ab,pcap=a,,b.pcap", "a,b.pcap"),
        ("link:ab,pcap=,,x,,", ",x,"),
        ("link:ab,pcap=x,,,mtu=1500", "x,"),
    ] {
        let port = port(spec);
        assert_eq!(port.pcap, Some(path.into()), "{spec}");
        assert_eq!(port.to_string().parse(), Ok(port), "{spec}");
    }
    assert!(error("link:ab,pcap=a,b").contains("`b`"));
}
