"""Small idx files, a data set made of them, a web server for them, and the real sets where they are at hand."""

import gzip
import hashlib
import http.server
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from idx_bytes import to_idx

from gedi.data import catalogue

KEPT = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(autouse=True)
def _no_data_of_this_machine(monkeypatch, tmp_path_factory):
    """Nothing here may find, or write to, what the user of this machine keeps."""
    empty = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("pooch.os_cache", lambda _: empty)
    monkeypatch.delenv("GEDI_DATA", raising=False)
    monkeypatch.delenv("GEDI_CACHE_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def tiny(monkeypatch):
    """A data set in the catalogue with 6 train and 3 test images of 2 x 4; the raw bytes of its files by name."""
    rng = np.random.default_rng(0)
    arrays = {
        "train-images-idx3-ubyte": rng.integers(0, 256, (6, 2, 4), dtype=np.uint8),
        "train-labels-idx1-ubyte": np.array([3, 1, 4, 1, 5, 9], dtype=np.uint8),
        "t10k-images-idx3-ubyte": rng.integers(0, 256, (3, 2, 4), dtype=np.uint8),
        "t10k-labels-idx1-ubyte": np.array([2, 6, 5], dtype=np.uint8),
    }
    files = {name: to_idx(values) for name, values in arrays.items()}
    sums = {name.removesuffix("-ubyte"): hashlib.md5(content).hexdigest() for name, content in files.items()}
    entry = catalogue.Entry("tiny", "a few", (), catalogue._idx_files({}, sums))
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", entry)
    return files


@pytest.fixture
def write():
    """Put files, compressed or not, into a folder."""

    def put(folder, files, compress=True):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / (f"{name}.gz" if compress else name)
            path.write_bytes(gzip.compress(content) if compress else content)
        return folder

    return put


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, web, *args):
        self.web = web
        super().__init__(*args)

    def do_GET(self):
        self.web.asked.append(self.path)
        if self.path not in self.web.pages:
            self.send_error(404)
            return
        content, announced = self.web.pages[self.path]
        start = int(self.headers.get("Range", "bytes=0-")[len("bytes=") : -1]) if self.web.gives_parts else 0
        if start and start >= (announced or len(content)):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{announced or '*'}")
        if announced is not None:
            self.send_header("Content-Length", str(announced - start))
        self.end_headers()
        self.web.sent.append(len(content[start:]))
        self.wfile.write(content[start:])

    def log_message(self, *args):
        pass


class Web:
    """Pages by path, each with the length it announces; what was asked for, in order, and how many bytes were sent."""

    def __init__(self, port):
        self.root, self.pages, self.asked, self.sent, self.gives_parts = f"http://127.0.0.1:{port}", {}, [], [], True

    def serve(self, folder, files, compress=True):
        for name, content in files.items():
            page = gzip.compress(content) if compress else content
            self.pages[f"/{folder}/{name}.gz"] = (page, len(page))


@pytest.fixture
def web():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), None)
    page = Web(server.server_port)
    server.RequestHandlerClass = partial(_Handler, page)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield page
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """The folder of a real data set by name, unpacked once."""
    folder = tmp_path_factory.mktemp("data")

    def unpack(name):
        if not (KEPT / "unpack.py").is_file():
            pytest.skip(f"no copy of {name} beside the project")
        if not (folder / name).is_dir():
            subprocess.run(
                [sys.executable, str(KEPT / "unpack.py"), str(folder), name], check=True, capture_output=True
            )
        return folder

    return unpack


@pytest.fixture(scope="session")
def mnist_folder(kept):
    return kept("mnist")
