"""A receiver of Switchboard's webhooks, with nothing but Python (3.8 or later).

    WEBHOOK_SECRET=whsec_... PORT=8080 python3 receiver.py

It stores each event once, as a file named after the delivery id, and answers when it is stored.
"""

import hashlib
import hmac
import json
import os
import re
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("WEBHOOK_SECRET", "").encode()
FOLDER = os.environ.get("EVENTS_FOLDER", "events")
TOLERANCE_SECONDS = 300
MAX_BODY_BYTES = 5 * 1024 * 1024


def is_genuine(timestamp, signature, raw_body, now):
    """timestamp and signature are the header values, raw_body the bytes as they came."""
    if not re.fullmatch(r"[0-9]{1,12}", timestamp or ""):
        return False
    if abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = timestamp.encode() + b"." + raw_body
    expected = "sha256=" + hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
    # As bytes: compare_digest refuses text that is not ASCII, which anybody may send.
    return hmac.compare_digest(expected.encode(), (signature or "").encode())


def store(delivery_id, raw_body):
    """Stores an event unless it is stored already; says whether it is new."""
    handle, temporary = tempfile.mkstemp(dir=FOLDER, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw_body)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, os.path.join(FOLDER, delivery_id + ".json"))
        return True
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        try:
            self.answer(self.receive())
        except Exception as error:  # Not stored: a 5xx asks for the next try.
            print(f"failed: {error!r}", flush=True)
            self.answer(500)

    def receive(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            self.close_connection = True
            return 413
        raw_body = self.rfile.read(length)
        timestamp = self.headers.get("X-Service-Timestamp")
        signature = self.headers.get("X-Service-Signature")
        if not is_genuine(timestamp, signature, raw_body, time.time()):
            return 401
        # From the signed body, not from the header, which is not signed.
        envelope = json.loads(raw_body)
        delivery_id, event = envelope["id"], envelope["event"]
        if not re.fullmatch(r"[0-9a-f-]{36}", delivery_id):
            return 400
        is_new = store(delivery_id, raw_body)
        outcome = "stored" if is_new else "seen before"
        # In one piece: `print` writes its parts one by one, among those of other threads.
        sys.stdout.write(f"{outcome} {event} {delivery_id}\n")
        sys.stdout.flush()
        return 204

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    # The prefix alone would be a secret that everybody knows.
    if not re.fullmatch(rb"whsec_\S+", SECRET):
        sys.exit("Set WEBHOOK_SECRET to the secret of the webhook.")
    os.makedirs(FOLDER, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
