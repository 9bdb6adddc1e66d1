"""A receiver of Switchboard's webhooks with Django (3.2 or later), in one file.

    pip install django        (Debian: apt-get install python3-django)
    WEBHOOK_SECRET=whsec_... PORT=8080 python3 receiver.py

In a project of yours, take `is_genuine`, `store` and the view. Two traps: the view has to be exempt
from the CSRF check, which a post from elsewhere cannot pass, and `request.body` has to be read
before `request.POST`.
"""

import hashlib
import hmac
import json
import os
import re
import sys
import tempfile
import time

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

SECRET = os.environ.get("WEBHOOK_SECRET", "").encode()
FOLDER = os.environ.get("EVENTS_FOLDER", "events")
TOLERANCE_SECONDS = 300
MAX_BODY_BYTES = 5 * 1024 * 1024

# The prefix alone would be a secret that everybody knows.
if not re.fullmatch(rb"whsec_\S+", SECRET):
    sys.exit("Set WEBHOOK_SECRET to the secret of the webhook.")
os.makedirs(FOLDER, exist_ok=True)

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    # Nothing here is signed with it.
    SECRET_KEY=os.urandom(32).hex(),
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    # Django answers 400 to more.
    DATA_UPLOAD_MAX_MEMORY_SIZE=MAX_BODY_BYTES,
)


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
        # Made whole or not at all, and never over a file that is there.
        os.link(temporary, os.path.join(FOLDER, delivery_id + ".json"))
        return True
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)


@csrf_exempt
@require_POST
def receive(request):
    raw_body = request.body
    timestamp = request.headers.get("X-Service-Timestamp")
    signature = request.headers.get("X-Service-Signature")
    if not is_genuine(timestamp, signature, raw_body, time.time()):
        return HttpResponse(status=401)
    # From the signed body, not from the header, which is not signed.
    envelope = json.loads(raw_body)
    delivery_id, event = envelope["id"], envelope["event"]
    if not re.fullmatch(r"[0-9a-f-]{36}", delivery_id):
        return HttpResponse(status=400)
    # What cannot be stored is Django's 500, which asks for the next try.
    is_new = store(delivery_id, raw_body)
    outcome = "stored" if is_new else "seen before"
    # In one piece: `print` writes its parts one by one, among those of other threads.
    sys.stdout.write(f"{outcome} {event} {delivery_id}\n")
    sys.stdout.flush()
    return HttpResponse(status=204)


urlpatterns = [path("hooks", receive)]

if __name__ == "__main__":
    address = "127.0.0.1:" + os.environ.get("PORT", "8080")
    # For trying out; in production gunicorn or another WSGI server takes its place.
    execute_from_command_line([sys.argv[0], "runserver", "--noreload", address])
