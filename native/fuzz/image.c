/* Module files: the library reads them to know what to charge, before the driver has judged them.
 *
 * An input is a file's content. Whatever it claims of itself, nothing beyond it may be read. (An
 * image in memory has no end that anybody knows; there the driver reads as far as we do.)
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/memory.h"
#include "world.h"

const int fuzz_fork = 0;
const char fuzz_name[] = "image";
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t fuzz_seed(unsigned n, uint8_t *data, size_t room);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    static int file = -1;

    if (file < 0) {
        file = memfd_create("image", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    vg_image_file_bytes(path, 90);
    return 0;
}

size_t fuzz_seed(unsigned n, uint8_t *data, size_t room)
{
    static const char ptx[] =
        ".version 6.0\n.target sm_50\n.global .align 4 .v2 .f32 a[0x10][3], b = 1;"
        "/* */ .extern .const .b8 c[4]; .entry e(.param .u64 .ptr .global p){}";
    static const char entry[64] = {[0] = 1, [4] = 64, [8] = sizeof ptx, [28] = 80};
    const uint32_t fatbin[] = {0xba55ed50, 0x00100001, 4096, 0},
                   wrapper[] = {0x466243b1, 1, 0, 0, 0, 0};
    Elf64_Ehdr *elf = (Elf64_Ehdr *)data;
    Elf64_Shdr *section = (Elf64_Shdr *)(data + sizeof *elf);

    memset(data, 0, room < 1024 ? room : 1024);
    switch (n) {
    case 0: memcpy(data, ptx, sizeof ptx); return sizeof ptx;
    case 1: memcpy(data, fatbin, sizeof fatbin); return sizeof fatbin + 64;
    case 4:
        memcpy(data, fatbin, sizeof fatbin);
        data[8] = sizeof entry + sizeof ptx, data[9] = 0;
        memcpy(data + 16, entry, sizeof entry);
        memcpy(data + 16 + sizeof entry, ptx, sizeof ptx);
        return 16 + sizeof entry + sizeof ptx;
    case 2: memcpy(data, wrapper, sizeof wrapper); return sizeof wrapper;
    case 3:
        memcpy(elf->e_ident, ELFMAG, SELFMAG);
        elf->e_shoff = sizeof *elf;
        elf->e_shentsize = sizeof *section;
        elf->e_shnum = 3;
        section[1] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_size = 1 << 20};
        section[2] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_offset = 512, .sh_size = 256};
        return 768;
    default: return 0;
    }
}
