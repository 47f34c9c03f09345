// SPDX-License-Identifier: GPL-2.0
//! The rules around a gateway's policy, as nft reads them, and the words that load both.
//!
//! They hold whatever the policy says: a drop is final in nftables, and an accept ends its own chain only. What comes from a
//! sandbox has the source that it was given, does not reach the gateway itself, nor another sandbox. What leaves the
//! gateway has its address. Each first packet of a connection is logged before the policy's chains and behind them
//! (ring3_node's flows.rs).

use std::fmt::Write;

use ipnet::IpNet;
use ring3_node::FLOWS_GROUP;

/// Before connection tracking (NF_IP_PRI_CONNTRACK_DEFRAG is -400), and behind whatever a policy has.
const FIRST: i32 = -450;
const LAST: i32 = 2_147_483_000;

/// Loads the policy, which it reads (the first argument is its name, for messages), then the rules around it. Only then does the gateway
/// forward: until the end of this nothing passes. A policy may begin with `flush ruleset`, so it comes first. Of one that nft does not load, the first line
/// says where and why; nft's own lines follow.
pub const LOAD: &str = "\
PATH=/usr/sbin:/usr/bin:/sbin:/bin
command -v nft >/dev/null || { echo 'ring3: a gateway needs the program nft: install nftables' >&2; exit 1; }
said=$(nft -f - 2>&1)
status=$?
first() {
    while IFS= read -r line; do
        case $line in /dev/stdin:*'Error: '*)
            line=${line#/dev/stdin:}
            printf 'ring3: %s:%s: %s: the policy is not loaded\\n' \"$1\" \"${line%%:*}\" \"${line#*Error: }\"
            return ;;
        esac
    done
    printf 'ring3: %s: nft does not load this policy\\n' \"$1\"
}
[ $status = 0 ] || printf '%s\\n' \"$said\" | first \"$1\" >&2
[ -z \"$said\" ] || printf '%s\\n' \"$said\" | while IFS= read -r line; do
    case $line in /dev/stdin*) line=$1${line#/dev/stdin} ;; esac
    printf '%s\\n' \"$line\" >&2
done
[ $status = 0 ] || exit 1
printf '%s' \"$2\" | nft -f - || exit 1
echo 1 >/proc/sys/net/ipv4/ip_forward && echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
";

/// For these interfaces that lead to sandboxes, and the networks on them.
pub fn around(sandboxes: &[(String, Vec<IpNet>)]) -> String {
    let log = |word: &str| format!("log prefix \"ring3 {word}\" group {FLOWS_GROUP}");
    let names: Vec<String> = sandboxes.iter().map(|it| format!("\"{}\"", it.0)).collect();
    let from = format!("iifname {{ {} }}", names.join(", "));
    let to = format!("oifname {{ {} }}", names.join(", "));
    let mut sources = String::new();
    for (name, nets) in sandboxes {
        let of = |is_v6: bool, more: &[&str]| {
            let nets = nets.iter().filter(|net| net.addr().is_ipv6() == is_v6);
            let nets = nets.map(|net| net.trunc().to_string());
            let all: Vec<String> = nets.chain(more.iter().map(ToString::to_string)).collect();
            all.join(", ")
        };
        // Neighbours are asked for from link-local addresses, and from none.
        let (v4, v6) = (of(false, &["0.0.0.0"]), of(true, &["fe80::/10", "::"]));
        for (family, nets) in [("ip", v4), ("ip6", v6)] {
            let _ = writeln!(
                sources,
                "iifname \"{name}\" {family} saddr != {{ {nets} }} {} drop",
                log("spoof")
            );
        }
    }
    let (tried, passed) = (log("try"), log("pass"));
    let (own, peer, invalid) = (log("self"), log("peer"), log("invalid"));
    format!(
        "table inet ring3_gateway {{
chain source {{
type filter hook prerouting priority {FIRST}; policy accept;
{sources}}}
chain begin {{
type filter hook forward priority {FIRST}; policy accept;
{from} ct state new,invalid,untracked {tried}
}}
chain end {{
type filter hook forward priority {LAST}; policy accept;
{from} {to} {peer} drop
{from} ct state invalid {invalid} drop
{from} ct state new,untracked {passed}
}}
chain self {{
type filter hook input priority {LAST}; policy accept;
{from} icmp type echo-request accept
{from} icmpv6 type {{ echo-request, nd-neighbor-solicit, nd-neighbor-advert }} accept
{from} meta pkttype != host drop
{from} {own} drop
}}
chain exit {{
type nat hook postrouting priority srcnat; policy accept;
{from} {to} accept
{from} masquerade
}}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sandbox_has_its_own_sources() {
        let text = around(&[
            ("sandbox0".into(), vec!["10.0.3.1/30".parse().unwrap()]),
            ("sandbox1".into(), vec!["fd00:3::1/64".parse().unwrap()]),
        ]);
        assert!(text.contains("iifname \"sandbox0\" ip saddr != { 10.0.3.0/30, 0.0.0.0 } log"));
        assert!(text.contains("iifname \"sandbox1\" ip saddr != { 0.0.0.0 } log"));
        assert!(text.contains("iifname \"sandbox1\" ip6 saddr != { fd00:3::/64, fe80::/10, :: }"));
    }
}
