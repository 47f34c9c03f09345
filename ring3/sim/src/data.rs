// SPDX-License-Identifier: GPL-2.0
//! The data folder: where everything that a simulation makes lies.
//!
//! ```text
//! DATA/processed-config.yaml          the scenario as it was run
//! DATA/hosts/HOST/PROGRAM.N.stdout    and .stderr; N from 1000 on, as Shadow numbers them
//! DATA/hosts/HOST/INTERFACE.pcap      with pcap_enabled
//! DATA/result.json                    how each process ended, and the events
//! DATA/tcp.csv queues.csv interfaces.csv
//! DATA/report.html                    the network, and plots of the above
//! DATA/network/                       the words for ip, tc and nft that made the network
//! DATA/world/                         /tmp, /etc/hosts and so on of the hosts
//! ```

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::plan::Plan;

const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nprotocols: files\nservices: files\n";

#[derive(Debug, Clone)]
pub struct Data {
    root: PathBuf,
}

impl Data {
    pub fn of(plan: &Plan) -> Data {
        Data {
            root: plan.data.clone(),
        }
    }

    /// Makes the folder, which must not be there: results are never mixed.
    pub fn make(plan: &Plan, template: Option<&Path>) -> Result<Data> {
        let data = Data::of(plan);
        let root = &data.root;
        if root.exists() {
            return Err(Error::Said(format!(
                "{} exists: remove it, or name another folder by --data-directory",
                root.display()
            )));
        }
        match template {
            Some(template) => copy(template, root)?,
            None => folder(root)?,
        }
        for name in ["hosts", "network", "world"] {
            folder(&root.join(name))?;
        }
        let mut names = String::from("127.0.0.1 localhost\n::1 localhost\n");
        for host in &plan.hosts {
            for is in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
                if let Some(address) = host.addresses.iter().find(|address| is(address)) {
                    names.push_str(&format!("{address} {}\n", host.name));
                }
            }
        }
        write(&root.join("world/hosts"), &names)?;
        write(
            &root.join("world/resolv.conf"),
            "# names are in /etc/hosts\n",
        )?;
        write(&root.join("world/nsswitch.conf"), NSSWITCH)?;
        for host in &plan.hosts {
            folder(&data.host(&host.name))?;
            let tmp = data.tmp(&host.name);
            folder(&tmp)?;
            allow_all(&tmp)?;
            write(
                &data.world(&host.name).join("hostname"),
                &format!("{}\n", host.name),
            )?;
            for (path, text) in &host.files {
                if !path.exists() {
                    let name = &host.name;
                    return Err(Error::Said(format!(
                        "hosts.{name}.files: this machine has no {} to put a file over: make an empty one",
                        path.display()
                    )));
                }
                let place = data.file(&host.name, path);
                folder(place.parent().unwrap_or(&place))?;
                write(&place, text)?;
            }
            for (_, target) in data.kept(&host.name) {
                folder(&target)?;
            }
        }
        Ok(data)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn host(&self, host: &str) -> PathBuf {
        self.root.join("hosts").join(host)
    }

    pub fn network(&self, name: &str) -> PathBuf {
        self.root.join("network").join(name)
    }

    fn world(&self, host: &str) -> PathBuf {
        self.root.join("world").join(host)
    }

    pub fn tmp(&self, host: &str) -> PathBuf {
        self.world(host).join("tmp")
    }

    pub fn file(&self, host: &str, path: &Path) -> PathBuf {
        let inner = path.strip_prefix("/").unwrap_or(path);
        self.world(host).join("files").join(inner)
    }

    /// Files of the machine that each host has otherwise.
    pub fn etc(&self, host: &str) -> Vec<(PathBuf, PathBuf)> {
        let world = self.root.join("world");
        vec![
            (world.join("hosts"), "/etc/hosts".into()),
            (world.join("resolv.conf"), "/etc/resolv.conf".into()),
            (world.join("nsswitch.conf"), "/etc/nsswitch.conf".into()),
            (self.world(host).join("hostname"), "/etc/hostname".into()),
        ]
    }

    /// A scenario may lie below /tmp itself: its folder stays in sight there. What, and where in the host's own /tmp.
    pub fn kept(&self, host: &str) -> Vec<(PathBuf, PathBuf)> {
        let mut kept = Vec::new();
        let folders = [Some(self.root.clone()), std::env::current_dir().ok()];
        for path in folders.into_iter().flatten() {
            let Ok(inner) = path.strip_prefix("/tmp") else {
                continue;
            };
            // All of /tmp can't be kept beside an own one.
            let Some(first) = inner.components().next() else {
                continue;
            };
            let entry = (Path::new("/tmp").join(first), self.tmp(host).join(first));
            if !kept.contains(&entry) {
                kept.push(entry);
            }
        }
        kept
    }
}

pub fn read_plan(path: &Path) -> Result<Plan> {
    let text = std::fs::read(path).map_err(Error::host(format!("read {}", path.display())))?;
    serde_json::from_slice(&text).map_err(Error::host(format!("read {}", path.display())))
}

pub fn folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(Error::host(format!("make {}", path.display())))
}

pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(Error::host(format!("write {}", path.display())))
}

/// As /tmp is.
fn allow_all(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777))
        .map_err(Error::host(format!("open {} to all", path.display())))
}

/// A folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    folder(to)?;
    let cannot = || Error::host(format!("copy {}", from.display()));
    let entries = std::fs::read_dir(from).map_err(|why| cannot()(why))?;
    for entry in entries {
        let entry = entry.map_err(|why| cannot()(why))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|why| cannot()(why))?;
        if kind.is_dir() {
            copy(&source, &target)?;
        } else if kind.is_symlink() {
            let link = std::fs::read_link(&source).map_err(|why| cannot()(why))?;
            std::os::unix::fs::symlink(link, &target).map_err(|why| cannot()(why))?;
        } else {
            std::fs::copy(&source, &target).map_err(|why| cannot()(why))?;
        }
    }
    Ok(())
}
