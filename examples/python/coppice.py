"""A client of Coppice's REST API in Python's standard library.

    python3 coppice.py http://127.0.0.1:8787

talks with a running server: it creates a conversation, appends, streams a
reply, edits a message, lists what a model would read, and compacts. A key, if
the server wants one, comes from the variable COPPICE_KEY.
"""

import json
import os
import sys
import urllib.error
import urllib.request


class Problem(Exception):
    """An answer that is an error. `code` is for programs, the text for people."""

    def __init__(self, status, problem):
        super().__init__(f"{status} {problem.get('code')}: {problem.get('detail')}")
        self.status, self.code = status, problem.get("code")


class Coppice:
    def __init__(self, url, key=None):
        self.url, self.key = url.rstrip("/") + "/v1", key

    def send(self, method, path, body=None, idempotency_key=None):
        """Sends a request and returns the open answer."""
        headers = {}
        if self.key:
            headers["Authorization"] = "Bearer " + self.key
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        if idempotency_key:  # makes the request safe to send again
            headers["Idempotency-Key"] = idempotency_key
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as answer:
            with answer:
                raise Problem(answer.code, json.load(answer)) from None

    def call(self, method, path, body=None, **options):
        with self.send(method, path, body, **options) as answer:
            return json.load(answer)

    def reply(self, conversation, head="active", **body):
        """Yields the events of a reply as (name, data), as they come."""
        with self.send("POST", f"/conversations/{conversation}/branches/{head}/replies", {"stream": True, **body}) as answer:
            yield from events(answer)


def events(lines):
    """Reads server-sent events. Lines that begin with a colon are comments."""
    name, data = "message", []
    for line in lines:
        line = line.decode().rstrip("\r\n")
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield name, json.loads("\n".join(data))
            name, data = "message", []
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)


def stream(client, conversation, head="active", **body):
    """Prints an answer as it comes, and returns the stored message."""
    for name, data in client.reply(conversation, head, **body):
        if name == "reply.delta":
            print(data.get("content", ""), end="", flush=True)
        elif name == "reply.completed":
            print()
            return data["message"]
        elif name in ("reply.failed", "reply.stopped", "stream.closed"):
            raise SystemExit(f"{name}: {data}")
    raise SystemExit("the stream ended before the answer did")


def main(url):
    client = Coppice(url, os.environ.get("COPPICE_KEY"))

    # The window is small, so that a short talk is worth a summary.
    conversation = client.call("POST", "/conversations", {
        "title": "An orchard",
        "settings": {"max_context_tokens": 2000, "reserved_tokens": 200, "min_fold_tokens": 100,
                     "keep_user_ratio": 0, "compaction": "manual"},
    })["id"]
    at = f"/conversations/{conversation}"

    # Messages that are there already come as a chain, each under the one before.
    talk = [{"role": "system", "content": "You help to plan an orchard."}]
    for tree in ("apple", "plum", "pear", "quince"):
        talk.append({"role": "user", "content": f"Does a {tree} grow on clay? " + "The plot slopes to the north. " * 5})
        talk.append({"role": "assistant", "content": f"A {tree} does. " + "Plant it in autumn, and water it in the first two summers. " * 5})
    chain = client.call("POST", at + "/messages", {"parent_id": None, "messages": talk}, idempotency_key="begin " + conversation)
    last = chain["data"][-1]
    print("appended", len(chain["data"]), "messages")

    # A question and its answer, in one request.
    answer = stream(client, conversation, message={"role": "user", "content": "Which apples keep until March?"})

    # An edit is another message under the same parent. The first question stays.
    edited = stream(client, conversation, message={"parent_id": last["id"], "role": "user", "content": "Which apples keep until May?"})
    question = client.call("GET", f"{at}/messages/{edited['parent_id']}")
    print("version", question["siblings"]["index"], "of", question["siblings"]["count"])
    heads = [leaf["id"] for leaf in client.call("GET", at + "/branches")["data"]]
    assert set(heads) == {answer["id"], edited["id"]}
    print(len(heads), "branches")

    # What a model reads of the branch, before and after a compaction.
    def look():
        context = client.call("GET", at + "/branches/active/context")
        print("a model reads", len(context["messages"]), "messages;", context["counts"]["folded"], "are folded")

    look()
    record = client.call("POST", at + "/branches/active/compactions", {"keep_recent_messages": 2})
    print("compaction:", record["outcome"])
    look()

    # What goes wrong has a code.
    try:
        client.call("GET", "/conversations/00000000-0000-7000-8000-000000000000")
    except Problem as problem:
        print("problem:", problem.code)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: coppice.py URL")
    main(sys.argv[1])
