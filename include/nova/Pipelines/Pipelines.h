//===- Pipelines.h - The stages, and the passes between them --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_PIPELINES_PIPELINES_H
#define NOVA_PIPELINES_PIPELINES_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace nova {

/// Public names of what stands between the passes, in order (`--stop-after`,
/// `--dump-stages`).
enum class Stage : uint8_t {
  Graph,
  Simplified,
  Fused,
  Configured,
  Plan,
  Tiled,
  Pipelined,
  Nvvm,
  Ptx,
  Cubin,
};

struct StageInfo {
  Stage stage;
  std::string_view name; ///< "simplified"
  /// What the stage holds, for `--help` and errors.
  std::string_view holds;
};

/// All stages in order.
std::span<const StageInfo> stages();
std::string_view stageName(Stage stage);
std::optional<Stage> stageFromName(std::string_view name);

/// The last stage that is the same for every device: those after it are made
/// once for each.
inline constexpr Stage kLastSharedStage = Stage::Fused;

/// The last stage that holds the whole step, and the last for the CPU. Those
/// after it are made kernel by kernel, for GPUs (nova/Pipelines/GpuBackend.h).
inline constexpr Stage kLastStage = Stage::Plan;

/// Everything that decides what the passes do.
struct PipelineOptions {
  /// One kernel per operation.
  bool noFusion = false;
  /// Composites stay in the parts that the graph has.
  bool noRaising = false;
  /// Row of the device table that schedules are made for.
  std::string device = "x86-64-v3";
  /// How float32 operands enter products: "f32", "tf32", "bf16".
  std::string precision = "tf32";
};

/// Appends the passes that make `stage` out of the stage before it. Stages
/// after kLastStage have none; neither has Graph, which import makes.
void buildStage(mlir::OpPassManager &manager, const PipelineOptions &options,
                Stage stage);

/// Appends the passes from Graph to `stopAfter`, both ends as in buildStage().
void buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options,
                   Stage stopAfter);

} // namespace nova

#endif // NOVA_PIPELINES_PIPELINES_H
