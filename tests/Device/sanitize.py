#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What only a GPU can say, prepared where novac is and run where the GPU is.

  sanitize.py make DIR --novac NOVAC --nova-run NOVA_RUN --graphs GRAPHS [--target sm_90a]
                  [--only CLASS,...] [--count 200] [--seed 1] [--jobs 2] [--limit-mib 64]
  DIR/sanitize.py run DIR [--seconds 540] [--parts jit,classes,problems] [--only CLASS,...]
                  [--tools memcheck,racecheck,synccheck] [--device 0] [--jobs 4]
                  [--commit HASH] [--json FILE]

`make` needs neither torch nor a GPU. It leaves in DIR all that `run` takes: bundles,
nova-run with its library, and these scripts; of random problems as many as the limit
leaves room for. `run` needs Python, and torch for `problems`. Its parts:

  jit       graphs with reference data, compiled for sm_80: refused where the PTX
            would need the driver's compiler, and right with --allow-jit
  classes   one step of each class of kernel under each tool of compute-sanitizer,
            launch by launch; clean when the tool reports nothing and the step ends
  problems  random problems against float64 (run_problems.py)

What does not fit into --seconds is stopped or not begun, and counted as "not run".
One line per finding as it is found; a table last; with --json everything. Exit status
1 where something was found, or nothing ran; 4 where compute-sanitizer cannot run.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

TOOLS = {"memcheck": ["--report-api-errors", "no"], "racecheck": ["--racecheck-report", "all"], "synccheck": []}
COLUMNS = ["f32", "tf32", "bf16"]
CARRIED = ["sanitize.py", "run_problems.py", "check_bundle.py", "judge.py", "make_inputs.py", "run_graph_torch.py", "tensor_files.py"]
NOT_RUN = "not run"


def chosen(names, only):
    """Those of `only`, all if it is empty; a name that is unknown ends the script."""
    wanted = list(filter(None, only.split(",")))
    unknown = [name for name in wanted if name not in names]
    if unknown:
        sys.exit(f"sanitize.py: unknown: {', '.join(unknown)}; expected some of {', '.join(names)}")
    return [name for name in names if not wanted or name in wanted]


# --- make --------------------------------------------------------------------------

def size_of(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def compile_all(arguments, jobs):
    """jobs: (graph, bundle, target, precision). How many failed."""
    def build(job):
        graph, bundle, target, precision = job
        command = [arguments.novac, "compile", graph, "-o", bundle, "--target", target, "--precision", precision, "--no-cache", "-j", 1]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        return bundle.name, done.returncode, done.stderr.strip()

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, status, said in pool.map(build, jobs):
            failed += status != 0
            if status:
                print(f"{name}: exit status {status}: {said}", flush=True)
    print(f"{len(jobs) - failed} of {len(jobs)} bundles")
    return failed


def make(arguments):
    import kernel_classes
    folder, here = arguments.folder, pathlib.Path(__file__).resolve().parent
    if folder.exists() and any(folder.iterdir()) and not (folder / "sanitize.py").exists():
        sys.exit(f"{folder}: is not empty and was not written by this script")
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("classes", "jit"):
        (folder / part).mkdir(parents=True)
    for name in CARRIED:
        shutil.copy(here / name, folder / name)
    shutil.copy(arguments.nova_run, folder / "nova-run")
    # The library under the name that nova-run asks for.
    libraries = subprocess.run(["ldd", arguments.nova_run], capture_output=True, text=True).stdout
    for name, path in re.findall(r"(libnova_rt\S*) => (/\S+)", libraries):
        shutil.copy(path, folder / name)
    jobs = [(kernel_classes.write(folder / "classes", kind, column), folder / "classes" / f"{kind}.{column}.nova", arguments.target,
             kernel_classes.PRECISIONS[column][1])
            for kind in chosen(list(kernel_classes.CLASSES), arguments.only) for column in COLUMNS]
    jit_target = "host" if arguments.target == "host" else "sm_80"
    for data in sorted(arguments.graphs.glob("*.data.safetensors")):
        name = data.name.removesuffix(".data.safetensors")
        shutil.copy(data, folder / "jit" / data.name)
        jobs.append((arguments.graphs / f"{name}.json", folder / "jit" / f"{name}.nova", jit_target, "f32"))
    failed = compile_all(arguments, jobs)
    room = arguments.limit_mib - size_of(folder) / (1 << 20)
    if arguments.count:
        done = subprocess.run([str(c) for c in [sys.executable, here / "random_problems.py", "--novac", arguments.novac, "--count",
                                                arguments.count, "--seed", arguments.seed, "--out", folder / "problems", "--target",
                                                arguments.target, "--jobs", arguments.jobs, "--limit-mib", max(room - 1, 0)]])
        failed += done.returncode != 0
    total = size_of(folder) / (1 << 20)
    print(f"{folder}: {total:.1f} MiB, the limit is {arguments.limit_mib:g}")
    return 1 if failed or total > arguments.limit_mib else 0


# --- run ---------------------------------------------------------------------------

class Session:
    """What all parts share: where things are, and until when."""

    def __init__(self, arguments):
        self.arguments, self.folder = arguments, arguments.folder.resolve()
        self.deadline = time.monotonic() + arguments.seconds
        self.nova_run = self.folder / "nova-run"
        self.environment = dict(os.environ)
        self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(self.folder), os.environ.get("LD_LIBRARY_PATH")]))

    def left(self):
        return self.deadline - time.monotonic()

    def bounded(self, command, until, most=120):
        """(exit status, output): the status is None after `most` seconds, NOT_RUN where
        there was no time until `until`. Ends what the command started, too."""
        seconds = min(most, until - time.monotonic())
        if seconds <= 1:
            return NOT_RUN, ""
        try:
            child = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     errors="replace", env=self.environment, start_new_session=True)
        except OSError as error:
            return 127, str(error)
        try:
            text = child.communicate(timeout=seconds)[0]
            return child.returncode, text
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            text = child.communicate()[0]
            return (None if seconds == most else NOT_RUN), text

    def each(self, jobs, work):
        """work(job) for each job, side by side; (job, result) in their order."""
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            yield from zip(jobs, pool.map(work, jobs))


def found(where, what):
    print(f"{where}: {what}", flush=True)
    return what


def run_jit(session):
    """{graph: "0.12" (the largest fraction of the tolerance), or what is wrong}"""
    device, results = session.arguments.device, {}
    bundles = sorted((session.folder / "jit").glob("*.nova"))

    def check(bundle):
        data = bundle.with_name(bundle.stem + ".data.safetensors")
        command = [session.nova_run, "verify", bundle, "--data", data, "--device", device]
        if device != "host":
            # PTX goes to the driver's compiler on request only.
            status, text = session.bounded(command, session.deadline)
            if status == NOT_RUN:
                return NOT_RUN
            if status != 4:
                return f"without --allow-jit: exit status {status}, expected 4: {text.strip()[-300:]}"
        status, text = session.bounded(command + ([] if device == "host" else ["--allow-jit"]), session.deadline)
        if status == NOT_RUN:
            return NOT_RUN
        largest = re.search(r"largest used fraction ([0-9.e+-]+)", text)
        return largest[1] if status == 0 and largest else f"exit status {status}: {text.strip()[-300:]}"

    for bundle, result in session.each(bundles, check):
        results[bundle.stem] = result
        if result != NOT_RUN and not re.fullmatch(r"[0-9.e+-]+", result):
            found(f"jit {bundle.stem}", result)
    return results


def sanitized(session, bundle, tool, until):
    """"clean", NOT_RUN, or what the tool found."""
    arguments = session.arguments
    status, text = session.bounded([arguments.sanitizer, "--tool", tool, *TOOLS[tool], "--error-exitcode", 99, session.nova_run, "run",
                                    bundle, "--seed", 1, "--device", arguments.device, "--steps", 1] +
                                   (["--launch", "plain"] if arguments.device != "host" else []), until)
    if status == NOT_RUN:
        return NOT_RUN
    if status is None:
        return "more than 120 s"
    reports = [line.strip("= \t") for line in text.splitlines()
               if line.startswith("=========") and re.search(r"Error|Invalid|Misaligned|[Hh]azard|Race|Barrier|Internal|not supported", line)
               and not re.search(r"SUMMARY: 0 ", line)]
    clean = re.search(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", text)
    if status == 0 and clean and not reports:
        return "clean"
    return " | ".join(reports[:4]) or f"exit status {status}: {text.strip()[-300:]}"


def run_classes(session, until):
    """{class: {column: {tool: result}}}; and why the tool cannot run here, or None."""
    tools = chosen(list(TOOLS), session.arguments.tools)
    kinds = list(dict.fromkeys(path.name.split(".")[0] for path in sorted((session.folder / "classes").glob("*.nova"))))
    table = {}
    jobs = [(kind, column, tool) for kind in chosen(kinds, session.arguments.only) for column in COLUMNS for tool in tools
            if (session.folder / "classes" / f"{kind}.{column}.nova").exists()]
    if not jobs:
        return table, None
    # Some machines have a tool that cannot look at their device: said once, not for each.
    status, text = session.bounded([session.arguments.sanitizer, "--version"], until)
    if status == 127:
        return table, text
    first = sanitized(session, session.folder / "classes" / f"{jobs[0][0]}.{jobs[0][1]}.nova", jobs[0][2], until)
    if "not supported" in first:
        return table, first
    work = lambda job: sanitized(session, session.folder / "classes" / f"{job[0]}.{job[1]}.nova", job[2], until)
    for (kind, column, tool), result in session.each(jobs, work):
        table.setdefault(kind, {}).setdefault(column, {})[tool] = result
        if result not in ("clean", NOT_RUN):
            found(f"{kind} {column} {tool}", result)
    return table, None


def run_problems(session):
    """What run_problems.py wrote, or what is wrong with it."""
    out = session.folder / "problems.result.json"
    out.unlink(missing_ok=True)
    if session.left() < 25:
        return NOT_RUN
    status, text = session.bounded([sys.executable, session.folder / "run_problems.py", session.folder / "problems", "--nova-run",
                                    session.nova_run, "--device", session.arguments.device, "--jobs", session.arguments.jobs,
                                    "--seconds", int(session.left() - 15), "--json", out], session.deadline, most=3600)
    if not out.exists():
        return found("problems", f"exit status {status}: {text.strip()[-1500:]}")
    result = json.loads(out.read_text())
    for line in result["failures"]:
        found("problem", line)
    return result


def device_name(session):
    status, text = session.bounded(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], session.deadline)
    return text.strip().splitlines()[0] if status == 0 and text.strip() else "none"


def print_table(jit, classes, problems):
    """The results, and (what ran, what was found, what was not run)."""
    ran = bad = skipped = 0
    for graph, result in jit.items():
        good = bool(re.fullmatch(r"[0-9.e+-]+", result))
        ran, bad, skipped = ran + (result != NOT_RUN), bad + (not good and result != NOT_RUN), skipped + (result == NOT_RUN)
        print(f"jit {graph:<30}{result if good or result == NOT_RUN else 'FOUND'}")
    if classes:
        print(f"{'class':<18}" + "".join(f"{column:<10}" for column in COLUMNS))
    for kind, columns in classes.items():
        cells = []
        for column in COLUMNS:
            results = list(columns.get(column, {}).values())
            ran += sum(r != NOT_RUN for r in results)
            bad += sum(r not in ("clean", NOT_RUN) for r in results)
            skipped += results.count(NOT_RUN)
            cells.append("-" if not results else "FOUND" if any(r not in ("clean", NOT_RUN) for r in results)
                         else NOT_RUN if NOT_RUN in results else "clean")
        print(f"{kind:<18}" + "".join(f"{cell:<10}" for cell in cells).rstrip())
    if isinstance(problems, dict):
        rows = {}
        for row in problems["classes"]:
            sums = rows.setdefault(row["class"], [0, 0, 0.0])
            sums[0], sums[1], sums[2] = sums[0] + row["checked"], sums[1] + row["failed"], max(sums[2], row["largest"])
        print(f"{'problems':<18}{'agree':<10}{'failed':<10}largest")
        for kind, (checked, failed, largest) in rows.items():
            ran, bad = ran + checked, bad + failed
            print(f"{kind:<18}{checked - failed:<10}{failed:<10}{largest:.3g}")
        skipped += problems.get("not_run", 0)
    elif problems:
        print(f"problems          {problems if problems == NOT_RUN else 'FOUND'}")
        ran, bad, skipped = ran + (problems != NOT_RUN), bad + (problems != NOT_RUN), skipped + (problems == NOT_RUN)
    return ran, bad, skipped


def run(arguments):
    start, session = time.monotonic(), Session(arguments)
    parts = chosen(["jit", "classes", "problems"], arguments.parts)
    name = device_name(session)
    jit = run_jit(session) if "jit" in parts else {}
    classes, unusable, problems = {}, None, None
    if "classes" in parts:
        # Problems have their turn, too.
        share = 0.65 if "problems" in parts and (session.folder / "problems").exists() else 1
        classes, unusable = run_classes(session, time.monotonic() + share * session.left())
    if "problems" in parts and (session.folder / "problems").exists():
        problems = run_problems(session)
    ran, bad, skipped = print_table(jit, classes, problems)
    if unusable:
        print(f"compute-sanitizer cannot run here: {unusable}")
    print(f"{ran - bad} of {ran} good, {skipped} not run, on {name}, {time.monotonic() - start:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(
            {"what": "compute-sanitizer on each class of kernel, PTX by the driver's compiler, random problems "
                     "(tests/Device/sanitize.py)",
             "device": name, "date": datetime.date.today().isoformat(), "commit": arguments.commit, "ran": ran, "found": bad,
             "not_run": skipped, "sanitizer": unusable or "ran", "jit": jit, "classes": classes, "problems": problems},
            indent=1) + "\n")
    return 1 if bad or not ran else 4 if unusable else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sub = verbs.add_parser("make")
    sub.add_argument("folder", type=pathlib.Path)
    sub.add_argument("--novac", required=True)
    sub.add_argument("--nova-run", required=True)
    sub.add_argument("--graphs", type=pathlib.Path, required=True)
    sub.add_argument("--target", default="sm_90a")
    sub.add_argument("--only", default="")
    sub.add_argument("--count", type=int, default=200)
    sub.add_argument("--seed", type=int, default=1)
    sub.add_argument("--jobs", type=int, default=2)
    sub.add_argument("--limit-mib", type=float, default=64)
    sub = verbs.add_parser("run")
    sub.add_argument("folder", type=pathlib.Path)
    sub.add_argument("--seconds", type=float, default=540)
    sub.add_argument("--parts", default="")
    sub.add_argument("--only", default="")
    sub.add_argument("--tools", default="")
    sub.add_argument("--device", default="0")
    sub.add_argument("--sanitizer", default="compute-sanitizer")
    sub.add_argument("--jobs", type=int, default=4)
    sub.add_argument("--commit", default="")
    sub.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    sys.exit((make if arguments.verb == "make" else run)(arguments))


if __name__ == "__main__":
    main()
