#!/usr/bin/env python3
"""make_packs.py [--out DIR] NAME...: engines of others as archives of at most 45 MB each, from PyPI's wheels, for one GPU of compute capability 9.0.

Wheels are downloaded by name and version, unpacked, stripped of what no run here needs, and in shared objects the device code of other GPUs is set to
zeros: length, addresses and host code stay as they are, and zeros compress. What is packed is therefore not the untouched wheel: where a program does
not load, suspect that first. Nothing of it belongs into the project's tree.
"""
import argparse
import glob
import lzma
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PLATFORMS = ['manylinux_2_35_x86_64', 'manylinux_2_34_x86_64', 'manylinux_2_31_x86_64', 'manylinux_2_28_x86_64', 'manylinux_2_27_x86_64',
             'manylinux_2_24_x86_64', 'manylinux_2_17_x86_64', 'manylinux2014_x86_64', 'manylinux1_x86_64']
VLLM_DEPS = '''annotated-types apache-tvm-ffi==0.1.9 astor blake3 cachetools cbor2 compressed-tensors==0.17.0 depyf==0.20.0 diskcache distro
docstring-parser fastapi==0.136.3 fastsafetensors httpx-sse ijson interegular jiter jmespath jsonschema jsonschema-specifications lark==1.2.2
llguidance==1.7.6 loguru model-hosting-container-standards msgspec openai==2.54.0 openai-harmony==0.0.8 opentelemetry-api
opentelemetry-exporter-otlp opentelemetry-sdk opentelemetry-semantic-conventions opentelemetry-semantic-conventions-ai partial-json-parser
prometheus-fastapi-instrumentator pybase64 pydantic pydantic-core pydantic-extra-types pydantic-settings python-json-logger python-multipart pyzmq
referencing rpds-py setproctitle sniffio sse-starlette starlette typing-inspection uvicorn watchfiles xgrammar==0.2.1'''.split()
# name: wheels, what is left out, what alone is kept, the dictionary of the compression in MiB
PACKS = {
    'ctranslate2': (['ctranslate2==4.8.5'], r'tests?/', '', 64),
    'openmm': (['openmm==8.6.1', 'openmm-cuda-13==8.6.1'], r'/include/|\.h$', '', 64),
    'small-diffusers': (['diffusers==0.42.1'], '', '', 64),
    'warp': (['warp-lang==1.19.0'], r'tests/|\.usd$|\.nvdb$|warp-clang', '', 192),
    'ort': (['onnxruntime-gpu==1.31.1'], r'tensorrt\.so|/tools/|/quantization/|transformers/|libonnxruntime\.so', '', 192),
    'xgboost': (['xgboost==3.4.1'], r'/include/|\.h$', '', 64),
    'vllm': (['vllm==0.25.1'], r'fa[23]_C|cpython-31[0134]|_qutlass_C|tests?/|_flashmla', '', 64),
    'vllmfa3': (['vllm==0.25.1'], '', 'fa3_C', 64),
    'vllmdeps': (VLLM_DEPS, r'/include/|tests?/|\.pyi$|\.h$|\.a$|\.safetensors$', '', 64),
}


def prune(path):
    """The bytes of a shared object with device code for other GPUs set to zeros."""
    data = bytearray(open(path, 'rb').read())
    magic, at = struct.pack('<I', 0xBA55ED50), 0
    while (at := data.find(magic, at)) >= 0:
        version, header, length = struct.unpack_from('<HHQ', data, at + 4)
        if version != 1 or not 16 <= header <= 64 or at + header + length > len(data):
            at += 4
            continue
        place, end, parts = at + header, at + header + length, []
        while place + 64 <= end:
            kind, _, head, size = struct.unpack_from('<HHIQ', data, place)
            arch, = struct.unpack_from('<I', data, place + 28)
            if kind not in (1, 2, 4, 8, 16, 32, 64) or not 64 <= head <= 4096 or place + head + size > end:
                parts = []
                break
            parts.append((kind, arch, place + head, size))
            place += head + size
        if not parts:
            at += 4
            continue
        native = any(kind == 2 and arch == 90 for kind, arch, _, _ in parts)
        for kind, arch, start, size in parts:
            if kind in (1, 2) and not (kind == 2 and arch == 90 if native else kind == 1 and arch <= 90):
                data[start:start + size] = bytes(size)
        at = end
    return bytes(data)


def download(wheels, to):
    command = [sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '--only-binary=:all:', '--python-version', '3.12', '-d', to]
    for platform in PLATFORMS:
        command += ['--platform', platform]
    subprocess.run(command + wheels, check=True)


def pack(name, out):
    wheels, drop, keep, window = PACKS[name]
    drop, keep = re.compile(drop or r'$^'), re.compile(keep)
    with tempfile.TemporaryDirectory() as work:
        download(wheels, os.path.join(work, 'wheels'))
        tree = os.path.join(work, 'tree')
        for wheel in glob.glob(os.path.join(work, 'wheels', '*.whl')):
            zipfile.ZipFile(wheel).extractall(tree)
        if name == 'vllmdeps':
            for path in glob.glob(tree + '/**/*.so*', recursive=True):
                subprocess.run(['strip', '--strip-debug', path], check=False)
        target = os.path.join(out, name + '.tar.xz')
        filters = [{'id': lzma.FILTER_X86}, {'id': lzma.FILTER_LZMA2, 'preset': 6, 'dict_size': window << 20}]
        with lzma.open(target + '.part', 'wb', filters=filters) as stream, tarfile.open(fileobj=stream, mode='w|') as tar:
            for folder, subs, names in os.walk(tree):
                subs.sort()
                for file in sorted(names):
                    path = os.path.join(folder, file)
                    inside = os.path.relpath(path, tree)
                    if drop.search(inside) or not keep.search(inside):
                        continue
                    if re.search(r'\.so(\.[0-9.]+)?$', file) and os.path.getsize(path) > 1000000:
                        data = prune(path)
                        with open(path, 'wb') as f:
                            f.write(data)
                    info = tar.gettarinfo(path, arcname=inside)
                    info.uid = info.gid = 0
                    info.uname = info.gname = ''
                    with open(path, 'rb') as f:
                        tar.addfile(info, f)
        os.replace(target + '.part', target)
        print(name, os.path.getsize(target) >> 20, 'MiB')


if __name__ == '__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', nargs='+', choices=list(PACKS))
    p.add_argument('--out', default='.')
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for n in a.names:
        pack(n, a.out)
