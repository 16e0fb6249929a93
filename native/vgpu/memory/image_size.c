/* How large a module's image is: the bytes of device memory that it is charged with.
 *
 * The driver keeps code, constants and globals of what it loads; nobody outside can ask how much,
 * and the image's own size is a fair figure, known before the call, with the variables that it only
 * declares. An image comes as an ELF file (a cubin), a fat binary (bare, or behind the wrapper that
 * nvcc makes), of which one image counts, or PTX text. */
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
static uint64_t elf_bytes(const void *image, uint64_t size)
{
    Elf64_Ehdr elf; /* it need not be aligned there */
    if (size < sizeof elf)
        return size;
    memcpy(&elf, image, sizeof elf);
    if (elf.e_shoff > size || size - elf.e_shoff < (uint64_t)elf.e_shentsize * elf.e_shnum)
        return size;
    uint64_t end = elf.e_shoff + (uint64_t)elf.e_shentsize * elf.e_shnum;
    uint64_t programs = elf.e_phoff + (uint64_t)elf.e_phentsize * elf.e_phnum;
    const char *section = (const char *)image + elf.e_shoff;
    uint64_t zeroed = 0;
    if (programs > end)
        end = programs;
    for (int i = 0; elf.e_shoff && i < elf.e_shnum; i++, section += elf.e_shentsize) {
        Elf64_Shdr header;
        memcpy(&header, section, sizeof header);
        if (header.sh_type == SHT_NOBITS)
            zeroed += header.sh_size; /* .nv.global: not in the image, but on the device */
        else if (header.sh_offset + header.sh_size > end)
            end = header.sh_offset + header.sh_size;
    }
    return end + zeroed;
}

static uint64_t text_bytes(const char *text, uint64_t size)
{
    size_t length = size == IN_MEMORY ? strlen(text) : strnlen(text, size);
    uint64_t globals = vg_ptx_globals(text, length);
    return globals > UINT64_MAX - length ? UINT64_MAX : globals + length;
}

/* What is packed shows only its length unpacked, not what it declares. */
static uint64_t chosen_bytes(const struct vg_image_choice *choice)
{
    if (choice->is_packed)
        return choice->unpacked > choice->bytes ? choice->unpacked : choice->bytes;
    if (choice->bytes >= SELFMAG && memcmp(choice->image, ELFMAG, SELFMAG) == 0)
        return elf_bytes(choice->image, choice->bytes);
    return text_bytes(choice->image, choice->bytes);
}

static uint64_t image_within(const void *image, uint64_t size, uint32_t arch)
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
        return image_within(inner, size, arch);
    }
    if (magic == FATBIN) { /* {magic, version, size of this header, size of what follows} */
        uint16_t header;
        uint64_t body;
        memcpy(&header, (const char *)image + 6, sizeof header);
        memcpy(&body, (const char *)image + 8, sizeof body);
        struct vg_image_choice choice;
        bool is_whole = size == IN_MEMORY || (header <= size && body <= size - header);
        if (arch && is_whole &&
            vg_fat_binary_choice((const char *)image + header, body, arch, &choice))
            return chosen_bytes(&choice);
        return header + body;
    }
    if (memcmp(&magic, ELFMAG, SELFMAG) == 0)
        return elf_bytes(image, size);
    return text_bytes(image, size);
}

uint64_t vg_image_bytes(const void *image, uint32_t arch)
{
    return image_within(image, IN_MEMORY, arch);
}

/* A file is looked at through a mapping of it, with a page of zeros behind for what ends in
 * none. */
uint64_t vg_image_file_bytes(const char *path, uint32_t arch)
{
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    uint64_t bytes = 0;
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    if (size > 0) {
        size_t room = ((size_t)size + 4095 + 4096) & ~(size_t)4095;
        char *area = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (area != MAP_FAILED) {
            if (mmap(area, (size_t)size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED)
                bytes = image_within(area, (uint64_t)size, arch);
            munmap(area, room);
        }
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}
