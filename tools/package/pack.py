#!/usr/bin/env python3
"""Packs files as a tarball, a wheel, a Debian package or an .rpm. The rule of package.bzl calls it. It reads no clock and no user, so that
the same files give the same package, bit for bit.

pack.py KIND --out FOLDER --epoch SECONDS --version-file shim/base/version.h MODE:PATH=SOURCE...
"""
import argparse
import base64
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
import elf  # noqa: E402, beside this file

HERE = Path(__file__).resolve().parent
LICENSE = HERE.parents[1] / "LICENSE"
SUMMARY = "Makes CUDA programs launch faster: a preloaded library that turns their launches into graphs"
# What programs need beside the C library: the driver, and for the demo the toolkit or the simulator's libraries in their place.
MORE = {"lib/cusplice/scenario": {"libcuda.so.1"}, "lib/cusplice/demo/decode": {"libcudart.so.13", "libcublas.so.13"}}
# Debian's zsh looks for completions of packages there alone.
DEBIAN_ZSH = ("share/zsh/site-functions/", "share/zsh/vendor-completions/")
# What each kind of package calls the machine that the files are for, by the number in their heads.
MACHINES = {62: {"linux": "x86_64", "deb": "amd64", "rpm": "x86-64"}, 183: {"linux": "aarch64", "deb": "arm64", "rpm": "aarch-64"}}
# Only the wheel has the Python module: the bytecode that Python writes beside a module is removed by pip alone.
PYTHON = ("__init__.py", "py.typed")
# A zip file has no time before 1980.
EARLIEST = 315532800


def without_links_out(text, source):
    """A document without links out of its folder, to what no package has. The paths in the source tree stay, as text."""
    def plain(link):
        words, path = link.group(1), os.path.relpath(os.path.join(os.path.dirname(source), link.group(2)))
        return words if path.startswith(words) else f"{words} ({path})"
    return re.sub(r"\[([^]]*)\]\((\.\./[^)]*)\)", plain, text.decode()).encode()


def tree(words, version):
    """What is installed below a prefix: path, (bytes, mode). And for which machine."""
    files, wrong, machines = {}, [], {}
    for word in words:
        place, _, source = word.partition("=")
        mode, _, path = place.partition(":")
        data = Path(source).read_bytes()
        if data.startswith(b"\x7fELF"):
            wrong += elf.faults(source, MORE.get(path, ()))
            machines[int.from_bytes(data[18:20], "little")] = source
        if path.endswith(".md"):
            data = without_links_out(data, source)
        if source.endswith(".in"):
            data = data.replace(b"@VERSION@", version.encode())
        files[path] = (data, int(mode, 8))
    if wrong:
        sys.exit("\n".join(wrong) + "\nBuild with --config=release (tools/bazel/old_glibc.sh).")
    if len(machines) != 1 or not machines.keys() <= MACHINES.keys():
        sys.exit(f"pack.py: the programs are not for one machine that packages are made for: {machines}")
    return files, MACHINES[next(iter(machines))]


def folders_of(files):
    return sorted({str(parent) for path in files for parent in Path(path).parents} - {"."})


def tar_bytes(files, epoch):
    """An uncompressed tar of files and of the folders above them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(folders_of(files) + list(files)):
            entry = tarfile.TarInfo("./" + path)
            entry.mtime, entry.uname, entry.gname = epoch, "root", "root"
            if path in files:
                data, entry.mode = files[path]
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
    return out.getvalue()


def tarball(files, version, epoch, machine):
    files = dict(files)
    for name in ("install.sh", "uninstall.sh"):
        files[name] = ((HERE / name).read_bytes(), 0o755)
    files["LICENSE"] = (LICENSE.read_bytes(), 0o644)
    name = f"cusplice-{version}-linux-{machine['linux']}"
    inside = {f"{name}/{path}": entry for path, entry in files.items()}
    return f"{name}.tar.gz", gzip.compress(tar_bytes(inside, epoch), mtime=0)


def wheel(files, version, epoch, machine):
    """The files below the package's folder; the console script is a function that becomes the launcher."""
    tag, info = f"py3-none-manylinux_2_28_{machine['linux']}", f"cusplice-{version}.dist-info"
    inside = {"cusplice/" + path: entry for path, entry in files.items()}
    texts = {
        **{f"cusplice/{name}": (HERE / "cusplice" / name).read_text() for name in PYTHON},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: cusplice\nVersion: {version}\nSummary: {SUMMARY}\nLicense: MIT\nRequires-Python: >=3.8\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: cusplice\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"{info}/entry_points.txt": "[console_scripts]\ncusplice = cusplice:main\n",
        f"{info}/LICENSE": LICENSE.read_text(),
    }
    inside.update({path: (text.encode(), 0o644) for path, text in texts.items()})
    record = "".join(f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for path, (data, _) in sorted(inside.items()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        # The record comes last, as the format of wheels asks for.
        for path, (data, mode) in [*sorted(inside.items()), (f"{info}/RECORD", ((record + f"{info}/RECORD,,\n").encode(), 0o644))]:
            entry = zipfile.ZipInfo(path, time.gmtime(epoch)[:6])
            entry.create_system, entry.external_attr, entry.compress_type = 3, (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return f"cusplice-{version}-{tag}.whl", out.getvalue()


def ar_bytes(members, epoch):
    out = b"!<arch>\n"
    for name, data in members:
        out += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


def deb(files, version, epoch, machine):
    inside = {"usr/" + path.replace(*DEBIAN_ZSH): entry for path, entry in files.items()}
    size = sum(-(-len(data) // 1024) for data, _ in inside.values())
    control = (f"Package: cusplice\nVersion: {version}\nArchitecture: {machine['deb']}\nMaintainer: cusplice <cusplice@localhost>\nInstalled-Size: {size}\n"
               f"Depends: libc6 (>= 2.28)\nSuggests: python3\nSection: utils\nPriority: optional\nDescription: {SUMMARY}\n")
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {path}\n" for path, (data, _) in sorted(inside.items()))
    head = {"control": (control.encode(), 0o644), "md5sums": (sums.encode(), 0o644)}
    members = [("debian-binary", b"2.0\n")]
    members += [(name, gzip.compress(tar_bytes(part, epoch), mtime=0)) for name, part in (("control.tar.gz", head), ("data.tar.gz", inside))]
    return f"cusplice_{version}_{machine['deb']}.deb", ar_bytes(members, epoch)


def rpm(files, version, epoch, machine):
    """By rpmbuild, with everything that it adds of itself, of the machine or of the day switched off."""
    inside = {"/usr/" + path: entry for path, entry in files.items()}
    own = [path for path in folders_of(inside) if "/cusplice" in path]
    with tempfile.TemporaryDirectory() as work:
        stage = Path(work, "stage")
        for path, (data, _) in inside.items():
            file = Path(f"{stage}{path}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            os.utime(file, (epoch, epoch))
        for path in own:
            os.utime(f"{stage}{path}", (epoch, epoch))
        spec = (f"Name: cusplice\nVersion: {version}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT\nAutoReqProv: no\n"
                f"Requires: libc.so.6(GLIBC_2.28)(64bit)\nProvides: cusplice({machine['rpm']}) = {version}-1\n\n%description\n{SUMMARY}\n\n"
                f"%install\nmkdir -p %{{buildroot}}\ncp -a {stage}/. %{{buildroot}}/\n\n%files\n"
                + "".join(f"%dir %attr(755,root,root) {path}\n" for path in own)
                + "".join(f"%attr({mode:o},root,root) {path}\n" for path, (_, mode) in inside.items()))
        Path(work, "cusplice.spec").write_text(spec)
        settings = {"_topdir": work, "_tmppath": work, "_rpmdir": work, "_rpmfilename": "out.rpm", "_buildhost": "localhost",
                    "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1", "_build_id_links": "none",
                    "__os_install_post": "%{nil}", "debug_package": "%{nil}", "_binary_payload": "w9.gzdio"}
        words = [word for name, value in settings.items() for word in ("--define", f"{name} {value}")]
        done = subprocess.run(["rpmbuild", "-bb", "--quiet", "--target", f"{machine['linux']}-linux", *words, f"{work}/cusplice.spec"], cwd=work,
                              env={"PATH": "/usr/bin:/bin", "HOME": work, "LC_ALL": "C", "TZ": "UTC", "SOURCE_DATE_EPOCH": str(epoch)},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            sys.exit("rpmbuild failed:\n" + done.stdout.decode(errors="replace"))
        return f"cusplice-{version}-1.{machine['linux']}.rpm", Path(work, "out.rpm").read_bytes()


KINDS = {make.__name__: make for make in (tarball, wheel, deb, rpm)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--version-file", type=Path, required=True)
    parser.add_argument("files", nargs="+", metavar="MODE:PATH=SOURCE")
    args = parser.parse_args()
    version = re.search(r'CUSPLICE_VERSION "(.*)"', args.version_file.read_text()).group(1)
    files, machine = tree(args.files, version)
    name, data = KINDS[args.kind](files, version, max(args.epoch, EARLIEST), machine)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / name).write_bytes(data)


if __name__ == "__main__":
    main()
