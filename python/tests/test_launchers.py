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


#: What Bazel otherwise fetches from the internet before any test: names of native rules, and two programs that only coverage needs.
CC = "cc_binary cc_import cc_library cc_proto_library cc_test cc_toolchain cc_toolchain_suite fdo_prefetch_hints fdo_profile objc_library objc_import"
JAVA = ("java_binary java_import java_library java_lite_proto_library java_proto_library java_test java_package_configuration "
        "java_plugin java_runtime java_toolchain")
SHELL_TEST = "#!/bin/sh\nip link add own0 type dummy && ip link show own0\n"


def bazel_without_the_internet(folder):
    """Repositories that stand for those of Bazel's rules; the lines of .bazelrc that name them."""
    rules = {"rules_cc": ("cc", CC), "rules_java": ("java", JAVA), "rules_proto": ("proto", "proto_library")}
    for repository, (package, names) in rules.items():
        place = folder / repository
        (place / package).mkdir(parents=True)
        for empty in ("WORKSPACE", "BUILD", f"{package}/BUILD"):
            (place / empty).touch()
        lines = [f"def {name}(**attrs): native.{name}(**attrs)\n" for name in names.split()]
        (place / package / "defs.bzl").write_text("".join(lines))
    coverage = folder / "remote_coverage_tools"
    coverage.mkdir()
    (coverage / "WORKSPACE").touch()
    (coverage / "none.sh").write_text("#!/bin/sh\n")
    (coverage / "none.sh").chmod(0o755)
    (coverage / "BUILD").write_text("".join(
        f'sh_binary(name = "{name}", srcs = ["none.sh"], visibility = ["//visibility:public"])\n'
        for name in ("coverage_report_generator", "lcov_merger")))
    startup = f"startup --batch --output_user_root={folder}/out\n"
    return startup + "".join(f"common --override_repository={name}={folder}/{name}\n" for name in (*rules, coverage.name))


def test_bazel(tmp_path):
    """Bazel 4, as Debian packages it."""
    needs("bazel")
    own = tmp_path / "own"
    own.mkdir()
    (own / "WORKSPACE").touch()
    (own / ".bazelrc").write_text(bazel_without_the_internet(tmp_path))
    (own / "BUILD").write_text('sh_test(name = "own", size = "small", srcs = ["own.sh"])\n')
    (own / "own.sh").write_text(SHELL_TEST)
    (own / "own.sh").chmod(0o755)
    script = block(PAGE, "sh", "Bazel")
    assert "--run_under=ring3-test" in script
    status, said = run(script, own, HOME=str(tmp_path))
    log = own / "bazel-testlogs/own/test.log"
    said += log.read_text() if log.exists() else ""
    # Bazel's own folders have files that their owner may not write to.
    subprocess.run(["chmod", "-R", "u+w", tmp_path / "out"], check=False)
    assert status == 0 and "1 test passes" in said and "own0: <BROADCAST" in said, said
