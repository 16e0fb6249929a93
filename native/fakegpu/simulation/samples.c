/* Utilisation as NVML gives it: a sample of each sixth of a second, with rows per process. */
#include "simulation/samples.h"

#include <string.h>

#include "state/state.h"

static uint32_t ppm(uint64_t part)
{
    uint64_t whole = part * 1000000 / FG_SAMPLE_NS;
    return whole < 1000000 ? (uint32_t)whole : 1000000;
}

static struct fg_sample_row *row_of(struct fg_sample *sample, int process)
{
    for (uint32_t i = 0; i < sample->rows; i++)
        if (sample->row[i].process == process)
            return &sample->row[i];
    if (sample->rows == FG_SAMPLE_ROWS)
        return NULL;
    struct fg_sample_row *row = &sample->row[sample->rows++];
    *row = (struct fg_sample_row){.process = process, .pid = fg_state->process[process].pid};
    return row;
}

static void close_sample(struct fg_engine *e, struct fg_engine_gpu *gpu, int number)
{
    struct fg_sample *sample = &gpu->ring[gpu->samples % FG_SAMPLES];
    memset(sample, 0, sizeof *sample);
    sample->busy_ppm = ppm(gpu->busy);
    sample->memory_ppm = ppm(gpu->copy_busy + gpu->busy / 5);
    for (uint32_t i = 0; i < e->contexts; i++) {
        struct fg_engine_context *context = &e->context[i];
        if (context->gpu != number || !context->process || !(context->busy || context->copy_busy))
            continue;
        struct fg_sample_row *row = row_of(sample, context->process - 1);
        if (row) {
            row->sm_ppm += ppm(context->busy >> 16);
            row->memory_ppm += ppm(context->copy_busy + (context->busy >> 16) / 5);
        }
        uint8_t instance = fg_state->process[context->process - 1].gi[number];
        if (instance && instance <= FG_INSTANCES)
            gpu->totals.instance_busy[instance - 1] += context->busy >> 16;
        context->busy = context->copy_busy = 0;
    }
    gpu->totals.busy += gpu->busy;
    gpu->totals.copy += gpu->copy_busy;
    gpu->busy = gpu->copy_busy = 0;
    gpu->sample_begun += FG_SAMPLE_NS;
    gpu->totals.until = gpu->sample_begun;
    sample->end_ns = gpu->sample_begun;
    gpu->samples++;
}

uint64_t fg_samples_next(void)
{
    /* the same for all */
    return fg_state->engine.gpu[0].sample_begun + FG_SAMPLE_NS;
}

void fg_samples_take(void)
{
    struct fg_engine *e = &fg_state->engine;
    if (e->t < fg_samples_next())
        return;
    for (int g = 0; g < (int)e->gpus; g++) {
        struct fg_engine_gpu *gpu = &e->gpu[g];
        uint64_t behind = (e->t - gpu->sample_begun) / FG_SAMPLE_NS;
        for (uint64_t i = 0; i < behind && i <= FG_SAMPLES; i++) {
            close_sample(e, gpu, g);
            if (!i && behind > FG_SAMPLES) /* a long idle time: only its last samples are kept */
                gpu->sample_begun += (behind - FG_SAMPLES - 1) * FG_SAMPLE_NS;
        }
    }
}
