/*
 * A tc_gpu_device on the driver of NVIDIA's GPUs, which is loaded at run time. Include the header that tc-compile
 * wrote first. Link with -ldl.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions of the driver that are used here, without cuda.h. */
typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;

#define DRIVER_FUNCTIONS(F)                                                                             \
  F(cuInit, (unsigned flags))                                                                           \
  F(cuGetErrorString, (CUresult error, const char **text))                                              \
  F(cuDeviceGet, (CUdevice *device, int number))                                                        \
  F(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                                    \
  F(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                    \
  F(cuCtxSetCurrent, (CUcontext context))                                                               \
  F(cuStreamCreate, (CUstream *stream, unsigned flags))                                                 \
  F(cuStreamDestroy_v2, (CUstream stream))                                                              \
  F(cuStreamSynchronize, (CUstream stream))                                                             \
  F(cuModuleLoadData, (CUmodule *module, const void *image))                                            \
  F(cuModuleUnload, (CUmodule module))                                                                  \
  F(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name))                     \
  F(cuMemAlloc_v2, (tc_gpu_address *address, size_t bytes))                                             \
  F(cuMemFree_v2, (tc_gpu_address address))                                                             \
  F(cuMemcpyHtoDAsync_v2, (tc_gpu_address target, const void *source, size_t bytes, CUstream stream))   \
  F(cuMemcpyDtoHAsync_v2, (void *target, tc_gpu_address source, size_t bytes, CUstream stream))         \
  F(cuMemcpyDtoDAsync_v2, (tc_gpu_address target, tc_gpu_address source, size_t bytes, CUstream stream)) \
  F(cuLaunchKernel,                                                                                     \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,          \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **arguments,      \
     void **extra))

/* More arguments than this are an error. */
enum { MAX_ARGUMENTS = 256 };

struct device {
  /* The table for host code. */
  struct tc_gpu_device table;
#define DECLARE(name, parameters) CUresult(*name) parameters;
  DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE
  void *library;
  CUdevice gpu;
  CUcontext context;
  CUstream stream;
  CUmodule module;
  CUfunction *kernels;
  /* Whether a call failed, and the first reason. Later calls do nothing. */
  bool failed;
  char error[256];
};

static inline void device_fail(struct device *device, const char *what, const char *why) {
  if (!device->failed)
    snprintf(device->error, sizeof device->error, "%s: %s", what, why ? why : "unknown error");
  device->failed = true;
}

/* Notes the result of a call of the driver. */
static inline void device_check(struct device *device, const char *what, CUresult result) {
  const char *why = NULL;
  if (result != 0) {
    device->cuGetErrorString(result, &why);
    device_fail(device, what, why);
  }
}

/* Calls the driver, unless a call before has failed. */
#define DRIVER(device, function, ...)                                      \
  do {                                                                     \
    if (!(device)->failed)                                                 \
      device_check((device), #function, (device)->function(__VA_ARGS__)); \
  } while (0)

static void device_launch(void *context, int32_t kernel, int32_t blocks, int32_t threads,
                          int32_t shared_bytes, const uint64_t *arguments, int32_t num_arguments) {
  struct device *device = context;
  uint64_t words[MAX_ARGUMENTS];
  void *pointers[MAX_ARGUMENTS];
  if (num_arguments > MAX_ARGUMENTS) {
    device_fail(device, "cuLaunchKernel", "too many arguments");
    return;
  }
  for (int32_t i = 0; i < num_arguments; i++) {
    words[i] = arguments[i];
    pointers[i] = &words[i];
  }
  DRIVER(device, cuLaunchKernel, device->kernels[kernel], (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1,
         (unsigned)shared_bytes, device->stream, pointers, NULL);
}

static void device_copy(void *context, tc_gpu_address target, tc_gpu_address source, int64_t bytes) {
  struct device *device = context;
  DRIVER(device, cuMemcpyDtoDAsync_v2, target, source, (size_t)bytes, device->stream);
}

static int32_t device_read(void *context, void *target, tc_gpu_address source, int64_t bytes) {
  struct device *device = context;
  DRIVER(device, cuMemcpyDtoHAsync_v2, target, source, (size_t)bytes, device->stream);
  DRIVER(device, cuStreamSynchronize, device->stream);
  return device->failed;
}

static void device_write(void *context, tc_gpu_address target, const void *source, int64_t bytes) {
  struct device *device = context;
  /* Of memory that is not page-locked the driver has a copy when this returns. */
  DRIVER(device, cuMemcpyHtoDAsync_v2, target, source, (size_t)bytes, device->stream);
}

/* Allocates bytes on the device; 0 if that fails. */
static inline tc_gpu_address device_allocate(struct device *device, int64_t bytes) {
  tc_gpu_address address = 0;
  DRIVER(device, cuMemAlloc_v2, &address, bytes > 0 ? (size_t)bytes : 1);
  return address;
}

/* Frees what was allocated, also if a call has failed. */
static inline void device_free(struct device *device, tc_gpu_address address) {
  if (address)
    device->cuMemFree_v2(address);
}

/* Finds the first GPU, and loads the kernels of a PTX text to it. device->failed tells whether that worked. */
static inline void device_open(struct device *device, const char *ptx, const struct tc_gpu_kernel *kernels,
                               int num_kernels) {
  memset(device, 0, sizeof *device);
  device->table.context = device;
  device->table.launch = device_launch;
  device->table.copy = device_copy;
  device->table.read = device_read;
  device->table.write = device_write;
  device->library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!device->library) {
    device_fail(device, "no driver of NVIDIA's GPUs", dlerror());
    return;
  }
#define LOAD(name, parameters)                                              \
  device->name = (CUresult(*) parameters)dlsym(device->library, #name);     \
  if (!device->name)                                                        \
    device_fail(device, "the driver has no function " #name, dlerror());
  DRIVER_FUNCTIONS(LOAD)
#undef LOAD
  DRIVER(device, cuInit, 0);
  DRIVER(device, cuDeviceGet, &device->gpu, 0);
  DRIVER(device, cuDevicePrimaryCtxRetain, &device->context, device->gpu);
  DRIVER(device, cuCtxSetCurrent, device->context);
  DRIVER(device, cuStreamCreate, &device->stream, 1 /* CU_STREAM_NON_BLOCKING */);
  device->kernels = calloc((size_t)num_kernels + 1, sizeof *device->kernels);
  if (!device->kernels) {
    device_fail(device, "kernels", "not enough memory");
    return;
  }
  /* Without kernels the PTX is empty, and no module. */
  if (num_kernels > 0)
    DRIVER(device, cuModuleLoadData, &device->module, ptx);
  for (int i = 0; i < num_kernels; i++)
    DRIVER(device, cuModuleGetFunction, &device->kernels[i], device->module, kernels[i].name);
}

static inline void device_close(struct device *device) {
  if (device->module)
    device->cuModuleUnload(device->module);
  if (device->stream)
    device->cuStreamDestroy_v2(device->stream);
  if (device->context)
    device->cuDevicePrimaryCtxRelease_v2(device->gpu);
  free(device->kernels);
  if (device->library)
    dlclose(device->library);
}

#endif
