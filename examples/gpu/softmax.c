/*
 * Runs examples/tc/softmax.tc on a GPU: docs/src/gpu.md has the commands.
 *
 * Usage: softmax softmax.ptx
 */
#include "softmax.h"

#include "device.h"

#include <math.h>

enum { ROWS = 3, COLUMNS = 5 };

/* The text of a file, with a zero behind it. NULL if it cannot be read. */
static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  size_t size = 0;
  if (!file)
    return NULL;
  for (;;) {
    char *longer = realloc(text, size + 4097);
    if (!longer)
      break;
    text = longer;
    size_t count = fread(text + size, 1, 4096, file);
    size += count;
    text[size] = 0;
    if (count < 4096)
      break;
  }
  fclose(file);
  return text;
}

/* The largest difference of y from the softmax of the rows of x. */
static float difference(float x[ROWS][COLUMNS], float y[ROWS][COLUMNS]) {
  float largest = 0;
  for (int i = 0; i < ROWS; i++) {
    float sum = 0;
    for (int j = 0; j < COLUMNS; j++)
      sum += expf(x[i][j]);
    for (int j = 0; j < COLUMNS; j++)
      largest = fmaxf(largest, fabsf(y[i][j] - expf(x[i][j]) / sum));
  }
  return largest;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s softmax.ptx\n", argv[0]);
    return 2;
  }
  char *ptx = read_text(argv[1]);
  if (!ptx) {
    fprintf(stderr, "error: cannot read %s\n", argv[1]);
    return 1;
  }
  struct device device;
  device_open(&device, ptx, softmax_kernels, softmax_num_kernels);

  float x[ROWS][COLUMNS], y[ROWS][COLUMNS] = {{0}};
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++)
      x[i][j] = (float)(i - j);

  const tc_gpu_address input = device_allocate(&device, sizeof x);
  const tc_gpu_address output = device_allocate(&device, sizeof y);
  const tc_gpu_address maxima = device_allocate(&device, ROWS * sizeof(float));
  const tc_gpu_address sums = device_allocate(&device, ROWS * sizeof(float));
  const tc_gpu_address workspace = device_allocate(&device, softmax_workspace_bytes(ROWS, COLUMNS));
  const tc_gpu_address constants = device_allocate(&device, softmax_constant_bytes());
  int code = 0;
  if (!device.failed) {
    device_write(&device, constants, softmax_constants, softmax_constant_bytes());
    device_write(&device, input, x, sizeof x);
    code = softmax(input, output, maxima, sums, ROWS, COLUMNS, workspace, constants, &device.table);
    device_read(&device, y, output, sizeof y);
  }
  device_free(&device, input);
  device_free(&device, output);
  device_free(&device, maxima);
  device_free(&device, sums);
  device_free(&device, workspace);
  device_free(&device, constants);

  int status = 1;
  if (device.failed) {
    fprintf(stderr, "error: %s\n", device.error);
  } else if (code != 0) {
    fprintf(stderr, "error: %s\n", softmax_error(code));
  } else {
    for (int i = 0; i < ROWS; i++)
      for (int j = 0; j < COLUMNS; j++)
        printf("%.4f%c", y[i][j], j + 1 < COLUMNS ? ' ' : '\n');
    status = difference(x, y) < 1e-6f ? 0 : 1;
    puts(status == 0 ? "all values are right" : "error: values are wrong");
  }
  device_close(&device);
  free(ptx);
  return status;
}
