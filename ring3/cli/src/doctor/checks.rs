// SPDX-License-Identifier: GPL-2.0
//! The checks. Each is tried, not guessed from a version or a file's existence,
//! wherever trying is harmless.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{getrlimit, Resource};
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;

use super::{Check, Grade};
use crate::{leaf, program};

/// RING3_SPACE_BASE and RING3_SLOT_SIZE of include/ring3.abi.
const SPACE: (u64, u64) = (ring3_abi::RING3_SPACE_BASE, ring3_abi::RING3_SLOT_SIZE);
/// Where the gate puts its table of jumps: the lowest place that the usual limit allows.
const TABLE_AT: u64 = 65536;
/// Twice the descriptors of a server with a thousand connections.
const NOFILE_WANTED: u64 = 4096;

pub fn all() -> Vec<Check> {
    vec![
        processor(),
        kernel_image(),
        gate(),
        runtime(),
        user_dispatch(),
        address_space(),
        memfd(),
        low_table(),
        fsgsbase(),
        futex_waitv(),
        clock(),
        descriptors(),
        tap(),
        passt(),
        raw_packets(),
        user_namespaces(),
        sandbox(),
        killed_programs(),
        af_xdp(),
        io_uring(),
        huge_pages(),
        kvm(),
    ]
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// "Permission denied", without a number.
fn reason(error: std::io::Error) -> String {
    ring3_node::Errno::from(error).to_string()
}

fn processor() -> Check {
    let machine = std::env::consts::ARCH;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let found = format!(
        "{machine}, {cpus} CPUs, Linux {}",
        read("/proc/sys/kernel/osrelease")
    );
    match machine {
        "x86_64" => Check::new("processor", Grade::Good, found).therefore(match cpus {
            1 => "nodes share one CPU: keep polling short (--spin-ns 0)",
            _ => "node and peer can run at the same time",
        }),
        _ => Check::new("processor", Grade::Missing, found)
            .therefore("nothing runs")
            .remedy("ring3 is for x86-64 so far"),
    }
}

fn kernel_image() -> Check {
    let named = std::env::var_os("RING3_IMAGE").map(PathBuf::from);
    match named
        .or_else(|| program::beside_command("ring3-up.image"))
        .filter(|path| path.is_file())
    {
        Some(path) => Check::new("kernel image", Grade::Good, path.display().to_string())
            .therefore("nodes run this kernel"),
        None => Check::new("kernel image", Grade::Missing, "not beside the command")
            .therefore("no node starts without --image")
            .remedy("build it with `make image`"),
    }
}

fn gate() -> Check {
    match program::gate() {
        Ok(path) => Check::new("gate", Grade::Good, path.display().to_string())
            .therefore("programs join nodes through it"),
        Err(error) => Check::new("gate", Grade::Missing, "not beside the command")
            .therefore("no program can join a node")
            .remedy(error.to_string().trim_start_matches("no gate: ").to_owned()),
    }
}

fn runtime() -> Check {
    match ring3_node::Folder::open() {
        Ok(folder) => Check::new(
            "runtime folder",
            Grade::Good,
            folder.root().display().to_string(),
        )
        .therefore("nodes find each other there"),
        Err(error) => Check::new("runtime folder", Grade::Missing, "cannot be used")
            .therefore("nodes cannot be found")
            .remedy(error.to_string()),
    }
}

fn user_dispatch() -> Check {
    let what = "user dispatch";
    match leaf::in_child(leaf::trip_user_dispatch) {
        Ok(WaitStatus::Signaled(_, Signal::SIGSYS, _)) => {
            Check::new(what, Grade::Good, "traps a system call")
                .therefore("every system call is seen, none escapes to the host's network")
        }
        other => Check::new(what, Grade::Missing, match other {
            Ok(WaitStatus::Exited(_, 1)) => "refused".to_owned(),
            other => format!("does not trap ({other:?})"),
        })
        .therefore("programs cannot be put on a node")
        .remedy("it needs Linux 5.11 with CONFIG_GENERIC_ENTRY, and no seccomp filter that refuses prctl(PR_SET_SYSCALL_USER_DISPATCH)"),
    }
}

fn address_space() -> Check {
    let (base, slot) = SPACE;
    let what = "address space";
    match leaf::can_reserve(base, slot) {
        true => Check::new(what, Grade::Good, format!("{base:#x} is free"))
            .therefore("a node's memory lies there in every process"),
        false => Check::new(
            what,
            Grade::Missing,
            format!("{base:#x} cannot be reserved"),
        )
        .therefore("no node can be mapped")
        .remedy("raise `ulimit -v`, or vm.overcommit_memory and memory limits of the container"),
    }
}

fn memfd() -> Check {
    let what = "executable memfd";
    match leaf::can_execute_memfd() {
        Ok(()) => Check::new(what, Grade::Good, "can be mapped")
            .therefore("processes share a node's code and memory"),
        Err(error) => Check::new(what, Grade::Missing, reason(error))
            .therefore("no node can be made")
            .remedy("sysctl vm.memfd_noexec must be below 2, and no security module may refuse PROT_EXEC of a memfd"),
    }
}

fn low_table() -> Check {
    let limit = read("/proc/sys/vm/mmap_min_addr");
    let what = "low addresses";
    let found = format!("mmap_min_addr is {limit}");
    match limit.parse::<u64>() {
        Ok(bytes) if bytes <= TABLE_AT => Check::new(what, Grade::Good, found).therefore(
            "system call sites are rewritten into jumps: 10 ns instead of a trap of 2 us",
        ),
        _ => Check::new(what, Grade::Less, found)
            .therefore("every system call traps: about 2 us each")
            .remedy("as root: sysctl vm.mmap_min_addr=65536"),
    }
}

fn fsgsbase() -> Check {
    let what = "FSGSBASE";
    match leaf::has_fsgsbase() {
        true => Check::new(what, Grade::Good, "yes")
            .therefore("a thread's block is found through GS, set without a system call"),
        false => Check::new(what, Grade::Missing, "no")
            .therefore("programs cannot join a node")
            .remedy("it needs Linux 5.9 on a CPU of 2012 or later, booted without nofsgsbase"),
    }
}

/// The first release with futex_waitv().
const WAITV_SINCE: (u32, u32) = (5, 16);

/// The release of the kernel that this process runs on.
fn release() -> Option<(u32, u32)> {
    let text = read("/proc/sys/kernel/osrelease");
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn futex_waitv() -> Check {
    let what = "futex_waitv";
    let error = match leaf::try_futex_waitv() {
        Ok(()) => {
            return Check::new(what, Grade::Good, "yes")
                .therefore("an idle node waits for its timers and all its links at once")
        }
        Err(error) => error,
    };
    match release() {
        Some(release) if release >= WAITV_SINCE => Check::new(
            what,
            Grade::Less,
            format!("refused: {}", reason(error)),
        )
        .therefore("an idle node with links looks for their packets each millisecond")
        .remedy(
            "a seccomp filter hides it, such as an old container engine's: allow futex_waitv there",
        ),
        _ => Check::new(what, Grade::Missing, "no")
            .therefore("a node would not hear its peers")
            .remedy("it needs Linux 5.16"),
    }
}

fn clock() -> Check {
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let found = format!("clocksource {source}");
    match ring3_node::tsc_is_invariant() {
        true => Check::new("clock", Grade::Good, format!("{found}, TSC invariant"))
            .therefore("nodes read the time from the TSC"),
        false => Check::new(
            "clock",
            Grade::Less,
            format!("{found}, TSC not to be trusted"),
        )
        .therefore("nodes ask the host for the time: slower"),
    }
}

fn descriptors() -> Check {
    let what = "descriptors";
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) => {
            let found = format!("{soft}, at most {hard}");
            let check = match hard >= NOFILE_WANTED {
                true => Check::new(what, Grade::Good, found),
                false => Check::new(what, Grade::Less, found)
                    .remedy("raise it with `ulimit -Hn` or in /etc/security/limits.conf"),
            };
            check.therefore("a node's sockets count like the host's, process by process")
        }
        Err(error) => Check::new(what, Grade::Less, error.desc()).therefore("unknown limits"),
    }
}

fn tap() -> Check {
    match leaf::can_make_tap() {
        Ok(()) => Check::new("TAP", Grade::Good, "can be made")
            .therefore("tap ports make and address their own interface"),
        Err(error) if !Path::new("/dev/net/tun").exists() => {
            Check::new("TAP", Grade::Less, reason(error))
                .therefore("no tap ports")
                .remedy("as root: modprobe tun")
        }
        Err(error) => Check::new("TAP", Grade::Less, reason(error))
            .therefore("tap ports need an interface made beforehand")
            .remedy("as root: ip tuntap add dev r3tap0 mode tap user $USER"),
    }
}

fn find_in_path(name: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH")?;
    std::env::split_paths(&search)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn passt() -> Check {
    match find_in_path("passt") {
        Some(path) => Check::new("passt", Grade::Good, path.display().to_string())
            .therefore("passt ports reach the internet without privilege"),
        None => Check::new("passt", Grade::Less, "not in PATH")
            .therefore("no passt ports")
            .remedy("as root: apt install passt"),
    }
}

fn raw_packets() -> Check {
    let what = "raw packets";
    match leaf::can_open_socket(libc::AF_PACKET, libc::SOCK_RAW) {
        Ok(()) => Check::new(what, Grade::Good, "permitted")
            .therefore("packet ports can use an interface of the host"),
        Err(error) => Check::new(what, Grade::Less, reason(error))
            .therefore("no packet ports")
            .remedy("run as root or with CAP_NET_RAW"),
    }
}

fn user_namespaces() -> Check {
    let what = "user namespaces";
    let probe = || {
        use nix::sched::{unshare, CloneFlags};
        i32::from(unshare(CloneFlags::CLONE_NEWUSER).is_err())
    };
    match leaf::in_child(probe) {
        Ok(WaitStatus::Exited(_, 0)) => {
            Check::new(what, Grade::Good, "permitted").therefore("passt isolates itself")
        }
        _ => Check::new(what, Grade::Less, "refused")
            .therefore("passt may refuse to start")
            .remedy(
                "as root: sysctl user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1",
            ),
    }
}

const NOT_YET: &str = "nothing: not used by this version";

/// A child confines itself as a sandbox's keeper does.
fn sandbox() -> Check {
    let what = "sandbox";
    let files = ring3_sandbox::Files::default();
    let probe = || i32::from(ring3_sandbox::confine(&files).is_err());
    match leaf::in_child(probe) {
        Ok(WaitStatus::Exited(_, 0)) => Check::new(what, Grade::Good, "seccomp, notifications, Landlock with scopes")
            .therefore("`ring3 run --sandbox` confines programs, without a namespace"),
        _ => Check::new(what, Grade::Less, "no Landlock with scopes, or no seccomp notifications")
            .therefore("`ring3 run --sandbox` refuses to start")
            .remedy("it needs Linux 6.12 with CONFIG_SECURITY_LANDLOCK, `landlock` among the words of lsm= on the host's command line, and a container's filter that permits both"),
    }
}

/// What becomes of a node when one of its programs is killed: adopt.c of the image.
fn killed_programs() -> Check {
    const PERFMON: u64 = 1 << 38;
    const BPF: u64 = 1 << 39;
    const SYS_ADMIN: u64 = 1 << 21;
    let what = "killed programs";
    let status = read("/proc/self/status");
    let has = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|word| u64::from_str_radix(word.trim(), 16).ok())
        .unwrap_or_default();
    if has & SYS_ADMIN != 0 || has & PERFMON != 0 && has & BPF != 0 {
        return Check::new(what, Grade::Good, "CAP_BPF and CAP_PERFMON")
            .therefore("a node survives when one of its programs is killed");
    }
    match read("/proc/sys/kernel/yama/ptrace_scope").as_str() {
        "2" | "3" => Check::new(what, Grade::Less, "neither BPF nor ptrace")
            .therefore("a node fails when one of its programs is killed in kernel code")
            .remedy("run as root, or set kernel.yama.ptrace_scope to 1"),
        _ => Check::new(what, Grade::Good, "ptrace")
            .therefore("a node traces its programs, and survives when one is killed; debuggers outside of it need `ring3 debug`"),
    }
}

fn af_xdp() -> Check {
    match leaf::can_open_socket(libc::AF_XDP, libc::SOCK_RAW) {
        Ok(()) => Check::new("AF_XDP", Grade::Good, "permitted")
            .therefore("xdp ports can have an interface of the host to themselves"),
        Err(error) => Check::new("AF_XDP", Grade::Less, reason(error))
            .therefore("no xdp ports; packet ports do the same more slowly")
            .remedy("run as root, on a host with CONFIG_XDP_SOCKETS"),
    }
}

fn io_uring() -> Check {
    let found = match leaf::has_io_uring() {
        true => "offered",
        false => "refused",
    };
    Check::new("io_uring", Grade::Unused, found).therefore(NOT_YET)
}

fn huge_pages() -> Check {
    let setting = read("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    let chosen = setting
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("not offered", |(word, _)| word);
    let found = format!("for shared memory: {chosen}");
    match chosen {
        "deny" | "not offered" => Check::new("huge pages", Grade::Less, found)
            .therefore("where programs start all the time, each start takes more page faults"),
        _ => Check::new("huge pages", Grade::Good, found)
            .therefore("a node uses them for its kernel once programs start all the time"),
    }
}

fn kvm() -> Check {
    let found = match Path::new("/dev/kvm").exists() {
        true => "/dev/kvm is there",
        false => "no /dev/kvm",
    };
    Check::new("KVM", Grade::Unused, found).therefore("nothing: ring3 needs no virtual machine")
}
