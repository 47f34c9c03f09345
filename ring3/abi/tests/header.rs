// SPDX-License-Identifier: GPL-2.0
//! Asks the C compiler for the layout of the headers and compares it with the mirror.

use std::fmt::Write as _;
use std::process::Command;

use ring3_abi as abi;

#[test]
fn the_mirror_is_what_c_sees() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let source = dir.path().join("layout.c");
    let program = dir.path().join("layout");

    let mut c = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"ring3.h\"\n#include \"ring3_asm.h\"\nint main(void)\n{\n",
    );
    let mut expected = String::new();
    for s in abi::LAYOUT {
        writeln!(c, "printf(\"{0} %zu\\n\", sizeof(struct {0}));", s.name).unwrap();
        writeln!(expected, "{} {}", s.name, s.size).unwrap();
        for (field, offset, _) in s.fields {
            writeln!(
                c,
                "printf(\"{0}.{1} %zu\\n\", offsetof(struct {0}, {1}));",
                s.name, field
            )
            .unwrap();
            writeln!(expected, "{}.{} {}", s.name, field, offset).unwrap();
            if *field != "pad" {
                let name = format!("{}_{field}", &s.name[6..]).to_uppercase();
                writeln!(c, "printf(\"{name} %u\\n\", {name});").unwrap();
                writeln!(expected, "{name} {offset}").unwrap();
            }
        }
    }
    for (name, value) in abi::CONSTANTS {
        writeln!(
            c,
            "printf(\"{0} %llu\\n\", (unsigned long long)({0}));",
            name
        )
        .unwrap();
        writeln!(expected, "{name} {value}").unwrap();
    }
    let port = abi::ring3_irq_port(3);
    writeln!(c, "printf(\"RING3_IRQ_PORT %u\\n\", RING3_IRQ_PORT(3));").unwrap();
    writeln!(expected, "RING3_IRQ_PORT {port}").unwrap();
    writeln!(c, "printf(\"RING3_ENV_NODE %s\\n\", RING3_ENV_NODE);").unwrap();
    writeln!(expected, "RING3_ENV_NODE {}", abi::RING3_ENV_NODE).unwrap();
    c.push_str("return 0;\n}\n");
    std::fs::write(&source, c).unwrap();

    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(&cc)
        .arg("-I")
        .arg(abi::HEADERS)
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
