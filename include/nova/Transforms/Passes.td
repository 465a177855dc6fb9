//===- Passes.td - Passes from the graph to the plan -------*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_PASSES_TD
#define NOVA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

// In the order in which they run (src/Pipelines/Pipelines.cpp).

def EvaluateConstants : Pass<"nova-evaluate-constants", "::mlir::func::FuncOp"> {
  let summary = "Evaluate integer, boolean and mask subgraphs at compile time";
  let description = [{
    Producers build positions and attention masks out of arange, cumsum,
    comparisons and indexing. All of it that does not depend on an input is
    computed here, without ever materialising what is only repeated (strides of
    0), and only what an operation outside the evaluated part reads becomes a
    `nova.constant`.

    A constant bias of an attention that is 0 where key <= query and minus
    infinity elsewhere proves the attention causal: it becomes the attribute
    `causal` and the bias is dropped; a bias of zeros is just dropped. A remark
    says which, or why not.

    Evaluated: iota, constants, integer and boolean arithmetic, comparisons,
    select, cast, views, concat, pad, cumsum, index, gather, sum/max/min of
    integers, and floating select/arithmetic of constants. Values larger than
    `max-elements` are left to the kernels.
  }];
  let options = [Option<"maxElements", "max-elements", "int64_t", "1 << 26",
                        "largest tensor (elements) to evaluate">];
  let statistics = [Statistic<"numEvaluated", "evaluated", "Operations evaluated">,
                    Statistic<"numCausal", "causal", "Attentions proven causal">];
}

def RaiseComposites : Pass<"nova-raise-composites", "::mlir::func::FuncOp"> {
  let summary = "Recognise composites in the primitive forms producers leave";
  let description = [{
    log_softmax + nll_loss (and their backwards) become nova.sce and
    nova.sce_backward; a scatter of one value per row becomes a select on
    positions; a linear or product of a reshaped activation is applied to the
    activation as it is, so that what surrounds it has one shape; a reshape that
    only adds or drops unit dimensions of a reduction joins the reduction; a
    broadcast that its elementwise reader performs anyway is dropped.
  }];
}

def DecomposeComposites : Pass<"nova-decompose-composites", "::mlir::func::FuncOp"> {
  let summary = "Split norms, softmax and losses into reductions and elementwise parts";
  let description = [{
    What remains are elementwise operations, reductions, scans, gathers,
    scatters, contractions and attention: the vocabulary of fusion. Attention's
    backward becomes its two halves (one reduces over keys, one over queries).
    Layer norm's variance is computed from deviations (two passes), never from
    a difference of moments. Row statistics keep unit dimensions. A scatter whose
    positions end before the result does becomes one into what they reach, with
    the rest beside it.
  }];
}

def RetypeUnsigned : Pass<"nova-retype-unsigned", "::mlir::func::FuncOp"> {
  let summary = "Compute with unsigned integers as the signless ones that kernels have";
  let description = [{
    A uint8 becomes an i8 of the same bits. What is the same of both (sums,
    products, bitwise operations, movement) stays; comparisons, extremes,
    divisions and casts to a wider type are of the value zero-extended to i32.
    Arguments and results of the step keep their meaning in the attribute
    `nova.unsigned`.
  }];
}

def AssignLayouts : Pass<"nova-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "Give every chain of views a strided form";
  let description = [{
    A chain of reshape, transpose, slice and broadcast costs nothing where it
    composes into one offset and one stride per dimension. Where it does not (a
    transpose followed by a reshape that merges the transposed dimensions), a
    nova.copy stores the transposed value, the producer can write it so
    directly, and other readers view the copy.
  }];
}

def RematerializeValues : Pass<"nova-rematerialize-values", "::mlir::func::FuncOp"> {
  let summary = "Recompute in its readers what is cheaper than to store and read back";
  let description = [{
    Forms kernels on paper (as nova-form-kernels will) and looks at each value
    one kernel would store for others: if a few cheap elementwise operations
    make it from values that are in memory anyway, and the readers' additional
    reads are fewer bytes than the store and its reads, the readers compute it
    themselves. A normalised activation is thus recomputed in the backward from
    its input and the row statistics, a factor of a product from its factors.

    Runs after nova-assign-layouts, directly before nova-form-kernels; running
    CSE in between would undo it.
  }];
  let options = [Option<"maxRounds", "max-rounds", "int64_t", "4",
                        "how often to look again after values were dropped">];
  let statistics = [Statistic<"numRecomputed", "recomputed", "Values no longer stored">];
}

def FormKernels : Pass<"nova-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group operations into kernels, outline them, merge equal ones";
  let description = [{
    Walks the step in order; each operation joins the kernel of a producer when
    the two share one parallel space (see KernelContract.h), a reduction does
    not cross it, and no dependence cycle arises; else it starts one. Chains of
    elementwise operations, the reductions of rows between them, and the
    elementwise epilogue of a contraction or attention so become single kernels.
    Views and small constants are duplicated into the readers. Kernels equal in
    everything but location are outlined once; a kernel's name is its role and
    the digest of its body, never a counter.

    With `no-fusion` every operation is a kernel of its own.
  }];
  let options = [Option<"noFusion", "no-fusion", "bool", "false", "one kernel per operation">];
  let statistics = [Statistic<"numLaunches", "launches", "Launches">,
                    Statistic<"numKernels", "kernels", "Distinct kernels">];
}

def LowerKernelsToLinalg : Pass<"nova-lower-kernels-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "Rewrite the nova operations of a kernel as linalg on tensors";
  let description = [{
    Runs on kernels only. Elementwise operations and views inside the kernel
    become linalg.generic, reductions generics with reduction iterators, matmul
    and linear contraction generics whose maps carry the transposes, attention a
    chain of generics over rows of scores. Then chains of elementwise generics
    compose into one, into reductions too, never into a contraction.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def NameKernels : Pass<"nova-name-kernels", "::mlir::ModuleOp"> {
  let summary = "Merge kernels with equal bodies and name them by role and digest";
  let description = [{
    Equal kernels are merged by structural hash: SHA-256 of the function printed
    without its name and locations, values numbered in order.
  }];
}

def BindResults : Pass<"nova-bind-results", "::mlir::func::FuncOp"> {
  let summary = "Let every result dimension that nothing reduces run over the grid";
  let description = [{
    For GPUs, which have many grid points: the one result of a kernel without
    reductions (a concatenation, the rows that an index_put writes) gets all of its
    dimensions as the kernel's space, but for those that something scans or
    reduces along.
  }];
}

def SplitReductions : Pass<"nova-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Reduce in two stages where one would leave most of the device idle";
  let description = [{
    A reduction of kernel arguments to few values (a gradient's column sums, a
    loss) has few grid points. One of its loops is cut into equal parts; a new
    kernel, launched before, reduces each part, and the kernel combines the parts
    in a fixed order before it goes on. Both stages are kernels like any other.

    How many parts: `config::reductionParts`. Only reductions that are associative operations on one accumulator each,
    from a value that parts may all begin with, whose bodies do not look at
    indices, are split; the rounding is that of
    another order of summation, the same in every run.
  }];
  let options = [Option<"device", "device", "std::string", "\"h200\"", "device table row of a GPU">,
                 Option<"precision", "precision", "std::string", "\"tf32\"",
                        "how float32 operands enter products: f32, tf32 or bf16">];
  let statistics = [Statistic<"numSplit", "split", "Reductions split">];
}

def GroupKernels : Pass<"nova-group-kernels", "::mlir::ModuleOp"> {
  let summary = "Make one launch of independent kernels that differ in size only";
  let description = [{
    An optimizer updates every parameter with the same few operations: a launch for
    each costs more than the work. Launches of kernels with one structure (equal but
    for the extent of the first dimension of the space, axes collapsed) that do not
    need one another become one launch of one kernel, whose members they are
    (nova/Transforms/KernelGroups.h). Any kernel qualifies that multiplies no matrices
    (those fill the device alone), moves no elements and looks at no positions along
    that dimension.

    The members run where the last of them ran, so that no one who needs them may come
    before, nor anybody who overwrites what they read. What they read lives longer:
    a group ends where that would raise the peak of the arena, or where a member would
    read from DRAM what was still in the L2 cache for longer than a launch takes.
    Kernels whose results are gradients of the step stay where they are: a gradient is
    final as early as it can be. A remark says why a group ended.

    A group's kernel gets its pointers as one table: it has at most `parameter-bytes`.
  }];
  let options = [Option<"device", "device", "std::string", "\"h200\"", "device table row of a GPU">,
                 Option<"parameterBytes", "parameter-bytes", "int64_t", "4096",
                        "bytes of parameters that a launch takes">];
  let statistics = [Statistic<"numGroups", "groups", "Launches of several members">,
                    Statistic<"numGrouped", "grouped", "Launches that became members">];
}

def ConfigureKernels : Pass<"nova-configure-kernels", "::mlir::ModuleOp"> {
  let summary = "Choose each kernel's tile from its space and the device";
  let description = [{
    Asks the configurator (nova/Config/Configure.h, Tiles.h) and writes `nova.tile`
    and why. For a GPU, all schedules that are worth trying become
    `nova.candidates` (nova/Transforms/Candidates.h), and the kernel has the first:
    whoever makes its code takes another when that one does not fit.
  }];
  let options = [Option<"device", "device", "std::string", "\"x86-64-v3\"", "device table row">,
                 Option<"precision", "precision", "std::string", "\"tf32\"",
                        "how float32 operands enter products: f32, tf32 or bf16">];
}

def PlanMemory : Pass<"nova-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Order launches, place every intermediate in one arena, reuse dead inputs in place";
  let description = [{
    Writes the plan onto the launches (nova/Transforms/Plan.h): where each
    operand and result lives, and which launches each depends on, including that
    readers of an input come before the launch that overwrites it. An update
    that cannot be written in place is computed aside and copied at the end.
  }];
}

#endif // NOVA_TRANSFORMS_PASSES_TD
