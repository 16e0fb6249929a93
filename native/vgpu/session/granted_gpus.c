/* A process sees the GPUs that its container was given; all others are hidden, not refused.
 *
 * The driver itself hides them: cuInit reads CUDA_VISIBLE_DEVICES, once in the life of a process,
 * and whatever means a GPU by a number (devices, places of memory, peers) counts over those that it
 * names. So while the driver is in cuInit, the variable names what the limits page grants, by UUID
 * and in the page's order, or those of them that the program's own value chooses. Then it is again
 * what it was. Who starts another program in that moment hands the names on: they are what it may
 * use. A driver that shows more nevertheless is refused (current_gpu.c).
 */
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "session/session.h"

#define VARIABLE "CUDA_VISIBLE_DEVICES"

extern char **environ;

/* Held while the driver is in its first cuInit, which lets threads through one by one itself: the
 * variable must not be put back for one of them while another is still in there. */
static pthread_mutex_t initializing = PTHREAD_MUTEX_INITIALIZER;
static bool initialized;
static char shown_text[sizeof VARIABLE + VG_DEVICES * (VG_UUID_TEXT + 1)];
static char **shown; /* kept: another thread may be reading it */
static size_t shown_room;

void vg_uuid_text(const uint8_t uuid[16], char text[VG_UUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    char *to = text;
    memcpy(to, "GPU-", 4);
    to += 4;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = digits[uuid[i] >> 4];
        *to++ = digits[uuid[i] & 15];
    }
    *to = 0;
}

static int granted(void)
{
    return (int)(vg_limits->n_devices < VG_DEVICES ? vg_limits->n_devices : VG_DEVICES);
}

/* The row that one item of the program's value means, by number or by (the beginning of) a UUID;
 * -1: none, and the driver, too, stops reading there. */
static int chosen(const char *item, size_t length)
{
    char name[VG_UUID_TEXT], *end;
    if (isdigit((unsigned char)*item)) {
        long number = strtol(item, &end, 10);
        return number < granted() ? (int)number : -1;
    }
    for (int row = 0; row < granted() && length > 4; row++) {
        vg_uuid_text(vg_limits->device[row].uuid, name);
        if (length < sizeof name && !strncasecmp(name, item, length))
            return row;
    }
    return -1;
}

/* Writes the variable as the driver shall read it; `own`: the program's value, NULL: it has none. */
static void describe(const char *own)
{
    char *to = shown_text + sprintf(shown_text, VARIABLE "=");
    int named = 0;
    for (int i = 0; i < granted(); i++) {
        int row = i;
        if (own) {
            own += strspn(own, " \t");
            size_t length = strcspn(own, ",");
            row = length ? chosen(own, length) : -1;
            own += length + (own[length] == ',');
        }
        if (row < 0)
            break;
        if (named++)
            *to++ = ',';
        vg_uuid_text(vg_limits->device[row].uuid, to);
        to += strlen(to);
    }
    if (!named)
        strcpy(to, "-1"); /* no GPU: an empty value has meant all of them to some drivers */
}

/* Whether the environment is as `initialize` made it from `before`, but for its own entry. */
static bool untouched(char **before, size_t entries, size_t own)
{
    if (environ != shown || shown[entries + (own == entries)])
        return false;
    for (size_t i = 0; i < entries; i++)
        if (i != own && shown[i] != before[i])
            return false;
    return true;
}

/* Without setenv: that may move the array while another thread reads it. */
static CUresult initialize(unsigned int flags)
{
    char **before = environ;
    size_t entries = 0, own;
    while (before && before[entries])
        entries++;
    for (own = 0; own < entries; own++)
        if (!strncmp(before[own], VARIABLE "=", sizeof VARIABLE))
            break;
    const char *value = own < entries ? before[own] + sizeof VARIABLE : NULL;
    if (shown_room < entries + 2) {
        char **array = malloc((entries + 2) * sizeof *array);
        if (!array)
            return CUDA_ERROR_OUT_OF_MEMORY;
        shown = array;
        shown_room = entries + 2;
    }
    describe(value);
    if (entries)
        memcpy(shown, before, entries * sizeof *shown);
    shown[own] = shown_text;
    shown[entries + (own == entries)] = NULL;
    __atomic_store_n(&environ, shown, __ATOMIC_SEQ_CST);
    CUresult result = REAL(cuInit)(flags);
    if (untouched(before, entries, own))
        __atomic_store_n(&environ, before, __ATOMIC_SEQ_CST);
    else if (value) /* another thread has changed a variable meanwhile: its array stays */
        setenv(VARIABLE, value, 1);
    else
        unsetenv(VARIABLE);
    return result;
}

CUresult vg_init_granted(unsigned int flags)
{
    if (atomic_load(&vg_mode) != VG_MODE_LIMITED)
        return REAL(cuInit)(flags);
    pthread_mutex_lock(&initializing);
    CUresult result = initialized ? REAL(cuInit)(flags) : initialize(flags);
    initialized |= result == CUDA_SUCCESS;
    pthread_mutex_unlock(&initializing);
    return result;
}

void vg_granted_gpus_forked(void)
{
    pthread_mutex_init(&initializing, NULL);
}
