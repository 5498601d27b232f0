/* Stands in for the driver's library: one GPU, of which FAKE_NVML_USED bytes are taken by process FAKE_NVML_PID, and
   which is busy for FAKE_NVML_BUSY percent; without that it does not say. The driver takes CUDA up to FAKE_NVML_CUDA
   (12040: 12.4). */
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gpu, compute; } process_t;

static unsigned long long number(const char *name) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = (int)number("FAKE_NVML_CUDA");
    return *version ? 0 : 3;
}
int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = 1;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, unsigned int *rates) {
    if (!getenv("FAKE_NVML_BUSY")) return 3;
    rates[0] = (unsigned int)number("FAKE_NVML_BUSY");
    rates[1] = 0;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    *handle = (void *)1;
    return index == 0 ? 0 : 6;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    *handle = (void *)1;
    return strcmp(uuid, "GPU-fake") == 0 ? 0 : 6;
}
int nvmlDeviceGetName(void *handle, char *name, unsigned int length) {
    strncpy(name, "Fake H100", length);
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    memory->total = 80000000000ULL;
    memory->used = number("FAKE_NVML_USED");
    memory->free = memory->total - memory->used;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, process_t *processes) {
    *count = number("FAKE_NVML_PID") ? 1 : 0;
    processes[0].pid = (unsigned int)number("FAKE_NVML_PID");
    processes[0].used = number("FAKE_NVML_USED");
    return 0;
}
