// SPDX-License-Identifier: GPL-2.0
//! `ring3 completion`: clap's script for a shell, and behind it what clap does not know: the names of nodes that are
//! up, and the program after `exec NODE --`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{self, Cli};
use crate::error::Result;
use crate::say;

pub fn completion(args: &args::Completion) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ring3", &mut script);
    script.extend_from_slice(match args.shell {
        Shell::Bash => include_bytes!("bash.sh").as_slice(),
        Shell::Fish => include_bytes!("fish.fish"),
        Shell::Zsh => include_bytes!("zsh.zsh"),
        _ => b"",
    });
    say::print(script)
}
