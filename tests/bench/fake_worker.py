"""Stands in for flashmask_core.bench.worker; the job's title, or FAKE_WORKER_ACTS, says who misbehaves: "flex=crash sdpa=hang"."""

import json
import os
import signal
import subprocess
import sys
import time

job = json.loads(sys.stdin.readline())
words = f"{job['title']} {os.environ.get('FAKE_WORKER_ACTS', '')}".split()
acts = dict(word.split("=") for word in words if "=" in word)


def say(**event):
    print(json.dumps(event), flush=True)


if acts.get("start") == "die":
    print("Traceback ...", "ImportError: no such library", sep="\n", file=sys.stderr)
    sys.exit(7)
if acts.get("start") == "hang":
    time.sleep(60)
if acts.get("start") == "refuse":
    say(event="failed", reason="no CUDA GPU here")
    sys.exit(0)
say(event="device", where={"device": "stand-in"})
excluded = {(case, provider) for case, provider, _ in job["excluded"]}
for number, case in enumerate(job["cases"]):
    if number in job["done"]:
        continue
    say(event="case", case=number)
    left = [p for p in case["providers"] if (number, p) not in excluded]
    steps = ["mask"] + ["reference"] * ((number, "reference") not in excluded) + left
    for provider in steps:
        place = max(0, steps.index(provider) - len(steps) + len(left))
        say(event="progress", case=number, provider=provider, message=f"timing {provider}", fraction=(number + place / len(left)) / len(job["cases"]))
        match acts.get(provider):
            case "crash":
                print("RuntimeError: something broke", file=sys.stderr)
                sys.exit(3)
            case "fatal":
                say(event="fatal", reason="CUDA error: an illegal memory access was encountered")
                sys.exit(4)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
                print(f"child {child.pid}", file=sys.stderr)
                if "pidfile" in acts:
                    with open(acts["pidfile"], "w") as out:
                        out.write(f"{os.getpid()} {child.pid}")
                time.sleep(60)
            case "slow":
                time.sleep(1.0)
            case "caches":
                print(f"caches={os.environ.get('TRITON_CACHE_DIR', 'none')}", file=sys.stderr)
                sys.exit(3)
            case "garbage":
                print("W0101 a library prints\n{not json\n[1, 2]\n\"text\"\n{\"no\": \"event\"}", flush=True)
                sys.stdout.buffer.write(b"\xff\xfe\n")
                sys.stdout.flush()
    for provider in left:
        for direction in case["passes"]:
            shape = {k: case[k] for k in ("mask", "mask_name", "seqlen_q", "seqlen_k", "batch", "heads", "kv_heads",
                                          "head_dim", "dtype")}  # fmt: skip
            say(event="row", case=number, row={**shape, "provider": provider, "direction": direction, "status": "ok",
                                               "median_ms": 1.5, "lower_quartile_ms": 1.25, "upper_quartile_ms": 2.0,
                                               "tflops_rho": 500.0, "tflops_density": 480.0, "rho": 0.5, "density": 0.5,
                                               "check": "passed",
                                               "where": {"device": "stand-in"}})  # fmt: skip
    say(event="case_done", case=number)
say(event="done")
