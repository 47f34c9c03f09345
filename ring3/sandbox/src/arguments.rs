// SPDX-License-Identifier: GPL-2.0
//! The ioctl() and fcntl() commands and prctl() options that a confined process may name: those that programs use on terminals,
//! pipes, files, unix sockets and themselves. What a newer Linux adds is not among them until somebody has looked at it.
//!
//! Left out with intent: what types into a terminal, takes it over or resizes it (TIOCSTI, TIOCLINUX, TIOCSCTTY, TIOCSPGRP,
//! TIOCSWINSZ, TIOCSETD, TIOCCONS, TIOCEXCL); what has the host signal others (FIOSETOWN, SIOCSPGRP, F_SETOWN, F_SETSIG, and
//! FIOASYNC, which on a terminal makes its foreground group the owner); what holds up who opens a file, or tells of a folder
//! (F_SETLEASE, F_SETDELEG, F_NOTIFY); attributes of files
//! (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY); the host's interfaces (SIOCGIF..., TUN...); of prctl(), the memory
//! map, mitigations, pages that are merged with other processes' (PR_SET_MEMORY_MERGE), core scheduling.

/// A name in Linux's headers, and its number.
pub type Word = (&'static str, u32);

/// <asm-generic/ioctls.h>, <linux/sockios.h>, <linux/fs.h>, <linux/fiemap.h>, <linux/nsfs.h>, <linux/eventpoll.h>
#[rustfmt::skip]
pub const IOCTLS: &[Word] = &[
    ("TCGETS", 0x5401), ("TCSETS", 0x5402), ("TCSETSW", 0x5403), ("TCSETSF", 0x5404),
    ("TCGETA", 0x5405), ("TCSETA", 0x5406), ("TCSETAW", 0x5407), ("TCSETAF", 0x5408),
    ("TCGETS2", 0x802c_542a), ("TCSETS2", 0x402c_542b), ("TCSETSW2", 0x402c_542c), ("TCSETSF2", 0x402c_542d),
    ("TCSBRK", 0x5409), ("TCSBRKP", 0x5425), ("TCXONC", 0x540a), ("TCFLSH", 0x540b),
    ("TIOCGPGRP", 0x540f), ("TIOCGSID", 0x5429), ("TIOCGWINSZ", 0x5413), ("TIOCGETD", 0x5424),
    ("TIOCOUTQ", 0x5411), ("FIONREAD", 0x541b), ("FIONBIO", 0x5421),
    ("FIONCLEX", 0x5450), ("FIOCLEX", 0x5451), ("FIOQSIZE", 0x5460),
    ("FIOGETOWN", 0x8903), ("SIOCGPGRP", 0x8904), ("SIOCATMARK", 0x8905),
    ("FIGETBSZ", 0x0002), ("FS_IOC_FIEMAP", 0xc020_660b), ("FS_IOC_GETFLAGS", 0x8008_6601), ("FS_IOC_FSGETXATTR", 0x801c_581f),
    ("FICLONE", 0x4004_9409), ("FICLONERANGE", 0x4020_940d), ("FIDEDUPERANGE", 0xc018_9436),
    ("NS_GET_NSTYPE", 0xb703), ("EPIOCSPARAMS", 0x4008_8a01), ("EPIOCGPARAMS", 0x8008_8a02),
];

/// <linux/fcntl.h>, but for F_SETFL, whose flags are looked at, too.
#[rustfmt::skip]
pub const FCNTLS: &[Word] = &[
    ("F_DUPFD", 0), ("F_GETFD", 1), ("F_SETFD", 2), ("F_GETFL", 3), ("F_GETLK", 5), ("F_SETLK", 6), ("F_SETLKW", 7),
    ("F_GETOWN", 9), ("F_GETSIG", 11), ("F_GETOWN_EX", 16), ("F_OFD_GETLK", 36), ("F_OFD_SETLK", 37), ("F_OFD_SETLKW", 38),
    ("F_GETLEASE", 1025), ("F_DUPFD_QUERY", 1027), ("F_CREATED_QUERY", 1028), ("F_DUPFD_CLOEXEC", 1030),
    ("F_SETPIPE_SZ", 1031), ("F_GETPIPE_SZ", 1032), ("F_ADD_SEALS", 1033), ("F_GET_SEALS", 1034),
    ("F_GET_RW_HINT", 1035), ("F_GET_FILE_RW_HINT", 1037),
];

/// <linux/prctl.h>
#[rustfmt::skip]
pub const PRCTLS: &[Word] = &[
    ("PR_SET_PDEATHSIG", 1), ("PR_GET_PDEATHSIG", 2), ("PR_GET_DUMPABLE", 3), ("PR_SET_DUMPABLE", 4),
    ("PR_GET_KEEPCAPS", 7), ("PR_SET_KEEPCAPS", 8), ("PR_GET_TIMING", 13), ("PR_SET_NAME", 15), ("PR_GET_NAME", 16),
    ("PR_GET_SECCOMP", 21), ("PR_SET_SECCOMP", 22), ("PR_CAPBSET_READ", 23), ("PR_CAPBSET_DROP", 24),
    ("PR_GET_TSC", 25), ("PR_SET_TSC", 26), ("PR_GET_SECUREBITS", 27), ("PR_SET_SECUREBITS", 28),
    ("PR_SET_TIMERSLACK", 29), ("PR_GET_TIMERSLACK", 30),
    ("PR_SET_CHILD_SUBREAPER", 36), ("PR_GET_CHILD_SUBREAPER", 37), ("PR_SET_NO_NEW_PRIVS", 38), ("PR_GET_NO_NEW_PRIVS", 39),
    ("PR_GET_TID_ADDRESS", 40), ("PR_SET_THP_DISABLE", 41), ("PR_GET_THP_DISABLE", 42), ("PR_CAP_AMBIENT", 47),
    ("PR_GET_SPECULATION_CTRL", 52), ("PR_SET_SYSCALL_USER_DISPATCH", 59), ("PR_SET_MDWE", 65), ("PR_GET_MDWE", 66),
    ("PR_SET_VMA", 0x5356_4d41), ("PR_GET_AUXV", 0x4155_5856), ("PR_SET_PTRACER", 0x5961_6d61),
];

/// For docs/host-calls.md.
pub fn names(words: &[Word]) -> String {
    let names: Vec<String> = words.iter().map(|(name, _)| format!("`{name}`")).collect();
    names.join(" ")
}
