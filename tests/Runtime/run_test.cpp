//===- run_test.cpp - The commands run and verify -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"
#include "nova/Runtime/Run.h"
#include "nova/Support/File.h"

#include <cstring>
#include <fstream>
#include <sstream>

#include <sys/wait.h>

using namespace nova;
using namespace nova::test;

namespace {

class RunTest : public SampleTest {
protected:
  void SetUp() override {
    SampleTest::SetUp();
    data = root + "/data.safetensors";
    dataFile().write(data);
  }
  run::RunOptions runOptions() {
    run::RunOptions o;
    o.bundle = bundle;
    o.threads = 2;
    return o;
  }
  run::VerifyOptions verifyOptions() {
    run::VerifyOptions o;
    o.bundle = bundle;
    o.threads = 2;
    return o;
  }
  Status run(const run::RunOptions &o) {
    out.str("");
    return run::run(o, out, log);
  }
  Status verify(const run::VerifyOptions &o) {
    out.str("");
    return run::verify(o, out, log);
  }
  /// The exit status of nova-run; its output goes to `out`.
  int novaRun(const std::string &arguments) {
    std::string file = root + "/output";
    int status = std::system(
        (std::string(NOVA_RUN) + " " + arguments + " >" + file + " 2>&1")
            .c_str());
    out.str(*readFile(file, "output"));
    return WEXITSTATUS(status);
  }

  std::string data;
  std::ostringstream out, log;
};

std::vector<float> floatsOf(const SafetensorsFile &file,
                            const std::string &name) {
  const SafetensorsEntry *entry = file.find(name);
  EXPECT_NE(entry, nullptr) << name;
  std::vector<float> values(entry->size / 4);
  EXPECT_TRUE(static_cast<bool>(file.read(*entry, values.data())));
  return values;
}

} // namespace

TEST_F(RunTest, StepsWithData) {
  run::RunOptions o = runOptions();
  o.data = data;
  o.steps = 3;
  o.out = root + "/out.safetensors";
  Status s = run(o);
  ASSERT_TRUE(static_cast<bool>(s)) << s.error().message;
  Reference r = Reference::start();
  std::istringstream lines(out.str());
  for (int step = 1; step <= 3; ++step) {
    r.step();
    std::string word;
    int number = 0;
    double loss = 0;
    lines >> word >> number;
    EXPECT_EQ(word + " " + std::to_string(number),
              "step " + std::to_string(step));
    lines >> word >> loss;
    EXPECT_EQ(word, "loss");
    EXPECT_NEAR(loss, r.loss, 1e-5);
  }
  EXPECT_NE(log.str().find("3 steps, "), std::string::npos);
  auto file = SafetensorsFile::open(*o.out);
  ASSERT_TRUE(static_cast<bool>(file)) << file.error().message;
  EXPECT_EQ(file->entries().size(), 12u);
  std::vector<float> w = floatsOf(*file, "out/2");
  EXPECT_EQ(w, floatsOf(*file, "in/w")) << "an update is the new input";
  for (int j = 0; j < 5; ++j)
    EXPECT_NEAR(w[j], r.w[j], 1e-5);
  EXPECT_EQ(floatsOf(*file, "in/x").size(), 35u) << "dense, not strided";
  int64_t count = 0, seen = 0;
  ASSERT_TRUE(static_cast<bool>(file->read(*file->find("in/count"), &count)));
  ASSERT_TRUE(static_cast<bool>(file->read(*file->find("out/4"), &seen)));
  EXPECT_EQ(count, 44);
  EXPECT_EQ(seen, 43);

  // What was written is data for a further run, out/ ignored: 3 + 2 steps.
  run::RunOptions further = runOptions();
  further.data = o.out;
  further.steps = 2;
  ASSERT_TRUE(static_cast<bool>(run(further)));
  r.step();
  r.step();
  EXPECT_NEAR(std::stod(out.str().substr(out.str().rfind(' '))), r.loss, 1e-5);
}

TEST_F(RunTest, SeedIsRepeatableAndNamed) {
  run::RunOptions o = runOptions();
  o.seed = 7;
  ASSERT_TRUE(static_cast<bool>(run(o)));
  std::string first = out.str();
  o.threads = 3;
  ASSERT_TRUE(static_cast<bool>(run(o)));
  EXPECT_EQ(out.str(), first);
  o.seed = 8;
  ASSERT_TRUE(static_cast<bool>(run(o)));
  EXPECT_NE(out.str(), first);
  log.str("");
  o.seed.reset();
  ASSERT_TRUE(static_cast<bool>(run(o)));
  EXPECT_NE(log.str().find("random inputs from seed 0\n"), std::string::npos);
}

TEST_F(RunTest, RandomInputsByRole) {
  run::RunOptions o = runOptions();
  o.seed = 1;
  o.steps = 0;
  o.out = root + "/out.safetensors";
  ASSERT_TRUE(static_cast<bool>(run(o)));
  auto file = SafetensorsFile::open(*o.out);
  ASSERT_TRUE(static_cast<bool>(file));
  for (float m : floatsOf(*file, "in/m")) {
    EXPECT_GE(m, 0.001f);
    EXPECT_LT(m, 0.01f);
  }
  double sum = 0, squares = 0;
  for (float x : floatsOf(*file, "in/x"))
    sum += x, squares += x * x;
  EXPECT_NEAR(sum / 35, 0, 0.6);
  EXPECT_NEAR(squares / 35, 1, 0.6);
  EXPECT_EQ(floatsOf(*file, "in/lr")[0], 0.001f);
  int64_t count = 0;
  ASSERT_TRUE(static_cast<bool>(file->read(*file->find("in/count"), &count)));
  EXPECT_EQ(count, 1);
}

TEST_F(RunTest, SetScalars) {
  run::RunOptions o = runOptions();
  o.data = data;
  o.set = {"lr=0", "count=-9"};
  o.out = root + "/out.safetensors";
  Status s = run(o);
  ASSERT_TRUE(static_cast<bool>(s)) << s.error().message;
  auto file = SafetensorsFile::open(*o.out);
  Reference r = Reference::start();
  std::vector<float> w = floatsOf(*file, "out/2");
  for (int j = 0; j < 5; ++j)
    EXPECT_EQ(w[j], float(r.w[j])) << "a learning rate of 0";

  auto error = [&](const std::string &assignment) {
    o.set = {assignment};
    Status s = run(o);
    EXPECT_FALSE(s);
    EXPECT_EQ(s.error().code, ErrorCode::Usage);
    return s.error().message;
  };
  EXPECT_EQ(error("lr"), "\"lr\", expected NAME=VALUE");
  EXPECT_EQ(error("rate=1"), "\"rate\" is no scalar input of "
                             "\"least_squares\", expected one of: lr, count");
  EXPECT_EQ(error("model.w=1"),
            "\"model.w\" is no scalar input of "
            "\"least_squares\", expected one of: lr, count");
  EXPECT_EQ(error("lr=fast"), "\"fast\" for \"lr\", expected a float32");
  EXPECT_EQ(error("count=1.5"), "\"1.5\" for \"count\", expected a int64");
}

TEST_F(RunTest, Json) {
  run::RunOptions o = runOptions();
  o.data = data;
  o.steps = 2;
  o.json = true;
  ASSERT_TRUE(static_cast<bool>(run(o)));
  std::string text = out.str();
  EXPECT_EQ(text.rfind("{\"bundle\":\"", 0), 0u) << text;
  EXPECT_NE(text.find("\"steps\":[{\"losses\":["), std::string::npos) << text;
  EXPECT_NE(text.find("\"target\":\"host\",\"threads\":2}\n"),
            std::string::npos)
      << text;
}

TEST_F(RunTest, DataThatDoesNotFit) {
  run::RunOptions o = runOptions();
  o.data = data;
  auto error = [&] {
    Status s = run(o);
    EXPECT_FALSE(s);
    EXPECT_EQ(s.error().code, ErrorCode::BadInput);
    return s.error().message;
  };
  TensorFile file = dataFile();
  file.remove("in/x");
  file.write(data);
  EXPECT_EQ(error(), "data file '" + data +
                         "' has no tensor \"in/x\", "
                         "expected float32 [7,5] for input 4");
  file.floats("in/x", {5, 7}, std::vector<double>(35));
  file.write(data);
  EXPECT_EQ(error(), "data file '" + data +
                         "': tensor \"in/x\" is F32 [5,7], "
                         "expected F32 [7,5] for input 4");
  file = dataFile();
  file.floats("in/y", {1}, {1});
  file.write(data);
  EXPECT_EQ(error(), "data file '" + data +
                         "': tensor \"in/y\" is for no "
                         "input of \"least_squares\"");
  o.data = root + "/none";
  EXPECT_EQ(error(),
            "safetensors file " + root + "/none: No such file or directory");
}

TEST_F(RunTest, VerifyPasses) {
  run::VerifyOptions o = verifyOptions();
  o.data = data;
  Status s = verify(o);
  ASSERT_TRUE(static_cast<bool>(s)) << s.error().message;
  std::string text = out.str();
  EXPECT_NE(text.find("column f32: tau 1e-05, tau2 1e-05, tau_loss 2e-06\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("verified: 6 outputs, 6 passed, 0 untested, 0 failed; "
                      "largest used fraction "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("out/2   update    pass "), std::string::npos) << text;
  EXPECT_NE(text.find("model.w"), std::string::npos) << text;
}

TEST_F(RunTest, VerifyFails) {
  TensorFile file = dataFile();
  for (size_t i = 0; i < 20; i += 4) {
    float g;
    std::memcpy(&g, &file.bytes("out/1")[i], 4);
    g *= 1.1f;
    std::memcpy(&file.bytes("out/1")[i], &g, 4);
  }
  file.write(data);
  run::VerifyOptions o = verifyOptions();
  o.data = data;
  Status s = verify(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::Verification);
  EXPECT_EQ(s.error().message.rfind("1 of 6 outputs are wrong, the worst out/1 "
                                    "(gradient g): element ",
                                    0),
            0u)
      << s.error().message;
  EXPECT_NE(out.str().find("out/1   gradient  FAIL"), std::string::npos);
  // The same numbers, with a tolerance given by hand.
  o.tolerance = 0.5;
  s = verify(o);
  EXPECT_TRUE(static_cast<bool>(s));
  EXPECT_NE(out.str().find("not the standard rule: tolerance 0.5 given by "
                           "hand\n"),
            std::string::npos);
}

TEST_F(RunTest, VerifyNeedsATestedUpdateOrGradient) {
  // All that trains is at rest: returning the inputs unchanged would pass.
  Reference r = Reference::start();
  TensorFile file = dataFile();
  std::fill(r.w.begin(), r.w.end(), 0);
  r.m = r.t = r.w;
  r.t.resize(7);
  for (auto [name, shape, values] : {std::tuple{"in/w", 5, r.w},
                                     {"in/m", 5, r.m},
                                     {"in/t", 7, r.t},
                                     {"out/1", 5, r.w},
                                     {"out/2", 5, r.w},
                                     {"out/3", 5, r.w}})
    file.floats(name, {shape}, values);
  file.floats("out/0", {}, {0});
  file.write(data);
  run::VerifyOptions o = verifyOptions();
  o.data = data;
  Status s = verify(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::Verification);
  EXPECT_EQ(s.error().message,
            "no update and no gradient is tested: zeros or the inputs "
            "themselves would pass for each");
  EXPECT_NE(out.str().find("4 untested, 0 failed"), std::string::npos)
      << out.str();
}

TEST_F(RunTest, VerifyJson) {
  run::VerifyOptions o = verifyOptions();
  o.data = data;
  o.json = true;
  ASSERT_TRUE(static_cast<bool>(verify(o)));
  std::string text = out.str();
  EXPECT_NE(text.find("\"column\":\"f32\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"passed\":true"), std::string::npos) << text;
  EXPECT_NE(text.find("\"tested\":6,\"untested\":0"), std::string::npos)
      << text;
}

TEST_F(RunTest, VerifyWithoutData) {
  run::VerifyOptions o = verifyOptions();
  ASSERT_TRUE(static_cast<bool>(verify(o)));
  EXPECT_EQ(out.str(),
            "verified: the plan of 1 target and the digests of 2 blobs\n"
            "no numbers were compared: give --data FILE or --seed S\n");
  o.seed = 3;
  Status nothing = verify(o);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::Missing);
  EXPECT_EQ(nothing.error().message,
            "not verified: host is the reference, and no other target of the "
            "bundle runs here: no numbers were compared");
  EXPECT_EQ(out.str(),
            "repeats: 6 outputs have the same bits in three runs with 1 to 2 "
            "threads, on inputs from seed 3\n");
  o.json = true;
  ASSERT_FALSE(verify(o));
  EXPECT_NE(out.str().find("\"passed\":false"), std::string::npos)
      << out.str();
}

TEST_F(RunTest, VerifyAgainstAnotherBundle) {
  std::string other = root + "/other.nova";
  bundle::Bundle b = sampleBundle(sampleHostObject());
  ASSERT_TRUE(static_cast<bool>(bundle::publishBundle(other, b, "{}")));
  run::VerifyOptions o = verifyOptions();
  o.seed = 3;
  o.reference = other;
  Status s = verify(o);
  ASSERT_TRUE(static_cast<bool>(s)) << s.error().message;
  EXPECT_NE(out.str().find("compared with the host target of '" + other +
                           "' on inputs from seed 3\n"),
            std::string::npos);
  // A kernel that multiplies by another constant is found.
  b.manifest.targets[0].launches[2].args[2] =
      bundle::Immediate{0x3e800000, "float32"};
  publish(b);
  s = verify(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::Verification);
  b.manifest.inputs[2].name = "rate";
  publish(b);
  s = verify(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::BadInput);
  EXPECT_EQ(s.error().message, "'" + other + "' has another signature than '" +
                                   bundle + "', expected the same graph");
}

TEST_F(RunTest, VerifyRefusals) {
  auto error = [&](const run::VerifyOptions &o, ErrorCode code) {
    Status s = verify(o);
    EXPECT_FALSE(s);
    EXPECT_EQ(s.error().code, code);
    return s.error().message;
  };
  run::VerifyOptions o = verifyOptions();
  o.simulate = true;
  EXPECT_EQ(error(o, ErrorCode::BadInput),
            "--simulate: '" + bundle + "' has no such GPU target: it has host "
                "(x86-64-v3)");
  o = verifyOptions();
  o.data = data;
  o.seed = 1;
  EXPECT_EQ(error(o, ErrorCode::Usage),
            "inputs from a data file and from a seed, expected one");
  o.seed.reset();
  o.tolerance = -1;
  EXPECT_EQ(error(o, ErrorCode::Usage),
            "a tolerance of -1, expected 0 or more");
  o = verifyOptions();
  o.tolerance = 1;
  EXPECT_EQ(error(o, ErrorCode::Usage),
            "a tolerance, and no numbers to compare");
  o = verifyOptions();
  o.data = data;
  o.device = "cpu";
  EXPECT_EQ(error(o, ErrorCode::Usage),
            "device \"cpu\", expected host or the number of a GPU");
  TensorFile file = dataFile();
  file.remove("out/4");
  file.write(data);
  o.device = "";
  EXPECT_EQ(error(o, ErrorCode::BadInput),
            "data file '" + data +
                "' has no tensor \"out/4\", expected int64 "
                "[] for output 4");
}

TEST_F(RunTest, ExitStatusOfNovaRun) {
  EXPECT_EQ(novaRun("--help"), 0);
  EXPECT_EQ(novaRun("version"), 0);
  EXPECT_EQ(novaRun("--version"), 0);
  EXPECT_EQ(novaRun("run " + bundle + " --data " + data + " --steps=2"), 0);
  EXPECT_EQ(novaRun("verify " + bundle + " --data=" + data), 0);
  EXPECT_EQ(novaRun("run " + root + "/none.nova"), 1);
  EXPECT_EQ(out.str(), "nova-run: error: cannot read manifest '" + root +
                           "/none.nova/manifest.json': No such file or "
                           "directory\n  expected a bundle folder, as `novac "
                           "compile -o NAME.nova` writes it\n");
  EXPECT_EQ(novaRun(""), 2);
  EXPECT_EQ(novaRun("train"), 2);
  EXPECT_EQ(novaRun("run"), 2);
  EXPECT_EQ(novaRun("run a b"), 2);
  EXPECT_EQ(novaRun("run " + bundle + " --steps"), 2);
  EXPECT_EQ(novaRun("run " + bundle + " --steps -1"), 2);
  EXPECT_EQ(novaRun("run " + bundle + " --json=1"), 2);
  EXPECT_EQ(novaRun("verify " + bundle + " --steps 1"), 2);
  EXPECT_EQ(novaRun("run " + bundle + " --device 0"), 4);
  EXPECT_EQ(novaRun("verify " + bundle + " --simulate"), 1);
  EXPECT_EQ(novaRun("run " + bundle + " --out /none/x.safetensors"), 4);
  bundle::Bundle b = *bundle::openBundle(bundle);
  std::ofstream(bundle::blobPath(bundle, b.manifest.blobs[1])) << "12345678";
  EXPECT_EQ(novaRun("verify " + bundle), 5);
  EXPECT_EQ(novaRun("run " + bundle), 5);
}
