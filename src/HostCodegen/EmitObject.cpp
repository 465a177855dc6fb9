//===- EmitObject.cpp - LLVM IR of one kernel to an ELF object ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Internal.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace llvm;

namespace nova::host {

static const char kTriple[] = "x86_64-unknown-linux-gnu";

static nova::Error internal(const Twine &message) {
  return {ErrorCode::Internal, message.str(), {}};
}

/// The machine code is for one fixed processor, never the one at hand.
static nova::Expected<std::unique_ptr<TargetMachine>>
makeTarget(const HostCodegenOptions &options) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  Triple triple(kTriple);
  std::string error;
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nova::Error{ErrorCode::Missing,
                       "no code generator for " + std::string(kTriple) +
                           " in this LLVM: " + error,
                       {}};
  std::unique_ptr<MCSubtargetInfo> known(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!known->isCPUStringValid(options.cpu))
    return nova::Error{ErrorCode::Usage,
                       "unknown processor '" + options.cpu + "'",
                       "names are LLVM's: x86-64-v3, skylake, znver4, ..."};
  TargetOptions targetOptions;
  // Only operations marked `contract` fuse.
  targetOptions.AllowFPOpFusion = FPOpFusion::Standard;
  CodeGenOptLevel level = *CodeGenOpt::getLevel(std::min(options.optLevel, 3u));
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, options.cpu, "", targetOptions,
                                  Reloc::PIC_, CodeModel::Small, level));
}

/// void symbol(ptr args, i64 first, i64 last): loads the pointers, calls the
/// body.
static void addEntry(llvm::Module &module, Function *body, StringRef symbol) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::getUnqual(context);
  Type *i64 = Type::getInt64Ty(context);
  auto *type =
      FunctionType::get(Type::getVoidTy(context), {pointer, i64, i64}, false);
  auto *entry =
      Function::Create(type, GlobalValue::ExternalLinkage, symbol, module);
  IRBuilder<> builder(BasicBlock::Create(context, "", entry));
  SmallVector<Value *> operands;
  unsigned buffers = body->arg_size() - 2;
  for (unsigned i = 0; i < buffers; ++i) {
    Value *slot =
        builder.CreateConstInBoundsGEP1_64(pointer, entry->getArg(0), i);
    operands.push_back(builder.CreateLoad(pointer, slot));
  }
  operands.push_back(entry->getArg(1));
  operands.push_back(entry->getArg(2));
  builder.CreateCall(body, operands);
  builder.CreateRetVoid();
}

static void optimise(llvm::Module &module, TargetMachine &machine,
                     TargetLibraryInfoImpl &library, unsigned level) {
  PipelineTuningOptions tuning;
  // The loops come vectorised and unrolled as far as it pays; LLVM would only
  // multiply their tails.
  tuning.LoopVectorization = false;
  tuning.LoopInterleaving = false;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  LoopAnalysisManager lam;
  FunctionAnalysisManager fam;
  CGSCCAnalysisManager cgam;
  ModuleAnalysisManager mam;
  PassBuilder builder(&machine, tuning);
  fam.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  const OptimizationLevel levels[] = {
      OptimizationLevel::O0, OptimizationLevel::O1, OptimizationLevel::O2,
      OptimizationLevel::O3};
  OptimizationLevel chosen = levels[std::min(level, 3u)];
  ModulePassManager passes =
      chosen == OptimizationLevel::O0
          ? builder.buildO0DefaultPipeline(chosen)
          : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, mam);
}

/// Values of bfloat16 (scalars and vectors) are moved as their bits: LLVM's x86
/// back end widens some moves to float and rounds back by a library call. What
/// computes with them was expanded long before; what is left are moves.
class BFloatsAsBits {
public:
  static void run(Function &function) {
    BFloatsAsBits rewriter;
    SmallVector<Instruction *> moves;
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (isMove(instruction))
          moves.push_back(&instruction);
    for (Instruction *move : moves)
      rewriter.rewrite(move);
    // Cast there and back again.
    for (BasicBlock &block : function)
      for (Instruction &instruction : make_early_inc_range(block))
        if (auto *cast = dyn_cast<BitCastInst>(&instruction))
          if (auto *inner = dyn_cast<BitCastInst>(cast->getOperand(0));
              inner && inner->getOperand(0)->getType() == cast->getType())
            cast->replaceAllUsesWith(inner->getOperand(0));
  }

private:
  static bool isBFloat(Type *type) { return type->getScalarType()->isBFloatTy(); }
  static bool isMove(Instruction &instruction) {
    if (auto *store = dyn_cast<StoreInst>(&instruction))
      return isBFloat(store->getValueOperand()->getType());
    if (isa<ExtractElementInst>(instruction))
      return isBFloat(instruction.getType());
    return isBFloat(instruction.getType()) &&
           isa<LoadInst, SelectInst, PHINode, InsertElementInst,
               ShuffleVectorInst, FreezeInst>(instruction);
  }
  static Type *bitsOf(Type *type) {
    return type->getWithNewType(Type::getInt16Ty(type->getContext()));
  }
  /// `value` as bits, for use by `user`.
  static Value *bits(Value *value, Instruction *user) {
    if (auto *cast = dyn_cast<BitCastInst>(value))
      if (cast->getOperand(0)->getType() == bitsOf(value->getType()))
        return cast->getOperand(0);
    return IRBuilder<>(user).CreateBitCast(value, bitsOf(value->getType()));
  }

  void rewrite(Instruction *move) {
    if (auto *store = dyn_cast<StoreInst>(move)) {
      store->setOperand(0, bits(store->getValueOperand(), store));
      return;
    }
    Instruction *copy = move->clone();
    copy->insertBefore(move->getIterator());
    copy->mutateType(bitsOf(move->getType()));
    for (Use &use : copy->operands()) {
      if (!isBFloat(use->getType()))
        continue;
      Instruction *before = copy;
      if (auto *phi = dyn_cast<PHINode>(copy))
        before = phi->getIncomingBlock(use)->getTerminator();
      use.set(bits(use.get(), before));
    }
    IRBuilder<> builder(move);
    if (isa<PHINode>(move))
      builder.SetInsertPoint(move->getParent()->getFirstInsertionPt());
    move->replaceAllUsesWith(builder.CreateBitCast(copy, move->getType()));
    move->eraseFromParent();
  }
};

/// An error if the object needs anything from outside.
static Status checkSelfContained(StringRef bytes, StringRef kernel) {
  auto object =
      object::ObjectFile::createObjectFile(MemoryBufferRef(bytes, "kernel"));
  if (!object)
    return internal("kernel '" + kernel + "': " + toString(object.takeError()));
  for (const object::SymbolRef &symbol : (*object)->symbols()) {
    auto flags = symbol.getFlags();
    if (!flags || !(*flags & object::SymbolRef::SF_Undefined) ||
        (*flags & object::SymbolRef::SF_FormatSpecific))
      continue;
    auto name = symbol.getName();
    if (!name || name->empty()) {
      consumeError(name.takeError());
      continue;
    }
    return internal("kernel '" + kernel + "': its host code calls '" + *name +
                    "', which nothing defines (a host kernel imports nothing)");
  }
  return Status::ok();
}

nova::Expected<std::string> emitObject(llvm::Module &module, StringRef kernel,
                                       StringRef symbol,
                                       const HostCodegenOptions &options) {
  auto target = makeTarget(options);
  if (!target)
    return target.error();
  TargetMachine *machine = target->get();
  module.setTargetTriple(Triple(kTriple));
  module.setDataLayout(machine->createDataLayout());
  module.setSourceFileName("nova");
  module.setModuleIdentifier("nova");

  Function *body = nullptr;
  for (Function &function : module)
    if (!function.isDeclaration())
      body = &function;
  if (!body)
    return internal("kernel '" + kernel +
                    "': no function came out of its lowering");
  body->setName(symbol + ".body");
  body->setLinkage(GlobalValue::InternalLinkage);
  body->addFnAttr(
      Attribute::NoInline); // Keeps what its arguments' attributes say.
  addEntry(module, body, symbol);
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("no-builtins");
    function.addFnAttr("target-cpu", options.cpu);
    function.addFnAttr("frame-pointer", "none");
    function.addFnAttr(Attribute::NoUnwind);
    function.addFnAttr(Attribute::NoRecurse);
  }
  std::string broken;
  raw_string_ostream brokenStream(broken);
  if (verifyModule(module, &brokenStream))
    return internal("kernel '" + kernel + "': invalid LLVM IR: " + broken);

  TargetLibraryInfoImpl library{Triple(kTriple)};
  library.disableAllFunctions();
  optimise(module, *machine, library, options.optLevel);
  for (Function &function : module)
    BFloatsAsBits::run(function);

  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager codegen;
  codegen.add(new TargetLibraryInfoWrapperPass(library));
  if (machine->addPassesToEmitFile(codegen, stream, nullptr,
                                   CodeGenFileType::ObjectFile))
    return internal("the code generator cannot write object files");
  codegen.run(module);
  std::string object(bytes.begin(), bytes.end());
  if (Status status = checkSelfContained(object, kernel); !status)
    return status.error();
  return object;
}

} // namespace nova::host
