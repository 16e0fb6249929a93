/* How large a module's image is: the bytes of device memory that it is charged with.
 *
 * The driver keeps code, constants and globals of what it loads; nobody outside can ask how much,
 * and the image's own size is a fair figure, known before the call. An image comes as an ELF file
 * (a cubin), a fat binary (bare, or behind the wrapper that nvcc makes), or PTX text. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/memory.h"

#define FATBIN_WRAPPER 0x466243b1u
#define FATBIN 0xba55ed50u

/* the driver is given no size either: what is said there must be so */
#define IN_MEMORY UINT64_MAX

/* `size`: of the file that it is in, of which the end may be missing. */
static uint64_t elf_bytes(const Elf64_Ehdr *elf, uint64_t size)
{
    if (size < sizeof *elf || elf->e_shoff > size ||
        size - elf->e_shoff < (uint64_t)elf->e_shentsize * elf->e_shnum)
        return size;
    uint64_t end = elf->e_shoff + (uint64_t)elf->e_shentsize * elf->e_shnum;
    uint64_t programs = elf->e_phoff + (uint64_t)elf->e_phentsize * elf->e_phnum;
    const char *section = (const char *)elf + elf->e_shoff;
    uint64_t zeroed = 0;
    if (programs > end)
        end = programs;
    for (int i = 0; elf->e_shoff && i < elf->e_shnum; i++, section += elf->e_shentsize) {
        Elf64_Shdr header;
        memcpy(&header, section, sizeof header);
        if (header.sh_type == SHT_NOBITS)
            zeroed += header.sh_size; /* .nv.global: not in the image, but on the device */
        else if (header.sh_offset + header.sh_size > end)
            end = header.sh_offset + header.sh_size;
    }
    return end + zeroed;
}

static uint64_t image_within(const void *image, uint64_t size)
{
    uint32_t magic;
    /* none of the magic words has a zero */
    if (!image || strnlen(image, sizeof magic) < sizeof magic)
        return image ? strlen(image) : 0;
    memcpy(&magic, image, sizeof magic);
    if (magic == FATBIN_WRAPPER) { /* {magic, version, pointer to the fat binary, file name} */
        const void *inner;
        if (size != IN_MEMORY)
            return size; /* an address of another process */
        memcpy(&inner, (const char *)image + 8, sizeof inner);
        return image_within(inner, size);
    }
    if (magic == FATBIN) { /* {magic, version, size of this header, size of what follows} */
        uint16_t header;
        uint64_t body;
        memcpy(&header, (const char *)image + 6, sizeof header);
        memcpy(&body, (const char *)image + 8, sizeof body);
        return header + body;
    }
    if (memcmp(&magic, ELFMAG, SELFMAG) == 0)
        return elf_bytes(image, size);
    return strlen(image);
}

uint64_t vg_image_bytes(const void *image)
{
    return image_within(image, IN_MEMORY);
}

/* A file is looked at through a mapping of it, with a page of zeros behind for what ends in
 * none. */
uint64_t vg_image_file_bytes(const char *path)
{
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    uint64_t bytes = 0;
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    if (size > 0) {
        size_t room = ((size_t)size + 4095 + 4096) & ~(size_t)4095;
        char *area = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (area != MAP_FAILED) {
            if (mmap(area, (size_t)size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED)
                bytes = image_within(area, (uint64_t)size);
            munmap(area, room);
        }
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}
