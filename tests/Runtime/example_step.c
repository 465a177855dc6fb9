#define _POSIX_C_SOURCE 200112L
#include <nova-rt/nova_rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define CHECK(call) if (call) return fprintf(stderr, "%s\n", nova_rt_error_message()), 1
int main(int argc, char **argv) {
  nova_rt_bundle_t *bundle; nova_rt_program_t *program; nova_rt_instance_t *step; uint32_t target, i; void *p;
  CHECK(nova_rt_bundle_open(argv[argc - 1], &bundle));                /* checks the manifest */
  CHECK(nova_rt_bundle_choose(bundle, NOVA_RT_DEVICE_HOST, &target)); /* can it run here? */
  CHECK(nova_rt_program_load(bundle, target, NULL, &program));        /* verifies digests, loads the code */
  CHECK(nova_rt_instance_create(program, NULL, &step));               /* memory and threads */
  nova_rt_tensor_t t = {.struct_size = sizeof t};
  for (i = 0; !nova_rt_bundle_input(bundle, i, &t); ++i)              /* every input zero, for the example */
    CHECK(posix_memalign(&p, 64, t.bytes + 1) || nova_rt_instance_bind_input(step, i, memset(p, 0, t.bytes)));
  for (i = 0; !nova_rt_bundle_output(bundle, i, &t); ++i)             /* updates are written into their input */
    if (t.updates < 0) CHECK(posix_memalign(&p, 64, t.bytes + 1) || nova_rt_instance_bind_output(step, i, p));
  CHECK(nova_rt_instance_launch(step, NULL));
  printf("one step with %u outputs on %u threads\n", i, nova_rt_instance_threads(step));
}
