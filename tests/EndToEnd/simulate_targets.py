#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`verify --simulate` of a bundle for several GPUs.

  simulate_targets.py --novac NOVAC --graph GRAPH.json --data DATA

Every target is simulated and has a line. One whose PTX has an instruction that
the simulator does not know is named, with the instruction and what to do
instead; the others are verified all the same, unless it was asked for.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from mutate_ptx import Bundle


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    parser.add_argument("--graph", required=True)
    parser.add_argument("--data", required=True)
    arguments = parser.parse_args()
    failures = []

    def verify(status, *more, says=(), reports=()):
        done = subprocess.run([arguments.novac, "verify", bundle, "--simulate", "--data", arguments.data, *more],
                              capture_output=True, text=True)
        if done.returncode != status:
            failures.append(f"{more}: exit status {done.returncode}, expected {status}")
        for text, where in [(t, done.stdout) for t in says] + [(t, done.stderr) for t in reports]:
            if text not in where:
                failures.append(f"{more}: no '{text}' in\n{where[-1500:]}")
        return done.stdout

    with tempfile.TemporaryDirectory() as name:
        bundle = pathlib.Path(name) / "step.nova"
        subprocess.run([arguments.novac, "compile", arguments.graph, "-o", bundle, "--target", "sm_80,sm_90a", "--no-cache"],
                       check=True, capture_output=True)
        verify(0, says=["\nsm_80 (a100): 3 outputs, 3 passed", "\nsm_90a (h200): 3 outputs, 3 passed"])
        if "\nsm_80 (a100):" in verify(0, "--target", "sm_90a"):
            failures.append("--target sm_90a: sm_80 was simulated too")
        opened = Bundle(bundle)
        index = opened.manifest["targets"][1]["kernels"][0]["ptx_blob"]
        opened.replace(index, opened.blob(index).read_text().replace("\tmov.u32 ", "\tsturdy.u32 ", 1))
        unknown = "'sturdy.u32': an instruction that the simulator does not know"
        instead = "verify on a machine that has the device, or without --simulate"
        verify(0, says=["\nsm_80 (a100): 3 outputs, 3 passed", "\nsm_90a (h200): not simulated: kernel '", unknown, instead])
        verify(4, "--target", "sm_90a", reports=["target sm_90a (h200) cannot be simulated: kernel '", unknown, instead])
        report = json.loads(verify(0, "--json"))["targets"]
        if [t.get("simulated", True) for t in report] != [True, False] or unknown not in report[1]["reason"]:
            failures.append(f"--json: {report[1]}")
    if failures:
        sys.exit("FAIL: " + "\n".join(failures))
    print("every target has its line")


if __name__ == "__main__":
    main()
