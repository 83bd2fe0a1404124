#!/usr/bin/env python3
"""What tools/package promises, on small files in place of the built ones: the same files give the same packages, bit for bit, whatever the
machine's clock, umask, time zone and order are; a program that needs a newer C library than 2.28 is refused; all kinds have the same files;
no document has a link that leads nowhere; what install.sh installs, uninstall.sh removes; forget.sh removes what runs left.

Run by //tests/package:pack_test, and by hand without arguments.
"""
import gzip
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tools/package"
KINDS = ["tarball", "wheel", "deb"] + (["rpm"] if shutil.which("rpmbuild") else [])
EPOCH = 1700000000
ZSH, DEBIAN_ZSH = "share/zsh/site-functions/", "share/zsh/vendor-completions/"
FAKE_LAUNCHER = """#!/bin/sh
[ "$1" = cache ] && [ -z "${FAKE_BUSY:-}" ] && rm -f "$3/cusplice.cache"
exit 0
"""


class Packages(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)
        files = {"bin/cusplice": (FAKE_LAUNCHER, 755), "lib/cusplice/data": ("b" * 3001, 644), "lib/cusplice/demo/x": ("c", 755),
                 "share/cusplice/presets/y.conf": ("d", 644), "include/cusplice.h": ("e", 644), "share/man/man1/cusplice-run.1": ("f", 644),
                 "share/bash-completion/completions/cusplice": ("g", 644), ZSH + "_cusplice": ("h", 644),
                 "share/doc/cusplice/README.md": ("[a](a.md), [limits](../../README.md#limits), [tools/README.md](../README.md)\n", 644)}
        self.words = []
        for number, (path, (text, mode)) in enumerate(files.items()):
            source = self.work / "tools/docs" / f"source{number}"
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(text)
            self.words.append(f"{mode}:{path}={source}")
        # A program that needs nothing. Its head says for which machine the package is.
        self.program = self.work / "program"
        subprocess.run(["gcc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", self.program], check=True)
        self.program.write_bytes(self.for_machine(self.program, 62))
        self.words.append(f"755:lib/cusplice/player={self.program}")
        self.words += [f"755:lib/cusplice/forget.sh={PACKAGE}/forget.sh", f"644:share/pkgconfig/cusplice.pc={PACKAGE}/cusplice.pc.in"]
        self.version = re.search(r'VERSION "(.*)"', (ROOT / "shim/base/version.h").read_text()).group(1)

    def pack(self, kind, to, words=None, before=(), **environment):
        words = self.words if words is None else words
        command = [*before, "python3", str(PACKAGE / "pack.py"), kind, "--out", str(self.work / to), "--epoch", str(EPOCH), "--version-file",
                   str(ROOT / "shim/base/version.h"), *words]
        return subprocess.run(command, env={**os.environ, **environment}, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)

    @staticmethod
    def for_machine(program, number):
        data = bytearray(program.read_bytes())
        data[18:20] = number.to_bytes(2, "little")
        return bytes(data)

    def packed(self, kind, to="out", **more):
        done = self.pack(kind, to, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [path for path in (self.work / to).iterdir() if path.suffix == {"tarball": ".gz", "wheel": ".whl"}.get(kind, "." + kind)]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_the_same_files_give_the_same_packages(self):
        for kind in KINDS:
            one = self.packed(kind, "one").read_bytes()
            for word in self.words:
                os.utime(word.partition("=")[2], (1, 1)) if word.partition("=")[2].startswith(str(self.work)) else None
                os.chmod(word.partition("=")[2], 0o555) if word.partition("=")[2].startswith(str(self.work)) else None
            two = self.packed(kind, "two", words=self.words[::-1], before=["sh", "-c", 'umask 077; exec "$@"', "sh"], TZ="Asia/Tokyo", LC_ALL="C",
                              HOME=str(self.work), PYTHONHASHSEED="7").read_bytes()
            self.assertEqual(one, two, kind)

    def test_a_package_is_for_the_machine_of_its_programs(self):
        for number, names in ((62, ["linux-x86_64.tar.gz", "manylinux_2_28_x86_64.whl", "amd64.deb", "1.x86_64.rpm"]),
                              (183, ["linux-aarch64.tar.gz", "manylinux_2_28_aarch64.whl", "arm64.deb", "1.aarch64.rpm"])):
            self.program.write_bytes(self.for_machine(self.program, number))
            for kind, name in zip(KINDS, names):
                self.assertTrue(self.packed(kind, f"for{number}").name.endswith(name), name)
        other = self.work / "other"
        other.write_bytes(self.for_machine(self.program, 62))
        for words in (self.words + [f"755:lib/other={other}"], [word for word in self.words if "player" not in word]):
            self.assertIn("not for one machine", self.pack("wheel", "none", words=words).stderr)
            self.assertFalse((self.work / "none").exists())

    def test_a_program_for_a_newer_c_library_is_refused(self):
        source = self.work / "p.c"
        source.write_text('__asm__(".symver newer, newer@GLIBC_2.29");\nint newer(void);\nint main(void) { return newer(); }\n')
        stub = self.work / "stub.c"
        stub.write_text("int newer(void) { return 0; }\n")
        (self.work / "map").write_text("GLIBC_2.29 { newer; };\n")
        library = self.work / "libc.so.6"
        subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-soname,libc.so.6", f"-Wl,--version-script={self.work}/map", stub, "-o", library], check=True)
        subprocess.run(["gcc", "-shared", "-nostdlib", source, library, "-o", self.work / "p.so"], check=True)
        done = self.pack("tarball", "out", words=[f"644:lib/p.so={self.work}/p.so"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("needs GLIBC_2.29", done.stderr)
        (self.work / "map").write_text("OTHER { newer; };\n")
        for flags, why in ((["-Wl,-rpath,/somewhere"], "search path"), ([], "needs libother.so")):
            subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-soname,libother.so", stub, "-o", library], check=True)
            source.write_text("int newer(void);\nint main(void) { return newer(); }\n")
            subprocess.run(["gcc", "-shared", "-nostdlib", source, library, *flags, "-o", self.work / "p.so"], check=True)
            self.assertIn(why, self.pack("tarball", "out", words=[f"644:lib/p.so={self.work}/p.so"]).stderr)

    def members(self, kind):
        """Path below the prefix and mode of each file."""
        data = self.packed(kind).read_bytes()
        if kind == "wheel":
            entries = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in zipfile.ZipFile(io.BytesIO(data)).infolist()}
            return {path[len("cusplice/"):]: mode for path, mode in entries.items() if path.startswith("cusplice/") and path not in ("cusplice/__init__.py", "cusplice/py.typed")}
        if kind == "rpm":
            asked = lambda *words: subprocess.run(["rpm", "--dbpath", str(self.work / "db"), "-qp", *words, str(self.packed("rpm"))],
                                                  stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
            self.assertEqual(asked("--qf", "%{BUILDHOST} %{BUILDTIME}"), f"localhost {EPOCH}")
            # Path, size, time, digest, mode, owner, group and more.
            lines = asked("--dump").splitlines()
            entries = {line.split()[0]: int(line.split()[4], 8) for line in lines}
            self.assertEqual({tuple(line.split()[5:7]) for line in lines}, {("root", "root")})
            return {path[len("/usr/"):]: mode & 0o777 for path, mode in entries.items() if mode & 0o100000}
        if kind == "deb":
            at = data.index(b"data.tar.gz")
            data = data[at + 60:at + 60 + int(data[at + 48:at + 58])]
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as tar:
            entries = {entry.name: entry for entry in tar if entry.isfile()}
            self.assertEqual({(entry.uid, entry.uname, entry.mtime) for entry in entries.values()}, {(0, "root", EPOCH)})
        skip = 2 if kind == "deb" or kind == "tarball" else 0
        return {"/".join(path.split("/")[skip:]): entry.mode for path, entry in entries.items()
                if path.split("/")[-1] not in ("install.sh", "uninstall.sh", "LICENSE")}

    def test_all_kinds_have_the_same_files(self):
        expected = {word.partition("=")[0].partition(":")[2]: int(word[:3], 8) for word in self.words}
        for kind in KINDS:
            # Debian's zsh looks in another folder.
            there = {path.replace(ZSH, DEBIAN_ZSH) if kind == "deb" else path: mode for path, mode in expected.items()}
            self.assertEqual(self.members(kind), there, kind)

    def test_the_wheel_has_the_python_module(self):
        with zipfile.ZipFile(self.packed("wheel")) as archive:
            for name in ("__init__.py", "py.typed"):
                self.assertEqual(archive.read(f"cusplice/{name}"), (PACKAGE / "cusplice" / name).read_bytes())

    def test_the_package_names_its_version(self):
        with tarfile.open(self.packed("tarball")) as tar:
            text = tar.extractfile(f"./cusplice-{self.version}-linux-x86_64/share/pkgconfig/cusplice.pc").read().decode()
        self.assertIn(f"Version: {self.version}\n", text)

    def test_no_link_of_a_document_leads_nowhere(self):
        text = (self.unpack() / "share/doc/cusplice/README.md").read_text()
        self.assertEqual(text, "[a](a.md), limits (README.md#limits), tools/README.md\n")

    def unpack(self):
        with tarfile.open(self.packed("tarball")) as tar:
            tar.extractall(self.work / "unpacked")
        return next((self.work / "unpacked").iterdir())

    def files(self, folder):
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

    def test_what_is_installed_is_removed(self):
        prefix, unpacked = self.work / "prefix", self.unpack()
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin/another").write_text("stays")
        run = lambda *words: subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
        run(unpacked / "install.sh", prefix)
        self.assertTrue(os.access(prefix / "bin/cusplice", os.X_OK))
        # The next version lacks a file.
        (unpacked / "lib/cusplice/data").unlink()
        run(unpacked / "install.sh", prefix)
        self.assertFalse((prefix / "lib/cusplice/data").exists())
        run(prefix / "lib/cusplice/uninstall.sh")
        self.assertEqual(self.files(prefix),
                         ["bin", "bin/another", "include", "lib", "share", "share/bash-completion", "share/bash-completion/completions", "share/doc", "share/man",
                          "share/man/man1", "share/pkgconfig", "share/zsh", "share/zsh/site-functions"])

    def test_what_runs_left_is_forgotten(self):
        prefix, home, shared = self.work / "prefix", self.work / "home", self.work / "shared"
        subprocess.run([str(self.unpack() / "install.sh"), str(prefix)], check=True, stdout=subprocess.DEVNULL)
        cache = home / ".cache/cusplice"
        cache.mkdir(parents=True)
        shared.mkdir()
        uid = os.getuid()
        for name in ("cusplice.cache", "cusplice.cache.lock", "cusplice.cache.new"):
            (cache / name).write_text("")
        for name in (f"cusplice-{uid}-99999999", f"cusplice-{uid}-{os.getpid()}", f"cusplice-{uid + 1}-99999999", "other"):
            (shared / name).write_text("")
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(shared)}
        forget = lambda **more: subprocess.run([str(prefix / "lib/cusplice/forget.sh")], env={**environment, **more}, check=True)
        forget(FAKE_BUSY="1")
        self.assertEqual(len(self.files(cache)), 3, "a cache that is written just now stays, and its lock")
        forget()
        self.assertFalse(cache.exists())
        self.assertEqual(self.files(shared), sorted([f"cusplice-{uid}-{os.getpid()}", f"cusplice-{uid + 1}-99999999", "other"]))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
