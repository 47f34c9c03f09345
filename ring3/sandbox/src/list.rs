// SPDX-License-Identifier: GPL-2.0
//! The host calls that a confined process may make. Column CONFINED of gate/entry/calls.tbl has a word for each call; here are the
//! arguments and the reasons that go with it. The filter is made from both. Tests look that the two agree, and that every
//! host call of the gate's source has a word.
//!
//! A call of [`REFUSED`] fails with `EPERM`. The warden answers [`OWN`] and [`BEHALF`]. One of [`CHECKED`] whose arguments are others, and a call that is
//! not named here, fail with `ENOSYS`, as on a kernel that has not got it. What is [`UNSUPPORTED`] or in [`WITHOUT`] fails with `EOPNOTSUPP`.

use crate::arguments::{self, Word, FCNTLS, IOCTLS, PRCTLS};
use Check::{Among, Bits, Clear, Is, IsNot, Null};

/// A condition on one argument, which is counted from 0. All but [`Check::Null`] look at the low 32 bits.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// The argument is this value.
    Is(u8, u32),
    /// The argument is not this value.
    IsNot(u8, u32),
    /// None of these bits is set in the argument.
    Clear(u8, u32),
    /// Of the first bits, those of the second are set and no others.
    Bits(u8, u32, u32),
    /// All 64 bits are zero.
    Null(u8),
    /// The argument is one of these. It is an alternative's only condition.
    Among(u8, &'static [Word]),
}

/// A call by its name and number.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub name: &'static str,
    pub nr: i64,
}

/// A call that may be made where all conditions of one alternative hold.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    pub call: Call,
    pub why: &'static str,
    pub when: &'static [&'static [Check]],
}

/// A call that may not be made, and why.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    pub call: Call,
    pub why: &'static str,
}

const AF_UNIX: u32 = libc::AF_UNIX as u32;
/// SOCK_STREAM is 1, SOCK_DGRAM 2, SOCK_RAW 3, SOCK_SEQPACKET 5: of streams this bit and the next are clear.
const NO_STREAM: u32 = 0xe;
/// A signed number in musl's headers, an unsigned one in glibc's.
#[allow(clippy::unnecessary_cast)]
const RLIMIT_CORE: u32 = libc::RLIMIT_CORE as u32;
const SEQPACKET: u32 = libc::SOCK_SEQPACKET as u32;
const FLAGS: [u32; 4] = {
    let (cloexec, nonblock) = (libc::SOCK_CLOEXEC as u32, libc::SOCK_NONBLOCK as u32);
    [0, cloexec, nonblock, cloexec | nonblock]
};
/// Unix streams, and sequenced packets with each combination of flags: a datagram can name any path.
const UNIX_SOCKETS: &[&[Check]] = &[
    &[Is(0, AF_UNIX), Clear(1, NO_STREAM)],
    &[Is(0, AF_UNIX), Is(1, SEQPACKET | FLAGS[0])],
    &[Is(0, AF_UNIX), Is(1, SEQPACKET | FLAGS[1])],
    &[Is(0, AF_UNIX), Is(1, SEQPACKET | FLAGS[2])],
    &[Is(0, AF_UNIX), Is(1, SEQPACKET | FLAGS[3])],
];
/// Set-user-ID and set-group-ID of a mode. On a new file they would stay when a process outside with CAP_FSETID, root's, fills the file.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
/// Flags that make a new file, whose mode is looked at: O_CREAT, and the bit of O_TMPFILE beside O_DIRECTORY.
const NEW: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
/// Flags 3, both of these, open a file for neither reading nor writing. Landlock lets that pass for any file, and attributes, devices
/// that act when they are opened, and comparisons (FIDEDUPERANGE) come with the descriptor. So one of them is clear.
const WRITES: u32 = libc::O_WRONLY as u32;
const READS_AND_WRITES: u32 = libc::O_RDWR as u32;
/// What kind of file a mode is for.
const KIND: u32 = libc::S_IFMT;
const FIFO: u32 = libc::S_IFIFO;
/// CLONE_NEWTIME of <linux/sched.h>. It is a bit of clone()'s signal.
const TIME_NAMESPACE: u32 = 0x80;
/// CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID and _NEWNET of <linux/sched.h>.
const NAMESPACES: u32 = 0x7e02_0000;

macro_rules! call {
    ($name:literal, $nr:ident) => {
        Call {
            name: $name,
            nr: libc::$nr,
        }
    };
}

// `ALLOWED` and `TABLE`: see build.rs.
include!(concat!(env!("OUT_DIR"), "/calls.rs"));

/// What may be made with some arguments.
#[rustfmt::skip]
pub const CHECKED: &[Checked] = &[
    Checked { call: call!("clone", SYS_clone), why: "no namespace; the low byte is the signal of its end", when: &[&[Clear(0, NAMESPACES)]] },
    Checked { call: call!("unshare", SYS_unshare), why: "no namespace: a new one has capabilities", when: &[&[Clear(0, NAMESPACES | TIME_NAMESPACE)]] },
    Checked { call: call!("socket", SYS_socket), why: "unix streams and sequenced packets only", when: UNIX_SOCKETS },
    Checked { call: call!("socketpair", SYS_socketpair), why: "unix streams and sequenced packets only", when: UNIX_SOCKETS },
    Checked { call: call!("sendto", SYS_sendto), why: "to the socket's own peer: an address could name any path", when: &[&[Null(4)]] },
    Checked { call: call!("ioctl", SYS_ioctl), why: "the commands below", when: &[&[Among(1, IOCTLS)]] },
    Checked { call: call!("fcntl", SYS_fcntl), why: "the commands below; `F_SETFL` without `O_ASYNC`, by which a terminal signals its foreground", when: &[&[Among(1, FCNTLS)], &[Is(1, libc::F_SETFL as u32), Clear(2, libc::O_ASYNC as u32)]] },
    Checked { call: call!("prlimit64", SYS_prlimit64), why: "of the caller only: Landlock does not keep it from other processes of the user; that of core files stays", when: &[&[Is(0, 0), IsNot(1, RLIMIT_CORE)], &[Is(0, 0), Null(2)]] },
    Checked { call: call!("setrlimit", SYS_setrlimit), why: "that of core files stays", when: &[&[IsNot(0, RLIMIT_CORE)]] },
    Checked { call: call!("sched_setaffinity", SYS_sched_setaffinity), why: "of the caller only: Landlock does not keep it from other processes of the user", when: &[&[Is(0, 0)]] },
    Checked { call: call!("open", SYS_open), why: "no new file with set-user-ID or set-group-ID, which would stay when root, outside, fills it; not flags 3, by which Landlock lets any file be opened, for neither reading nor writing", when: &[&[Clear(1, NEW | WRITES)], &[Clear(1, NEW | READS_AND_WRITES)], &[Clear(1, WRITES), Clear(2, SET_ID)], &[Clear(1, READS_AND_WRITES), Clear(2, SET_ID)]] },
    Checked { call: call!("openat", SYS_openat), why: "see open", when: &[&[Clear(2, NEW | WRITES)], &[Clear(2, NEW | READS_AND_WRITES)], &[Clear(2, WRITES), Clear(3, SET_ID)], &[Clear(2, READS_AND_WRITES), Clear(3, SET_ID)]] },
    Checked { call: call!("creat", SYS_creat), why: "see open", when: &[&[Clear(1, SET_ID)]] },
    Checked { call: call!("mknod", SYS_mknod), why: "FIFOs only, which Landlock judges", when: &[&[Bits(1, KIND, FIFO), Clear(1, SET_ID)]] },
    Checked { call: call!("mknodat", SYS_mknodat), why: "see mknod", when: &[&[Bits(2, KIND, FIFO), Clear(2, SET_ID)]] },
    Checked { call: call!("personality", SYS_personality), why: "asking only", when: &[&[Is(0, 0xffff_ffff)]] },
    Checked { call: call!("prctl", SYS_prctl), why: "the options below", when: &[&[Among(0, PRCTLS)]] },
];

/// What may not be made, and why.
#[rustfmt::skip]
pub const REFUSED: &[Refused] = &[
    Refused { call: call!("io_uring_setup", SYS_io_uring_setup), why: "a ring makes calls that no filter sees" },
    Refused { call: call!("io_uring_enter", SYS_io_uring_enter), why: "see io_uring_setup" },
    Refused { call: call!("io_uring_register", SYS_io_uring_register), why: "see io_uring_setup" },
    Refused { call: call!("bpf", SYS_bpf), why: "loads programs into the host's kernel" },
    Refused { call: call!("perf_event_open", SYS_perf_event_open), why: "reads what other processes and the kernel do" },
    Refused { call: call!("userfaultfd", SYS_userfaultfd), why: "stops the host's kernel in the middle of a copy" },
    Refused { call: call!("keyctl", SYS_keyctl), why: "keys of the user, outside of every other wall" },
    Refused { call: call!("add_key", SYS_add_key), why: "see keyctl" },
    Refused { call: call!("request_key", SYS_request_key), why: "see keyctl" },
    Refused { call: call!("mount", SYS_mount), why: "changes what paths mean" },
    Refused { call: call!("umount2", SYS_umount2), why: "see mount" },
    Refused { call: call!("pivot_root", SYS_pivot_root), why: "see mount" },
    Refused { call: call!("chroot", SYS_chroot), why: "see mount" },
    Refused { call: call!("move_mount", SYS_move_mount), why: "see mount" },
    Refused { call: call!("open_tree", SYS_open_tree), why: "see mount" },
    Refused { call: call!("fsopen", SYS_fsopen), why: "see mount" },
    Refused { call: call!("fsmount", SYS_fsmount), why: "see mount" },
    Refused { call: call!("fsconfig", SYS_fsconfig), why: "see mount" },
    Refused { call: call!("fspick", SYS_fspick), why: "see mount" },
    Refused { call: call!("mount_setattr", SYS_mount_setattr), why: "see mount" },
    Refused { call: call!("setns", SYS_setns), why: "enters namespaces of others" },
    Refused { call: call!("fanotify_init", SYS_fanotify_init), why: "tells names and uses of files that may not be read" },
    Refused { call: call!("fanotify_mark", SYS_fanotify_mark), why: "see fanotify_init" },
    Refused { call: call!("name_to_handle_at", SYS_name_to_handle_at), why: "handles pass by paths" },
    Refused { call: call!("open_by_handle_at", SYS_open_by_handle_at), why: "see name_to_handle_at" },
    Refused { call: call!("shmget", SYS_shmget), why: "memory of all processes of the user" },
    Refused { call: call!("shmat", SYS_shmat), why: "see shmget" },
    Refused { call: call!("shmctl", SYS_shmctl), why: "see shmget" },
    Refused { call: call!("semget", SYS_semget), why: "see shmget" },
    Refused { call: call!("semop", SYS_semop), why: "see shmget" },
    Refused { call: call!("semctl", SYS_semctl), why: "see shmget" },
    Refused { call: call!("msgget", SYS_msgget), why: "see shmget" },
    Refused { call: call!("msgsnd", SYS_msgsnd), why: "see shmget" },
    Refused { call: call!("msgrcv", SYS_msgrcv), why: "see shmget" },
    Refused { call: call!("msgctl", SYS_msgctl), why: "see shmget" },
    Refused { call: call!("mq_open", SYS_mq_open), why: "queues of all processes of the user" },
    Refused { call: call!("mq_unlink", SYS_mq_unlink), why: "see mq_open" },
    Refused { call: call!("process_madvise", SYS_process_madvise), why: "changes memory of other processes" },
    Refused { call: call!("kcmp", SYS_kcmp), why: "tells of the host kernel's memory" },
    Refused { call: call!("modify_ldt", SYS_modify_ldt), why: "an attack surface that 64-bit programs do not use" },
    Refused { call: call!("iopl", SYS_iopl), why: "the host's hardware" },
    Refused { call: call!("ioperm", SYS_ioperm), why: "the host's hardware" },
    Refused { call: call!("kexec_load", SYS_kexec_load), why: "the host's kernel" },
    Refused { call: call!("init_module", SYS_init_module), why: "the host's kernel" },
    Refused { call: call!("finit_module", SYS_finit_module), why: "the host's kernel" },
    Refused { call: call!("delete_module", SYS_delete_module), why: "the host's kernel" },
    Refused { call: call!("reboot", SYS_reboot), why: "the host" },
    Refused { call: call!("swapon", SYS_swapon), why: "the host" },
    Refused { call: call!("swapoff", SYS_swapoff), why: "the host" },
    Refused { call: call!("sethostname", SYS_sethostname), why: "the host" },
    Refused { call: call!("setdomainname", SYS_setdomainname), why: "the host" },
    Refused { call: call!("settimeofday", SYS_settimeofday), why: "the host" },
    Refused { call: call!("clock_settime", SYS_clock_settime), why: "the host" },
    Refused { call: call!("adjtimex", SYS_adjtimex), why: "the host" },
    Refused { call: call!("clock_adjtime", SYS_clock_adjtime), why: "the host" },
    Refused { call: call!("acct", SYS_acct), why: "the host" },
    Refused { call: call!("syslog", SYS_syslog), why: "the host" },
    Refused { call: call!("quotactl", SYS_quotactl), why: "the host" },
    Refused { call: call!("setpriority", SYS_setpriority), why: "of other processes of the user, too" },
    Refused { call: call!("sched_setscheduler", SYS_sched_setscheduler), why: "see setpriority" },
    Refused { call: call!("sched_setparam", SYS_sched_setparam), why: "see setpriority" },
    Refused { call: call!("ioprio_set", SYS_ioprio_set), why: "see setpriority" },
    Refused { call: call!("setgroups", SYS_setgroups), why: "groups are the user's" },
];

/// What is said to be missing though the host has it (`ENOSYS`), and why.
#[rustfmt::skip]
pub const ABSENT: &[Refused] = &[
    Refused { call: call!("clone3", SYS_clone3), why: "its flags lie in memory, where no filter can look: the C library falls back to clone()" },
    Refused { call: call!("openat2", SYS_openat2), why: "the mode of a new file lies in memory, too: programs fall back to openat()" },
];

/// What fails as on a file system that has not got it (`EOPNOTSUPP`), and why. `ls -l` asks for attributes of each file.
#[rustfmt::skip]
pub const WITHOUT: &[Refused] = &[
    Refused { call: call!("getxattr", SYS_getxattr), why: "Landlock does not judge it: it would tell attributes of files that may not be read" },
    Refused { call: call!("lgetxattr", SYS_lgetxattr), why: "see getxattr" },
    Refused { call: call!("listxattr", SYS_listxattr), why: "see getxattr" },
    Refused { call: call!("llistxattr", SYS_llistxattr), why: "see getxattr" },
    Refused { call: call!("setxattr", SYS_setxattr), why: "Landlock does not judge it: it would change files that may only be read" },
    Refused { call: call!("lsetxattr", SYS_lsetxattr), why: "see setxattr" },
    Refused { call: call!("fsetxattr", SYS_fsetxattr), why: "see setxattr" },
    Refused { call: call!("removexattr", SYS_removexattr), why: "see setxattr" },
    Refused { call: call!("lremovexattr", SYS_lremovexattr), why: "see setxattr" },
    Refused { call: call!("fremovexattr", SYS_fremovexattr), why: "see setxattr" },
];

/// FALLOC_FL_PUNCH_HOLE with the FALLOC_FL_KEEP_SIZE that belongs to it.
const PUNCH: u32 = 0x3;

/// What of an allowed call fails as on a file system that has not got it: the C library does it in another way.
pub const UNSUPPORTED: Checked = Checked {
    call: call!("fallocate", SYS_fallocate),
    why: "it would fill a disk at once, before the reaper sees that (`--min-free`); only holes may be made",
    when: &[&[IsNot(1, PUNCH)]],
};

/// Asks the warden for a descriptor. Linux for x86-64 has never had anything under this number, and the filters of containers let it through. The first argument
/// is an index of [`OWN_FILES`], the second a thread or 0, the third another process of the sandbox or 0; the result is a descriptor of that file in the
/// folder of /proc of this process, or of the caller.
pub const OWN: Call = call!("epoll_wait_old", SYS_epoll_wait_old);
/// The gate has these in the same order: `gate/sandbox/own.c`.
#[rustfmt::skip]
pub const OWN_FILES: [&str; 20] = [
    "maps", "status", "stat", "statm", "cmdline", "comm", "environ", "auxv", "limits", "cgroup", "smaps", "smaps_rollup", "io", "oom_score",
    "oom_score_adj", "fd", "fdinfo", "task", "uid_map", "gid_map",
];

/// In the place of such an index: the folder that the sandbox has for /dev/shm.
pub const OWN_MEMORY: usize = OWN_FILES.len();

/// Files of /proc that are no process's, from this index on: facts of the machine that programs ask for. The gate has these in the same order, too.
pub const OWN_MACHINE: usize = 64;
#[rustfmt::skip]
pub const MACHINE_FILES: [&str; 19] = [
    "cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version", "sys/fs/file-max", "sys/fs/nr_open",
    "sys/fs/pipe-max-size", "sys/kernel/cap_last_cap", "sys/kernel/ngroups_max", "sys/kernel/osrelease", "sys/kernel/ostype",
    "sys/kernel/pid_max", "sys/kernel/random/uuid", "sys/kernel/threads-max", "sys/vm/max_map_count", "sys/vm/overcommit_memory",
];

/// What the warden does for the caller, and what it goes by ([`crate::behalf`]). Landlock judges none of these.
#[rustfmt::skip]
pub const BEHALF: &[Refused] = &[
    Refused { call: call!("chmod", SYS_chmod), why: "of the user's own below `--rw` and `--tmp`; no set-user-ID, no set-group-ID but of folders" },
    Refused { call: call!("fchmod", SYS_fchmod), why: "see chmod" },
    Refused { call: call!("fchmodat", SYS_fchmodat), why: "see chmod" },
    Refused { call: call!("fchmodat2", SYS_fchmodat2), why: "see chmod" },
    Refused { call: call!("chown", SYS_chown), why: "the same files; to the user and group that the file has" },
    Refused { call: call!("fchown", SYS_fchown), why: "see chown" },
    Refused { call: call!("lchown", SYS_lchown), why: "see chown" },
    Refused { call: call!("fchownat", SYS_fchownat), why: "see chown" },
    Refused { call: call!("utime", SYS_utime), why: "the same files" },
    Refused { call: call!("utimes", SYS_utimes), why: "see utime" },
    Refused { call: call!("futimesat", SYS_futimesat), why: "see utime" },
    Refused { call: call!("utimensat", SYS_utimensat), why: "see utime" },
    Refused { call: call!("bind", SYS_bind), why: "of a unix socket: an abstract name of the sandbox's own, or a path below `--rw` and `--tmp`" },
    Refused { call: call!("connect", SYS_connect), why: "of a unix socket: to one of the same sandbox. Landlock does not judge the path, so any server of this user could be reached" },
    Refused { call: call!("inotify_init", SYS_inotify_init), why: "an eighth of those that the user may have: Linux counts them by user" },
    Refused { call: call!("inotify_init1", SYS_inotify_init1), why: "see inotify_init" },
    Refused { call: call!("inotify_add_watch", SYS_inotify_add_watch), why: "of files below `--rw` and `--tmp`, and of these. It tells names and uses of files. An eighth of those that the user may have" },
];

/// All that asks the warden.
pub(crate) fn asked() -> impl Iterator<Item = i64> {
    std::iter::once(OWN.nr).chain(BEHALF.iter().map(|it| it.call.nr))
}

fn numbered(first: usize, files: &[&str]) -> String {
    let files = files.iter().enumerate();
    let files = files.map(|(n, file)| format!("{} is `{file}`", first + n));
    files.collect::<Vec<_>>().join(", ")
}

/// The list as a page for people: docs/host-calls.md.
pub fn page() -> String {
    let mut page = String::from(
        "# Host calls inside the wall\n\nWhich calls may a process make to the host once `ring3/sandbox` has confined it? \
         This page is made from `gate/entry/calls.tbl` and `ring3/sandbox/src/list.rs`; a test compares them.\n\n## Allowed\n\n",
    );
    let names: Vec<String> = ALLOWED
        .iter()
        .map(|call| format!("`{}`", call.name))
        .collect();
    page += &names.join(" ");
    page += "\n\n## Allowed with some arguments\n\nOther arguments get `ENOSYS`.\n\n| call | what may be asked |\n| --- | --- |\n";
    for it in CHECKED {
        page += &format!("| `{}` | {} |\n", it.call.name, it.why);
    }
    for (call, words) in [("ioctl", IOCTLS), ("fcntl", FCNTLS), ("prctl", PRCTLS)] {
        page += &format!("\nOf `{call}`: {}\n", arguments::names(words));
    }
    page += "\n## Answered by the warden\n\n";
    page += &format!(
        "`{}(n, t, p)` gives the caller a descriptor to read a file or folder in /proc of its own process, or of p, which is one of the sandbox's, or of that one's thread t: {}.\n",
        OWN.name,
        numbered(0, &OWN_FILES)
    );
    page += &format!(
        "Or of these in /proc, which are no process's: {}.\n",
        numbered(OWN_MACHINE, &MACHINE_FILES)
    );
    page += "\nThese it makes for the caller. On other files they get `EPERM`.\n\n| call | what may be asked |\n| --- | --- |\n";
    for it in BEHALF {
        page += &format!("| `{}` | {} |\n", it.call.name, it.why);
    }
    page += &format!(
        "\n## Unsupported\n\nThese get `EOPNOTSUPP`.\n\n| call | why |\n| --- | --- |\n| `{}` | {} |\n",
        UNSUPPORTED.call.name, UNSUPPORTED.why
    );
    for it in WITHOUT {
        page += &format!("| `{}` | {} |\n", it.call.name, it.why);
    }
    page +=
        "\n## Absent\n\nThe host has these, but says `ENOSYS`.\n\n| call | why |\n| --- | --- |\n";
    for it in ABSENT {
        page += &format!("| `{}` | {} |\n", it.call.name, it.why);
    }
    page += "\n## Refused\n\nThese get `EPERM`. A call that is not on this page gets `ENOSYS`.\n\n| call | why |\n| --- | --- |\n";
    for it in REFUSED {
        page += &format!("| `{}` | {} |\n", it.call.name, it.why);
    }
    page
}
