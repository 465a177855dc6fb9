/* Opens a bundle and launches one step, all inputs zero: example_step NAME.nova */
#define _POSIX_C_SOURCE 200112L
#include <nova-rt/nova_rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call) if (call) { fprintf(stderr, "%s\n%s\n", nova_rt_error_message(), nova_rt_error_hint()); return 1; }

int main(int argc, char **argv) {
  nova_rt_bundle_t *bundle; nova_rt_program_t *program; nova_rt_instance_t *step; uint32_t target;
  CHECK(nova_rt_bundle_open(argc > 1 ? argv[1] : "step.nova", &bundle));    /* checks the manifest */
  CHECK(nova_rt_bundle_choose(bundle, NOVA_RT_DEVICE_HOST, &target));       /* can it run here? */
  CHECK(nova_rt_program_load(bundle, target, NULL, &program));              /* verifies and loads the code */
  CHECK(nova_rt_instance_create(program, NULL, &step));                     /* memory and threads */
  nova_rt_bundle_info_t info = {.struct_size = sizeof info};
  CHECK(nova_rt_bundle_info(bundle, &info));
  for (uint32_t i = 0; i < info.inputs + info.outputs; ++i) {               /* a buffer for each argument */
    nova_rt_tensor_t t = {.struct_size = sizeof t}; void *buffer;
    int is_input = i < info.inputs; uint32_t index = is_input ? i : i - info.inputs;
    CHECK(is_input ? nova_rt_bundle_input(bundle, index, &t) : nova_rt_bundle_output(bundle, index, &t));
    if (t.updates >= 0) continue;                                           /* written into the input it updates */
    if (posix_memalign(&buffer, 64, t.bytes + 1)) return 1;
    memset(buffer, 0, t.bytes);
    CHECK(is_input ? nova_rt_instance_bind_input(step, index, buffer) : nova_rt_instance_bind_output(step, index, buffer));
  }
  CHECK(nova_rt_instance_launch(step, NULL));
  printf("%s: one step of %u inputs and %u outputs on %u threads\n", info.name, info.inputs, info.outputs, nova_rt_instance_threads(step));
  nova_rt_instance_close(step); nova_rt_program_close(program); nova_rt_bundle_close(bundle);
  return 0;
}
