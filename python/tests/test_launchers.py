# SPDX-License-Identifier: GPL-2.0
"""Test runners with `ring3-test`, as docs/testing.md shows them. Each test program fails on the host: it wants an
interface of its own making."""

import os
import shutil
import subprocess

import pytest
from pages import ROOT, block

ENV = {**os.environ, "PATH": f"{ROOT}/bin:{ROOT}/tools:{os.environ['PATH']}:{os.path.expanduser('~')}/.cargo/bin"}
PAGE = "docs/testing.md"


def run(script, folder, **env):
    done = subprocess.run(["sh", "-ec", script], cwd=folder, env={**ENV, **env}, capture_output=True, text=True, timeout=540)
    return done.returncode, done.stdout + done.stderr


def needs(program):
    if shutil.which(program, path=ENV["PATH"]) is None:
        pytest.skip(f"no {program} on this machine")


def test_status_and_options(tmp_path):
    assert run("ring3-test sh -c 'exit 7'", tmp_path)[0] == 7
    assert run("ring3-test", tmp_path)[0] == 2
    status, said = run("ring3-test sysctl -n net.ipv4.ip_default_ttl", tmp_path, RING3_TEST="--sysctl net.ipv4.ip_default_ttl=99")
    assert (status, said) == (0, "99\n")


GO = """package own
import ("net"; "os/exec"; "testing")
func TestInterface(t *testing.T) {
	if out, err := exec.Command("ip", "link", "add", "own0", "type", "dummy").CombinedOutput(); err != nil { t.Fatal(string(out)) }
	if _, err := net.InterfaceByName("own0"); err != nil { t.Fatal(err) }
	l, err := net.Listen("tcp", "127.0.0.1:80")
	if err != nil { t.Fatal(err) }
	go func() { c, err := net.Dial("tcp", l.Addr().String()); if err == nil { c.Close() } }()
	if _, err := l.Accept(); err != nil { t.Fatal(err) }
}
"""


def test_go(tmp_path):
    needs("go")
    (tmp_path / "go.mod").write_text("module own\n\ngo 1.19\n")
    (tmp_path / "own_test.go").write_text(GO)
    script = block(PAGE, "sh", "Go")
    assert script.startswith("go test -exec ring3-test")
    status, said = run(script, tmp_path, GOFLAGS="-vet=off", GOTOOLCHAIN="local")
    assert status == 0 and "ok" in said, said


RUST = """#[test]
fn interface() {
    let status = std::process::Command::new("ip").args(["link", "add", "own0", "type", "dummy"]).status().unwrap();
    assert!(status.success());
    let names = std::fs::read_to_string("/proc/net/dev").unwrap();
    assert!(names.contains("own0"), "{names}");
    std::net::TcpListener::bind("127.0.0.1:80").unwrap();
}
"""


@pytest.mark.parametrize("way", ["variable", "file"])
def test_cargo(tmp_path, way):
    needs("cargo")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").write_text(RUST)
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "own"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n')
    script = block(PAGE, "sh", "Cargo")
    if way == "file":
        (tmp_path / ".cargo").mkdir()
        (tmp_path / ".cargo/config.toml").write_text(block(PAGE, "toml", "Cargo"))
        script = "cargo test"
    status, said = run(script, tmp_path)
    assert status == 0 and "1 passed" in said, said


def test_nextest(tmp_path):
    """Two tests that could not share a node: nextest starts a process, and so a node, for each."""
    needs("cargo-nextest")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").write_text(RUST + RUST.replace("fn interface", "fn another"))
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "own"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n')
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo/config.toml").write_text(block(PAGE, "toml", "Cargo"))
    status, said = run("cargo nextest run", tmp_path)
    assert status == 0 and "2 passed" in said, said


C = """#include <stdlib.h>
int main(void) { return system("ip link add own0 type dummy && ip link show own0 >/dev/null") != 0; }
"""


def test_ctest(tmp_path):
    needs("cmake")
    (tmp_path / "ports.c").write_text(C)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(own C)\nenable_testing()\nadd_executable(ports ports.c)\n"
        + block(PAGE, "cmake", "CTest")
    )
    status, said = run("cmake -S . -B build >/dev/null && cmake --build build >/dev/null && cd build && ctest", tmp_path)
    assert status == 0 and "100% tests passed" in said, said
