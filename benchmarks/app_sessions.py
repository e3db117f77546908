"""Twenty sessions without a browser at once against one server: right answers, bounded memory.

    python benchmarks/app_sessions.py [--sessions 20] [--rounds 3]

Each session speaks Streamlit's own protocol over a WebSocket, asks for another model, accelerator
and batch in its address, and compares the figures that come back with the library's. Every round is
20 new sessions, so that memory that is not given back shows. Exit code 1: an answer was wrong, or
the server grew past the limit.
"""

import argparse
import asyncio
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

from roofline.app.scenario import predicted, scenario_of
from roofline.cli.app import server_command
from roofline.units import GIB, MIB, show

MODELS = ("llama-3.1-8b", "qwen3-8b", "deepseek-v3", "gemma-3-27b", "qwen2.5-7b")
DEVICES = (("h200-sxm-141gb", 1), ("b200-hgx", 2), ("h100-sxm5-80gb", 1), ("mi300x", 4))
LARGEST_GROWTH_BYTES = 1 * GIB


def asked(number: int) -> dict[str, object]:
    """The question of one session."""
    device, tp = DEVICES[number % len(DEVICES)]
    model = MODELS[number % len(MODELS)]
    return {"model": model, "accelerator": device, "tp": 8 if model == "deepseek-v3" else tp,
            "batch": number + 1}  # fmt: skip


async def answer(port: int, question: dict[str, object]) -> tuple[dict[str, str], float]:
    """Open a session, run the page, and give its figures and the time that it took."""
    begin = time.perf_counter()
    found: dict[str, str] = {}
    async with connect(
        f"ws://127.0.0.1:{port}/_stcore/stream", subprotocols=["streamlit"], max_size=2**27
    ) as stream:
        ask = BackMsg()
        ask.rerun_script.query_string = urlencode(question)
        await stream.send(ask.SerializeToString())
        async for raw in stream:
            message = ForwardMsg()
            message.ParseFromString(raw)
            if message.WhichOneof("type") == "delta":
                element = message.delta.new_element
                if element.WhichOneof("type") == "metric":
                    found[element.metric.label] = element.metric.body
            elif message.WhichOneof("type") == "script_finished":
                break
    return found, time.perf_counter() - begin


def wrong(found: dict[str, str], question: dict[str, object]) -> list[str]:
    """What differs from the library's figures, in words."""
    p = predicted(scenario_of(question))
    wanted = {
        "TTFT · bound": show(p.bound.ttft_s, "s"),
        "TTFT · estimate": show(float(p.ttft_s.mid), "s"),
        "TPOT · bound": show(p.bound.tpot_s, "s"),
        "TPOT · estimate": show(float(p.tpot_s.mid), "s"),
    }
    return [f"{question}: {label} is {found.get(label)!r}, not {value!r}"
            for label, value in wanted.items() if found.get(label) != value]  # fmt: skip


def memory_bytes(pid: int) -> int:
    """Resident memory of a process (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def serve() -> tuple[subprocess.Popen, int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        server_command(port, open_browser=False),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
                return server, port
        except OSError:
            time.sleep(0.1)
    server.terminate()
    raise SystemExit("the server did not start")


async def round_of(port: int, sessions: int) -> tuple[list[str], list[float]]:
    questions = [asked(number) for number in range(sessions)]
    results = await asyncio.gather(*(answer(port, question) for question in questions))
    faults = [
        line
        for (found, _), question in zip(results, questions, strict=True)
        for line in wrong(found, question)
    ]
    return faults, [took for _, took in results]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    server, port = serve()
    faults: list[str] = []
    try:
        asyncio.run(round_of(port, 1))  # loads the library, as any first session does
        before = memory_bytes(server.pid)
        print(f"one session: {before / MIB:,.0f} MiB resident")
        for number in range(given.rounds):
            begin = time.perf_counter()
            found, took = asyncio.run(round_of(port, given.sessions))
            faults += found
            print(
                f"round {number + 1}: {given.sessions} sessions at once in "
                f"{time.perf_counter() - begin:.1f} s (median {statistics.median(took):.1f} s, "
                f"slowest {max(took):.1f} s), {len(found)} wrong figures, "
                f"{memory_bytes(server.pid) / MIB:,.0f} MiB resident"
            )
        grown = memory_bytes(server.pid) - before
        print(f"grown by {grown / MIB:,.0f} MiB over {given.rounds * given.sessions} sessions")
        if grown > LARGEST_GROWTH_BYTES:
            faults.append("the server grew past its limit")
    finally:
        server.terminate()
        server.wait(timeout=20)
    print("\n".join(faults) or "all figures are the library's")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
