//===- Jit.cpp - Machine code of one expansion, for tests -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Jit.h"
#include "nova/Math/ExpandMath.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

using namespace mlir;

namespace nova::test {

struct JitKernel::State {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

[[noreturn]] static void die(const llvm::Twine &message) {
  llvm::errs() << "jit: " << message << "\n";
  std::exit(2);
}

template <typename T> static T unwrap(llvm::Expected<T> value) {
  if (!value)
    die(llvm::toString(value.takeError()));
  return std::move(*value);
}

static std::string replaceAll(std::string text, const std::string &what,
                              const std::string &with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;
       at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

static std::string moduleText(const std::string &body,
                              const JitOptions &options) {
  std::string block = std::to_string(kBlock);
  std::string vector = options.lanes == 1
                           ? options.type
                           : "vector<" + std::to_string(options.lanes) + "x" +
                                 options.type + ">";
  std::string load = options.lanes == 1 ? "memref.load %p[%i] : MT"
                                        : "vector.load %p[%i] : MT, VT";
  std::string store = options.lanes == 1 ? "memref.store %r, %out[%i] : MT"
                                         : "vector.store %r, %out[%i] : MT, VT";
  std::string text = R"(
func.func @kernel(%pa: MT, %pb: MT, %out: MT) {
  %zero = arith.constant 0 : index
  %step = arith.constant LANES : index
  %end = arith.constant BLOCK : index
  scf.for %i = %zero to %end step %step {
    %a = LOADA
    %b = LOADB
    BODY
    STORE
  }
  return
})";
  text = replaceAll(text, "LOADA", replaceAll(load, "%p", "%pa"));
  text = replaceAll(text, "LOADB", replaceAll(load, "%p", "%pb"));
  text = replaceAll(text, "STORE", store);
  text = replaceAll(text, "BODY", body);
  text = replaceAll(text, "LANES", std::to_string(options.lanes));
  text = replaceAll(text, "BLOCK", block);
  text = replaceAll(text, "MT", "memref<" + block + "x" + options.type + ">");
  return replaceAll(text, "VT", vector);
}

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registry
      .insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
              LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
              scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  return registry;
}

static std::unique_ptr<llvm::Module>
lowerToLLVM(const std::string &text, llvm::LLVMContext &llvmContext) {
  MLIRContext context(makeRegistry(), MLIRContext::Threading::DISABLED);
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    die("does not parse:\n" + text);

  PassManager pm(&context);
  pm.addPass(nova::createExpandMath());
  pm.addPass(createCSEPass());
  arith::ArithExpandOpsPassOptions expandBf16;
  expandBf16.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expandBf16));
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  ConvertFuncToLLVMPassOptions bare;
  bare.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(bare));
  pm.addPass(createReconcileUnrealizedCastsPass());
  if (failed(pm.run(*module)))
    die("does not lower:\n" + text);
  auto result = translateModuleToLLVMIR(*module, llvmContext);
  if (!result)
    die("does not translate:\n" + text);
  return result;
}

static std::unique_ptr<llvm::TargetMachine>
makeTargetMachine(const llvm::Triple &triple, llvm::StringRef cpu,
                  bool contract) {
  std::string error;
  auto *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    die(error);
  llvm::TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion =
      contract ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, "", targetOptions, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, mam);
}

static llvm::SmallVector<char, 0> generate(llvm::Module &module,
                                           llvm::TargetMachine &machine,
                                           llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    die("the target cannot emit files");
  passes.run(module);
  return bytes;
}

JitKernel::JitKernel(const std::string &body, const JitOptions &options)
    : state(std::make_unique<State>()) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  llvm::LLVMContext context;
  auto module = lowerToLLVM(moduleText(body, options), context);
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  // AVX2 and FMA on x86, the level that the documented costs are for.
  std::string cpu =
      triple.isX86() ? "x86-64-v3" : llvm::sys::getHostCPUName().str();
  auto machine = makeTargetMachine(triple, cpu, options.contract);
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(machine->getTargetTriple());
  optimize(*module, *machine);
  auto copy = llvm::CloneModule(*module);
  auto assemblyBytes =
      generate(*copy, *machine, llvm::CodeGenFileType::AssemblyFile);
  text.assign(assemblyBytes.begin(), assemblyBytes.end());
  auto bytes = generate(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  auto buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), "kernel.o", false);

  auto object = unwrap(
      llvm::object::ObjectFile::createObjectFile(buffer->getMemBufferRef()));
  for (const auto &symbol : object->symbols())
    if (unwrap(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined)
      if (auto name = unwrap(symbol.getName()); !name.empty())
        imports.push_back(name.str());

  state->jit = unwrap(llvm::orc::LLJITBuilder().create());
  if (auto error = state->jit->addObjectFile(std::move(buffer)))
    die(llvm::toString(std::move(error)));
  function = unwrap(state->jit->lookup("kernel"))
                 .toPtr<void (*)(const void *, const void *, void *)>();
}

JitKernel::~JitKernel() = default;

std::string ptxOf(const std::string &body, const std::string &type,
                  bool contract) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  JitOptions options;
  options.type = type;
  options.lanes = 1;
  llvm::LLVMContext context;
  auto module = lowerToLLVM(moduleText(body, options), context);
  auto machine =
      makeTargetMachine(llvm::Triple("nvptx64-nvidia-cuda"), "sm_90", contract);
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(machine->getTargetTriple());
  optimize(*module, *machine);
  auto bytes = generate(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  return replaceAll(std::string(bytes.begin(), bytes.end()), ".rn", "");
}

unsigned contractibleSums(const std::string &body, const std::string &type) {
  MLIRContext context(makeRegistry(), MLIRContext::Threading::DISABLED);
  JitOptions options;
  options.type = type;
  auto module =
      parseSourceString<ModuleOp>(moduleText(body, options), &context);
  PassManager pm(&context);
  pm.addPass(nova::createExpandMath());
  if (!module || failed(pm.run(*module)))
    die("does not expand:\n" + body);
  unsigned count = 0;
  auto isProduct = [](Value v) {
    if (auto negated = v.getDefiningOp<arith::NegFOp>())
      v = negated.getOperand();
    return v.getDefiningOp<arith::MulFOp>() != nullptr;
  };
  module->walk([&](Operation *op) {
    if (isa<arith::AddFOp, arith::SubFOp>(op))
      count += llvm::any_of(op->getOperands(), isProduct);
  });
  return count;
}

unsigned JitKernel::loopInstructions() const {
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n');
  llvm::StringRef label;
  unsigned count = 0, stores = 0;
  for (llvm::StringRef line : lines) {
    if (line.starts_with(".LBB") && label.empty())
      label = line.take_until([](char c) { return c == ':'; });
    if (label.empty() || !line.starts_with("\t") || line.starts_with("\t."))
      continue;
    ++count;
    stores += line.starts_with("\tvmov") && line.contains("%ymm") &&
              line.ends_with(")");
    if (line.contains(label))
      return count / std::max(stores, 1u);
  }
  return 0;
}

} // namespace nova::test
