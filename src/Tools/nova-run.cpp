//===- nova-run.cpp - run and verify bundles, with no LLVM ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the machines that train: `novac run` and `novac verify` without the
// compiler. A flag stands once, in the tables below; help is made from them.
//
//===----------------------------------------------------------------------===//

#include "nova-rt/nova_rt.h"
#include "nova/Runtime/Run.h"

#include <charconv>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

using namespace nova;

namespace {

/// Takes the value ("" for a flag without one); "" on success, else what was
/// expected.
using Setter = std::function<std::string(const std::string &)>;

struct Flag {
  const char *name;
  const char *value; ///< Placeholder in the help, or null: takes none.
  const char *help;
  Setter set;
};

struct Verb {
  const char *name;
  const char *help;
  std::vector<Flag> flags;
  std::string *bundle; ///< The positional argument, or null.
  std::function<Status()> body;
};

Setter text(std::string &to) {
  return [&to](const std::string &v) { return to = v, std::string(); };
}
Setter text(std::optional<std::string> &to) {
  return [&to](const std::string &v) { return to = v, std::string(); };
}
Setter list(std::vector<std::string> &to) {
  return [&to](const std::string &v) {
    to.push_back(v);
    return std::string();
  };
}
Setter flag(bool &to) {
  return [&to](const std::string &) { return to = true, std::string(); };
}
template <typename T, typename To> Setter number(To &to, const char *expected) {
  return [&to, expected](const std::string &v) -> std::string {
    T value{};
    auto end = std::from_chars(v.data(), v.data() + v.size(), value);
    if (end.ec != std::errc() || end.ptr != v.data() + v.size())
      return expected;
    to = value;
    return {};
  };
}

void printHelp(std::ostream &out, const std::vector<Verb> &verbs) {
  out << "nova-run " << nova_rt_version() << ": run and verify bundles\n";
  for (const Verb &verb : verbs) {
    out << "\nnova-run " << verb.name << (verb.bundle ? " BUNDLE [flags]" : "")
        << "\n  " << verb.help << '\n';
    for (const Flag &f : verb.flags) {
      std::string left = std::string("  --") + f.name;
      if (f.value)
        left += std::string(" ") + f.value;
      left.resize(std::max<size_t>(left.size() + 2, 30), ' ');
      out << left << f.help << '\n';
    }
  }
  out << "\nExit status: 0 done; 1 the input is missing, unreadable or "
         "rejected; 2 usage;\n3 internal error; 4 something this needs is "
         "missing here; 5 verification failed.\n";
}

Error usage(std::string message) {
  return {ErrorCode::Usage, std::move(message), "see nova-run --help"};
}

/// Everything after the verb.
Status parse(Verb &verb, const std::vector<std::string> &args) {
  bool haveBundle = false;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string &arg = args[i];
    if (arg.rfind("--", 0) != 0) {
      if (!verb.bundle || haveBundle)
        return usage("unexpected argument '" + arg + "'");
      *verb.bundle = arg;
      haveBundle = true;
      continue;
    }
    size_t equals = arg.find('=');
    std::string name = arg.substr(2, equals - (equals == arg.npos ? 0 : 2));
    const Flag *found = nullptr;
    std::string known;
    for (const Flag &f : verb.flags) {
      if (name == f.name)
        found = &f;
      known += std::string(" --") + f.name;
    }
    if (!found)
      return usage("unknown flag '--" + name + "', expected one of" + known);
    std::string value;
    if (!found->value) {
      if (equals != arg.npos)
        return usage("flag '--" + name + "' takes no value");
    } else if (equals != arg.npos) {
      value = arg.substr(equals + 1);
    } else if (i + 1 < args.size()) {
      value = args[++i];
    } else {
      return usage("flag '--" + name + "' needs a value: " + found->value);
    }
    std::string expected = found->set(value);
    if (!expected.empty())
      return usage("flag '--" + name + "': '" + value + "', expected " +
                   expected);
  }
  if (verb.bundle && !haveBundle)
    return usage(std::string("nova-run ") + verb.name +
                 " needs the folder of a bundle");
  return Status::ok();
}

int report(const Status &status) {
  if (status)
    return 0;
  std::cerr << "nova-run: error: " << status.error().message << '\n';
  if (!status.error().hint.empty())
    std::cerr << "  " << status.error().hint << '\n';
  return static_cast<int>(status.error().code);
}

} // namespace

int main(int argc, char **argv) {
  run::RunOptions r;
  run::VerifyOptions v;
  bool json = false;
  constexpr const char *count = "a whole number, 0 or more";
  std::vector<Verb> verbs = {
      {"run",
       "run steps on the inputs of a file or on random ones",
       {{"data", "FILE", "inputs from FILE.safetensors (in/NAME)",
         text(r.data)},
        {"seed", "S", "random inputs from this seed (default 0)",
         number<uint64_t>(r.seed, count)},
        {"steps", "N", "how many steps (default 1)",
         number<uint64_t>(r.steps, count)},
        {"set", "NAME=VALUE", "a scalar input; may be repeated", list(r.set)},
        {"out", "FILE", "write out/I and the final in/NAME as safetensors",
         text(r.out)},
        {"device", "host|N", "the CPU, or GPU number N", text(r.device)},
        {"threads", "N", "threads on the CPU (default: one per CPU)",
         number<unsigned>(r.threads, count)},
        {"allow-jit", nullptr, "the driver may compile PTX (GPU)",
         flag(r.allowJit)},
        {"launch", "graph|chain|plain",
         "how launches get onto a GPU (default graph)", text(r.launch)},
        {"time", nullptr, "measure, and print the times", flag(r.time)},
        {"json", nullptr, "print one JSON object", flag(r.json)}},
       &r.bundle,
       [&] { return run::run(r, std::cout, std::cerr); }},
      {"verify",
       "check digests and plan, and with data the numbers of one step",
       {{"data", "FILE", "compare with out/I of FILE.safetensors",
         text(v.data)},
        {"seed", "S", "random inputs: compare targets with host",
         number<uint64_t>(v.seed, count)},
        {"tolerance", "TAU", "instead of the standard rule",
         number<double>(v.tolerance, "a number")},
        {"simulate", nullptr, "execute GPU targets on the CPU, from their PTX",
         flag(v.simulate)},
        {"target", "T", "simulate this target only; may be repeated",
         list(v.simulateTargets)},
        {"interleavings", "N", "orders of warps to simulate (default 1)",
         number<uint64_t>(v.interleavings, count)},
        {"device", "host|N", "the CPU, or GPU number N", text(v.device)},
        {"threads", "N", "threads on the CPU (default: one per CPU)",
         number<unsigned>(v.threads, count)},
        {"allow-jit", nullptr, "the driver may compile PTX (GPU)",
         flag(v.allowJit)},
        {"launch", "graph|chain|plain",
         "how launches get onto a GPU (default graph)", text(v.launch)},
        {"json", nullptr, "print one JSON object", flag(v.json)}},
       &v.bundle,
       [&] { return run::verify(v, std::cout, std::cerr); }},
      {"version",
       "print the version",
       {{"json", nullptr, "print one JSON object", flag(json)}},
       nullptr,
       [&] {
         if (json)
           std::cout << "{\"abi_version\":" << nova_rt_abi_version()
                     << ",\"version\":\"" << nova_rt_version() << "\"}\n";
         else
           std::cout << "nova-run " << nova_rt_version() << '\n';
         return Status::ok();
       }}};

  std::vector<std::string> args(argv + 1, argv + argc);
  for (const std::string &arg : args)
    if (arg == "--help" || arg == "-h") {
      printHelp(std::cout, verbs);
      return 0;
    }
  if (!args.empty() && args[0] == "--version")
    args[0] = "version";
  std::string names;
  for (Verb &verb : verbs) {
    names += std::string(names.empty() ? "" : ", ") + verb.name;
    if (args.empty() || args[0] != verb.name)
      continue;
    args.erase(args.begin());
    if (Status s = parse(verb, args); !s)
      return report(s);
    return report(verb.body());
  }
  return report(usage(args.empty() ? "no command, expected one of " + names
                                   : "unknown command '" + args[0] +
                                         "', expected one of " + names));
}
