/*
 * The scalar built-ins of the compiler: tc_<name>_f32 and tc_<name>_f64.
 *
 * Meanings, special values included, are those of the CUDA math functions of
 * the same name. One source serves twice: as LLVM bitcode it is linked into
 * generated code, and as a native library it backs the reference interpreter
 * and the tests. Their results may differ in the last place, because polynomials
 * are evaluated with fused operations where the processor has them.
 *
 * Nothing here calls a library. What is one instruction on most processors
 * (floor, fma, ..) is written as such, and soft.c has it for the others.
 *
 * Accuracy: every result lies within 8 ulp of the exact one, in both widths and
 * over the whole range, near the zeros of j0, j1, y0, y1 and lgamma too
 * (reference/ holds the points it is tested on). Elementary functions are within
 * 2 ulp of it, in single precision for all floats.
 *
 * Needs clang for a 64-bit target (128-bit integers, _Float16, loops unrolled on
 * demand), IEEE arithmetic rounding to nearest, and no fast-math flags. There is no state, and errno
 * is never read: compile with -fno-math-errno, so that roots become instructions.
 */

#include "arithmetic.c"
#include "elementary.c"
#include "special.c"
#include "single.c"
#include "soft.c"
