/* Errors' names and texts. */
#include "driver/driver.h"

static const struct {
    int value;
    const char *name;
} errors[] = {
#include "fg_errors.inc"
};

static const char *error_name(CUresult error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].value == (int)error)
            return errors[i].name;
    return NULL;
}

CUresult FG(cuGetErrorName)(CUresult error, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error_name(error);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuGetErrorString)(CUresult error, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error == CUDA_SUCCESS                 ? "no error"
            : error == CUDA_ERROR_OUT_OF_MEMORY   ? "out of memory"
            : error == CUDA_ERROR_NOT_INITIALIZED ? "initialization error"
            : error == CUDA_ERROR_NO_DEVICE       ? "no CUDA-capable device is detected"
                                                  : error_name(error);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
