// SPDX-License-Identifier: GPL-2.0
//! Asks the C compiler for the layout of include/ring3*.h and compares it with the mirror.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use ring3_abi as abi;

/// Constants that must agree, by their C names.
const CONSTANTS: &[(&str, u64)] = &[
    ("RING3_MAGIC", abi::RING3_MAGIC),
    ("RING3_ABI", abi::RING3_ABI as u64),
    ("RING3_GATE_BASE", abi::RING3_GATE_BASE),
    ("RING3_SPACE_BASE", abi::RING3_SPACE_BASE),
    ("RING3_SLOT_SIZE", abi::RING3_SLOT_SIZE),
    ("RING3_SLOTS", abi::RING3_SLOTS),
    ("RING3_SPACE_END", abi::RING3_SPACE_END),
    ("RING3_REGION_MAX", abi::RING3_REGION_MAX),
    ("RING3_ALIAS_OFFSET", abi::RING3_ALIAS_OFFSET),
    ("RING3_LINK_OFFSET", abi::RING3_LINK_OFFSET),
    ("RING3_LINK_STRIDE", abi::RING3_LINK_STRIDE),
    ("RING3_PORTS_MAX", abi::RING3_PORTS_MAX as u64),
    ("RING3_LOADED", abi::RING3_LOADED as u64),
    ("RING3_BOOTING", abi::RING3_BOOTING as u64),
    ("RING3_UP", abi::RING3_UP as u64),
    ("RING3_POISONED", abi::RING3_POISONED as u64),
    ("RING3_DOWN", abi::RING3_DOWN as u64),
    ("RING3_IRQ_TIMER", abi::RING3_IRQ_TIMER as u64),
    ("RING3_IRQ_WORK", abi::RING3_IRQ_WORK as u64),
    ("RING3_IRQ_PORT(3)", abi::ring3_irq_port(3) as u64),
    ("RING3_WORD_DONE", abi::RING3_WORD_DONE as u64),
    ("RING3_WORD_BATON", abi::RING3_WORD_BATON as u64),
    ("RING3_WORD_SIGNAL", abi::RING3_WORD_SIGNAL as u64),
    ("RING3_WORD_OFFERED", abi::RING3_WORD_OFFERED as u64),
    ("RING3_OWNER_WAITERS", abi::RING3_OWNER_WAITERS as u64),
    ("RING3_OWNER_POLLING", abi::RING3_OWNER_POLLING as u64),
    ("RING3_OWNER_TID", abi::RING3_OWNER_TID as u64),
    ("RING3_NR_BASE", abi::RING3_NR_BASE),
    ("RING3_NR_DRIVE", abi::RING3_NR_DRIVE),
    ("RING3_NR_KEEP", abi::RING3_NR_KEEP),
    ("RING3_NR_SPAWN", abi::RING3_NR_SPAWN),
    ("RING3_NR_CLONE", abi::RING3_NR_CLONE),
    ("RING3_NR_EXIT", abi::RING3_NR_EXIT),
    ("RING3_NR_EXIT_GROUP", abi::RING3_NR_EXIT_GROUP),
    ("RING3_NR_EXEC", abi::RING3_NR_EXEC),
    ("RING3_NR_REAP", abi::RING3_NR_REAP),
    ("RING3_NR_FD_MOVE", abi::RING3_NR_FD_MOVE),
    ("RING3_NR_PROXY", abi::RING3_NR_PROXY),
    ("RING3_NR_PROXY_SET", abi::RING3_NR_PROXY_SET),
    ("RING3_NR_PROXY_CLEAR", abi::RING3_NR_PROXY_CLEAR),
    ("RING3_NR_PORT_ADD", abi::RING3_NR_PORT_ADD),
    ("RING3_NR_PORT_DEL", abi::RING3_NR_PORT_DEL),
    ("RING3_NR_LOG_READ", abi::RING3_NR_LOG_READ),
    ("RING3_NR_MMAP", abi::RING3_NR_MMAP),
    ("RING3_NR_MMAP_PAGE", abi::RING3_NR_MMAP_PAGE),
    ("RING3_NR_MUNMAP", abi::RING3_NR_MUNMAP),
    ("RING3_NR_AT", abi::RING3_NR_AT),
    ("RING3_NR_PARK", abi::RING3_NR_PARK),
    ("RING3_NR_UNPARK", abi::RING3_NR_UNPARK),
    ("RING3_UNPARK_CLOEXEC", abi::RING3_UNPARK_CLOEXEC),
    ("RING3_UNPARK_KEEP", abi::RING3_UNPARK_KEEP),
    ("RING3_NR_GRAB", abi::RING3_NR_GRAB),
    ("RING3_NR_NEWUSER", abi::RING3_NR_NEWUSER),
    ("RING3_NR_IDS", abi::RING3_NR_IDS),
    ("RING3_NR_NUMBER", abi::RING3_NR_NUMBER),
    ("RING3_NR_MAX", abi::RING3_NR_MAX),
    ("RING3_FDS_MAX", abi::RING3_FDS_MAX as u64),
    ("RING3_SIGQ", abi::RING3_SIGQ as u64),
    ("RING3_PROCS_MAX", abi::RING3_PROCS_MAX as u64),
    ("RING3_CPUID_UNKNOWN", abi::RING3_CPUID_UNKNOWN as u64),
    ("RING3_CPUID_REMEMBER", abi::RING3_CPUID_REMEMBER as u64),
    ("RING3_CPUID_HOST", abi::RING3_CPUID_HOST as u64),
    ("RING3_CPUID_ANSWERS", abi::RING3_CPUID_ANSWERS as u64),
    ("RING3_CPUID_WRITING", abi::RING3_CPUID_WRITING as u64),
    ("RING3_CPUID_READY", abi::RING3_CPUID_READY as u64),
    ("RING3_CPUID_FILES", abi::RING3_CPUID_FILES as u64),
    ("RING3_CPUID_SITES", abi::RING3_CPUID_SITES as u64),
    ("RING3_VCPUS_MAX", abi::RING3_VCPUS_MAX as u64),
    ("RING3_PORT_LINK", abi::RING3_PORT_LINK as u64),
    ("RING3_PORT_TAP", abi::RING3_PORT_TAP as u64),
    ("RING3_PORT_PASST", abi::RING3_PORT_PASST as u64),
    ("RING3_PORT_PACKET", abi::RING3_PORT_PACKET as u64),
    ("RING3_PORT_XDP", abi::RING3_PORT_XDP as u64),
    ("RING3_PORT_CSUM", abi::RING3_PORT_CSUM as u64),
    ("RING3_PORT_TSO", abi::RING3_PORT_TSO as u64),
    ("RING3_PORT_USO", abi::RING3_PORT_USO as u64),
    ("RING3_LINK_MAGIC", abi::RING3_LINK_MAGIC),
    ("RING3_RING_BYTES", abi::RING3_RING_BYTES as u64),
    ("RING3_LINK_HEAD", abi::RING3_LINK_HEAD as u64),
    ("RING3_LINK_BYTES", abi::RING3_LINK_BYTES as u64),
    ("RING3_RECORD_SKIP", abi::RING3_RECORD_SKIP as u64),
    ("RING3_XDP_ENTRIES", abi::RING3_XDP_ENTRIES as u64),
    ("RING3_XDP_STRIDE", abi::RING3_XDP_STRIDE as u64),
    ("RING3_XDP_RX", abi::RING3_XDP_RX as u64),
    ("RING3_XDP_TX", abi::RING3_XDP_TX as u64),
    ("RING3_XDP_FILL", abi::RING3_XDP_FILL as u64),
    ("RING3_XDP_COMPLETION", abi::RING3_XDP_COMPLETION as u64),
    ("RING3_XDP_RXTX_BYTES", abi::RING3_XDP_RXTX_BYTES as u64),
    ("RING3_XDP_UMEM_BYTES", abi::RING3_XDP_UMEM_BYTES as u64),
    ("RING3_XDP_MTU_MAX", abi::RING3_XDP_MTU_MAX as u64),
    ("RING3_JOIN_MAGIC", abi::RING3_JOIN_MAGIC),
];

#[test]
fn the_mirror_is_what_c_sees() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let source = dir.path().join("layout.c");
    let program = dir.path().join("layout");

    let mut c = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"ring3.h\"\n\
         #include \"ring3_link.h\"\n#include \"ring3_join.h\"\n#include \"ring3_xdp.h\"\n\
         #include \"ring3_park.h\"\n#include \"ring3_cred.h\"\n\
         #include \"ring3_smp.h\"\nint main(void)\n{\n",
    );
    let mut expected = String::new();
    for s in abi::LAYOUT {
        writeln!(c, "printf(\"{0} %zu\\n\", sizeof(struct {0}));", s.name).unwrap();
        writeln!(expected, "{} {}", s.name, s.size).unwrap();
        for (field, offset) in s.fields {
            writeln!(
                c,
                "printf(\"{0}.{1} %zu\\n\", offsetof(struct {0}, {1}));",
                s.name, field
            )
            .unwrap();
            writeln!(expected, "{}.{} {}", s.name, field, offset).unwrap();
        }
    }
    for (name, value) in CONSTANTS {
        writeln!(
            c,
            "printf(\"{0} %llu\\n\", (unsigned long long)({0}));",
            name
        )
        .unwrap();
        writeln!(expected, "{name} {value}").unwrap();
    }
    writeln!(c, "printf(\"RING3_ENV_NODE %s\\n\", RING3_ENV_NODE);").unwrap();
    writeln!(expected, "RING3_ENV_NODE {}", abi::RING3_ENV_NODE).unwrap();
    c.push_str("return 0;\n}\n");
    std::fs::write(&source, c).unwrap();

    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(&cc)
        .arg("-I")
        .arg(&include)
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status()
        .expect("the C compiler starts");
    assert!(
        status.success(),
        "{cc} does not compile the contract headers"
    );
    let seen = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8(seen.stdout).unwrap(), expected);
}
