#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints "PASSED FAILED" of a result file.

  count_tests.py ctest FILE.xml    as ctest --output-junit writes it
  count_tests.py lit FILE.json     as lit --output writes it

A result file that is missing, or holds no test, counts as one failure: a suite
that did not run is not a suite that passed.
"""
import json
import sys
import xml.etree.ElementTree


def count_ctest(path):
    suite = xml.etree.ElementTree.parse(path).getroot()
    passed = failed = 0
    for case in suite.iter("testcase"):
        if case.get("status") == "run":
            passed += 1
        else:
            failed += 1
    return passed, failed


def count_lit(path):
    passed = failed = 0
    with open(path) as file:
        for test in json.load(file)["tests"]:
            if test["code"] in ("PASS", "XFAIL", "FLAKYPASS"):
                passed += 1
            elif test["code"] not in ("UNSUPPORTED", "EXCLUDED"):
                failed += 1
    return passed, failed


def main(kind, path):
    try:
        passed, failed = {"ctest": count_ctest, "lit": count_lit}[kind](path)
    except (OSError, ValueError, KeyError, xml.etree.ElementTree.ParseError) as error:
        print(f"count_tests: {path}: {error}", file=sys.stderr)
        passed, failed = 0, 1
    if passed + failed == 0:
        failed = 1
    print(passed, failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
