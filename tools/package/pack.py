#!/usr/bin/env python3
"""Packs built files as a tarball, a wheel and a Debian package. tools/release builds first and calls this; it reads no clock and no user,
so that the same files give the same packages, bit for bit.

pack.py --bin BAZEL_BIN --out FOLDER --epoch SECONDS
"""
import argparse
import base64
import gzip
import hashlib
import io
import re
import tarfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r'CUSPLICE_VERSION "(.*)"', (ROOT / "shim/base/version.h").read_text()).group(1)
SUMMARY = "Makes CUDA programs launch faster: a preloaded library that turns their launches into graphs"
HERE = ROOT / "tools/package"


def tree(bin_dir):
    """What is installed below a prefix: path, (bytes, mode). Library and launcher find each other and the presets in this layout."""
    files = {}
    for path, source in (("bin/cusplice", "tools/cusplice"), ("lib/cusplice/player", "harness/player/player"),
                         ("lib/cusplice/scenario", "harness/scenario/scenario")):
        files[path] = ((bin_dir / source).read_bytes(), 0o755)
    files["lib/cusplice/libcusplice.so"] = ((bin_dir / "shim/libcusplice.so").read_bytes(), 0o644)
    files["include/cusplice.h"] = ((ROOT / "shim/include/cusplice.h").read_bytes(), 0o644)
    for preset in (ROOT / "config/presets").glob("*.conf"):
        files["share/cusplice/presets/" + preset.name] = (preset.read_bytes(), 0o644)
    return dict(sorted(files.items()))


def tar_bytes(files, epoch):
    """An uncompressed tar of files and of the folders above them."""
    out = io.BytesIO()
    folders = sorted({str(parent) for path in files for parent in Path(path).parents} - {"."})
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(folders + list(files)):
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


def tarball(files, epoch):
    files = {path: entry for path, entry in files.items()}
    for name in ("install.sh", "uninstall.sh"):
        files[name] = ((HERE / name).read_bytes(), 0o755)
    files["LICENSE"] = ((ROOT / "LICENSE").read_bytes(), 0o644)
    name = f"cusplice-{VERSION}-linux-x86_64"
    inside = {f"{name}/{path}": entry for path, entry in files.items()}
    return f"{name}.tar.gz", gzip.compress(tar_bytes(inside, epoch), mtime=0)


def wheel(files, epoch):
    """The files below the package's folder; the console script is a function that becomes the launcher."""
    tag, info = "py3-none-manylinux_2_28_x86_64", f"cusplice-{VERSION}.dist-info"
    inside = {"cusplice/" + path: entry for path, entry in files.items()}
    texts = {
        "cusplice/__init__.py": (HERE / "wheel_init.py").read_text(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: cusplice\nVersion: {VERSION}\nSummary: {SUMMARY}\nLicense: MIT\nRequires-Python: >=3.6\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: cusplice\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"{info}/entry_points.txt": "[console_scripts]\ncusplice = cusplice:main\n",
        f"{info}/LICENSE": (ROOT / "LICENSE").read_text(),
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
    return f"cusplice-{VERSION}-{tag}.whl", out.getvalue()


def ar_bytes(members, epoch):
    out = b"!<arch>\n"
    for name, data in members:
        out += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


def deb(files, epoch):
    inside = {"usr/" + path: entry for path, entry in files.items()}
    inside["usr/share/doc/cusplice/copyright"] = ((ROOT / "LICENSE").read_bytes(), 0o644)
    size = sum(len(data) for data, _ in inside.values()) // 1024
    control = (f"Package: cusplice\nVersion: {VERSION}\nArchitecture: amd64\nMaintainer: cusplice\nInstalled-Size: {size}\n"
               f"Depends: libc6 (>= 2.28)\nSection: utils\nPriority: optional\nDescription: {SUMMARY}\n")
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {path}\n" for path, (data, _) in sorted(inside.items()))
    head = {"control": (control.encode(), 0o644), "md5sums": (sums.encode(), 0o644)}
    members = [("debian-binary", b"2.0\n")]
    members += [(name, gzip.compress(tar_bytes(part, epoch), mtime=0)) for name, part in (("control.tar.gz", head), ("data.tar.gz", inside))]
    return f"cusplice_{VERSION}_amd64.deb", ar_bytes(members, epoch)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epoch", type=int, required=True)
    args = parser.parse_args()
    files = tree(args.bin)
    args.out.mkdir(parents=True, exist_ok=True)
    for make in (tarball, wheel, deb):
        name, data = make(files, args.epoch)
        (args.out / name).write_bytes(data)
        print(f"{hashlib.sha256(data).hexdigest()}  {name}  {len(data)} bytes")


if __name__ == "__main__":
    main()
