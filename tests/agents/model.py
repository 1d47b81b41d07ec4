"""A model that plays a script, on loopback, in the wire formats that agents speak.

Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini, streamed or whole. Nothing here knows an
agent: a turn is text and a list of calls (`{"name": ..., "arguments": {...}}`), and the caller chose the names.

Which turn a request asks for is read from the request itself: every reply begins with a mark such as `[main 3]`, so
the highest mark in a conversation says which turn came last. Requests that are repeated, or that arrive beside the
conversation (titles, summaries: they offer no tools), therefore change nothing.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MARK = re.compile(r"\[([a-z0-9-]+) (\d+)\]")
SIDE_ANSWER = "A title"
FINISHED = "Nothing is left to do."


def texts(value):
    """Every string in a JSON value, in the order it is written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)


class Script:
    """Conversations by name, each a list of turns; and what the model was sent for each turn."""

    def __init__(self, conversations):
        self.conversations = conversations
        self.requests = []
        self.offered = {}
        self.lock = threading.Lock()

    def place(self, messages):
        """The conversation a request belongs to, and the number of the turn that is wanted, from 0."""
        said = "\n".join(texts(messages))
        marks = [(name, int(number)) for name, number in MARK.findall(said) if name in self.conversations]
        # A subagent's conversation has no mark yet, but its prompt names it.
        begun = {name for name, _ in marks}
        named = [name for name in self.conversations if name != "main" and f"<{name}>" in said]
        name = "main" if "main" in begun or not named else named[0]
        return name, max((number + 1 for of, number in marks if of == name), default=0)

    def reply(self, messages, tools):
        """The turn that a request asks for: its text, and its calls with their ids."""
        offered = offered_tools(tools)
        if not offered:
            return SIDE_ANSWER, []
        name, number = self.place(messages)
        with self.lock:
            self.requests.append({"conversation": name, "turn": number, "messages": messages})
            self.offered |= offered
        turns = self.conversations[name]
        turn = turns[number] if number < len(turns) else {"say": FINISHED}
        calls = [
            {"id": f"call_{name}_{number}_{index}".replace("-", "_"), **call}
            for index, call in enumerate(turn.get("calls", []))
        ]
        return f"[{name} {number}] {turn.get('say', 'Working.')}", calls

    def told(self, number, name="main"):
        """What the model read after its turn: everything behind that turn's mark in the next request."""
        for request in reversed(self.requests):
            if request["conversation"] == name and request["turn"] == number + 1:
                said = "\n".join(texts(request["messages"]))
                return said.rpartition(f"[{name} {number}]")[2]
        return None

    def everything_told(self):
        return "\n".join(text for request in self.requests for text in texts(request["messages"]))


class Model(ThreadingHTTPServer):
    """The server; `port` is chosen by the kernel. `script` may be replaced between sessions."""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.log = []
        self.port = self.server_address[1]

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send("application/json", b"")

    def do_GET(self):
        self.server.log.append(f"GET {self.path}")
        if not self.path.partition("?")[0].endswith("/models"):
            return self.send_error(404)
        model = {"id": "scripted", "object": "model", "created": 0, "owned_by": "test"}
        return self.send_json({"object": "list", "data": [model], "models": []})

    def do_POST(self):
        body = self.read_body()
        path = self.path.partition("?")[0]
        self.server.log.append(f"POST {self.path}")
        for end, answer in ROUTES:
            if path.endswith(end):
                return answer(self, body)
        return self.send_json({})

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            return json.loads(data)
        except ValueError:
            return {}

    def send(self, kind, data):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_json(self, value):
        self.send("application/json", json.dumps(value).encode())

    def send_events(self, events, named=True, end=None):
        lines = []
        for event in events:
            name = f"event: {event['type']}\n" if named else ""
            lines.append(f"{name}data: {json.dumps(event)}\n\n")
        if end:
            lines.append(f"data: {end}\n\n")
        self.send("text/event-stream", "".join(lines).encode())


def offered_tools(tools):
    """The tools in any format's list, each with the names of its arguments."""
    offered = {}
    for tool in tools or []:
        for one in tool.get("functionDeclarations", [tool]):
            one = one.get("function", one)
            keys = ("input_schema", "parameters", "parametersJsonSchema")
            schema = next((one[key] for key in keys if one.get(key)), {})
            offered[one.get("name") or one.get("type", "")] = sorted(schema.get("properties") or {})
    return {name: arguments for name, arguments in offered.items() if name}


def count_tokens(handler, _body):
    handler.send_json({"input_tokens": 10, "totalTokens": 10})


def anthropic(handler, body):
    text, calls = handler.server.script.reply(body.get("messages", []), body.get("tools"))
    blocks = [{"type": "text", "text": text}]
    blocks += [{"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["arguments"]} for c in calls]
    stop = "tool_use" if calls else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 10}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "scripted")}
    if not body.get("stream"):
        whole = {"content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
        return handler.send_json(message | whole)
    start = message | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    events = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            opened, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            opened = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
    events.append({"type": "message_stop"})
    return handler.send_events(events)


def responses(handler, body):
    text, calls = handler.server.script.reply(body.get("input", []), body.get("tools"))
    content = [{"type": "output_text", "text": text, "annotations": []}]
    items = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}]
    for call in calls:
        item = {"id": f"item_{call['id']}", "call_id": call["id"], "name": call["name"], "status": "completed"}
        if "search" in call:  # for tools that are not offered at once
            item = {"type": "tool_search_call", "id": item["id"], "call_id": call["id"], "status": "completed"}
            item |= {"execution": "client", "arguments": {"query": call["search"], "limit": 20}}
        elif "input" in call:  # a tool that takes free text
            item |= {"type": "custom_tool_call", "input": call["input"]}
        else:
            item |= {"type": "function_call", "arguments": json.dumps(call["arguments"])}
        if "namespace" in call:
            item["namespace"] = call["namespace"]
        items.append(item)
    counts = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": "resp_1", "object": "response", "status": "completed", "output": items, "usage": counts | details}
    whole |= {"created_at": 0, "model": body.get("model", "scripted")}
    if not body.get("stream"):
        return handler.send_json(whole)
    events = [{"type": "response.created", "response": whole | {"status": "in_progress", "output": []}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "message":
            delta = {"type": "response.output_text.delta", "item_id": item["id"], "output_index": index}
            events.append(delta | {"content_index": 0, "delta": text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return handler.send_events(events)


def chat(handler, body):
    text, calls = handler.server.script.reply(body.get("messages", []), body.get("tools"))
    tools = [
        {"index": index, "id": c["id"], "type": "function",
         "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])}}
        for index, c in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text} | ({"tool_calls": tools} if tools else {})
    finish = "tool_calls" if tools else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    head = {"id": "chat_1", "created": 0, "model": body.get("model", "scripted")}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return handler.send_json(head | {"object": "chat.completion", "choices": [choice], "usage": usage})
    head["object"] = "chat.completion.chunk"
    chunks = [
        head | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        head | {"choices": [], "usage": usage},
    ]
    return handler.send_events(chunks, named=False, end="[DONE]")


def gemini(handler, body):
    text, calls = handler.server.script.reply(body.get("contents", []), body.get("tools"))
    parts = [{"text": text}] + [{"functionCall": {"name": c["name"], "args": c["arguments"]}} for c in calls]
    answer = {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
        "modelVersion": "scripted",
    }
    if "stream" in handler.path:
        return handler.send_events([answer], named=False)
    return handler.send_json(answer)


ROUTES = [
    ("/messages/count_tokens", count_tokens),
    (":countTokens", count_tokens),
    ("/messages", anthropic),
    ("/responses", responses),
    ("/chat/completions", chat),
    (":generateContent", gemini),
    (":streamGenerateContent", gemini),
]
