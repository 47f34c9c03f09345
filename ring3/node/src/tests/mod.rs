// SPDX-License-Identifier: GPL-2.0
//! Tests of the keeper as a whole: `keeper` on a fake image that a C compiler makes here,
//! `kernel` on the real one where it is built. `hostile` is about who may not come in.

mod hostile;
mod join_client;
mod keeper;
mod kernel;

use std::path::{Path, PathBuf};
use std::process::Command;

use ring3_config::NodeConfig;

use crate::runtime::Folder;

/// A folder of the test's own, in memory, removed with this value.
pub(super) struct Place {
    dir: tempfile::TempDir,
    pub folder: Folder,
}

impl Place {
    pub fn new() -> Place {
        show_log();
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let folder = Folder::at(dir.path().join("r")).unwrap();
        Place { dir, folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Nothing of a node is left in the runtime folder.
    pub fn is_clean(&self) -> bool {
        ["nodes", "links"].iter().all(|sub| {
            let dir = self.path("r").join(sub);
            std::fs::read_dir(dir).unwrap().next().is_none()
        })
    }

    /// Compiles the fake image; `defines` choose how it behaves.
    pub fn fake_image(&self, defines: &[&str]) -> PathBuf {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let fake = manifest.join("src/tests/fake");
        let image = self.path("fake.image");
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let flags = "-ffreestanding -nostdlib -static -fpie -mgeneral-regs-only -O2 -Wall -Werror \
                     -fno-stack-protector -fvisibility=hidden -Wl,--build-id=none";
        let status = Command::new(cc)
            .args(flags.split_whitespace())
            .arg("-I")
            .arg(ring3_abi::HEADERS)
            .arg(format!("-Wl,-T,{}", fake.join("image.lds").display()))
            .args(defines.iter().map(|define| format!("-D{define}")))
            .arg("-o")
            .arg(&image)
            .arg(fake.join("image.c"))
            .status()
            .unwrap();
        assert!(status.success());
        image
    }

    /// A node on the fake image.
    pub fn fake_node(&self, name: &str) -> NodeConfig {
        let mut config = NodeConfig::new(name);
        config.mem = 32 << 20;
        config.image = Some(self.fake_image(&[]));
        config
    }
}

/// Shows what the keeper logs.
struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        eprintln!("{}: {}", record.level(), record.args());
    }

    fn flush(&self) {}
}

/// Called by whoever makes a [`Place`].
fn show_log() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let _ = log::set_logger(&Stderr);
        log::set_max_level(log::LevelFilter::Info);
    });
}
