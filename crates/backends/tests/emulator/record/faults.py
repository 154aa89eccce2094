"""Launches that must fail: only the driver's error name is recorded."""
from case import module, save, thread_index
from warp import lines
def generate(rng, small, dense):
    folder = small.replace("cases", "faults")
    bodies = {
        "global_null": "mov.b64 %rd1, 0;\nld.global.b32 %r20, [%rd1];",
        "global_misaligned": "ld.param.b64 %rd1, [k_param_0];\nld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd1+4];\nadd.s32 %r20, %r20, %r21;\nadd.s32 %r22, %r22, %r23;\nxor.b32 %r20, %r20, %r22;",
        "global_far": "ld.param.b64 %rd1, [k_param_0];\nmov.b64 %rd2, 0x100000000000;\nadd.s64 %rd1, %rd1, %rd2;\nmov.b32 %r20, 1;\nst.global.b32 [%rd1], %r20;",
        "shared_past": "mov.b64 %rd1, tile;\nld.shared.b32 %r20, [%rd1+262144];",
        "shared_misaligned": "mov.b64 %rd1, tile;\nld.shared.b64 %rd2, [%rd1+4];\nshr.u64 %rd3, %rd2, 7;\ncvt.u32.u64 %r20, %rd3;",
        "local_past": "mov.b64 %rd1, 0;\nld.local.b32 %r20, [%rd1+16777216];",
        "trap": "trap;\nmov.b32 %r20, 1;",
        "trap_one_thread": "mov.b32 %r20, 1;\nmov.u32 %r30, %tid.x;\nsetp.eq.b32 %p1, %r30, 3;\n@%p1 trap;",
        "cp_async_misaligned": "mov.b64 %rd1, tile;\nld.param.b64 %rd2, [k_param_0];\ncp.async.cg.shared.global [%rd1], [%rd2+8], 16;\ncp.async.wait_all;\nmov.b32 %r20, 1;",
        "ldmatrix_misaligned": "mov.b64 %rd1, tile;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%rd1+8];",
        "atom_misaligned": "ld.param.b64 %rd1, [k_param_0];\natom.global.add.u32 %r20, [%rd1+2], 1;",
    }
    for name, body in bodies.items():
        text = thread_index() + lines(body) + lines("ld.param.b64 %rd10, [k_param_0];\nmul.wide.u32 %rd11, %r1, 4;\nadd.s64 %rd10, %rd10, %rd11;\nst.global.b32 [%rd10], %r20;")
        save(folder, name, module(["ptr"], text, globals=".shared .align 16 .b8 tile[1024];\n\n"), [1, 1, 1], [32, 1, 1], [4096], [0])
