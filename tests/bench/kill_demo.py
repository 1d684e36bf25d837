#!/usr/bin/env python3
"""Kills the demo with SIGKILL at random moments, resumes it each time, and checks what the store promises.

    tests/bench/kill_demo.py [--skein build/release/skein] [--kills 5] [--seed N] [--config FILE] [--run-dir DIR]

After every kill: no process of the run is left, the database is whole, and every row recorded before is still there,
unchanged. At the end: the job is finished, every task has all its evaluations, and playing it back is identical. Takes
as long as the demo, plus what the kills threw away; not part of the tests for that reason. Exit code 0 when all holds.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

# Rows of these are written once. Of the others some columns change (status, end, heartbeat), their keys do not.
WRITTEN_ONCE = ("weights", "sampler", "task", "segment", "step", "tool_call", "blob", "reward", "event")
KEYS = {"run": "uid", "episode": "uid", "attempt": "episode, n", "trajectory": "uid"}
PR_SET_CHILD_SUBREAPER = 36


def fail(message):
    print(f"FAIL {message}", flush=True)
    sys.exit(1)


def read_rows(run):
    """Every row that must stay, from a copy, so that looking changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for file in run.glob("skein.db*"):
            shutil.copy(file, folder)
        with sqlite3.connect(f"{folder}/skein.db") as database:
            verdict = database.execute("PRAGMA integrity_check").fetchone()[0]
            if verdict != "ok":
                fail(f"the database is damaged: {verdict}")
            rows = {table: set(database.execute(f"SELECT * FROM {table}")) for table in WRITTEN_ONCE}
            for table, key in KEYS.items():
                rows[table] = set(database.execute(f"SELECT {key} FROM {table}"))
        database.close()
    return rows


def check_nothing_lost(before, after, what):
    for table, rows in before.items():
        lost = rows - after[table]
        if lost:
            fail(f"{what}: {len(lost)} of {len(rows)} rows of {table} are gone or changed, e.g. {next(iter(lost))!r:.300}")


def descendants(of):
    parents = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = pathlib.Path(entry.path, "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
    found, grew = {of}, True
    while grew:
        grown = {pid for pid, parent in parents.items() if parent in found} | found
        grew, found = len(grown) > len(found), grown
    return found - {of}


def wait_until_alone(seconds=30):
    """Orphans become children of this process; they must end by themselves."""
    began = time.monotonic()
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            if not descendants(os.getpid()):
                return time.monotonic() - began
        if time.monotonic() - began > seconds:
            left = {pid: pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(os.getpid())}
            fail(f"processes are left {seconds} s after the kill: {left}")
        time.sleep(0.05)


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skein", default=root / "build/release/skein", type=pathlib.Path)
    parser.add_argument("--config", default=root / "examples/yaml/kernel_opt.yaml", type=pathlib.Path)
    parser.add_argument("--kills", default=5, type=int)
    parser.add_argument("--seed", default=random.SystemRandom().randrange(1 << 32), type=int)
    parser.add_argument("--longest", default=60.0, type=float, help="seconds between start and kill, at most")
    parser.add_argument("--run-dir", type=pathlib.Path, help="kept; default: a temporary one, removed when all holds")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chance = random.Random(arguments.seed)
    run = arguments.run_dir or pathlib.Path(tempfile.mkdtemp(prefix="skein-kill-demo-")) / "run"
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        fail("cannot become a subreaper")

    began = time.monotonic()
    command = [arguments.skein, "run", arguments.config, "--run-dir", run]
    before = None
    for number in range(1, arguments.kills + 1):
        delay = chance.uniform(1, arguments.longest)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            code = process.wait(delay)
            fail(f"kill {number}: skein ended by itself with {code} before {delay:.1f} s; choose a smaller --longest")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        alone = wait_until_alone()
        if not (run / "skein.db").exists():  # killed before the run had a store: nothing was recorded
            print(f"kill {number} after {delay:5.1f} s: no store yet, alone after {alone:.2f} s", flush=True)
            continue
        rows = read_rows(run)
        if before is not None:
            check_nothing_lost(before, rows, f"kill {number}")
        before = rows
        print(f"kill {number} after {delay:5.1f} s: alone after {alone:.2f} s; {len(rows['event'])} events, "
              f"{len(rows['step'])} steps, {len(rows['blob'])} blobs recorded", flush=True)
        command = [arguments.skein, "resume", run]

    last = subprocess.run([*command, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if last.returncode != 0:
        fail(f"the last resume ended with {last.returncode}")
    print(f"finished after {time.monotonic() - began:.0f} s, alone after {wait_until_alone():.2f} s")
    after = read_rows(run)
    if before is not None:
        check_nothing_lost(before, after, "the finished run")
    result = json.loads(last.stdout.strip().splitlines()[-1])
    if result["status"] != "finished":
        fail(f"status is {result['status']}")
    for task in result["tasks"]:
        print(f"  {task['id']:<10} {task['verdict']:<8} {task['speedup']:6.2f} x, {task['evaluations']} evaluations, "
              f"{task['proposed']['model']} by the model", flush=True)
    print(f"  geometric mean {result['geomean_speedup']:.2f} x; {len(after['event'])} events, {len(after['step'])} steps")
    counts = {task["evaluations"] for task in result["tasks"]}
    if len(counts) != 1:
        fail(f"tasks have different numbers of evaluations: {counts}; did the time of the configuration run out? Try a quiet machine")
    played = subprocess.run([arguments.skein, "replay", run, "--mode", "playback", "--json"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    report = json.loads(played.stdout.strip().splitlines()[-1])
    if played.returncode != 0 or report["status"] != "identical" or report["steps"] != len(after["step"]):
        fail(f"playback: exit {played.returncode}, {report}")
    print(f"playback of {report['steps']} steps: {report['status']}")
    if arguments.run_dir is None:
        shutil.rmtree(run.parent)
    print("ok: killed, resumed, finished, nothing lost")


main()
