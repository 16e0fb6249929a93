/* A small fuzzer for gcc, which has no libFuzzer: mutates inputs, keeps those that reach new code.
 *
 *   fuzz_NAME [seconds [seed]]    runs; exit 1 where an input kills the target: it is in crash-NAME
 *                                 beside the program
 *   fuzz_NAME file FILE           runs one input (to repeat a crash)
 *
 * A target is LLVMFuzzerTestOneInput, so it links to libFuzzer unaltered where clang is at hand.
 * Its sources are compiled with -fsanitize-coverage=trace-pc, the driver is not: each block of
 * code reached marks a byte of a shared map. Inputs run in a forked worker, so a crash, an exit
 * or a hang is seen by the parent, which knows the input from shared memory. fuzz_fork: a new
 * process for each input, for targets whose state lives as long as their process.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONGEST 8192 /* bytes of an input */
#define KEPT 2048    /* inputs of the corpus */
#define MAP (1u << 16)
#define BATCH 20000 /* inputs of one worker: a leak ends with it */
#define HANG_SECONDS 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Once, before any input and before any fork. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
#pragma weak LLVMFuzzerInitialize
/* The n-th input to begin with; its size, 0: there is none. */
size_t fuzz_seed(unsigned n, uint8_t *data, size_t room);
extern const int fuzz_fork;
extern const char fuzz_name[];

struct input {
    uint32_t size;
    uint8_t data[LONGEST];
};
static struct shared {
    /* in this input */
    uint8_t reached[MAP];
    uint8_t known[MAP]; /* in any */
    _Atomic uint64_t runs, covered;
    uint32_t kept;
    struct input current, corpus[KEPT];
} *all;
static uint64_t state;
static const char *program;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    uintptr_t at = (uintptr_t)__builtin_return_address(0);
    if (all)
        all->reached[(at ^ at >> 16) % MAP] = 1;
}

static uint32_t pick(uint32_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return below ? (uint32_t)(state >> 11) % below : 0;
}

static void mutate(struct input *in)
{
    static const uint64_t odd[] = {0,          1,          2,          0x7f,       0x80,
                                   0xff,       0x7fff,     0xffff,     0x7fffffff, 0x80000000,
                                   0xffffffff, 1ull << 32, 1ull << 40, 1ull << 63, ~0ull,
                                   ~0ull - 15, 4096,       1ull << 21};
    for (uint32_t n = 1 + pick(6); n--;) {
        uint32_t at = pick(in->size), width = 1u << pick(4);
        uint64_t value = odd[pick(sizeof odd / sizeof *odd)];
        switch (pick(7)) {
        case 0:
            if (in->size)
                in->data[at] ^= (uint8_t)(1u << pick(8));
            break;
        case 1:
            if (in->size)
                in->data[at] = (uint8_t)pick(256);
            break;
        case 2: /* a number that programs stumble over, aligned or not */
            at = pick(2) ? at : at & ~(width - 1);
            if (at + width <= in->size)
                memcpy(in->data + at, &value, width);
            break;
        case 3: in->size = pick(in->size + 1); break;
        case 4: /* more of the same */
            value = pick(LONGEST - in->size + 1) % 256;
            memset(in->data + in->size, (int)pick(256), value);
            in->size += (uint32_t)value;
            break;
        case 5: { /* a piece of another input */
            const struct input *other = &all->corpus[pick(all->kept)];
            uint32_t from = pick(other->size), size = pick(other->size - from + 1);
            if (at + size <= LONGEST) {
                memcpy(in->data + at, other->data + from, size);
                in->size = at + size > in->size ? at + size : in->size;
            }
            break;
        }
        default:
            if (in->size) {
                uint32_t from = pick(in->size),
                         size = pick(in->size - (from > at ? from : at)) % 64;
                memmove(in->data + at, in->data + from, size);
            }
        }
    }
}

static void run_one(void)
{
    int fresh = 0;

    memset(all->reached, 0, MAP);
    LLVMFuzzerTestOneInput(all->current.data, all->current.size);
    for (uint32_t i = 0; i < MAP; i++)
        if (all->reached[i] && !all->known[i]) {
            all->known[i] = 1;
            atomic_fetch_add(&all->covered, 1);
            fresh = 1;
        }
    if (fresh && all->kept < KEPT)
        all->corpus[all->kept++] = all->current;
    atomic_fetch_add(&all->runs, 1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Waits for the worker; 0 where it ended well, a text of what happened otherwise. */
static const char *waited(pid_t worker)
{
    static char text[64];
    uint64_t seen = atomic_load(&all->runs);
    double since = now();
    int status;

    while (waitpid(worker, &status, WNOHANG) == 0) {
        uint64_t runs = atomic_load(&all->runs);
        if (runs != seen)
            seen = runs, since = now();
        if (now() - since > HANG_SECONDS) {
            kill(worker, SIGKILL);
            waitpid(worker, &status, 0);
            return "hangs";
        }
        usleep(200);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "dies of signal %d", WTERMSIG(status));
    else
        snprintf(text, sizeof text, "exits with %d", WEXITSTATUS(status));
    return text;
}

static int report(const char *what)
{
    char name[256];
    FILE *file;

    snprintf(name, sizeof name, "%.*scrash-%s",
             (int)(strrchr(program, '/') ? strrchr(program, '/') + 1 - program : 0), program,
             fuzz_name);
    if ((file = fopen(name, "we"))) {
        fwrite(all->current.data, 1, all->current.size, file);
        fclose(file);
    }
    printf("fuzz %s: input %lu %s: it is in %s (repeat: fuzz_%s file %s)\n", fuzz_name,
           (unsigned long)atomic_load(&all->runs) + 1, what, name, fuzz_name, name);
    return 1;
}

static int one_file(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "fuzz %s: cannot read %s\n", fuzz_name, path);
        return 2;
    }
    all->current.size = (uint32_t)fread(all->current.data, 1, LONGEST, file);
    fclose(file);
    run_one();
    return 0;
}

int main(int argc, char **argv)
{
    double end;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const char *bad;

    program = argv[0];
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc > 2 && !strcmp(argv[1], "file"))
        return one_file(argv[2]);
    end = now() + (argc > 1 ? strtod(argv[1], NULL) : 60);
    for (size_t size;
         all->kept < KEPT && (size = fuzz_seed(all->kept, all->corpus[all->kept].data, LONGEST));
         all->kept++)
        all->corpus[all->kept].size = (uint32_t)size;
    /* as they are, before any is altered */
    for (uint32_t i = 0, seeds = all->kept; i < seeds; i++) {
        pid_t worker;
        all->current = all->corpus[i];
        if (!(worker = fork())) {
            run_one();
            _exit(0);
        }
        if ((bad = waited(worker)))
            return report(bad);
    }
    for (uint64_t round = 1; now() < end; round++) {
        pid_t worker = fork();
        if (!worker) {
            state = seed * 0x9e3779b97f4a7c15ull + round * 0xbf58476d1ce4e5b9ull + 1;
            pick(0), state = state ? state : 1;
            for (int i = 0; i < (fuzz_fork ? 1 : BATCH) && now() < end; i++) {
                for (int j = 0; j < 4; j++)
                    pick(2);
                all->current = all->corpus[pick(all->kept)];
                mutate(&all->current);
                run_one();
            }
            _exit(0);
        }
        if ((bad = waited(worker)))
            return report(bad);
    }
    printf("fuzz %s: %lu inputs, %u kept, %lu places reached, no crash\n", fuzz_name,
           (unsigned long)atomic_load(&all->runs), all->kept,
           (unsigned long)atomic_load(&all->covered));
    return 0;
}
