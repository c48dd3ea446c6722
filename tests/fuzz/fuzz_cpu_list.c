/* CPU lists of the kernel's form: any text, and every answer is in order. */
#include "src/base/topology.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    int32_t cpu = qn_cpu_list_next(text, 0);
    for (int i = 0; cpu >= 0 && cpu < INT32_MAX && i < 100; i++) {
        const int32_t next = qn_cpu_list_next(text, cpu + 1);
        if (qn_cpu_list_next(text, cpu) != cpu || (next >= 0 && next <= cpu)) abort();
        cpu = next;
    }
    free(text);
    return 0;
}
