//===- FindAssembler.h - The assembler that a command line means ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_FINDASSEMBLER_H
#define NOVA_LIB_DRIVER_FINDASSEMBLER_H

#include "nova/Driver/Options.h"
#include "nova/GpuCodegen/Assembler.h"

namespace nova::driver {

/// ptxas as --ptxas or the environment name it. Missing as Assembler::find().
Expected<Assembler> findAssembler(const Options &options);

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_FINDASSEMBLER_H
