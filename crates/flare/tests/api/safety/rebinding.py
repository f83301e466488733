"""In: the binary and a folder, in a network of its own. Out: 0 when a name that is rebound reaches nothing.

A resolver that changes its mind, a client at an address that is allowed, and a service of the machine that is not: whatever the
name says, and whenever, only the client is ever spoken to."""

import fcntl
import http.server
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

BINARY, FOLDER = sys.argv[1], sys.argv[2]
ALLOWED, PORT = "198.51.100.7", 8000

# What the names have now.
answers = {}
asked = []


def up():
    """The loopback of this network, with a second address that the test allows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, address in (("lo", "127.0.0.1"), ("lo:1", ALLOWED)):
            packed = struct.pack("16sH2s4s8s", name.encode(), socket.AF_INET, b"\0\0", socket.inet_aton(address), b"\0" * 8)
            fcntl.ioctl(control, 0x8916, packed)  # SIOCSIFADDR
            fcntl.ioctl(control, 0x8914, struct.pack("16sH", name.encode(), 0x1 | 0x40))  # SIOCSIFFLAGS: up, running


def resolve(server):
    while True:
        query, sender = server.recvfrom(512)
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        question, kind = query[12 : at + 5], struct.unpack("!H", query[at + 1 : at + 3])[0]
        name = ".".join(labels).lower()
        asked.append(name)
        found = answers.get(name, []) if kind == 1 else []
        head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, len(found), 0, 0)
        records = [b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + socket.inet_aton(address) for address in found]
        server.sendto(head + question + b"".join(records), sender)


def listen(address):
    """A server that counts what comes, and closes each connection, so that the next has to be dialled."""
    came = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            came.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer((address, PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return came


def until(what, holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


def main():
    up()
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    threading.Thread(target=resolve, args=(server,), daemon=True).start()
    for name, text in (("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), ("nsswitch.conf", "hosts: dns\n")):
        path = os.path.join(FOLDER, name)
        with open(path, "w") as file:
            file.write(text)
        subprocess.run(["mount", "--bind", path, os.path.join("/etc", name)], check=True)
    client, victim = listen(ALLOWED), listen("127.0.0.1")
    environment = {
        "FLARE_HTTP_SERVER_INSECURE": "true",
        "FLARE_NETWORK_ALLOW": f"{ALLOWED}/32",
        "FLARE_LOG_FORMAT": "json",
    }
    data = os.path.join(FOLDER, "data")
    flare = subprocess.Popen(
        [BINARY, "start", "--addr", "0.0.0.0:9000", "--data", data], env=environment, stderr=subprocess.PIPE, text=True
    )
    log = []
    threading.Thread(target=lambda: log.extend(flare.stderr), daemon=True).start()
    try:
        until("Flare is ready", lambda: any("Flare is ready" in line for line in log))
        story(client, victim, log)
    finally:
        flare.kill()
        flare.wait()


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:9000{path}", method=method, data=data)
    with urllib.request.urlopen(request, timeout=10) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def story(client, victim, log):
    resource = call("POST", "/resources", {"endpoint": "http://origin.test/users/{id}", "change": {"field": "rev"}})
    retry = {"interval": "50ms", "progression": "arithmetic", "quantity": 1000}

    def subscribe(name):
        endpoint = {"url": f"http://{name}:{PORT}/{name}"}
        made = call("POST", f"/resources/{resource['id']}/subscriptions", {"endpoint": endpoint, "delivery": {"retry": retry}})
        return f"/resources/{resource['id']}/subscriptions/{made['id']}"

    # First it is what is allowed, then this machine; one is this machine from the beginning; one says both.
    answers.update({"rebound.test": [ALLOWED], "local.test": ["127.0.0.1"], "mixed.test": [ALLOWED, "127.0.0.1"]})
    rebound, local, mixed = subscribe("rebound.test"), subscribe("local.test"), subscribe("mixed.test")
    call("PUT", "/documents/http://origin.test/users/1", {"rev": 1})
    until("the client is told", lambda: client == ["/rebound.test"])
    answers["rebound.test"] = ["127.0.0.1"]
    call("PUT", "/documents/http://origin.test/users/1", {"rev": 2})
    for path in (rebound, local, mixed):
        failed = lambda: call("GET", f"{path}/status")["failed"] >= 3
        until(f"{path} has failed", failed)
        error = call("GET", f"{path}/status")["lastFailure"]["error"]
        assert error == "the destination is refused: it is not allowed", error
    assert "127.0.0.1" not in json.dumps(call("GET", f"{local}/attempts")), "whoever subscribes is not told what a name is"
    tried = call("POST", f"{local}/test", {})
    assert tried["error"] == "the destination is refused: it is not allowed", tried
    assert any("a loopback address" in line and "rule" in line for line in log), "the log says which rule"
    assert {"rebound.test", "local.test", "mixed.test"} <= set(asked), "the resolver was really asked"
    # It changes its mind all the time, also between two questions.
    stop = time.monotonic() + 2
    while time.monotonic() < stop:
        for addresses in ([ALLOWED], ["127.0.0.1"], [ALLOWED, "127.0.0.1"]):
            answers["rebound.test"] = addresses
            time.sleep(0.01)
    assert victim == [], f"this machine was reached: {victim}"
    answers["rebound.test"] = [ALLOWED]
    until("the client has it", lambda: client.count("/rebound.test") >= 2)
    assert victim == []


main()
