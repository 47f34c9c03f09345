// SPDX-License-Identifier: GPL-2.0
//! Web servers with several processes, reloaded while requests come in.

use super::scenario::{LIMIT, SERVED, Scenario, fetch, fetch4, load, site};
use super::topology::Pair;
use super::{ensure, path_of};
use crate::exec;
use crate::paths;
use crate::scratch::{self, Scratch};
use std::collections::BTreeSet;
use std::time::Duration;

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "nginx_workers",
        programs: &["nginx", "ab", "curl"],
        what: "a master and two workers; three reloads and a change of the binary (USR2, \
               inherited listening sockets) under load, no request fails",
        topologies: SERVED,
        needs_root: None,
        run: nginx_workers,
    },
    Scenario {
        name: "nginx_files",
        programs: &["nginx", "curl"],
        what: "a master and four workers; 400 downloads of 16 files, 32 at once, each compared byte by byte",
        topologies: SERVED,
        needs_root: None,
        run: nginx_files,
    },
    Scenario {
        name: "apache_prefork",
        programs: &["apache2", "ab", "curl"],
        what: "prefork; 20 MB, many connections, graceful restart under load, no request fails",
        topologies: SERVED,
        needs_root: None,
        run: apache_prefork,
    },
    Scenario {
        name: "apache_event",
        programs: &["apache2", "ab", "curl"],
        what: "event, threads; 20 MB, many connections, graceful restart under load, no request fails",
        topologies: SERVED,
        needs_root: None,
        run: apache_event,
    },
    Scenario {
        name: "git_clone",
        programs: &["git", "apache2"],
        what: "clone, push and fetch over http: Apache runs git-http-backend as a CGI program",
        topologies: SERVED,
        needs_root: None,
        run: git_clone,
    },
    Scenario {
        name: "haproxy",
        programs: &["haproxy", "python3", "curl", "ab"],
        what: "two threads in front of two servers of its node, with health checks; 20 MB, \
               many connections, a server that goes away",
        topologies: SERVED,
        needs_root: None,
        run: haproxy,
    },
    Scenario {
        name: "gunicorn",
        programs: &["gunicorn", "ab", "curl"],
        what: "four workers; requests reach several, a killed worker is replaced",
        topologies: SERVED,
        needs_root: None,
        run: gunicorn,
    },
];

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// nginx's configuration; what it says at /version tells one from another.
fn nginx_config(
    pair: &Pair,
    folder: &Scratch,
    port: u16,
    workers: u32,
    version: u32,
) -> Result<(), String> {
    let path = folder.path().display();
    let user = if root() { "user root;" } else { "" };
    folder
        .write(
            "nginx.conf",
            format!(
                "worker_processes {workers}; {user} pid {path}/pid; error_log {path}/log;\n\
                 events {{ worker_connections 512; }}\n\
                 http {{ access_log off; sendfile on;\n\
                 client_body_temp_path {path}; proxy_temp_path {path}; fastcgi_temp_path {path};\n\
                 uwsgi_temp_path {path}; scgi_temp_path {path};\n\
                 server {{ listen {}:{port}; listen [{}]:{port}; root {path};\n\
                 location /version {{ return 200 {version}; }} }} }}\n",
                pair.server4, pair.server6
            ),
        )
        .map(|_| ())
}

/// The number in a file of a process.
fn pid_in(folder: &Scratch, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder.file(name)).ok()?;
    Some(text.trim().to_string()).filter(|pid| !pid.is_empty())
}

/// Each worker sends files of its own from the same descriptor numbers: none may send another's.
fn nginx_files(pair: &Pair) -> Result<(), String> {
    const FILES: u32 = 16;
    const EACH: u32 = 25;
    let folder = Scratch::new()?;
    let noise = std::fs::read(folder.noise("noise", 300_000)?).map_err(|e| e.to_string())?;
    for (i, bytes) in (0..FILES).zip(noise.windows(200_000).step_by(1000)) {
        folder.write(&format!("file{i}"), bytes)?;
    }
    let port = pair.port(0);
    let prefix = folder.path().to_string_lossy().into_owned();
    let config = folder.file("nginx.conf").to_string_lossy().into_owned();
    let log = format!("{prefix}/log");
    nginx_config(pair, &folder, port, 4, 1)?;
    let argv = [
        "setsid", "-w", "nginx", "-p", &prefix, "-c", &config, "-e", &log,
    ];
    pair.server.must(&argv, LIMIT)?;
    let url = format!(
        "http://{}:{port}/file[0-{}]?[1-{EACH}]",
        pair.server4,
        FILES - 1
    );
    let got = format!("{prefix}/got#1_#2");
    let argv = [
        "curl",
        "-sS",
        "-f",
        "-Z",
        "--parallel-max",
        "32",
        "-o",
        &got,
        &url,
    ];
    pair.client.must(&argv, LIMIT)?;
    for (i, k) in (0..FILES).flat_map(|i| (1..=EACH).map(move |k| (i, k))) {
        let same = scratch::same(
            &folder.file(&format!("got{i}_{k}")),
            &folder.file(&format!("file{i}")),
        )?;
        ensure(same, || {
            format!("file{i}, download {k}: other bytes arrived")
        })?;
    }
    let pid = pid_in(&folder, "pid").ok_or("nginx wrote no pid")?;
    pair.server.must(&["kill", "-QUIT", &pid], LIMIT).map(drop)
}

fn nginx_workers(pair: &Pair) -> Result<(), String> {
    let folder = site()?;
    let port = pair.port(0);
    let prefix = folder.path().to_string_lossy().into_owned();
    let config = folder.file("nginx.conf").to_string_lossy().into_owned();
    // It executes itself again by the name that it was called by.
    let program = path_of("nginx").ok_or("nginx is not installed")?;
    let nginx = |extra: &[&str]| {
        let log = format!("{prefix}/log");
        let mut argv = vec![
            "setsid",
            "-w",
            program.as_str(),
            "-p",
            &prefix,
            "-c",
            &config,
            "-e",
            &log,
        ];
        argv.extend(extra);
        pair.server.must(&argv, LIMIT)
    };
    nginx_config(pair, &folder, port, 2, 1)?;
    // Without "daemon off", it returns when it listens. What it leaves in its process group is
    // killed then, and its child may be there still: hence setsid.
    nginx(&[])?;
    fetch(pair, &folder, port)?;

    let base = format!("http://{}:{port}", pair.server4);
    let answers = |version: &str| {
        exec::until(Duration::from_secs(10), || {
            let url = format!("{base}/version");
            let outcome = pair.client.run(&["curl", "-sS", &url], LIMIT);
            outcome.is_ok_and(|o| o.stdout == version)
        })
    };
    let first = pid_in(&folder, "pid").ok_or("nginx wrote no pid")?;
    let signal = |which: &str, pid: &str| pair.server.must(&["kill", which, pid], LIMIT);
    let url = format!("{base}/small");
    let changes = || -> Result<(), String> {
        for version in 2..=4 {
            nginx_config(pair, &folder, port, 2, version)?;
            nginx(&["-s", "reload"])?;
            let version = version.to_string();
            ensure(answers(&version), || {
                format!("after reload {version}: the old configuration answers")
            })?;
        }
        signal("-USR2", &first)?;
        let fresh = || pid_in(&folder, "pid").filter(|pid| *pid != first);
        let up = exec::until(Duration::from_secs(10), || {
            fresh().is_some() && pid_in(&folder, "pid.oldbin").is_some()
        });
        ensure(up, || "USR2: no new master".to_string())?;
        signal("-QUIT", &first)?;
        let gone = exec::until(Duration::from_secs(10), || {
            pid_in(&folder, "pid.oldbin").is_none()
        });
        ensure(gone, || "the old master did not end".to_string())
    };
    let (count, changed) = std::thread::scope(|scope| {
        let load = scope.spawn(|| load(pair, &["-t", "8", "-n", "1000000", "-c", "8", &url]));
        let changed = changes();
        (load.join(), changed)
    });
    let log = std::fs::read_to_string(folder.file("log")).unwrap_or_default();
    let explained = |why: String| format!("{why}\n--- nginx's log\n{}", exec::tail(&log, 20));
    changed.map_err(explained)?;
    let count = count
        .map_err(|_| "the load's thread died")?
        .map_err(explained)?;
    ensure(count > 200, || format!("only {count} requests in 8 s"))?;
    // The new master serves, and ends when told.
    fetch4(pair, &folder, port)?;
    nginx(&["-s", "quit"])?;
    let ended = exec::until(Duration::from_secs(10), || pid_in(&folder, "pid").is_none());
    ensure(ended, || "nginx did not quit".to_string())
}

/// Starts Apache with modules and lines of configuration beside the usual ones.
struct Apache<'a> {
    pair: &'a Pair,
    config: String,
}

impl<'a> Apache<'a> {
    fn start(
        pair: &'a Pair,
        folder: &Scratch,
        root: &str,
        modules: &[&str],
        extra: &str,
    ) -> Result<Apache<'a>, String> {
        let path = folder.path().display();
        let modules: String = ["authz_core"]
            .iter()
            .chain(modules)
            .map(|m| format!("LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so\n"))
            .collect();
        // Only root may, and has to, name whose the workers are.
        let user = if self::root() {
            "User www-data\nGroup www-data\n"
        } else {
            ""
        };
        let port = pair.port(0);
        let config = folder.write(
            "apache.conf",
            format!(
                "{modules}{user}ServerName test\nServerRoot {path}\nPidFile {path}/pid\n\
                 DefaultRuntimeDir {path}\nErrorLog {path}/log\n\
                 Listen {}:{port}\nListen [{}]:{port}\nDocumentRoot {root}\n\
                 <Directory {path}>\nRequire all granted\n</Directory>\n{extra}\n",
                pair.server4, pair.server6
            ),
        )?;
        let apache = Apache {
            pair,
            config: config.to_string_lossy().into_owned(),
        };
        apache.control("start")?;
        pair.wait_for_port(port).map_err(|why| {
            let log = std::fs::read_to_string(folder.file("log")).unwrap_or_default();
            format!("{why}\n--- Apache's log\n{log}")
        })?;
        Ok(apache)
    }

    fn control(&self, what: &str) -> Result<String, String> {
        // As with nginx.
        let argv = ["setsid", "-w", "apache2", "-f", &self.config, "-k", what];
        self.pair.server.must(&argv, LIMIT)
    }
}

fn apache_prefork(pair: &Pair) -> Result<(), String> {
    let processes = "StartServers 4\nMinSpareServers 2\nMaxSpareServers 8\nMaxRequestWorkers 30\n";
    apache(pair, "mpm_prefork", processes)
}

fn apache_event(pair: &Pair) -> Result<(), String> {
    // More threads a process than there are clients: where all are busy, it closes connections
    // that clients keep, and a request may be on its way just then.
    let processes = "StartServers 2\nServerLimit 2\nThreadsPerChild 32\nMaxRequestWorkers 64\n\
                     MinSpareThreads 1\nMaxSpareThreads 64\n";
    apache(pair, "mpm_event", processes)
}

fn apache(pair: &Pair, kind: &str, processes: &str) -> Result<(), String> {
    let folder = site()?;
    let root = folder.path().to_string_lossy().into_owned();
    let apache = Apache::start(pair, &folder, &root, &[kind], processes)?;
    let port = pair.port(0);
    fetch(pair, &folder, port)?;
    let url = format!("http://{}:{port}/small", pair.server4);
    load(pair, &["-n", "2000", "-c", "20", &url])?;
    load(pair, &["-n", "2000", "-c", "20", "-k", &url])?;
    let (count, restarted) = std::thread::scope(|scope| {
        let load = scope.spawn(|| load(pair, &["-t", "5", "-n", "1000000", "-c", "8", &url]));
        let restarts = || -> Result<(), String> {
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(1200));
                apache.control("graceful")?;
            }
            Ok(())
        };
        let restarted = restarts();
        (load.join(), restarted)
    });
    let log = std::fs::read_to_string(folder.file("log")).unwrap_or_default();
    let explained = |why: String| format!("{why}\n--- Apache's log\n{}", exec::tail(&log, 20));
    restarted.map_err(explained)?;
    count
        .map_err(|_| "the load's thread died")?
        .map_err(explained)?;
    ensure(
        log.matches("resuming normal operations").count() == 3,
        || format!("not started once and restarted twice:\n{log}"),
    )?;
    fetch4(pair, &folder, port)?;
    apache.control("stop")?;
    let ended = exec::until(Duration::from_secs(15), || pid_in(&folder, "pid").is_none());
    ensure(ended, || "Apache did not stop".to_string())
}

fn git_clone(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    let path = folder.path().to_string_lossy().into_owned();
    folder.noise("noise", 8 << 20)?;
    let script = "set -e; cd \"$0\"; export HOME=\"$0\" GIT_CONFIG_NOSYSTEM=1 \
                  GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t; ";
    let shell = |place: &super::topology::Place, lines: &str| {
        place.must(&["sh", "-c", &format!("{script}{lines}"), &path], LIMIT)
    };
    shell(
        &pair.server,
        "git init -q -b main w; cp noise w; cd w; git add noise; git commit -q -m one; cd ..; \
         git clone -q --bare w r.git; git -C r.git config http.receivepack true; chmod -R a+rwX .",
    )?;
    let extra = format!(
        "StartServers 3\nMinSpareServers 2\nMaxSpareServers 6\nMaxRequestWorkers 20\n\
         SetEnv GIT_PROJECT_ROOT {path}\nSetEnv GIT_HTTP_EXPORT_ALL 1\n\
         SetEnv GIT_CONFIG_COUNT 1\nSetEnv GIT_CONFIG_KEY_0 safe.directory\n\
         SetEnv GIT_CONFIG_VALUE_0 *\n\
         ScriptAlias /git/ /usr/lib/git-core/git-http-backend/\n\
         <Directory /usr/lib/git-core>\nRequire all granted\n</Directory>"
    );
    let modules = ["mpm_prefork", "alias", "env", "cgi"];
    let apache = Apache::start(pair, &folder, &path, &modules, &extra)?;
    let url = format!("http://{}:{}/git/r.git", pair.server4, pair.port(0));
    let cloned = shell(
        &pair.client,
        &format!(
            "git clone -q {url} c; git clone -q {url} d; cmp noise c/noise; \
             cd c; echo two >two; git add two; git commit -q -m two; git push -q origin main; \
             cd ../d; git pull -q; cat two"
        ),
    );
    let log = std::fs::read_to_string(folder.file("log")).unwrap_or_default();
    let text = cloned.map_err(|why| format!("{why}\n--- Apache's log\n{log}"))?;
    ensure(text == "two\n", || format!("pulled '{text}'"))?;
    apache.control("stop")?;
    Ok(())
}

fn haproxy(pair: &Pair) -> Result<(), String> {
    let folder = site()?;
    let path = folder.path().to_string_lossy().into_owned();
    let behind: Vec<String> = (1..=2).map(|n| pair.port(n).to_string()).collect();
    let server = |number: &str| {
        let argv = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "-d"];
        let argv: Vec<&str> = argv.iter().copied().chain([&path, number]).collect();
        pair.server.start(&argv)
    };
    let mut first = server(&behind[0])?;
    let _second = server(&behind[1])?;
    let port = pair.port(0);
    let config = folder.write(
        "haproxy.cfg",
        format!(
            "global\n nbthread 2\n maxconn 500\n\
             defaults\n mode http\n retries 3\n option redispatch 1\n \
             retry-on conn-failure empty-response\n timeout connect 5s\n \
             timeout client 20s\n timeout server 20s\n\
             listen web\n bind {}:{port}\n bind [{}]:{port}\n balance roundrobin\n \
             server a 127.0.0.1:{} check inter 3s fall 4\n server b 127.0.0.1:{} check inter 3s fall 4\n",
            pair.server4, pair.server6, behind[0], behind[1]
        ),
    )?;
    for number in 1..=2 {
        pair.wait_for_port(pair.port(number))?;
    }
    let _haproxy = pair
        .server
        .start(&["haproxy", "-db", "-f", &config.to_string_lossy()])?;
    pair.wait_for_port(port)?;
    fetch(pair, &folder, port)?;
    let url = format!("http://{}:{port}/small", pair.server4);
    load(pair, &["-n", "1000", "-c", "10", &url])?;
    // A node learns of a SIGKILL a moment after the parent: a connection may still be taken
    // till then, and is reset, which HAProxy is told to try again.
    first.kill();
    load(pair, &["-n", "300", "-c", "10", &url])?;
    fetch4(pair, &folder, port)
}

fn gunicorn(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    served_by_gunicorn(pair, &folder.file("log").to_string_lossy()).map_err(|why| {
        let log = std::fs::read_to_string(folder.file("log")).unwrap_or_default();
        format!("{why}\n--- gunicorn's log\n{}", exec::tail(&log, 40))
    })
}

fn served_by_gunicorn(pair: &Pair, log: &str) -> Result<(), String> {
    let port = pair.port(0);
    let bind = format!("{}:{port}", pair.server4);
    let chdir = paths::root().join("tests/apps");
    let chdir = chdir.to_string_lossy();
    let _server = pair.server.start(&[
        "gunicorn",
        "-w",
        "4",
        "-b",
        &bind,
        "--chdir",
        &chdir,
        "--log-file",
        log,
        "wsgi:app",
    ])?;
    pair.wait_for_port(port)?;
    let url = format!("http://{bind}/");
    // The application says in which process it is.
    let workers = || -> Result<BTreeSet<String>, String> {
        let each = format!("{url}?[1-100]");
        let argv = ["curl", "-sS", "-f", "-Z", "--parallel-max", "20", &each];
        let text = pair.client.must(&argv, LIMIT)?;
        Ok(text.lines().map(str::to_string).collect())
    };
    let mut before = BTreeSet::new();
    for _ in 0..10 {
        before.extend(workers()?);
        if before.len() == 4 {
            break;
        }
    }
    ensure((2..=4).contains(&before.len()), || {
        format!("workers that answered: {before:?}")
    })?;
    load(pair, &["-n", "2000", "-c", "20", &url])?;
    let victim = before.iter().next().ok_or("no worker")?;
    pair.server.must(&["kill", "-KILL", victim], LIMIT)?;
    let replaced = exec::until(Duration::from_secs(20), || {
        workers().is_ok_and(|now| !now.contains(victim) && !now.is_subset(&before))
    });
    ensure(replaced, || {
        format!("worker {victim} was killed and no new one answers")
    })
}
