//===- NovaOps.td - Operations of the nova dialect ---------*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_OPS_TD
#define NOVA_OPS_TD

include "nova/IR/NovaDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Marks operations that compute each result element from the operand
/// elements at the same (broadcast) position: the ones fusion may compose.
def Nova_Pointwise : NativeOpTrait<"Pointwise"> { let cppNamespace = "::nova"; }
/// Marks operations that only rearrange what is there: they become indexing.
def Nova_ViewLike : NativeOpTrait<"ViewLike"> { let cppNamespace = "::nova"; }

def Nova_Tensor : StaticShapeTensorOf<[F64, F32, BF16, F16, I64, I32, I16, I8, UI8, I1]>;
def Nova_FloatTensor : StaticShapeTensorOf<[F64, F32, BF16, F16]>;
def Nova_BoolTensor : StaticShapeTensorOf<[I1]>;
def Nova_IndexTensor : StaticShapeTensorOf<[I64, I32]>;

class Nova_Op<string name, list<Trait> traits = []> : Op<Nova_Dialect, name, traits>;

/// A pure operation of plain syntax whose result types follow from the rest.
class Nova_InferredOp<string name, list<Trait> traits = []>
    : Nova_Op<name, !listconcat(traits, [Pure,
        InferTypeOpAdaptor])> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
/// The same where the result type is a choice (a reshape, a cast).
class Nova_TypedOp<string name, list<Trait> traits = []>
    : Nova_Op<name, !listconcat(traits, [Pure])> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

def Nova_ConstantOp : Nova_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a tensor known at compile time";
  let description = "Example: `%c = nova.constant dense<1.0> : tensor<4xf32>`.";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Nova_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Nova_IotaOp : Nova_Op<"iota", [Pure]> {
  let summary = "start, start + step, start + 2 step, ... (rank 1)";
  let arguments = (ins TypedAttrInterface:$start, TypedAttrInterface:$step);
  let results = (outs Nova_Tensor:$result);
  let assemblyFormat = "$start `,` $step attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

class Nova_UnaryOp<string name, string what, Type type = Nova_Tensor>
    : Nova_InferredOp<name, [Nova_Pointwise]> {
  let summary = what;
  let arguments = (ins type:$input);
  let results = (outs type:$result);
}

def Nova_NegOp : Nova_UnaryOp<"neg", "-x">;
def Nova_AbsOp : Nova_UnaryOp<"abs", "|x|">;
def Nova_ExpOp : Nova_UnaryOp<"exp", "e^x", Nova_FloatTensor>;
def Nova_LogOp : Nova_UnaryOp<"log", "natural logarithm", Nova_FloatTensor>;
def Nova_SqrtOp : Nova_UnaryOp<"sqrt", "square root, correctly rounded", Nova_FloatTensor>;
def Nova_RsqrtOp : Nova_UnaryOp<"rsqrt", "1 / sqrt(x)", Nova_FloatTensor>;
def Nova_ReciprocalOp : Nova_UnaryOp<"reciprocal", "1 / x", Nova_FloatTensor>;
def Nova_TanhOp : Nova_UnaryOp<"tanh", "hyperbolic tangent", Nova_FloatTensor>;
def Nova_SigmoidOp : Nova_UnaryOp<"sigmoid", "1 / (1 + e^-x)", Nova_FloatTensor>;
def Nova_ErfOp : Nova_UnaryOp<"erf", "error function", Nova_FloatTensor>;
def Nova_SinOp : Nova_UnaryOp<"sin", "sine (radians)", Nova_FloatTensor>;
def Nova_CosOp : Nova_UnaryOp<"cos", "cosine (radians)", Nova_FloatTensor>;
def Nova_ReluOp : Nova_UnaryOp<"relu", "max(x, 0); NaN stays NaN">;
def Nova_NotOp : Nova_UnaryOp<"not", "bitwise complement; logical not of i1">;

def Nova_GeluOp : Nova_InferredOp<"gelu", [Nova_Pointwise]> {
  let summary = "Gaussian error linear unit, exact (erf) or tanh form";
  let arguments = (ins Nova_FloatTensor:$input, DefaultValuedAttr<Nova_GeluFormAttr, "GeluForm::erf">:$form);
  let results = (outs Nova_FloatTensor:$result);
}

def Nova_GeluBackwardOp : Nova_InferredOp<"gelu_backward", [Nova_Pointwise, AllTypesMatch<["grad", "input"]>]> {
  let summary = "grad * gelu'(input)";
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$input,
                       DefaultValuedAttr<Nova_GeluFormAttr, "GeluForm::erf">:$form);
  let results = (outs Nova_FloatTensor:$result);
}

def Nova_TanhBackwardOp : Nova_InferredOp<"tanh_backward", [Nova_Pointwise, AllTypesMatch<["grad", "output"]>]> {
  let summary = "grad * (1 - output^2), output = tanh(x)";
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$output);
  let results = (outs Nova_FloatTensor:$result);
}

def Nova_SigmoidBackwardOp : Nova_InferredOp<"sigmoid_backward", [Nova_Pointwise, AllTypesMatch<["grad", "output"]>]> {
  let summary = "grad * output * (1 - output), output = sigmoid(x)";
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$output);
  let results = (outs Nova_FloatTensor:$result);
}

def Nova_ThresholdBackwardOp : Nova_InferredOp<"threshold_backward", [Nova_Pointwise, AllTypesMatch<["grad", "input"]>]> {
  let summary = "input <= threshold ? 0 : grad (NaN input passes grad on, as PyTorch)";
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$input, F64Attr:$threshold);
  let results = (outs Nova_FloatTensor:$result);
}

class Nova_BinaryOp<string name, string what, list<Trait> traits = [], Type type = Nova_Tensor>
    : Nova_InferredOp<name, !listconcat(traits, [Nova_Pointwise])> {
  let summary = what;
  let description = "Shapes broadcast as in NumPy; element types are equal.";
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
}

let hasFolder = 1 in {
def Nova_AddOp : Nova_BinaryOp<"add", "lhs + rhs", [Commutative]>;
def Nova_SubOp : Nova_BinaryOp<"sub", "lhs - rhs">;
def Nova_MulOp : Nova_BinaryOp<"mul", "lhs * rhs", [Commutative]>;
def Nova_DivOp : Nova_BinaryOp<"div", "lhs / rhs (floating)", [], Nova_FloatTensor>;
}
def Nova_FloorDivOp : Nova_BinaryOp<"floor_div", "floor(lhs / rhs)">;
def Nova_TruncDivOp : Nova_BinaryOp<"trunc_div", "lhs / rhs rounded to zero">;
def Nova_RemainderOp : Nova_BinaryOp<"remainder", "lhs - floor(lhs / rhs) * rhs (Python's %)">;
def Nova_PowOp : Nova_BinaryOp<"pow", "lhs ^ rhs, C99 Annex F special cases"> { let hasCanonicalizer = 1; }
def Nova_MaximumOp : Nova_BinaryOp<"maximum", "the larger; NaN if either is", [Commutative]>;
def Nova_MinimumOp : Nova_BinaryOp<"minimum", "the smaller; NaN if either is", [Commutative]>;
def Nova_AndOp : Nova_BinaryOp<"and", "bitwise and", [Commutative]>;
def Nova_OrOp : Nova_BinaryOp<"or", "bitwise or", [Commutative]>;
def Nova_XorOp : Nova_BinaryOp<"xor", "bitwise exclusive or", [Commutative]>;

def Nova_CompareOp : Nova_InferredOp<"compare", [Nova_Pointwise]> {
  let summary = "lhs PREDICATE rhs, as i1; comparisons with NaN are false but for ne";
  let arguments = (ins Nova_Tensor:$lhs, Nova_Tensor:$rhs, Nova_ComparePredicateAttr:$predicate);
  let results = (outs Nova_BoolTensor:$result);
}

def Nova_SelectOp : Nova_InferredOp<"select", [Nova_Pointwise]> {
  let summary = "condition ? on_true : on_false, all broadcast";
  let arguments = (ins Nova_BoolTensor:$condition, Nova_Tensor:$on_true, Nova_Tensor:$on_false);
  let results = (outs Nova_Tensor:$result);
}

def Nova_CastOp : Nova_TypedOp<"cast", [Nova_Pointwise, SameOperandsAndResultShape]> {
  let summary = "conversion of element type";
  let description = [{
    To a narrower float: round to nearest even. Float to integer: towards zero.
    To i1: x != 0. From i1: 0 or 1.
  }];
  let arguments = (ins Nova_Tensor:$input);
  let results = (outs Nova_Tensor:$result);
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

let hasFolder = 1 in {
def Nova_ReshapeOp : Nova_TypedOp<"reshape", [Nova_ViewLike]> {
  let summary = "the same elements in row-major order under another shape";
  let arguments = (ins Nova_Tensor:$input);
  let results = (outs Nova_Tensor:$result);
  let hasVerifier = 1;
}

def Nova_BroadcastOp : Nova_TypedOp<"broadcast", [Nova_ViewLike]> {
  let summary = "repeats along missing leading dimensions and dimensions of size 1";
  let arguments = (ins Nova_Tensor:$input);
  let results = (outs Nova_Tensor:$result);
  let hasVerifier = 1;
}

def Nova_TransposeOp : Nova_InferredOp<"transpose", [Nova_ViewLike]> {
  let summary = "result dimension i is input dimension permutation[i]";
  let arguments = (ins Nova_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Nova_Tensor:$result);
}

def Nova_SliceOp : Nova_InferredOp<"slice", [Nova_ViewLike]> {
  let summary = "result[i] = input[offsets + i * strides]";
  let arguments = (ins Nova_Tensor:$input, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides);
  let results = (outs Nova_Tensor:$result);
}
}

def Nova_ConcatOp : Nova_InferredOp<"concat"> {
  let summary = "the inputs side by side along dim";
  let arguments = (ins Variadic<Nova_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Nova_Tensor:$result);
}

def Nova_PadOp : Nova_InferredOp<"pad"> {
  let summary = "input surrounded by `value` (low before, high after, per dimension)";
  let description = [{
    With `undefined` the padding may hold anything (a producer's rounding of a
    log-sum-exp to a multiple of 32); nothing that is compared may depend on it.
  }];
  let arguments = (ins Nova_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       TypedAttrInterface:$value, UnitAttr:$undefined);
  let results = (outs Nova_Tensor:$result);
}

def Nova_CopyOp : Nova_InferredOp<"copy", [Nova_Pointwise]> {
  let summary = "the input, stored contiguous row-major";
  let description = "Inserted where a chain of views has no strided form.";
  let arguments = (ins Nova_Tensor:$input);
  let results = (outs Nova_Tensor:$result);
}

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

class Nova_ReduceOp<string name, string what> : Nova_InferredOp<name> {
  let summary = what;
  let description = "Over `dims` (sorted, distinct); with `keepdims` they stay with size 1.";
  let arguments = (ins Nova_Tensor:$input, DenseI64ArrayAttr:$dims, UnitAttr:$keepdims);
  let results = (outs Nova_Tensor:$result);
}
def Nova_SumOp : Nova_ReduceOp<"sum", "sum (0 over nothing); same element type">;
def Nova_MaxOp : Nova_ReduceOp<"max", "largest; NaN if any is">;
def Nova_MinOp : Nova_ReduceOp<"min", "smallest; NaN if any is">;

class Nova_ArgReduceOp<string name, string what> : Nova_InferredOp<name> {
  let summary = what;
  let arguments = (ins Nova_Tensor:$input, I64Attr:$dim, UnitAttr:$keepdims);
  let results = (outs Nova_Tensor:$values, StaticShapeTensorOf<[I64]>:$indices);
}
def Nova_ArgMaxOp : Nova_ArgReduceOp<"argmax", "largest along dim and the first place it stands; NaN counts as largest">;
def Nova_ArgMinOp : Nova_ArgReduceOp<"argmin", "smallest along dim and the first place it stands; NaN counts as smallest">;

def Nova_CumsumOp : Nova_InferredOp<"cumsum"> {
  let summary = "result[.., i, ..] = sum of input[.., 0..i, ..] along dim";
  let arguments = (ins Nova_Tensor:$input, I64Attr:$dim);
  let results = (outs Nova_Tensor:$result);
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

def Nova_IndexOp : Nova_InferredOp<"index"> {
  let summary = "advanced indexing: adjacent dimensions replaced by the index tensors' shape";
  let description = [{
    `dims` are adjacent and increasing, one per index tensor; the index tensors
    have equal shapes I. With input shape A ++ S ++ B (S the indexed
    dimensions), result[a, i, b] = input[a, index_0[i], index_1[i], ..., b] and
    the result's shape is A ++ I ++ B. A negative index counts from the end. An
    index outside the dimension yields NaN (0 for integers), never a wild read.
    An embedding look-up is `dims = [0]` with one index tensor.
  }];
  let arguments = (ins Nova_Tensor:$input, Variadic<Nova_IndexTensor>:$indices, DenseI64ArrayAttr:$dims);
  let results = (outs Nova_Tensor:$result);
}

def Nova_GatherOp : Nova_InferredOp<"gather"> {
  let summary = "result[.., i, ..] = input[.., index[.., i, ..], ..] along dim (torch.gather)";
  let description = "The index has the input's rank and is nowhere larger but along dim. Out of range as in nova.index.";
  let arguments = (ins Nova_Tensor:$input, Nova_IndexTensor:$index, I64Attr:$dim);
  let results = (outs Nova_Tensor:$result);
}

def Nova_ScatterOp : Nova_InferredOp<"scatter"> {
  let summary = "init, then result[.., index[.., i, ..], ..] = updates[.., i, ..] along dim (torch.scatter)";
  let description = [{
    `index` and `updates` have equal shapes of init's rank, nowhere larger than
    init but along dim. Positions are taken in row-major order: the last write
    wins; with `accumulate` they are added in that order (deterministic). An
    index outside the dimension writes nothing.
  }];
  let arguments = (ins Nova_Tensor:$init, Nova_IndexTensor:$index, Nova_Tensor:$updates,
                       I64Attr:$dim, UnitAttr:$accumulate);
  let results = (outs Nova_Tensor:$result);
}

def Nova_IndexPutOp : Nova_InferredOp<"index_put"> {
  let summary = "init, then result[index_0[i], index_1[i], ..., b] = updates[i, b]";
  let description = [{
    The inverse of nova.index with dims [0, 1, ...]: index tensors of equal
    shape I replace the leading dimensions; updates have shape I ++ B. Positions
    i in row-major order; the last write wins, with `accumulate` they are added
    in that order. Negative indices count from the end; an index outside its
    dimension writes nothing. An embedding's gradient is one index tensor,
    accumulate, over zeros.
  }];
  let arguments = (ins Nova_Tensor:$init, Variadic<Nova_IndexTensor>:$indices, Nova_Tensor:$updates,
                       UnitAttr:$accumulate);
  let results = (outs Nova_Tensor:$result);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

def Nova_MatmulOp : Nova_InferredOp<"matmul"> {
  let summary = "lhs [.., M, K] times rhs [.., K, N], float32 accumulation";
  let description = [{
    Leading (batch) dimensions of both are equal, or rhs has rank 2 and serves
    every batch. `transpose_lhs`: lhs is [.., K, M]; `transpose_rhs`: [.., N, K].
  }];
  let arguments = (ins Nova_FloatTensor:$lhs, Nova_FloatTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Nova_FloatTensor:$result);
  let hasCanonicalizer = 1;
}

def Nova_LinearOp : Nova_InferredOp<"linear"> {
  let summary = "input [.., K] times weight [K, N] plus bias [N]";
  let description = "With `transpose_weight` the weight is [N, K], as in torch.nn.Linear.";
  let arguments = (ins Nova_FloatTensor:$input, Nova_FloatTensor:$weight, Nova_FloatTensor:$bias,
                       UnitAttr:$transpose_weight);
  let results = (outs Nova_FloatTensor:$result);
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// Normalisation, softmax, losses
//===----------------------------------------------------------------------===//

def Nova_LayerNormOp : Nova_InferredOp<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "y = (x - mean) * rstd * weight + bias over the trailing `axes` dimensions";
  let description = [{
    Population variance, rstd = 1 / sqrt(var + eps). Results: y, mean, rstd; the
    statistics keep the input's rank with size 1 in the normalised dimensions.
    `weight` and `bias` (optional) have the normalised shape.
  }];
  let arguments = (ins Nova_FloatTensor:$input, Optional<Nova_FloatTensor>:$weight,
                       Optional<Nova_FloatTensor>:$bias, I64Attr:$axes, F64Attr:$eps);
  let results = (outs Nova_FloatTensor:$result, Nova_FloatTensor:$mean, Nova_FloatTensor:$rstd);
}

def Nova_LayerNormBackwardOp : Nova_InferredOp<"layer_norm_backward"> {
  let summary = "gradients of layer_norm: of input, weight and bias";
  let description = [{
    With h = (x - mean) * rstd, g = grad * weight, over the normalised dimensions
    of size D: d_input = rstd * (g - sum(g)/D - h * sum(g * h)/D); d_weight and
    d_bias are the sums of grad * h and grad over the rows. Without a weight
    d_weight and d_bias still have the normalised shape.
  }];
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$input, Nova_FloatTensor:$mean,
                       Nova_FloatTensor:$rstd, Optional<Nova_FloatTensor>:$weight, I64Attr:$axes);
  let results = (outs Nova_FloatTensor:$d_input, Nova_FloatTensor:$d_weight, Nova_FloatTensor:$d_bias);
}

class Nova_SoftmaxLikeOp<string name, string what> : Nova_InferredOp<name> {
  let summary = what;
  let arguments = (ins Nova_FloatTensor:$input, I64Attr:$dim);
  let results = (outs Nova_FloatTensor:$result);
}
def Nova_SoftmaxOp : Nova_SoftmaxLikeOp<"softmax", "e^(x - max) / sum e^(x - max) along dim; a row of -inf gives NaN">;
def Nova_LogSoftmaxOp : Nova_SoftmaxLikeOp<"log_softmax", "x - max - log(sum e^(x - max)) along dim">;

class Nova_SoftmaxBackwardLikeOp<string name, string what>
    : Nova_InferredOp<name, [AllTypesMatch<["grad", "output"]>]> {
  let summary = what;
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$output, I64Attr:$dim);
  let results = (outs Nova_FloatTensor:$result);
}
def Nova_SoftmaxBackwardOp : Nova_SoftmaxBackwardLikeOp<"softmax_backward", "output * (grad - sum(grad * output)) along dim">;
def Nova_LogSoftmaxBackwardOp : Nova_SoftmaxBackwardLikeOp<"log_softmax_backward", "grad - e^output * sum(grad) along dim">;

def Nova_NllLossOp : Nova_InferredOp<"nll_loss"> {
  let summary = "negative log likelihood of int labels under log-probabilities [N, C]";
  let description = [{
    Per row -weight[label] * log_probs[row, label], 0 where label = ignore_index;
    reduced by mean (divided by the sum of the weights used), sum, or not at all
    (shape [N]). `total_weight` is that sum (for `none` it is 0). The mean over
    no row is NaN, as in PyTorch.
  }];
  let arguments = (ins Nova_FloatTensor:$log_probs, Nova_IndexTensor:$labels, Optional<Nova_FloatTensor>:$weight,
                       Nova_LossReductionAttr:$reduction, I64Attr:$ignore_index);
  let results = (outs Nova_FloatTensor:$loss, Nova_FloatTensor:$total_weight);
}

def Nova_NllLossBackwardOp : Nova_InferredOp<"nll_loss_backward"> {
  let summary = "gradient of nll_loss with respect to the log-probabilities (only their shape matters)";
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$log_probs, Nova_IndexTensor:$labels,
                       Optional<Nova_FloatTensor>:$weight, Nova_FloatTensor:$total_weight,
                       Nova_LossReductionAttr:$reduction, I64Attr:$ignore_index);
  let results = (outs Nova_FloatTensor:$result);
}

def Nova_SceOp : Nova_InferredOp<"sce"> {
  let summary = "softmax cross entropy of logits [N, C] against int labels [N]";
  let description = [{
    loss = reduction over rows with label != ignore_index of
    lse[row] - logits[row, label], lse = log(sum e^logits) along the last
    dimension. `lse` [N] is saved for the backward; the probabilities are never
    stored. `count` is the number of rows that counted (as a float).
  }];
  let arguments = (ins Nova_FloatTensor:$logits, Nova_IndexTensor:$labels,
                       Nova_LossReductionAttr:$reduction, I64Attr:$ignore_index);
  let results = (outs Nova_FloatTensor:$loss, Nova_FloatTensor:$lse, Nova_FloatTensor:$count);
}

def Nova_SceBackwardOp : Nova_InferredOp<"sce_backward"> {
  let summary = "d logits = scale[row] * (e^(logits - lse) - onehot(label))";
  let description = [{
    scale = grad / count for mean, grad for sum (grad is 0-d), grad[row] for
    none; 0 in rows whose label is ignore_index.
  }];
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$logits, Nova_IndexTensor:$labels,
                       Nova_FloatTensor:$lse, Nova_FloatTensor:$count,
                       Nova_LossReductionAttr:$reduction, I64Attr:$ignore_index);
  let results = (outs Nova_FloatTensor:$result);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Nova_AttentionOp : Nova_InferredOp<"attention"> {
  let summary = "softmax(scale * q k^T + bias) v without a score matrix";
  let description = [{
    q [B, H, T, D], k [B, H, S, D], v [B, H, S, E]; bias (optional) broadcasts to
    [B, H, T, S]. With `causal`, key j is seen by query i only where
    j <= i (+ S - T is not added: both start at 0). Results: out [B, H, T, E],
    lse [B, H, T] = log of the sum of exponentials (natural), kept for the
    backward. A row that sees no key gives 0 (and lse 0).
  }];
  let arguments = (ins Nova_FloatTensor:$query, Nova_FloatTensor:$key, Nova_FloatTensor:$value,
                       Optional<Nova_FloatTensor>:$bias, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Nova_FloatTensor:$result, Nova_FloatTensor:$lse);
}

def Nova_AttentionBackwardOp : Nova_InferredOp<"attention_backward"> {
  let summary = "gradients of attention with respect to query, key and value";
  let description = [{
    Recomputes p = e^(scale * q k^T + bias - lse). With delta = sum(grad * out)
    over E: dv = p^T grad, ds = p * (grad v^T - delta), dq = scale * ds k,
    dk = scale * ds^T q.
  }];
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$query, Nova_FloatTensor:$key,
                       Nova_FloatTensor:$value, Optional<Nova_FloatTensor>:$bias,
                       Nova_FloatTensor:$out, Nova_FloatTensor:$lse, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Nova_FloatTensor:$d_query, Nova_FloatTensor:$d_key, Nova_FloatTensor:$d_value);
}

def Nova_AttentionBackwardQueryOp : Nova_InferredOp<"attention_backward_query"> {
  let summary = "the half of attention_backward that reduces over keys: d_query, and delta";
  let description = [{
    delta [B, H, T] = sum over E of grad * out, which the other half reads too.
  }];
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$query, Nova_FloatTensor:$key,
                       Nova_FloatTensor:$value, Optional<Nova_FloatTensor>:$bias,
                       Nova_FloatTensor:$out, Nova_FloatTensor:$lse, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Nova_FloatTensor:$d_query, Nova_FloatTensor:$delta);
}

def Nova_AttentionBackwardKeyValueOp : Nova_InferredOp<"attention_backward_key_value"> {
  let summary = "the half of attention_backward that reduces over queries: d_key and d_value";
  let arguments = (ins Nova_FloatTensor:$grad, Nova_FloatTensor:$query, Nova_FloatTensor:$key,
                       Nova_FloatTensor:$value, Optional<Nova_FloatTensor>:$bias,
                       Nova_FloatTensor:$lse, Nova_FloatTensor:$delta, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Nova_FloatTensor:$d_key, Nova_FloatTensor:$d_value);
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

def Nova_LaunchOp : Nova_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel on views of tensors";
  let description = [{
    `views[i]` says where argument i of the kernel lies in the memory of operand
    i. Results are new tensors, contiguous row-major; memory planning decides
    where they live. `nodes` names the graph nodes this launch computes.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Nova_Tensor>:$inputs,
                       ArrayAttr:$views, StrArrayAttr:$nodes);
  let results = (outs Variadic<Nova_Tensor>:$results);
  let assemblyFormat = "$kernel `(` $inputs `)` `views` $views `nodes` $nodes attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

def Nova_TransferOp : Nova_Op<"transfer"> {
  let summary = "copies bytes from one place to another (in a planned step)";
  let description = "An update computed aside, because its input is still read, is moved in by one of these.";
  let arguments = (ins Nova_PlaceAttr:$to, Nova_PlaceAttr:$from, I64Attr:$bytes);
  let assemblyFormat = "$to `from` $from `bytes` $bytes attr-dict";
}

#endif // NOVA_OPS_TD
