//===- EmitPtx.cpp - A kernel in the LLVM dialect to PTX ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/GpuCodegen/PtxEmitter.h"

#include "nova/IR/CollectDiagnostics.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;

namespace nova {

static const char kTriple[] = "nvptx64-nvidia-cuda";
/// Address space of shared memory, as LLVM numbers it for NVPTX.
static constexpr unsigned kSharedSpace = 3;

static Error internal(const Twine &message) {
  return {ErrorCode::Internal, message.str(), {}};
}

static Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const PtxTarget &ptx) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple(kTriple);
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return Error{
        ErrorCode::Missing,
        ("no code generator for " + Twine(kTriple) + " in this LLVM: " + error)
            .str(),
        "build LLVM with the target NVPTX"};
  llvm::TargetOptions options;
  // A product and a sum become one instruction where that saves a rounding.
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::string features = ("+ptx" + Twine(ptx.ptxVersion)).str();
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, ptx.arch, features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

/// PTX names are letters, digits, _ and $.
static std::string ptxName(StringRef name) {
  std::string result = name.str();
  for (char &c : result)
    if (!llvm::isAlnum(c) && c != '_' && c != '$')
      c = '_';
  return result;
}

/// Everything but the kernel becomes `kernel$name`.
static void prefixSymbols(llvm::Module &module, llvm::Function &kernel) {
  unsigned unnamed = 0;
  for (llvm::GlobalValue &value : module.global_values()) {
    auto *function = dyn_cast<llvm::Function>(&value);
    if (&value == &kernel || (function && function->isDeclaration()))
      continue;
    std::string name =
        value.hasName() ? ptxName(value.getName()) : std::to_string(unnamed++);
    value.setName(kernel.getName() + "$" + name);
  }
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  // A lane is one element: there are no vectors to form across iterations.
  tuning.LoopVectorization = false;
  tuning.LoopInterleaving = false;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder builder(&machine, tuning);
  // Nothing is known by its name: there is no C library on a GPU.
  llvm::TargetLibraryInfoImpl library{llvm::Triple(kTriple)};
  library.disableAllFunctions();
  fam.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, mam);
}

/// An error if anything that is used comes from nowhere. Dynamic shared memory
/// does: it is declared, and sized by the launch.
static Status checkDefined(llvm::Module &module, StringRef kernel) {
  for (llvm::GlobalValue &value : module.global_values()) {
    auto *function = dyn_cast<llvm::Function>(&value);
    if (!value.isDeclaration() || value.use_empty() ||
        (function && function->isIntrinsic()) ||
        (!function && value.getAddressSpace() == kSharedSpace))
      continue;
    return internal("kernel '" + kernel + "': its GPU code uses '" +
                    value.getName() +
                    "', which nothing defines (there is no device library)");
  }
  return Status::ok();
}

/// Instruction selection may call what no IR did (a division of 128 bits).
static Status checkNoExternFunctions(StringRef ptx, StringRef kernel) {
  size_t at = ptx.find(".extern .func");
  if (at == StringRef::npos)
    return Status::ok();
  StringRef declaration = ptx.substr(at).split('\n').first;
  StringRef name = declaration.substr(sizeof(".extern .func") - 1).ltrim();
  if (name.consume_front("(")) // The result comes before the name.
    name = name.split(')').second.ltrim();
  name = name.take_until([](char c) { return c == '(' || c == ' '; });
  return internal("kernel '" + kernel + "': its GPU code calls '" + name +
                  "', which nothing defines (there is no device library)");
}

/// NVVM operations that are inline PTX become that; the others are intrinsics,
/// which translation knows.
static LogicalResult expandInlinePtx(ModuleOp module, bool withLines) {
  PassManager passes(module.getContext());
  passes.addPass(createConvertNVVMToLLVMPass());
  if (withLines) {
    // Lines alone: no sections of debug information, which would make ptxas
    // compile for a debugger.
    LLVM::DIScopeForLLVMFuncOpPassOptions options;
    options.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
    passes.addPass(LLVM::createDIScopeForLLVMFuncOpPass(options));
  }
  return passes.run(module);
}

static SmallVector<StringRef> kernelNames(ModuleOp module) {
  SmallVector<StringRef> names;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      names.push_back(function.getName());
  return names;
}

/// Types with layouts are long; what the line does stands before them.
static std::string shortened(StringRef line) {
  static constexpr size_t kMost = 120;
  return line.size() <= kMost ? line.str() : line.take_front(kMost).str() + "...";
}

/// The lines of the listing that a .loc of `ptx` names, as comments.
static std::string listedLines(StringRef ptx, StringRef listing) {
  llvm::BitVector named;
  SmallVector<StringRef> lines;
  ptx.split(lines, '\n');
  for (StringRef line : lines) {
    line = line.ltrim();
    if (!line.consume_front(".loc"))
      continue;
    unsigned file = 0, number = 0;
    line = line.ltrim();
    if (line.consumeInteger(10, file))
      continue;
    line = line.ltrim();
    if (line.consumeInteger(10, number))
      continue;
    if (number >= named.size())
      named.resize(number + 1);
    named.set(number);
  }
  std::string result;
  lines.clear();
  listing.split(lines, '\n');
  for (unsigned number : named.set_bits())
    if (number && number <= lines.size())
      result += ("//tiles " + Twine(number) + " " + shortened(lines[number - 1].trim()) + "\n").str();
  return result;
}

std::string withoutLines(StringRef ptx) {
  std::string result;
  SmallVector<StringRef> lines;
  ptx.split(lines, '\n', -1, /*KeepEmpty=*/true);
  for (auto [index, line] : llvm::enumerate(lines)) {
    StringRef text = line.ltrim();
    // LLVM closes with an empty section of debug information.
    bool section = text.starts_with(".section") && text.ends_with("}");
    if (section || text.starts_with(".loc") || text.starts_with(".file") || text.starts_with("//tiles "))
      continue;
    result += line;
    if (index + 1 < lines.size())
      result += '\n';
  }
  return result;
}

Expected<std::string> emitPtx(ModuleOp module, StringRef arch,
                              StringRef listing) {
  const PtxTarget *ptx = findPtxTarget({arch.data(), arch.size()});
  if (!ptx) {
    std::string known;
    for (const PtxTarget &target : ptxTargets())
      known.append(known.empty() ? "" : " ").append(target.arch);
    return Error{ErrorCode::Usage,
                 "no PTX for architecture '" + arch.str() + "'",
                 "architectures: " + known};
  }
  SmallVector<StringRef> kernels = kernelNames(module);
  if (kernels.size() != 1)
    return internal("a GPU module has " + Twine(kernels.size()) + " kernels" +
                    (kernels.empty() ? "" : ": " + llvm::join(kernels, ", ")) +
                    "; expected one llvm.func with nvvm.kernel");
  StringRef kernel = kernels.front();
  CollectDiagnostics diagnostics(module.getContext());
  OwningOpRef<ModuleOp> clone = module.clone();
  auto refused = [&](const Twine &otherwise) {
    std::string said = diagnostics.take();
    return internal("kernel '" + kernel +
                    "': " + (said.empty() ? otherwise.str() : said));
  };
  if (failed(expandInlinePtx(*clone, !listing.empty())))
    return refused("its NVVM operations cannot be expanded");

  // A context of its own: LLVM's are not shared between threads.
  llvm::LLVMContext context;
  std::string complaints;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *info, void *text) {
        if (info->getSeverity() != llvm::DS_Error)
          return;
        llvm::raw_string_ostream os(*static_cast<std::string *>(text));
        llvm::DiagnosticPrinterRawOStream printer(os);
        info->print(printer);
      },
      &complaints);
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(*clone, context, "nova");
  if (!llvmModule)
    return refused("cannot be translated to LLVM IR");
  auto machine = makeTargetMachine(*ptx);
  if (!machine)
    return machine.error();
  llvmModule->setTargetTriple(llvm::Triple(kTriple));
  llvmModule->setDataLayout((*machine)->createDataLayout());
  llvmModule->setSourceFileName("nova");
  prefixSymbols(*llvmModule, *llvmModule->getFunction(kernel));
  for (llvm::Function &function : *llvmModule)
    if (!function.isDeclaration()) {
      function.addFnAttr(llvm::Attribute::NoUnwind);
      function.addFnAttr("no-builtins");
    }
  std::string broken;
  llvm::raw_string_ostream brokenStream(broken);
  if (llvm::verifyModule(*llvmModule, &brokenStream))
    return internal("kernel '" + kernel + "': invalid LLVM IR: " + broken);

  optimise(*llvmModule, **machine);
  if (Status status = checkDefined(*llvmModule, kernel); !status)
    return status.error();
  SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager codegen;
  if ((*machine)->addPassesToEmitFile(codegen, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return internal("the code generator cannot write PTX");
  codegen.run(*llvmModule);
  if (!complaints.empty())
    return internal("kernel '" + kernel + "' for " + arch + ": " + complaints);
  if (Status status = checkNoExternFunctions(text, kernel); !status)
    return status.error();
  return text.str().str() + listedLines(text, listing);
}

std::string joinPtx(ArrayRef<std::string> texts) {
  static constexpr StringRef lastOfHeader = ".address_size 64\n";
  static constexpr StringRef kFileDirective = "\t.file\t";
  std::string result;
  for (StringRef text : texts) {
    size_t header = text.find(lastOfHeader);
    if (!result.empty() && header != StringRef::npos)
      text = text.substr(header + lastOfHeader.size());
    // They all name one and the same file.
    size_t file = text.find(kFileDirective);
    size_t end = file == StringRef::npos ? file : text.find('\n', file);
    if (!result.empty() && end != StringRef::npos) {
      result += text.take_front(file);
      text = text.substr(end + 1);
    }
    result += text;
  }
  return result;
}

} // namespace nova
